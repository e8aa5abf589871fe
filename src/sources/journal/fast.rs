//! Records exactly as Gemini CLI writes them, taken apart without a parser:
//! members in its order, no white space. Whatever differs in a byte is `None`
//! here and goes through [`super::json`].

use std::str;

use super::json;
use super::record::Answer;
use crate::ledger::tokens::Reading;

/// The beginning of a message record.
pub(super) struct Head<'a> {
    pub id: &'a str,
    /// Unix ms.
    pub at: i64,
    pub kind: &'a [u8],
    /// What follows the type's closing quote.
    pub rest: &'a [u8],
}

/// `{"id":"…","timestamp":"…","type":"…"`.
pub(super) fn head(line: &[u8]) -> Option<Head<'_>> {
    let rest = line.strip_prefix(b"{\"id\":\"")?;
    let (id, rest) = rest.split_at(memchr::memchr2(b'"', b'\\', &rest[..rest.len().min(128)])?);
    let rest = rest.strip_prefix(b"\",\"timestamp\":\"")?;
    let (time, rest) = rest.split_at_checked(24)?;
    let rest = rest.strip_prefix(b"\",\"type\":\"")?;
    let (kind, rest) = rest.split_at(memchr::memchr(b'"', &rest[..rest.len().min(16)])?);
    let at = json::time(str::from_utf8(time).ok()?)?;
    Some(Head { id: plain(id)?, at, kind, rest: &rest[1..] })
}

/// A whole answer without tool calls:
/// `…,"type":"gemini","content":"…","thoughts":[…],"tokens":{…},"model":"…"}`.
pub(super) fn answer(line: &[u8]) -> Option<Answer> {
    let Head { id, at, kind, rest } = head(line)?;
    if kind != b"gemini" {
        return None;
    }
    let rest = string(rest.strip_prefix(b",\"content\":")?)?;
    let texts = rest.strip_prefix(b",\"thoughts\":")?;
    let rest = thoughts(texts)?;
    let seen = &line[..line.len() - rest.len()];
    // What the parser would refuse inside a text.
    if seen.iter().fold(false, |odd, byte| odd | (*byte < 0x20)) || str::from_utf8(seen).is_err() {
        return None;
    }
    let rest = rest.strip_prefix(b",\"tokens\":{\"input\":")?;
    let (prompt, rest) = number(rest)?;
    let (output, rest) = number(rest.strip_prefix(b",\"output\":")?)?;
    let (cached, rest) = number(rest.strip_prefix(b",\"cached\":")?)?;
    let (thoughts, rest) = number(rest.strip_prefix(b",\"thoughts\":")?)?;
    let (tool, rest) = number(rest.strip_prefix(b",\"tool\":")?)?;
    let (total, rest) = number(rest.strip_prefix(b",\"total\":")?)?;
    let model = plain(rest.strip_prefix(b"},\"model\":\"")?.strip_suffix(b"\"}")?)?;
    let reading = Reading { prompt, cached, tool, output, thoughts };
    let total_mismatch = total != prompt + output + thoughts + tool;
    Some(Answer { id: id.into(), at: Some(at), model: Some(model.to_owned()), reading, total_mismatch })
}

/// What follows a JSON string.
fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 1;
    if text.first() != Some(&b'"') {
        return None;
    }
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(&text[at + 1..]);
        }
        // An escape that JSON does not have is left to the parser to refuse.
        if !b"\"\\/bfnrtu".contains(text.get(at + 1)?) {
            return None;
        }
        at += 2;
    }
}

/// What follows `[]` or `[{"subject":"…","description":"…","timestamp":"…"},…]`.
fn thoughts(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"[]") {
        return Some(rest);
    }
    let mut rest = text.strip_prefix(b"[")?;
    loop {
        rest = string(rest.strip_prefix(b"{\"subject\":")?)?;
        rest = string(rest.strip_prefix(b",\"description\":")?)?;
        rest = string(rest.strip_prefix(b",\"timestamp\":")?)?.strip_prefix(b"}")?;
        match rest.split_first()? {
            (b',', more) => rest = more,
            (b']', more) => return Some(more),
            _ => return None,
        }
    }
}

/// A count of up to 15 digits and what follows it; larger ones are left to the parser.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take(16).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 15 || (digits > 1 && text[0] == b'0') {
        return None;
    }
    let (digits, rest) = text.split_at(digits);
    Some((digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')), rest))
}

/// A text without escapes or control characters.
fn plain(text: &[u8]) -> Option<&str> {
    let odd = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    let any_odd = text.iter().fold(false, |any, byte| any | odd(byte));
    if text.is_empty() || any_odd { None } else { str::from_utf8(text).ok() }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Line, parse};
    use super::*;

    const LINE: &str = r#"{"id":"g1","timestamp":"2026-08-20T10:00:05.000Z","type":"gemini","content":"a \"b\" \\ é","thoughts":[{"subject":"s","description":"d","timestamp":"2026-08-20T10:00:04.000Z"}],"tokens":{"input":15327,"output":23,"cached":11526,"thoughts":919,"tool":7,"total":16276},"model":"gemini-2.5-pro"}"#;

    #[test]
    fn a_written_record_reads_as_the_parser_reads_it() {
        assert_eq!(answer(LINE.as_bytes()).map(Line::Answer), Some(parse(LINE.as_bytes())));
        let plain = LINE
            .replace(r#"[{"subject":"s","description":"d","timestamp":"2026-08-20T10:00:04.000Z"}]"#, "[]");
        assert_eq!(answer(plain.as_bytes()).map(Line::Answer), Some(parse(plain.as_bytes())));
    }

    /// Whatever byte is changed, removed or added: where this reader reads an
    /// answer, the parser reads the same one.
    #[test]
    fn no_change_of_a_byte_makes_it_read_what_the_parser_does_not() {
        let line = LINE.as_bytes();
        for at in 0..line.len() {
            for byte in [b'"', b'\\', b'{', b'}', b'0', b'9', b'x', b',', b'-', 0, 0xff, b'\n'] {
                let mut changed = line.to_vec();
                changed[at] = byte;
                let mut longer = line.to_vec();
                longer.insert(at, byte);
                let mut shorter = line.to_vec();
                shorter.remove(at);
                for line in [changed, longer, shorter] {
                    if let Some(fast) = answer(&line) {
                        assert_eq!(Line::Answer(fast), parse(&line), "{}", String::from_utf8_lossy(&line));
                    }
                }
            }
        }
    }

    #[test]
    fn what_the_writer_does_not_write_is_left_to_the_parser() {
        for line in [
            LINE.replace(r#""tool":7,"#, ""),
            LINE.replace("\"input\":15327", "\"input\":1e3"),
            LINE.replace("\"input\":15327", "\"input\":9223372036854775808"),
            LINE.replace("\"model\":\"gemini-2.5-pro\"", "\"model\":\"\""),
            LINE.replace("\"content\":\"a", "\"content\":[\"a"),
            LINE.replace("}", ",\"toolCalls\":[]}"),
            LINE.replace("\"gemini\"", "\"user\""),
        ] {
            assert_eq!(answer(line.as_bytes()), None, "{line}");
        }
    }
}
