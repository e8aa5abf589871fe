//! The byte path: what is read is written on at once, and only then looked at.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that is read at a time.
const BLOCK: usize = 64 * 1024;

/// An open file that waits where others would say "not now": somebody who has
/// the same file open may have made it non-blocking.
#[derive(Debug)]
pub struct Patient(pub File);

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(Ready::Read)?,
                done => return done,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(Ready::Write)?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Ready {
    Read,
    Write,
}

impl Patient {
    #[cfg(unix)]
    fn wait(&self, ready: Ready) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};

        let flags = match ready {
            Ready::Read => PollFlags::IN,
            Ready::Write => PollFlags::OUT,
        };
        match poll(&mut [PollFd::new(&self.0, flags)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    fn wait(&self, _: Ready) -> io::Result<()> {
        Err(ErrorKind::WouldBlock.into())
    }
}

/// Copies until the source ends or nobody reads, unchanged and unbuffered; a
/// partial line passes at once. `seen` gets each block after it was written.
///
/// `waiting` is even while the copy waits for the source, odd while it has
/// bytes to pass on, and grows with every block.
///
/// # Errors
/// Nobody reads any more, or one of the two fails.
pub fn copy(
    mut from: impl Read,
    mut to: impl Write,
    waiting: &AtomicU64,
    mut seen: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        waiting.fetch_add(1, Ordering::AcqRel);
        let written = to.write_all(&block[..read]).and_then(|()| to.flush());
        // Bytes that nobody took are evidence all the same.
        seen(&block[..read]);
        written?;
        waiting.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes and then no more.
    struct Pipe(Vec<u8>, usize);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.1 - self.0.len());
            if fits == 0 {
                return Err(ErrorKind::BrokenPipe.into());
            }
            self.0.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn d2_2_every_byte_passes_and_is_seen_after_it_passed() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let mut pipe = Pipe(Vec::new(), usize::MAX);
        let (mut seen, waiting) = (Vec::new(), AtomicU64::new(0));
        copy(&bytes[..], &mut pipe, &waiting, |block| seen.extend_from_slice(block)).unwrap();
        assert!(pipe.0 == bytes && seen == bytes);
        assert_eq!(waiting.load(Ordering::Acquire) % 2, 0);
    }

    #[test]
    fn d2_2_a_reader_that_goes_away_ends_the_copy() {
        let mut pipe = Pipe(Vec::new(), 100_000);
        let waiting = AtomicU64::new(0);
        let error = copy(io::repeat(b'x'), &mut pipe, &waiting, |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(pipe.0.len(), 100_000);
    }

    #[cfg(unix)]
    #[test]
    fn d2_2_a_pipe_that_somebody_made_non_blocking_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let files =
            [File::from(std::os::fd::OwnedFd::from(reader)), File::from(std::os::fd::OwnedFd::from(writer))];
        for file in &files {
            rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::NONBLOCK).unwrap();
        }
        let [reader, writer] = files.map(Patient);
        let bytes = vec![7; 1 << 20];
        let sent = bytes.clone();
        let sender = std::thread::spawn(move || {
            let mut writer = writer;
            writer.write_all(&sent).unwrap();
        });
        let (mut got, waiting) = (Vec::new(), AtomicU64::new(0));
        copy(reader, &mut got, &waiting, |_| {}).unwrap();
        sender.join().unwrap();
        assert!(got == bytes);
    }
}
