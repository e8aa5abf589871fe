//! Lines of one direction, put together from chunks cut anywhere.

use memchr::memchr;

/// A longer frame is skipped, not held: 16 MiB without its newline.
const MAX_FRAME: usize = 16 << 20;

/// So much of a skipped frame is kept, to tell what it is.
const HEAD: usize = 4 << 10;

/// A buffer that grew beyond this is given back after its frame.
const KEPT: usize = 256 << 10;

/// One line, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'f> {
    Whole(&'f [u8]),
    /// Longer than [`MAX_FRAME`]: its beginning.
    TooLong(&'f [u8]),
}

/// What becomes of the bytes up to the next newline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Hold,
    /// The frame is too long: its head is held.
    Skip,
    /// The frame's beginning is missing.
    Resume,
}

pub(super) struct Frames {
    held: Vec<u8>,
    now: Now,
    limit: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self::limited(MAX_FRAME)
    }
}

impl Frames {
    fn limited(limit: usize) -> Self {
        Self { held: Vec::new(), now: Now::Hold, limit }
    }

    /// Takes the next bytes of the stream; every line that ends in them is handed over.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.now == Now::Hold && self.held.is_empty() && line.len() <= self.limit {
                each(Frame::Whole(line));
            } else {
                self.hold(line);
                self.hand_over(&mut each);
            }
            bytes = rest;
        }
        self.hold(bytes);
    }

    /// Bytes of the stream are missing here: what surrounds them is no frame.
    pub(super) fn gap(&mut self) {
        self.held = Vec::new();
        self.now = Now::Resume;
    }

    /// The stream ended; what stands there without a newline is a line too.
    pub(super) fn end(&mut self, mut each: impl FnMut(Frame<'_>)) {
        if !self.held.is_empty() {
            self.hand_over(&mut each);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.now == Now::Hold {
            if self.held.len() + bytes.len() <= self.limit {
                self.held.extend_from_slice(bytes);
                return;
            }
            self.now = Now::Skip;
            let missing = HEAD.saturating_sub(self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..missing]);
            self.held.truncate(HEAD);
            self.held.shrink_to_fit();
        }
    }

    fn hand_over(&mut self, each: &mut impl FnMut(Frame<'_>)) {
        match self.now {
            Now::Hold => each(Frame::Whole(&self.held)),
            Now::Skip => each(Frame::TooLong(&self.held)),
            Now::Resume => {}
        }
        self.now = Now::Hold;
        if self.held.capacity() > KEPT {
            self.held = Vec::new();
        } else {
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Seen {
        Whole(Vec<u8>),
        TooLong(Vec<u8>),
    }

    fn keep(seen: &mut Vec<Seen>) -> impl FnMut(Frame<'_>) {
        |frame| {
            seen.push(match frame {
                Frame::Whole(line) => Seen::Whole(line.to_vec()),
                Frame::TooLong(head) => Seen::TooLong(head.to_vec()),
            });
        }
    }

    fn seen(chunks: &[&[u8]], limit: usize) -> Vec<Seen> {
        let mut frames = Frames::limited(limit);
        let mut seen = Vec::new();
        for chunk in chunks {
            frames.push(chunk, keep(&mut seen));
        }
        frames.end(keep(&mut seen));
        seen
    }

    #[test]
    fn d2_4_a_frame_over_the_cap_is_skipped_and_its_head_kept() {
        for limit in [HEAD, 3 * HEAD] {
            for over in [0, 1, 10_000] {
                let line = vec![b'x'; limit + over];
                let stream = [&line[..], b"\nnext"].concat();
                let expected =
                    if over == 0 { Seen::Whole(line) } else { Seen::TooLong(line[..HEAD].to_vec()) };
                let expected = vec![expected, Seen::Whole(b"next".to_vec())];
                let cut: Vec<&[u8]> = stream.chunks(7).collect();
                assert_eq!(seen(&[&stream], limit), expected, "{limit} {over}");
                assert_eq!(seen(&cut, limit), expected, "{limit} {over}, in pieces");
            }
        }
    }

    #[test]
    fn d2_4_around_a_gap_nothing_is_taken_for_a_frame() {
        let mut frames = Frames::default();
        let mut seen = Vec::new();
        frames.push(b"one\ntw", keep(&mut seen));
        frames.gap();
        frames.push(b"ree\nfour\n", keep(&mut seen));
        frames.gap();
        frames.end(keep(&mut seen));
        assert_eq!(seen, [Seen::Whole(b"one".to_vec()), Seen::Whole(b"four".to_vec())]);
    }

    proptest! {
        #[test]
        fn d2_4_however_a_stream_is_cut_its_lines_are_the_same(
            lines in prop::collection::vec(prop::collection::vec(0_u8..=255, 0..40), 0..12),
            cuts in prop::collection::vec(0_usize..500, 0..12),
        ) {
            let stream = lines.join(&b'\n');
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            let mut whole: Vec<_> = stream.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if whole.last().is_some_and(Vec::is_empty) {
                whole.pop();
            }
            let whole: Vec<_> = whole.into_iter().map(Seen::Whole).collect();
            prop_assert_eq!(seen(&chunks, 1000), whole);
        }
    }
}
