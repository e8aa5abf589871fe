//! The protobuf wire format, as far as OTLP uses it: the fields of a message,
//! each a number or a slice of the message itself. Nothing is copied, and what
//! is not asked for is stepped over.

use super::Undecodable;

const BROKEN: Undecodable = Undecodable("ExportLogsServiceRequest in protobuf");

/// The value of a field.
#[derive(Clone, Copy, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// What is left of a message.
pub(super) struct Message<'a>(pub(super) &'a [u8]);

impl<'a> Message<'a> {
    /// The number and the value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, Undecodable> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| BROKEN)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => {
                self.array::<4>()?;
                Wire::Fixed32
            }
            // Groups are older than OTLP.
            _ => return Err(BROKEN),
        };
        match tag >> 3 {
            number @ 1..=0x1fff_ffff => Ok(Some((number, wire))),
            _ => Err(BROKEN),
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Undecodable> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BROKEN)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        self.take(N)?.try_into().map_err(|_| BROKEN)
    }

    fn varint(&mut self) -> Result<u64, Undecodable> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(BROKEN);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(BROKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, Undecodable> {
        let mut message = Message(bytes);
        let mut fields = Vec::new();
        while let Some(field) = message.next()? {
            fields.push(field);
        }
        Ok(fields)
    }

    #[test]
    fn every_kind_of_field_is_read_or_stepped_over() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x12, 0x02, b'h', b'i', // 2: bytes
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: fixed64
            0x25, 1, 2, 3, 4, // 4: fixed32
            0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // 5: -1
        ];
        let want = [
            (1, Wire::Varint(150)),
            (2, Wire::Bytes(b"hi")),
            (3, Wire::Fixed64(1)),
            (4, Wire::Fixed32),
            (5, Wire::Varint(u64::MAX)),
        ];
        assert_eq!(fields(&bytes).unwrap(), want);
    }

    #[test]
    fn what_ends_too_early_or_never_is_broken() {
        for bytes in [
            &[0x08][..],
            &[0x12, 0x03, b'h', b'i'],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x19, 1, 2],
            &[0x25, 1],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            &[0x0b],
            &[0x0c],
            &[0x0e, 0],
            &[0x00, 0],
        ] {
            assert!(fields(bytes).is_err(), "{bytes:x?}");
        }
    }
}
