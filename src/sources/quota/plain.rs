//! `oauth_creds.json`, as Gemini CLI and others leave it (quota Q4).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::account::Identity;
use super::token::Token;

/// What was read of a stored sign-in.
pub(super) struct Stored {
    /// `None`: a sign-in that can only be renewed.
    pub(super) token: Option<Token>,
    /// Unix ms; `None`: not stated.
    pub(super) expires_at: Option<i64>,
    /// Whether Gemini CLI could renew it.
    pub(super) renewable: bool,
    pub(super) identity: Option<Identity>,
}

#[derive(Deserialize)]
struct File<'a> {
    access_token: Option<Token>,
    refresh_token: Option<Token>,
    #[serde(borrow)]
    expiry_date: Option<&'a RawValue>,
    id_token: Option<Token>,
}

/// `None`: it is not what the CLI writes, or only half of it.
pub(super) fn parse(text: &str) -> Option<Stored> {
    let file: File<'_> = object(text)?;
    Some(Stored {
        token: file.access_token.filter(is_something),
        expires_at: file.expiry_date.and_then(millis),
        renewable: file.refresh_token.as_ref().is_some_and(is_something),
        identity: file.id_token.and_then(|token| Identity::of_id_token(token.expose())),
    })
}

pub(super) fn is_something(token: &Token) -> bool {
    !token.expose().is_empty()
}

/// A JSON object, and nothing but an object. What is wrong with it is not told:
/// the parser's words may repeat what is in it.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
}

/// Unix ms of any JSON number: other tools write a fraction, or an exponent.
/// What is no moment counts as not stated.
#[expect(clippy::cast_possible_truncation, reason = "a fraction of a millisecond")]
pub(super) fn millis(number: &RawValue) -> Option<i64> {
    let number: f64 = number.get().parse().ok()?;
    // Up to the year 9999.
    (1.0..253_402_300_800_000.0).contains(&number).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry(text: &str) -> Option<i64> {
        let text = format!(r#"{{"access_token":"t","expiry_date":{text}}}"#);
        parse(&text).expect("the rest of the file counts").expires_at
    }

    #[test]
    fn q4_an_expiry_may_be_any_number() {
        for (text, want) in [
            ("1796055281777", Some(1_796_055_281_777)),
            ("1769159945362.7791", Some(1_769_159_945_362)),
            ("1.7960552e12", Some(1_796_055_200_000)),
            ("null", None),
            ("0", None),
            ("-1", None),
            ("1e999", None),
            ("1e300", None),
            (r#""tomorrow""#, None),
            ("{}", None),
        ] {
            assert_eq!(expiry(text), want, "{text}");
        }
    }

    #[test]
    fn q4_all_members_are_optional_and_unknown_ones_pass() {
        let only_refresh = parse(r#"{"refresh_token":"1//FAKE","x":[1]}"#).unwrap();
        assert!(only_refresh.token.is_none() && only_refresh.renewable);
        let empty = parse(r#"{"access_token":"","refresh_token":null}"#).unwrap();
        assert!(empty.token.is_none() && !empty.renewable);
        assert_eq!(parse(r#"{"access_token":"ya29.FAKE"}"#).unwrap().token.unwrap().expose(), "ya29.FAKE");
    }

    #[test]
    fn q4_half_a_file_is_no_sign_in() {
        for text in
            ["", "{", "[]", "\"t\"", r#"{"access_token":"t""#, r#"{"access_token":7}"#, "[null,null,1,null]"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
