//! The hashes (FNV-1a) behind request keys, continuity markers and the keys of
//! telemetry records. They are kept in the ledger's file, so they may never change.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The index key of a message id; the id itself decides (accounting R17).
#[must_use]
pub fn request_key(message_id: &str) -> i64 {
    fnv1a(message_id.as_bytes()).cast_signed()
}

/// The 128-bit hash over a record's parts, each told from the next.
#[derive(Clone, Debug)]
pub struct Wide(u128);

impl Default for Wide {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Wide {
    fn bytes(&mut self, bytes: &[u8]) {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    }

    pub fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// A text that may be missing; an empty one is there.
    pub fn optional(&mut self, text: Option<&str>) {
        self.bytes(&[u8::from(text.is_some())]);
        self.text(text.unwrap_or_default());
    }

    #[must_use]
    pub fn finish(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors_of_128_bits() {
        for (text, want) in [
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964),
            ("foobar", 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18),
        ] {
            let mut hash = Wide::default();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.finish(), want, "{text}");
        }
    }

    #[test]
    fn published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
