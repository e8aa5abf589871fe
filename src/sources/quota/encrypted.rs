//! `gemini-credentials.json`: AES-256-GCM under a key of the host's and the
//! user's names (quota Q4). That is no secret, so the file is as good as plain;
//! but it opens only where it was written.

use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::plain::{Stored, is_something, millis, object};
use super::token::Token;

pub(super) const SERVICE: &str = "gemini-cli-oauth";
pub(super) const ACCOUNT: &str = "main-account";

/// The CLI takes no entry for one that expires so soon and cannot be renewed.
const AS_GOOD_AS_GONE: i64 = 5 * 60_000;

/// Opens the file for the first of these users that fits. `Err`: it is not
/// what the CLI writes; `Ok(None)`: it holds no sign-in of Google's.
pub(super) fn open(text: &str, host: &str, users: &[String]) -> Option<Option<Zeroizing<String>>> {
    let sealed = Sealed::parse(text)?;
    let plain = users.iter().find_map(|user| sealed.open(&key(host, user)))?;
    entry(str::from_utf8(&plain).ok()?)
}

/// A key of the CLI's: scrypt with N 16384, r 8, p 1.
fn key(host: &str, user: &str) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let params = scrypt::Params::new(14, 8, 1).expect("these are parameters of scrypt");
    let salt = format!("{host}-{user}-gemini-cli");
    scrypt::scrypt(SERVICE.as_bytes(), salt.as_bytes(), &params, key.as_mut_slice())
        .expect("32 bytes are a length of scrypt's");
    key
}

/// `iv:tag:cipher`, each in hex.
struct Sealed {
    iv: Vec<u8>,
    /// The cipher with the tag behind it.
    cipher: Vec<u8>,
}

