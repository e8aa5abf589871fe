//! Lines out of bytes that come in any pieces, holding no more than one line.

/// The longest line that is looked at, in bytes without its newline.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// One complete line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'b> {
    Whole(&'b [u8]),
    /// Over [`MAX_LINE`]; none of it is kept.
    TooLong,
}

/// Puts lines together.
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    cap: usize,
    too_long: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self { partial: Vec::new(), cap: MAX_LINE, too_long: false }
    }
}

impl Lines {
    /// Takes the next bytes and hands out the lines that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(newline) = memchr::memchr(b'\n', bytes) {
            let (end, rest) = (&bytes[..newline], &bytes[newline + 1..]);
            if self.partial.is_empty() && !self.too_long && end.len() <= self.cap {
                take(Line::Whole(end));
            } else {
                self.hold(end);
                self.end(&mut take);
            }
            bytes = rest;
        }
        self.hold(bytes);
    }

    /// Hands out what stands after the last newline, if anything.
    pub fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if self.too_long || !self.partial.is_empty() {
            self.end(&mut take);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.too_long || self.partial.len() + bytes.len() > self.cap {
            self.too_long = true;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, take: &mut impl FnMut(Line<'_>)) {
        take(if self.too_long { Line::TooLong } else { Line::Whole(&self.partial) });
        self.too_long = false;
        self.partial.clear();
        self.partial.shrink_to(64 * 1024);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]], cap: usize) -> Vec<String> {
        let mut lines = Lines { cap, ..Lines::default() };
        let mut out = Vec::new();
        let mut take = |line: Line<'_>| {
            out.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong => "too long".to_owned(),
            });
        };
        pieces.iter().for_each(|piece| lines.feed(piece, &mut take));
        lines.finish(take);
        out
    }

    #[test]
    fn r63_lines_are_the_same_however_the_bytes_come() {
        let text: &[u8] = b"ab\n\ncdef\r\nlonger than eight\ng\nend";
        let whole = ["ab", "", "cdef\r", "too long", "g", "end"];
        assert_eq!(lines(&[text], 8), whole);
        for cut in 0..=text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]], 8), whole, "{cut}");
        }
        assert_eq!(lines(&text.chunks(1).collect::<Vec<_>>(), 8), whole);
    }

    #[test]
    fn r63_a_line_of_any_length_takes_no_more_memory_than_the_cap() {
        let mut lines = Lines { cap: 1 << 16, ..Lines::default() };
        for _ in 0..1000 {
            lines.feed(&[b'x'; 4096], |_| panic!("no line ends here"));
            assert!(lines.partial.capacity() <= 1 << 17);
        }
        let mut said = Vec::new();
        lines.feed(b"y\nz\n", |line| said.push(format!("{line:?}")));
        assert_eq!(said, ["TooLong", "Whole([122])"]);
    }
}
