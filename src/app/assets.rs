//! `assets`: the kit, written into a directory.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::cli;
use crate::config::{Config, Env};
use crate::surfaces::kit::{self, Asset, Places};

/// What became of a file.
enum Done {
    Written,
    Same,
    /// It is there and differs.
    Kept,
}

pub(super) fn assets(config: &Config, args: &cli::assets::Assets) -> anyhow::Result<ExitCode> {
    let files = kit::files(&places(config)?)?;
    // Said at the end: whoever stops listening does not stop the writing.
    let mut said = String::new();
    let mut kept = 0;
    let written = files.iter().try_for_each(|file| {
        let path = args.dir.join(file.path);
        let done = write(&args.dir, file, args.force);
        let word = match done.with_context(|| format!("cannot write {}", path.display()))? {
            Done::Written => "wrote",
            Done::Same => "same ",
            Done::Kept => {
                kept += 1;
                "KEPT "
            }
        };
        said += &format!("{word}  {}\n", path.display());
        Ok::<_, anyhow::Error>(())
    });
    if kept > 0 {
        let (files, differ) = if kept == 1 { ("file", "differs") } else { ("files", "differ") };
        said +=
            &format!("{kept} {files} there {differ} from the kit and stayed as before; --force overwrites\n");
    }
    io::stdout().lock().write_all(said.as_bytes())?;
    written?;
    Ok(if kept > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn places(config: &Config) -> anyhow::Result<Places> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).with_context(|| format!("{} is no UTF-8", path.display()))
    };
    let program = std::env::current_exe().context("the path of the program is not known")?;
    let home = Env::of_process().user_home().context("HOME is not set")?;
    let (uid, gid) = owner();
    Ok(Places {
        program: text(&program)?,
        home: text(&home)?,
        gemini: text(config.homes.first().map_or(&home, |home| &home.path))?,
        data: text(config.db.parent().unwrap_or(&config.db))?,
        uid,
        gid,
    })
}

/// Whom a container runs as: whoever asks, but never root.
#[cfg(unix)]
fn owner() -> (u32, u32) {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    if uid.is_root() { NOBODY_IN_PARTICULAR } else { (uid.as_raw(), gid.as_raw()) }
}

#[cfg(not(unix))]
fn owner() -> (u32, u32) {
    NOBODY_IN_PARTICULAR
}

/// The first user of most machines.
const NOBODY_IN_PARTICULAR: (u32, u32) = (1000, 1000);

fn write(dir: &Path, file: &Asset, force: bool) -> io::Result<Done> {
    let path = dir.join(file.path);
    match fs::symlink_metadata(&path) {
        Ok(there) => {
            // A link is somebody's own arrangement, whatever it leads to.
            let same = there.is_file() && is(&path, &file.text)?;
            match (same, force) {
                (true, _) => return Ok(Done::Same),
                (false, false) => return Ok(Done::Kept),
                (false, true) => {}
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let parent = path.parent().unwrap_or(dir);
    fs::create_dir_all(parent)?;
    // Whole or not at all, and in the place of a link, not through it.
    let mut new = tempfile_beside(&path)?;
    new.1.write_all(file.text.as_bytes())?;
    fs::rename(&new.0, &path).inspect_err(|_| {
        let _ = fs::remove_file(&new.0);
    })?;
    Ok(Done::Written)
}

fn tempfile_beside(path: &Path) -> io::Result<(std::path::PathBuf, fs::File)> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".new-{}", std::process::id()));
    let new = path.with_file_name(name);
    // What a killed run of the same process id left is of no use.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = fs::File::create_new(&new)?;
    Ok((new, file))
}

/// Whether a file holds exactly that.
fn is(path: &Path, text: &str) -> io::Result<bool> {
    if fs::metadata(path)?.len() != text.len() as u64 {
        return Ok(false);
    }
    match crate::config::read_bounded(path, text.len() as u64) {
        Ok(there) => Ok(there == text),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
