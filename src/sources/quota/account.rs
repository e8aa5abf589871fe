//! Whose quota it is: a name that is equal on every machine and is no address
//! (quota Q9, docs/quota.md "Accounts").

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::plain::object;

/// Whose sign-in it is. It holds the hash, never the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(String);

/// Where no address is known: what was read is somebody's all the same.
pub(super) const UNKNOWN: &str = "unknown";

#[derive(Deserialize)]
struct Claims {
    email: Option<String>,
    sub: Option<String>,
}

#[derive(Deserialize)]
struct Accounts {
    active: Option<String>,
}

impl Identity {
    /// From the claims of an OpenID token. Its signature is not checked: it
    /// only names what another part of the same file signs in.
    pub(super) fn of_id_token(jwt: &str) -> Option<Self> {
        let payload = base64url(jwt.split('.').nth(1)?)?;
        let claims: Claims = object(str::from_utf8(&payload).ok()?)?;
        claims.email.and_then(|email| Self::of_email(&email)).or_else(|| {
            let sub = claims.sub.filter(|sub| !sub.is_empty())?;
            Some(Self(hash("sub", &sub)))
        })
    }

    /// From `google_accounts.json`, which says who signed in last.
    pub(super) fn of_accounts(text: &str) -> Option<Self> {
        object::<Accounts>(text)?.active.and_then(|email| Self::of_email(&email))
    }

    fn of_email(email: &str) -> Option<Self> {
        let email = email.trim().to_lowercase();
        (!email.is_empty()).then(|| Self(hash("email", &email)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the account of this address is called, unless the configuration names it.
#[must_use]
pub fn account_of_email(email: &str) -> Option<String> {
    Identity::of_email(email).map(|identity| identity.0)
}

/// The first 12 digits of a SHA-256 over the kind and the text, with a prefix
/// of its own so that no table of hashed addresses fits.
fn hash(kind: &str, text: &str) -> String {
    let digest = Sha256::digest(format!("gemgauge account 1\n{kind}\n{text}"));
    digest[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes behind base64 in its variant for addresses; padding may be missing.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for symbol in text.trim_end_matches('=').bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_the_same_wherever_its_address_was_read() {
        // {"alg":"none"} . {"email":"Dev@Example.invalid","sub":"1000"}
        let jwt = "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6IkRldkBFeGFtcGxlLmludmFsaWQiLCJzdWIiOiIxMDAwIn0.sig";
        let of_token = Identity::of_id_token(jwt).unwrap();
        let of_accounts = Identity::of_accounts(r#"{"active": "dev@example.invalid", "old": []}"#).unwrap();
        assert_eq!(of_token, of_accounts);
        assert_eq!(account_of_email(" dev@example.invalid ").as_deref(), Some(of_token.as_str()));
        assert_eq!(of_token.as_str(), "2e6234830f38", "changing it would break every stored series");
    }

    #[test]
    fn what_names_nobody_is_nobody() {
        for jwt in ["", "FAKE.id.token", "a.b", "e30.e30.", "x.W10.x", "x.eyJlbWFpbCI6IiJ9.x", "x.é.x"] {
            assert_eq!(Identity::of_id_token(jwt), None, "{jwt}");
        }
        // {"sub":"1000"}
        assert!(Identity::of_id_token("x.eyJzdWIiOiIxMDAwIn0.x").is_some());
        for text in ["", "{", "{}", r#"{"active":null}"#, r#"{"active":" "}"#, r#"["a@b"]"#] {
            assert_eq!(Identity::of_accounts(text), None, "{text}");
        }
    }
}
