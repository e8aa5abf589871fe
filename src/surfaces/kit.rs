//! The kit: dashboards, rules and what else runs gemgauge somewhere, as files.
//!
//! They lie in the repository below `kit/` and `dashboards/` and are part of
//! the program. A few hold places of the machine, written `@NAME@`.

use std::borrow::Cow;

// `FILES`, made by build.rs.
include!(concat!(env!("OUT_DIR"), "/kit.rs"));

/// What stands where `@NAME@` is written.
#[derive(Clone, Debug)]
pub struct Places {
    /// The program itself.
    pub program: String,
    /// The user's home.
    pub home: String,
    /// The first of the homes that hold a `.gemini`; mostly the same.
    pub gemini: String,
    /// The directory of the ledger.
    pub data: String,
    /// Whom a container runs as.
    pub uid: u32,
    pub gid: u32,
}

/// A file to write: its path below the directory, with slashes, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    pub path: &'static str,
    pub text: Cow<'static, str>,
}

/// A path that cannot stand in each of the formats.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path {0:?} has a character that cannot stand in a unit, a plist and YAML alike; letters, digits, spaces \
     and /._-+,=~ can"
)]
pub struct OddPath(String);

/// All files of the kit, sorted by path.
///
/// # Errors
/// One of the places has a character that would need quoting.
pub fn files(places: &Places) -> Result<Vec<Asset>, OddPath> {
    let plain = |c: char| c.is_alphanumeric() || " /._-+,=~".contains(c);
    for place in [&places.program, &places.home, &places.gemini, &places.data] {
        if !place.chars().all(plain) {
            return Err(OddPath(place.clone()));
        }
    }
    let named = [
        ("@PROGRAM@", places.program.clone()),
        ("@HOME@", places.home.clone()),
        ("@GEMINI_HOME@", places.gemini.clone()),
        ("@DATA@", places.data.clone()),
        ("@UID@", places.uid.to_string()),
        ("@GID@", places.gid.to_string()),
        ("@VERSION@", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let asset = |(path, text): &(&'static str, &'static str)| {
        let mut text = Cow::Borrowed(*text);
        for (name, place) in &named {
            if text.contains(name) {
                text = text.replace(name, place).into();
            }
        }
        Asset { path, text }
    };
    Ok(FILES.iter().map(asset).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            program: "/opt/my tools/gemgauge".into(),
            home: "/home/ana".into(),
            gemini: "/srv/agents".into(),
            data: "/home/ana/.local/share/gemgauge".into(),
            uid: 1000,
            gid: 1001,
        }
    }

    #[test]
    fn places_stand_where_they_are_named_and_nothing_is_left_over() {
        let files = files(&places()).unwrap();
        let text = |path: &str| files.iter().find(|file| file.path == path).unwrap().text.clone();
        assert!(text("systemd/gemgauge.service").contains("ExecStart=\"/opt/my tools/gemgauge\" serve\n"));
        assert!(text("compose.yml").contains("source: \"/srv/agents/.gemini\"\n"));
        assert!(text("compose.yml").contains("user: \"1000:1001\"\n"));
        assert!(text("compose.yml").contains(concat!("image: gemgauge:", env!("CARGO_PKG_VERSION"), "\n")));
        for file in &files {
            let names = file.text.split('@').filter(|part| {
                part.len() > 2 && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            });
            assert_eq!(names.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", file.path);
            assert!(!file.path.starts_with('/') && !file.path.contains(".."), "{}", file.path);
        }
    }

    #[test]
    fn a_path_that_would_need_quoting_is_refused() {
        for odd in
            ["/home/a\"b", "/home/a%h", "/home/$USER", "/home/a\nb", "/home/a&b", "/home/<a>", "/home/a\\b"]
        {
            let error = files(&Places { home: odd.into(), ..places() }).unwrap_err();
            assert_eq!(error, OddPath(odd.into()));
        }
        assert!(files(&Places { home: "/home/änne".into(), ..places() }).is_ok());
    }
}
