//! Rust sources as text: enough of the language to see which paths they name.

use std::collections::BTreeSet;

/// A source file without its comments, its literals and its tests.
pub(super) struct Source {
    name: String,
    module: Vec<String>,
    code: String,
    /// Directly below, files that are compiled for tests only.
    test_modules: Vec<String>,
    attributes: Vec<String>,
}

/// The leading `//!` comment of a file.
pub(super) fn head(text: &str) -> String {
    text.lines().take_while(|line| line.starts_with("//!")).map(|line| format!("{line}\n")).collect()
}

impl Source {
    /// A source by its path below the package, `src/store/read.rs`.
    pub(super) fn new(name: &str, text: &str) -> Self {
        let code = without_tests(&without_literals(text));
        Self {
            name: name.to_owned(),
            module: module_of(name),
            test_modules: test_modules(name, &without_literals(text)),
            attributes: attributes(&code, text),
            code,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// `["store", "read"]`; empty for lib.rs and main.rs.
    pub(super) fn module(&self) -> &[String] {
        &self.module
    }

    pub(super) fn test_modules(&self) -> Vec<String> {
        self.test_modules.clone()
    }

    /// The attributes that name a lint.
    pub(super) fn attributes_with(&self, lint: &str) -> Vec<&String> {
        self.attributes.iter().filter(|attribute| attribute.contains(lint)).collect()
    }

    /// Every path into our own rooms, without its `crate::`.
    pub(super) fn own_paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = BTreeSet::new();
        for at in path_starts(&self.code, "crate") {
            let rest = self.code[at..].trim_start();
            if let Some(tree) = rest.strip_prefix("::") {
                expand(tree, &mut Vec::new(), &mut paths);
            }
        }
        if self.module.is_empty() {
            for at in path_starts(&self.code, "gemgauge") {
                if let Some(tree) = self.code[at..].trim_start().strip_prefix("::") {
                    expand(tree, &mut Vec::new(), &mut paths);
                }
            }
        }
        paths.retain(|path| !path.is_empty() && path[0] != "*");
        paths
    }

    /// The crates of `known` that are named.
    pub(super) fn outside(&self, known: &BTreeSet<String>) -> BTreeSet<String> {
        let named = |name: &&String| {
            path_starts(&self.code, name).any(|at| {
                let before = self.code[..at - name.len()].trim_end();
                let imported = ["use", "extern crate", "{", ","].iter().any(|word| before.ends_with(word))
                    && in_use(&self.code, at);
                self.code[at..].trim_start().starts_with("::") && !is_turbofish(&self.code[at..])
                    || imported
                    || before.ends_with("extern crate")
            })
        };
        known.iter().filter(named).cloned().collect()
    }

    /// Ways to use a room without saying which.
    pub(super) fn smuggled(&self) -> Vec<String> {
        let mut found = Vec::new();
        let dense: String = self.code.split_whitespace().collect::<Vec<_>>().join(" ");
        for way in ["use crate as ", "use crate::*", "use crate::{self", "use crate;"] {
            if dense.contains(way) {
                found.push(way.trim().to_owned());
            }
        }
        if self.name != "src/main.rs"
            && path_starts(&self.code, "gemgauge").any(|at| self.code[at..].starts_with("::"))
            || dense.contains("use gemgauge")
        {
            found.push("gemgauge::".to_owned());
        }
        let mut rest = self.code.as_str();
        while let Some(at) = rest.find("super::") {
            let chain = rest[at..].split("super::").take_while(|part| part.is_empty()).count();
            // One `super::` splits into one empty part before it and what follows.
            if !self.module.is_empty() && chain >= self.module.len() {
                found.push("super::".repeat(chain));
            }
            rest = &rest[at + chain * "super::".len()..];
        }
        found
    }
}

fn module_of(name: &str) -> Vec<String> {
    let path = name.strip_prefix("src/").unwrap_or(name);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The ends of all places where `word` stands alone at the start of a path.
fn path_starts<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    code.match_indices(word).filter_map(move |(at, _)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let alone = !before.ends_with(is_word) && !after.starts_with(is_word);
        // `::tokio::x` starts at the root; `my::tokio::x` and `self.tokio` do not.
        let before = before.trim_end();
        let inner = match before.strip_suffix("::") {
            Some(owner) => owner.ends_with(|c| is_word(c) || c == '>'),
            None => before.ends_with('.') || before.ends_with('$'),
        };
        (alone && !inner).then_some(at + word.len())
    })
}

/// Whether what follows is `::<`, the type arguments of a call.
fn is_turbofish(rest: &str) -> bool {
    rest.trim_start().starts_with("::<")
}

/// Whether a place lies within a `use` item.
fn in_use(code: &str, at: usize) -> bool {
    let start = code[..at].rfind(';').map_or(0, |semicolon| semicolon + 1);
    let item = code[start..at].trim_start();
    let item = item.rsplit(['\n', '}']).find(|line| line.trim_start().starts_with("use ")).unwrap_or(item);
    item.trim_start().starts_with("use ") || item.trim_start().starts_with("pub use ")
}

