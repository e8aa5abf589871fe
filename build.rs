//! Puts the kit into the program: every file of `kit/`, the dashboards and
//! their rules, as a table of paths and texts (`surfaces/kit.rs` includes it).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut table = Vec::new();
    for file in files(&root.join("kit"), true) {
        table.push((relative(&file, &root.join("kit")), file));
    }
    let dashboards = root.join("dashboards");
    for (from, extension, to) in [
        (dashboards.clone(), "json", "grafana/dashboards"),
        (dashboards.join("rules"), "yml", "prometheus/rules"),
    ] {
        for file in
            files(&from, false).into_iter().filter(|file| file.extension().is_some_and(|e| e == extension))
        {
            table.push((format!("{to}/{}", relative(&file, &from)), file));
        }
    }
    table.sort();
    let mut text = "static FILES: &[(&str, &str)] = &[\n".to_owned();
    for (path, file) in table {
        writeln!(text, "    ({path:?}, include_str!({:?})),", file.display().to_string())
            .expect("a string takes all");
    }
    text.push_str("];\n");
    fs::write(out_dir().join("kit.rs"), text).expect("the build directory can be written to");
    for watched in ["build.rs", "kit", "dashboards"] {
        println!("cargo::rerun-if-changed={watched}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a build script is told its directory by a variable")]
fn out_dir() -> PathBuf {
    std::env::var_os("OUT_DIR").expect("cargo names the build directory").into()
}

/// The files of a directory; none where there is no such directory.
fn files(dir: &Path, deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("the directory can be listed").path();
        match path.is_dir() {
            true if deep => found.extend(files(&path, deep)),
            true => {}
            false => found.push(path),
        }
    }
    found
}

/// With slashes, whatever the system.
fn relative(file: &Path, from: &Path) -> String {
    let relative = file.strip_prefix(from).expect("it was found below");
    relative
        .iter()
        .map(|part| part.to_str().expect("names of the kit are plain"))
        .collect::<Vec<_>>()
        .join("/")
}
