//! Lines of a file in large blocks, holding no more than one line up to the cap.

use std::fs::File;
use std::io;
use std::ops::Range;

/// How much is read at a time.
const BLOCK: usize = 256 * 1024;

/// How much of a line over the cap is kept, to see whose it was.
const HEAD_OF_LONG: usize = 512;

/// A buffer for [`Lines`], shared between journals.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// Gives memory back after a long line.
    pub fn shrink(&mut self) {
        self.0.truncate(2 * BLOCK);
        self.0.shrink_to_fit();
    }
}

/// One piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A complete line: its offset in the file and its place in the buffer, without newline.
    Line { offset: u64, at: Range<usize> },
    /// A complete line over the cap, of which only the head is kept.
    TooLong { offset: u64, len: u64, head: Vec<u8> },
    /// What stands after the last newline, possibly nothing.
    Tail { offset: u64, at: Range<usize> },
    /// A tail over the cap.
    LongTail { offset: u64, len: u64, head: Vec<u8> },
}

/// Reads a file from an offset line by line.
pub struct Lines<'a> {
    file: &'a File,
    buffer: &'a mut Vec<u8>,
    /// Longest line, in bytes without its newline.
    cap: usize,
    /// File offset of `buffer[start]`.
    offset: u64,
    start: usize,
    end: usize,
    /// `buffer[start..scanned]` holds no newline.
    scanned: usize,
    /// Bytes of the current line already dropped because it is over the cap.
    dropped: u64,
    /// The head of a line of which bytes were dropped.
    head: Vec<u8>,
}

impl<'a> Lines<'a> {
    #[must_use]
    pub fn new(file: &'a File, buffer: &'a mut Buffer, offset: u64, cap: usize) -> Self {
        let buffer = &mut buffer.0;
        Self { file, buffer, cap, offset, start: 0, end: 0, scanned: 0, dropped: 0, head: Vec::new() }
    }

    /// The bytes of a piece that [`Self::next_piece`] just returned.
    #[must_use]
    pub fn bytes(&self, at: &Range<usize>) -> &[u8] {
        &self.buffer[at.clone()]
    }

    /// The next piece; after a tail, the tail again.
    ///
    /// # Errors
    /// What reading the file says.
    pub fn next_piece(&mut self) -> io::Result<Piece> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                return Ok(self.take_line(self.scanned + found));
            }
            self.scanned = self.end;
            if self.end - self.start > self.cap {
                self.drop_head();
            }
            if !self.fill()? {
                return Ok(self.tail());
            }
        }
    }

    fn take_line(&mut self, newline: usize) -> Piece {
        let at = self.start..newline;
        let len = self.dropped + at.len() as u64;
        let offset = self.offset;
        self.offset += len + 1;
        self.start = newline + 1;
        self.scanned = self.start;
        if self.dropped > 0 || at.len() > self.cap {
            let head = self.head_of_long(at);
            self.dropped = 0;
            return Piece::TooLong { offset, len, head };
        }
        Piece::Line { offset, at }
    }

    /// Forgets what is held of a line over the cap.
    fn drop_head(&mut self) {
        self.head = self.head_of_long(self.start..self.end);
        self.dropped += (self.end - self.start) as u64;
        self.start = self.end;
        self.scanned = self.end;
    }

    /// The head of the current line, `at` being what the buffer holds of it.
    fn head_of_long(&self, at: Range<usize>) -> Vec<u8> {
        if self.dropped > 0 {
            return self.head.clone();
        }
        self.buffer[at.start..at.start + HEAD_OF_LONG.min(at.len())].to_vec()
    }

    fn tail(&self) -> Piece {
        if self.dropped > 0 || self.end - self.start > self.cap {
            return Piece::LongTail {
                offset: self.offset,
                len: self.dropped + (self.end - self.start) as u64,
                head: self.head_of_long(self.start..self.end),
            };
        }
        Piece::Tail { offset: self.offset, at: self.start..self.end }
    }

    /// Reads a block behind what is held; `false` at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < self.end + BLOCK {
            // Exact growth: doubling a ten-megabyte line would double the peak.
            let more = self.end + BLOCK + self.end / 4;
            self.buffer.reserve_exact(more - self.buffer.len());
            self.buffer.resize(more, 0);
        }
        let from = self.offset + self.dropped + self.end as u64;
        let read = read_at(self.file, &mut self.buffer[self.end..self.end + BLOCK], from)?;
        self.end += read;
        Ok(read > 0)
    }
}

/// Reads at an offset, whatever the file's own position.
///
/// # Errors
/// What the system says, interruptions excepted.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, buffer, offset);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
        match read {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Every piece of `content` as text, the way [`Lines`] cuts it.
    fn pieces(content: &[u8], from: u64, cap: usize) -> Vec<String> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(content).expect("writes");
        let mut buffer = Buffer::default();
        let mut lines = Lines::new(&file, &mut buffer, from, cap);
        let mut out = Vec::new();
        loop {
            match lines.next_piece().expect("reads") {
                Piece::Line { offset, at } => {
                    out.push(format!("{offset} {}", String::from_utf8_lossy(lines.bytes(&at))));
                }
                Piece::TooLong { offset, len, .. } => out.push(format!("{offset} long {len}")),
                Piece::Tail { offset, at } => {
                    out.push(format!("{offset} tail {}", String::from_utf8_lossy(lines.bytes(&at))));
                    return out;
                }
                Piece::LongTail { offset, len, .. } => {
                    out.push(format!("{offset} long tail {len}"));
                    return out;
                }
            }
        }
    }

    #[test]
    fn lines_and_tail_with_their_offsets() {
        assert_eq!(pieces(b"ab\n\ncd", 0, 100), ["0 ab", "3 ", "4 tail cd"]);
        assert_eq!(pieces(b"ab\ncd\n", 3, 100), ["3 cd", "6 tail "]);
        assert_eq!(pieces(b"", 0, 100), ["0 tail "]);
    }

    #[test]
    fn r15_a_line_of_exactly_the_cap_passes_and_one_more_byte_does_not() {
        assert_eq!(pieces(b"aaaa\nbbbbb\ncc\n", 0, 4), ["0 aaaa", "5 long 5", "11 cc", "14 tail "]);
        assert_eq!(pieces(b"aaaa", 0, 4), ["0 tail aaaa"]);
        assert_eq!(pieces(b"aaaaa", 0, 4), ["0 long tail 5"]);
    }

    #[test]
    fn r15_a_line_of_many_blocks_is_measured_and_not_held() {
        let cap = BLOCK + BLOCK / 2;
        let mut content = vec![b'x'; 5 * BLOCK + 7];
        content.push(b'\n');
        content.extend(vec![b'y'; cap]);
        content.push(b'\n');
        let got = pieces(&content, 0, cap);
        assert_eq!(got[0], format!("0 long {}", 5 * BLOCK + 7));
        assert_eq!(got[1].len(), format!("{} ", 5 * BLOCK + 8).len() + cap);
        assert_eq!(got.len(), 3);
    }
}
