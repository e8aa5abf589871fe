//! The plan of the house, checked: which room may use which, and name what
//! from outside (docs/architecture.md). It reads the sources as text, so that a
//! door opened in passing fails here and not in a review.

mod doors;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use scan::Source;

/// Files that may call what clippy.toml bans, each in one marked place.
const BANNED_CALLS: &[&str] = &["src/app/clock.rs", "src/config/env.rs", "src/config/read.rs"];

/// No file is longer without a reason: a line `//! Long: …` in its head.
const LINES: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// All sources by their path below the package, without those that are tests only.
fn sources() -> BTreeMap<String, Source> {
    let files = rust_files(&root().join("src"));
    let mut sources: BTreeMap<String, Source> = files
        .iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            (name.clone(), Source::new(&name, &read(path)))
        })
        .collect();
    let tests: Vec<String> = sources.values().flat_map(Source::test_modules).collect();
    sources.retain(|name, _| {
        !tests.iter().any(|test| name == test || name.starts_with(&format!("{}/", stem(test))))
    });
    sources
}

fn stem(file: &str) -> &str {
    file.strip_suffix(".rs").unwrap_or(file)
}

fn rooms() -> BTreeSet<String> {
    let src = std::fs::read_dir(root().join("src")).unwrap();
    let dirs = src.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    dirs.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The crates of Cargo.toml that the program itself may name.
fn dependencies() -> BTreeSet<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]"
                || (line.starts_with("[target.") && line.ends_with(".dependencies]"));
        } else if let Some((name, _)) = line.split_once('=').filter(|_| inside) {
            names.insert(name.trim().replace('-', "_"));
        }
    }
    assert!(names.contains("clap") && names.contains("rustix") && !names.contains("tempfile"), "{names:?}");
    names
}

#[test]
fn every_room_has_its_line_in_the_table_and_in_lib_rs() {
    let library = read(&root().join("src/lib.rs"));
    for room in rooms() {
        assert!(doors::DOORS.iter().any(|door| door.room == room), "src/{room} is in no plan: see doors.rs");
        assert!(
            library.contains(&format!("\npub mod {room};")),
            "lib.rs is the table of contents: add {room}"
        );
    }
}

#[test]
fn rooms_use_only_the_doors_of_the_plan() {
    let crates = dependencies();
    let sources = sources();
    assert!(sources.len() > 20, "the sources are found");
    let wrong: Vec<String> = sources.values().flat_map(|source| doors::violations(source, &crates)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_opens_with_its_four_answers() {
    for room in rooms() {
        let head = scan::head(&read(&root().join("src").join(&room).join("mod.rs")));
        let answers = ["- **In**", "- **Out**", "- **Never**", "- **Look first**"];
        let places: Vec<_> = answers.iter().map(|answer| head.find(answer)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "src/{room}/mod.rs says first what comes in, what goes out, what it must never do and where to \
             look first: {places:?}"
        );
    }
}

#[test]
fn files_stay_short_or_say_why_not() {
    for path in rust_files(&root().join("src")).into_iter().chain(rust_files(&root().join("tests"))) {
        let text = read(&path);
        let lines = text.lines().count();
        let reason = scan::head(&text).lines().any(|line| line.starts_with("//! Long: "));
        assert!(
            lines <= LINES || reason,
            "{} has {lines} lines; split it, or say why not: `//! Long: …` at its top",
            path.display()
        );
    }
}

#[test]
fn clock_environment_and_unbounded_reads_are_banned() {
    let clippy = read(&root().join("clippy.toml"));
    for path in [
        "std::time::Instant::now",
        "std::time::SystemTime::now",
        "jiff::Timestamp::now",
        "std::env::var",
        "std::env::vars_os",
        "std::fs::read_to_string",
        "std::io::Read::read_to_string",
    ] {
        let line = clippy.lines().find(|line| line.contains(&format!("\"{path}\"")));
        assert!(
            line.is_some_and(|line| line.contains("reason = ")),
            "clippy.toml bans {path}, with a reason"
        );
    }
}

#[test]
fn bans_are_lifted_only_where_the_list_says_and_with_a_reason() {
    for (name, source) in sources() {
        for attribute in source.attributes_with("clippy::disallowed_methods") {
            assert!(BANNED_CALLS.contains(&name.as_str()), "{name} lifts a ban and is not in BANNED_CALLS");
            assert!(
                attribute.starts_with("#[expect(") && attribute.contains("reason"),
                "{name}: {attribute} lifts a ban for one item, with #[expect(…, reason = …)]"
            );
        }
    }
}
