//! The byte path: what is read is written on at once, and only then looked at.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that is read at a time.
const BLOCK: usize = 64 * 1024;

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// Everything was read and written.
    Whole,
    /// Nobody reads any more, or the source failed.
    Broken,
}

/// Copies until the source ends or nobody reads, unchanged and unbuffered; a
/// partial line passes at once. `seen` gets each block after it was written.
///
/// `waiting` is even while the copy waits for the source, odd while it has
/// bytes to pass on, and grows with every block.
pub fn copy(
    mut from: impl Read,
    mut to: impl Write,
    waiting: &AtomicU64,
    mut seen: impl FnMut(&[u8]),
) -> Copied {
    let mut block = vec![0; BLOCK];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Copied::Whole,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Copied::Broken,
        };
        waiting.fetch_add(1, Ordering::AcqRel);
        let written = to.write_all(&block[..read]).and_then(|()| to.flush());
        // Bytes that nobody took are evidence all the same.
        seen(&block[..read]);
        if written.is_err() {
            return Copied::Broken;
        }
        waiting.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

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
        assert_eq!(
            copy(&bytes[..], &mut pipe, &waiting, |block| seen.extend_from_slice(block)),
            Copied::Whole
        );
        assert!(pipe.0 == bytes && seen == bytes);
        assert_eq!(waiting.load(Ordering::Acquire) % 2, 0);
    }

    #[test]
    fn d2_2_a_reader_that_goes_away_ends_the_copy() {
        let mut pipe = Pipe(Vec::new(), 100_000);
        let waiting = AtomicU64::new(0);
        assert_eq!(copy(io::repeat(b'x'), &mut pipe, &waiting, |_| {}), Copied::Broken);
        assert_eq!(pipe.0.len(), 100_000);
    }
}
