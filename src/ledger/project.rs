//! What a project is called (interface, *Words*).

/// Whether a directory below `tmp` is named by the SHA-256 of its project's
/// root, as before Gemini CLI 0.29.
#[must_use]
pub fn is_hash(dir: &str) -> bool {
    dir.len() == 64 && dir.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The base name of a project root, of either path flavour. `None` where the
/// root has none (`/`).
#[must_use]
pub fn base_name(root: &str) -> Option<&str> {
    root.trim_end().rsplit(['/', '\\']).find(|part| !part.is_empty())
}

/// The name of a new project: the base name of its root, else its directory;
/// with the directory in parentheses where another project has that name.
/// Names are given once and kept, as counters carry them.
#[must_use]
pub fn name(root_name: Option<&str>, dir: &str, taken: impl Fn(&str) -> bool) -> String {
    let plain = root_name.unwrap_or(dir);
    if !taken(plain) {
        return plain.to_owned();
    }
    let distinct = format!("{plain} ({dir})");
    if !taken(&distinct) {
        return distinct;
    }
    (2..).map(|n| format!("{distinct}-{n}")).find(|name| !taken(name)).expect("some number is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_names_of_both_path_flavours() {
        assert_eq!(base_name("/home/ana/My Proj.v2"), Some("My Proj.v2"));
        assert_eq!(base_name("c:\\src\\proj\\"), Some("proj"));
        assert_eq!(base_name("/srv/app/\n"), Some("app"));
        assert_eq!(base_name("/"), None);
    }

    #[test]
    fn the_second_project_of_a_name_carries_its_directory() {
        assert_eq!(name(Some("proj"), "proj", |_| false), "proj");
        assert_eq!(name(Some("proj"), "proj-1", |n| n == "proj"), "proj (proj-1)");
        assert_eq!(name(None, "proj-1", |_| false), "proj-1");
        assert_eq!(name(Some("p"), "d", |n| n == "p" || n == "p (d)"), "p (d)-2");
    }

    #[test]
    fn hash_directories() {
        assert!(is_hash(&"0a".repeat(32)));
        assert!(!is_hash(&"0A".repeat(32)) && !is_hash("proj") && !is_hash(&"a".repeat(63)));
    }
}