impl Sealed {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':').map(unhex);
        let (iv, tag, mut cipher) = (parts.next()??, parts.next()??, parts.next()??);
        if parts.next().is_some() || tag.len() != 16 {
            return None;
        }
        cipher.extend(tag);
        Some(Self { iv, cipher })
    }

    fn open(&self, key: &[u8; 32]) -> Option<Zeroizing<Vec<u8>>> {
        let plain = match self.iv.len() {
            12 => {
                let nonce = Nonce::<U12>::try_from(self.iv.as_slice()).ok()?;
                AesGcm::<Aes256, U12>::new(key.into()).decrypt(&nonce, self.cipher.as_slice())
            }
            // As the CLI wrote it before 0.54.0.
            16 => {
                let nonce = Nonce::<U16>::try_from(self.iv.as_slice()).ok()?;
                AesGcm::<Aes256, U16>::new(key.into()).decrypt(&nonce, self.cipher.as_slice())
            }
            _ => return None,
        };
        plain.ok().map(Zeroizing::new)
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Service → account → an entry, as JSON in a string.
#[derive(Deserialize)]
struct Services {
    #[serde(rename = "gemini-cli-oauth")]
    google: Option<Entries>,
}

#[derive(Deserialize)]
struct Entries {
    #[serde(rename = "main-account")]
    main: Option<Token>,
}

fn entry(plain: &str) -> Option<Option<Zeroizing<String>>> {
    let services: Services = object(plain)?;
    let main = services.google.and_then(|entries| entries.main).filter(is_something);
    Some(main.map(|entry| Zeroizing::new(entry.expose().to_owned())))
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    token: EntryToken<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryToken<'a> {
    access_token: Option<Token>,
    refresh_token: Option<Token>,
    #[serde(borrow)]
    expires_at: Option<&'a RawValue>,
}

/// An entry of the file or of a keychain. `None`: it is not what the CLI
/// writes; `Some(None)`: it counts as absent.
pub(super) fn parse_entry(text: &str, now: i64) -> Option<Option<Stored>> {
    let entry: Entry<'_> = object(text)?;
    let EntryToken { access_token, refresh_token, expires_at } = entry.token;
    let stored = Stored {
        token: access_token.filter(is_something),
        expires_at: expires_at.and_then(millis),
        renewable: refresh_token.as_ref().is_some_and(is_something),
        identity: None,
    };
    let gone = stored.expires_at.is_some_and(|at| at < now.saturating_add(AS_GOOD_AS_GONE));
    Some((stored.renewable || !gone).then_some(stored))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../../fixtures/quota/vectors.json")).unwrap()
    }

    fn text<'a>(vectors: &'a Value, name: &str) -> &'a str {
        vectors[name].as_str().unwrap()
    }

    fn users(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn q4_both_lengths_of_the_iv_open_where_they_were_written() {
        let vectors = vectors();
        let host = text(&vectors, "hostname");
        let who = users(&["root", text(&vectors, "username")]);
        for file in ["file_iv12", "file_iv16_before_0_54"] {
            let entry = open(text(&vectors, file), host, &who).unwrap().unwrap();
            let stored = parse_entry(&entry, 0).unwrap().unwrap();
            assert_eq!(stored.token.unwrap().expose(), "ya29.FAKE-access-token", "{file}");
            assert_eq!((stored.expires_at, stored.renewable), (Some(1_796_055_281_777), true));
        }
        let file = text(&vectors, "file_iv12");
        assert!(open(file, "other-host", &who).is_none());
        assert!(open(file, host, &users(&["root"])).is_none());
        assert!(open(file, host, &[]).is_none());
    }

    #[test]
    fn q4_the_key_is_the_clis() {
        let vectors = vectors();
        let key = key(text(&vectors, "hostname"), text(&vectors, "username"));
        assert_eq!(key.as_slice(), unhex(text(&vectors, "key_hex")).unwrap());
    }

    #[test]
    fn q4_a_broken_file_does_not_open() {
        let vectors = vectors();
        let (host, who) = (text(&vectors, "hostname"), users(&[text(&vectors, "username")]));
        let good = text(&vectors, "file_iv12");
        let cut = &good[..good.len() - 2];
        let more = format!("{good}:00");
        let short_tag = good.replacen(":f4", ":", 1);
        let odd = &good[1..];
        let broken = vectors["broken"].as_object().unwrap().values().map(|text| text.as_str().unwrap());
        for text in broken.chain(["", "::", "zz:00:00", cut, &more, &short_tag, odd, "{}"]) {
            assert!(open(text, host, &who).is_none(), "{text}");
        }
    }

    #[test]
    fn q4_an_entry_that_is_gone_soon_and_cannot_be_renewed_counts_as_absent() {
        let entry = |more: &str| format!(r#"{{"serverName":"x","token":{{"accessToken":"t"{more}}}}}"#);
        let is_there = |text: &str| parse_entry(text, 1_000_000).map(|stored| stored.is_some());
        for (text, want) in [
            (entry(""), Some(true)),
            (entry(r#","expiresAt":1300001"#), Some(true)),
            (entry(r#","expiresAt":1299999"#), Some(false)),
            (entry(r#","expiresAt":1,"refreshToken":"r""#), Some(true)),
            (entry(r#","expiresAt":1299999.5,"refreshToken":"""#), Some(false)),
            ("{}".into(), None),
            (r#"{"token":7}"#.into(), None),
        ] {
            assert_eq!(is_there(&text), want, "{text}");
        }
    }

    #[test]
    fn q4_a_store_of_other_secrets_holds_no_sign_in() {
        for plain in ["{}", r#"{"gemini-cli-api-key":{"default-api-key":"k"}}"#, r#"{"gemini-cli-oauth":{}}"#]
        {
            assert!(entry(plain).unwrap().is_none(), "{plain}");
        }
        for plain in ["", "[]", "{", r#"{"gemini-cli-oauth":7}"#] {
            assert!(entry(plain).is_none(), "{plain}");
        }
    }
}