/// Expands `a::{b, c::d}` into the paths it names.
fn expand(tree: &str, prefix: &mut Vec<String>, paths: &mut BTreeSet<Vec<String>>) -> usize {
    let mut at = tree.len() - tree.trim_start().len();
    let depth = prefix.len();
    loop {
        let rest = &tree[at..];
        if let Some(group) = rest.strip_prefix('{') {
            at += 1;
            let mut group = group;
            loop {
                let used = expand(group, prefix, paths);
                at += used;
                group = &group[used..];
                match group.chars().next() {
                    Some(',') => (at, group) = (at + 1, &group[1..]),
                    Some('}') => break at += 1,
                    _ => break,
                }
            }
            prefix.truncate(depth);
            return at + leading_space(&tree[at..]);
        }
        let word: usize = rest.chars().take_while(|c| is_word(*c) || *c == '*').map(char::len_utf8).sum();
        if word == 0 {
            break;
        }
        if &rest[..word] != "self" {
            prefix.push(rest[..word].to_owned());
        }
        at += word;
        let after = tree[at..].trim_start();
        match after.strip_prefix("::") {
            Some(next) if !next.trim_start().starts_with('<') => {
                at = tree.len() - next.trim_start().len();
            }
            _ => break,
        }
    }
    if prefix.len() > depth || depth > 0 {
        paths.insert(prefix.clone());
    }
    prefix.truncate(depth);
    // `name as other` belongs to this branch.
    let rest = &tree[at..];
    let renamed: usize =
        rest.chars().take_while(|c| is_word(*c) || c.is_whitespace()).map(char::len_utf8).sum();
    at + renamed
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The text with comments and the insides of literals blanked out.
fn without_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(rest).filter(|_| !out.ends_with(is_word)) {
            length
        } else if c == '"' {
            string(rest)
        } else if c == '\'' {
            character(rest)
        } else {
            0
        };
        if skip == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            // Keep the lines, and something where a literal stood.
            out.push(if rest.starts_with('/') { ' ' } else { '0' });
            out.extend(rest[..skip].chars().filter(|c| *c == '\n'));
            rest = &rest[skip..];
        }
    }
    out
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a raw string that starts here.
fn raw_string(text: &str) -> Option<usize> {
    let start = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let inner = start[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let inner_length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(text.len() - inner.len() + inner_length)
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(0, |at| 3 + at + 1),
        Some((at, c)) if text[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 0,
    }
}

/// The code without `#[cfg(test)]` modules, uses and functions in braces.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(['{', ';']).unwrap_or(rest.len());
        rest = if rest[end..].starts_with('{') {
            &rest[end + braces(&rest[end..])..]
        } else {
            &rest[(end + 1).min(rest.len())..]
        };
    }
    out.push_str(rest);
    out
}

/// The length of a block in braces.
fn braces(code: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The files of `#[cfg(test)] mod name;`, shared with the room above or not.
fn test_modules(name: &str, code: &str) -> Vec<String> {
    let dir = match name.rsplit_once('/') {
        Some((dir, "mod.rs" | "lib.rs" | "main.rs")) => dir.to_owned(),
        _ => name.strip_suffix(".rs").unwrap_or(name).to_owned(),
    };
    let mut found = Vec::new();
    for (at, attribute) in code.match_indices("#[cfg(test)]") {
        let item = code[at + attribute.len()..].trim_start();
        let item = item.strip_prefix("pub(super) ").unwrap_or(item);
        let Some(declared) = item.strip_prefix("mod ").and_then(|rest| rest.split(';').next()) else {
            continue;
        };
        if declared.chars().all(is_word) {
            found.push(format!("{dir}/{declared}.rs"));
            found.push(format!("{dir}/{declared}/mod.rs"));
        }
    }
    found
}

/// The attributes of the code that name a clippy lint, with their text as written.
fn attributes(code: &str, text: &str) -> Vec<String> {
    let kept = code.matches("disallowed_methods").count();
    let whole = text.match_indices("clippy::disallowed_methods").take(kept).map(|(at, _)| {
        let start = text[..at].rfind('#').unwrap_or(at);
        let end = text[at..].find(")]").map_or(text.len(), |end| at + end + 2);
        text[start..end].to_owned()
    });
    whole.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_name_all_their_paths() {
        let source = Source::new(
            "src/app/a.rs",
            "use crate::{a::{self, b as c, d::e}, f::*};\nfn g() { crate::h::<X>() }",
        );
        let paths: Vec<String> = source.own_paths().iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["a", "a::b", "a::d::e", "f::*", "h"]);
    }

    #[test]
    fn test_modules_are_files_or_directories_beside_their_parent() {
        let text = "#[cfg(test)]\nmod laws;\nmod real;\n#[cfg(test)]\nmod tests {}";
        let source = Source::new("src/surfaces/report/mod.rs", text);
        assert_eq!(source.test_modules(), ["src/surfaces/report/laws.rs", "src/surfaces/report/laws/mod.rs"]);
        assert_eq!(Source::new("src/a/b.rs", text).test_modules()[0], "src/a/b/laws.rs");
        let shared = Source::new("src/a/mod.rs", "#[cfg(test)]\npub(super) mod sample;");
        assert_eq!(shared.test_modules()[0], "src/a/sample.rs");
    }

    #[test]
    fn a_lifted_ban_is_seen_with_its_reason_and_not_in_tests() {
        let text = "#[expect(clippy::disallowed_methods, reason = \"here\")]\nfn f() {}\n\
                    #[cfg(test)]\nmod tests { #[allow(clippy::disallowed_methods)] fn g() {} }";
        let source = Source::new("src/a/b.rs", text);
        assert_eq!(
            source.attributes_with("clippy::disallowed_methods"),
            ["#[expect(clippy::disallowed_methods, reason = \"here\")]"]
        );
    }
}
