//! A secret that cannot be shown (quota Q8).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// An access token. It has no `Debug`, `Display`, `Serialize` or `Clone`, and
/// its memory is zeroed when it goes. That is our copy: the parser, the
/// connection and the environment it came from have theirs for as long as they last.
pub struct Token(Zeroizing<String>);

/// Tells two tokens apart in memory; never written anywhere.
pub(super) type Fingerprint = [u8; 32];

impl Token {
    #[must_use]
    pub fn new(text: &str) -> Self {
        // Exactly as large as needed: a string that grows leaves copies behind.
        let mut kept = Zeroizing::new(String::with_capacity(text.len()));
        kept.push_str(text);
        Self(kept)
    }

    /// The token itself, for the one header it belongs in.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Token;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a token")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Token, E> {
                Ok(Token::new(text))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::*;

    /// Holds for every type; where a type has the trait, the constant of the
    /// same name on `Has` itself is nearer.
    trait Lacks {
        const DEBUG: bool = false;
        const DISPLAY: bool = false;
        const SERIALIZE: bool = false;
        const CLONE: bool = false;
    }
    struct Has<T>(PhantomData<T>);
    impl<T> Lacks for Has<T> {}
    impl<T: fmt::Debug> Has<T> {
        const DEBUG: bool = true;
    }
    impl<T: fmt::Display> Has<T> {
        const DISPLAY: bool = true;
    }
    impl<T: serde::Serialize> Has<T> {
        const SERIALIZE: bool = true;
    }
    impl<T: Clone> Has<T> {
        const CLONE: bool = true;
    }

    #[test]
    fn q8_a_token_can_be_neither_printed_nor_written_nor_copied() {
        let of_token =
            [Has::<Token>::DEBUG, Has::<Token>::DISPLAY, Has::<Token>::SERIALIZE, Has::<Token>::CLONE];
        assert_eq!(of_token, [false; 4]);
        let of_text =
            [Has::<String>::DEBUG, Has::<String>::DISPLAY, Has::<String>::SERIALIZE, Has::<String>::CLONE];
        assert_eq!(of_text, [true; 4], "the probe works");
    }

    #[test]
    fn q8_a_token_is_zeroed_when_it_goes() {
        fn zeroed_on_drop<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        zeroed_on_drop(&Token::new("ya29.FAKE").0);
    }
}
