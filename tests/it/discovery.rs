//! What is there, what is not, and what only looks like it.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::support::Sandbox;
use crate::support::books::{Books, Facts, NOW, scratch};
use crate::support::files::{append, copy_tree, fixture, write};
use crate::support::records::{answer, header, user};

const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";

/// A journal of one session with one request.
fn journal(home: &Path, project: &str, session: &str, n: u64) -> PathBuf {
    let file = format!("session-2026-08-20T10-00-{}.jsonl", &session[..8]);
    let path = home.join(".gemini/tmp").join(project).join("chats").join(file);
    let content = header(session, 0) + &user("u1") + &answer(&format!("g{n}"), n) + "\n";
    write(&path, content.as_bytes(), NOW - 60_000);
    path
}

fn one_home() -> (tempfile::TempDir, Books) {
    let dir = scratch();
    let books = Books::of(&[dir.path()]);
    (dir, books)
}

fn sha256(root: &str) -> String {
    Sha256::digest(root.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Project labels of the counters, by their requests.
fn labels(facts: &Facts) -> Vec<(&str, u64)> {
    let mut labels: Vec<_> =
        facts.tuples.iter().map(|tuple| (tuple.project.as_str(), tuple.requests)).collect();
    labels.sort_unstable();
    labels
}

#[test]
fn r11_a_home_that_is_missing_is_no_error_and_is_read_when_it_appears() {
    let dir = scratch();
    let home = dir.path().join("later");
    let mut books = Books::of(&[&home]);
    let seen = books.scan();
    assert!(!seen.homes[0].present && seen.homes[0].unread.is_empty());
    assert_eq!(seen.watch, std::slice::from_ref(&home), "the directory it would appear in is watched");
    fs::create_dir_all(home.join(".gemini")).unwrap();
    let seen = books.scan();
    assert!(seen.homes[0].present);
    assert_eq!(seen.watch, [home.join(".gemini")]);
    journal(&home, "p", A, 1);
    let seen = books.scan();
    assert!(seen.watch.contains(&home.join(".gemini/tmp/p/chats")));
    assert_eq!(books.facts().ids(), ["g1"]);
}

#[test]
fn r23_a_home_that_is_removed_keeps_its_figures_and_comes_back_as_it_was() {
    let (dir, mut books) = one_home();
    journal(dir.path(), "p", A, 1);
    books.scan();
    fs::rename(dir.path().join(".gemini"), dir.path().join("away")).unwrap();
    books.scan();
    let facts = books.facts();
    assert_eq!((facts.ids(), facts.journals[0].state.as_str()), (vec!["g1"], "gone"));
    books.restart();
    books.scan();
    fs::rename(dir.path().join("away"), dir.path().join(".gemini")).unwrap();
    append(&journal_path(dir.path(), "p", A), (answer("g2", 2) + "\n").as_bytes(), NOW);
    books.scan();
    let facts = books.facts();
    assert_eq!((facts.ids(), facts.journals[0].state.as_str()), (vec!["g1", "g2"], "read"));
}

fn journal_path(home: &Path, project: &str, session: &str) -> PathBuf {
    let file = format!("session-2026-08-20T10-00-{}.jsonl", &session[..8]);
    home.join(".gemini/tmp").join(project).join("chats").join(file)
}

#[test]
fn r74_what_cannot_be_listed_is_unknown_and_not_gone() {
    let (dir, mut books) = one_home();
    journal(dir.path(), "p", A, 1);
    journal(dir.path(), "q", B, 2);
    books.scan();
    let chats = dir.path().join(".gemini/tmp/p/chats");
    fs::rename(&chats, dir.path().join("away")).unwrap();
    fs::write(&chats, "no directory").unwrap();
    append(&journal_path(dir.path(), "q", B), (answer("g3", 3) + "\n").as_bytes(), NOW);
    let seen = books.scan();
    assert_eq!(seen.homes[0].unread.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&chats]);
    let facts = books.facts();
    assert_eq!(facts.ids(), ["g1", "g2", "g3"], "the other project goes on");
    assert_eq!(facts.journal("aaaaaaaa.jsonl").0, "read");
    fs::remove_file(&chats).unwrap();
    fs::rename(dir.path().join("away"), &chats).unwrap();
    assert!(books.scan().homes[0].unread.is_empty());
    assert_eq!(books.facts().counter("journals_lost", ""), 0);
}

#[test]
fn r74_a_journal_without_permission_failed_until_it_may_be_read() {
    let (dir, mut books) = one_home();
    let path = journal(dir.path(), "p", A, 1);
    journal(dir.path(), "p", B, 2);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("this user may read everything: not checked");
        return;
    }
    books.scan();
    books.scan();
    let facts = books.facts();
    assert_eq!((facts.ids(), facts.journal("aaaaaaaa.jsonl")), (vec!["g2"], ("failed", Some("permission"))));
    assert_eq!(facts.counter("journal_failed_reads", "permission"), 1, "said once");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    books.scan();
    assert_eq!(books.facts().ids(), ["g1", "g2"]);
}

#[test]
fn r73_a_fifo_and_a_directory_with_a_journals_name_are_skipped() {
    let (dir, mut books) = one_home();
    let chats = journal(dir.path(), "p", A, 1).parent().unwrap().to_owned();
    let fifo = chats.join("session-2026-08-20T10-00-ffffffff.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::create_dir(chats.join("session-2026-08-20T10-00-dddddddd.jsonl")).unwrap();
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.ids(), ["g1"]);
    for end in ["ffffffff.jsonl", "dddddddd.jsonl"] {
        assert_eq!(facts.journal(end), ("skipped", Some("not_regular")));
    }
    assert_eq!(facts.counter("journal_skipped", "not_regular"), 2);
    // A real journal in its place is read.
    fs::remove_file(&fifo).unwrap();
    write(&fifo, (answer("g2", 2) + "\n").as_bytes(), NOW);
    books.scan();
    assert_eq!(books.facts().ids(), ["g1", "g2"]);
}

#[test]
fn r73_linked_directories_are_not_followed_and_loops_end() {
    let (dir, mut books) = one_home();
    let elsewhere = scratch();
    journal(elsewhere.path(), "x", B, 2);
    journal(dir.path(), "p", A, 1);
    let tmp = dir.path().join(".gemini/tmp");
    fs::create_dir_all(tmp.join("q")).unwrap();
    symlink(elsewhere.path().join(".gemini/tmp/x/chats"), tmp.join("q/chats")).unwrap();
    symlink(elsewhere.path().join(".gemini/tmp/x"), tmp.join("linked")).unwrap();
    symlink(&tmp, tmp.join("loop")).unwrap();
    symlink("itself", tmp.join("itself")).unwrap();
    symlink(tmp.join("p/chats"), tmp.join("p/chats/session")).unwrap();
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.ids(), ["g1"]);
    let skipped: Vec<_> =
        facts.journals.iter().filter(|journal| journal.state == "skipped").map(|j| &*j.project_dir).collect();
    assert_eq!(skipped, ["linked", "q"]);
    // The link becomes a directory of its own.
    fs::remove_file(tmp.join("q/chats")).unwrap();
    journal(dir.path(), "q", B, 2);
    books.restart();
    books.scan();
    assert_eq!(books.facts().ids(), ["g1", "g2"]);
}

#[test]
fn r12_names_that_are_no_text_disturb_nothing() {
    let (dir, mut books) = one_home();
    let chats = journal(dir.path(), "p", A, 1).parent().unwrap().to_owned();
    let odd = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    write(&chats.join(odd(b"session-\xff.jsonl")), b"{}\n", NOW);
    fs::create_dir_all(dir.path().join(".gemini/tmp").join(odd(b"\xfe\xff")).join("chats")).unwrap();
    write(
        &chats.join("session-2026-08-20T10-00-\u{e4}\u{f6}.jsonl"),
        (answer("g2", 2) + "\n").as_bytes(),
        NOW,
    );
    write(&chats.join("session-.jsonl"), (answer("g3", 3) + "\n").as_bytes(), NOW);
    assert!(books.scan().homes[0].unread.is_empty());
    assert_eq!(books.facts().ids(), ["g1", "g2", "g3"]);
}

#[test]
fn r12_a_project_is_named_by_its_root_then_by_the_registry_then_by_its_directory() {
    let (dir, mut books) = one_home();
    for (n, project) in ["by-root", "by-registry", "by-directory"].into_iter().enumerate() {
        journal(dir.path(), project, &A.replace("aaaaaaaa", &format!("{n:08}")), n as u64);
    }
    let gemini = dir.path().join(".gemini");
    write(&gemini.join("tmp/by-root/.project_root"), b"/home/ana/src/Website\n", NOW);
    write(&gemini.join("projects.json"), br#"{"projects":{"/srv/api":"by-registry"}}"#, NOW);
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.projects, ["by-directory", "api", "Website"]);
    assert_eq!(labels(&facts), [("Website", 1), ("api", 1), ("by-directory", 1)]);
}

#[test]
fn r12_two_projects_of_one_name_are_told_apart_and_keep_their_names() {
    let (dir, mut books) = one_home();
    for (n, (project, root)) in [("web", "/a/web"), ("web-1", "/b/web")].into_iter().enumerate() {
        journal(dir.path(), project, &A.replace("aaaaaaaa", &format!("{n:08}")), n as u64);
        write(&dir.path().join(".gemini/tmp").join(project).join(".project_root"), root.as_bytes(), NOW);
    }
    books.scan();
    assert_eq!(labels(&books.facts()), [("web", 1), ("web (web-1)", 1)]);
    books.restart();
    append(&journal_path(dir.path(), "web-1", "00000001"), (answer("g7", 7) + "\n").as_bytes(), NOW);
    books.scan();
    assert_eq!(labels(&books.facts()), [("web", 1), ("web (web-1)", 2)]);
}

#[test]
fn r12_a_hash_and_its_slug_are_one_project_whichever_is_seen_first() {
    let root = "/home/ana/src/shop";
    let hash = sha256(root);
    for slug_first in [false, true] {
        let (dir, mut books) = one_home();
        let slug = |n| {
            journal(dir.path(), "shop", B, n);
            write(&dir.path().join(".gemini/tmp/shop/.project_root"), root.as_bytes(), NOW);
        };
        if slug_first {
            slug(2)
        } else {
            drop(journal(dir.path(), &hash, A, 1))
        }
        books.scan();
        if slug_first {
            drop(journal(dir.path(), &hash, A, 1))
        } else {
            slug(2)
        }
        books.restart();
        books.scan();
        let facts = books.facts();
        let name = if slug_first { "shop" } else { hash.as_str() };
        assert_eq!(facts.projects, [name], "slug first: {slug_first}");
        assert!(facts.requests.iter().all(|request| request.project == name));
        assert_eq!(labels(&facts), [(name, 2)]);
        // A counter's label stays, whatever is added.
        append(&journal_path(dir.path(), "shop", B), (answer("g3", 3) + "\n").as_bytes(), NOW);
        append(&journal_path(dir.path(), &hash, A), (answer("g4", 4) + "\n").as_bytes(), NOW);
        books.scan();
        assert_eq!(labels(&books.facts()), [(name, 4)]);
    }
}

#[test]
fn r12_two_directories_found_to_be_one_project_later_keep_what_was_counted() {
    let root = "/home/ana/src/shop";
    let (dir, mut books) = one_home();
    journal(dir.path(), &sha256(root), A, 1);
    journal(dir.path(), "shop", B, 2);
    books.scan();
    assert_eq!(books.facts().projects.len(), 2, "nothing says yet that they are one");
    let before = books.facts().counted();
    write(&dir.path().join(".gemini/tmp/shop/.project_root"), root.as_bytes(), NOW);
    append(&journal_path(dir.path(), "shop", B), (answer("g3", 3) + "\n").as_bytes(), NOW);
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.projects, ["shop"], "the first of the two, slugs before hashes");
    assert!(facts.requests.iter().all(|request| request.project == "shop"));
    let hash = sha256(root);
    assert_eq!(labels(&facts), [(hash.as_str(), 1), ("shop", 2)], "no value moves to another label");
    assert!(facts.counted().0 == before.0 + 1);
}

#[test]
fn r17_equal_ids_in_two_homes_are_two_requests_of_two_sessions() {
    let (one, two) = (scratch(), scratch());
    for home in [&one, &two] {
        journal(home.path(), "p", A, 1);
    }
    let mut books = Books::of(&[one.path(), two.path()]);
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.ids(), ["g1", "g1"]);
    assert_eq!(facts.sessions.len(), 2);
    assert_eq!(facts.by(|request| request.home.clone()).len(), 2);
    let homes: Vec<_> = facts.tuples.iter().map(|tuple| (tuple.home.as_str(), tuple.requests)).collect();
    assert_eq!(homes, [("home0", 1), ("home1", 1)]);
}

#[test]
fn r46_a_subagent_seen_before_its_parent_is_the_parents() {
    let (dir, mut books) = one_home();
    let chats = dir.path().join(".gemini/tmp/p/chats");
    let sub = header("sub1", 1).replace("\"main\"", "\"subagent\"") + &answer("g1", 1) + "\n";
    write(&chats.join(A).join("sub1.jsonl"), sub.as_bytes(), NOW);
    books.scan();
    journal(dir.path(), "p", A, 2);
    books.scan();
    let facts = books.facts();
    assert_eq!((facts.session(A).requests, facts.sessions.len()), (2, 1));
    assert_eq!(facts.by(|request| request.role.as_str().into())["subagent"], 1);
}

#[test]
fn r13_a_nameless_journal_is_of_the_session_it_fits_until_two_fit() {
    let (dir, mut books) = one_home();
    let chats = dir.path().join(".gemini/tmp/p/chats");
    let nameless = format!("{}\n", answer("g1", 1));
    write(&chats.join("session-2026-08-20T09-00-aaaaaaaa.jsonl"), nameless.as_bytes(), NOW);
    books.scan();
    assert_eq!(books.facts().requests[0].session, "~aaaaaaaa");
    journal(dir.path(), "p", A, 2);
    books.scan();
    assert_eq!(books.facts().session(A).requests, 2);
    let twin = A.replace("0001", "0002");
    let other = header(&twin, 9) + &answer("g3", 3) + "\n";
    write(&chats.join("session-2026-08-20T10-09-aaaaaaaa.jsonl"), other.as_bytes(), NOW);
    books.scan();
    let facts = books.facts();
    assert_eq!(facts.session("~aaaaaaaa").requests, 1);
    assert_eq!((facts.session(A).requests, facts.session(&twin).requests), (1, 1));
}

#[test]
fn r75_the_time_zone_of_the_process_changes_no_figure() {
    let said: Vec<_> = ["UTC", "Pacific/Kiritimati", "America/St_Johns"]
        .into_iter()
        .map(|zone| {
            let sandbox = Sandbox::new();
            copy_tree(&fixture("home/.gemini"), &sandbox.home().join(".gemini"), NOW);
            let args = ["report", "sessions", "--since", "all", "--json", "--all", "--timezone", "UTC"];
            let output = sandbox.command(&args).env("TZ", zone).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(said[0].len() > 5000);
    assert!(said.iter().all(|other| *other == said[0]));
}

#[test]
fn doctor_says_what_is_missing_skipped_and_broken() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["doctor"]);
    assert_eq!(said.code, 0, "no home yet is nothing wrong: {}", said.out);
    assert!(said.out.contains("no Gemini CLI session yet"), "{}", said.out);

    let home = sandbox.home();
    let chats = journal(&home, "p", A, 1).parent().unwrap().to_owned();
    symlink(home.join("x"), chats.join("session-2026-08-20T10-00-ffffffff.jsonl")).unwrap();
    let broken = chats.join("session-2026-08-20T10-00-dddddddd.json");
    write(&broken, b"{\"sessionId\":\"dddddddd-1\",\"messages\":[", NOW);
    let said = sandbox.run(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let states = serde_json::json!({ "read": 1, "failed (not_json)": 1, "skipped (symlink)": 1 });
    assert_eq!(report["homes"][0]["states"], states);
    let findings: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| &f["code"]).collect();
    for code in ["journal_failed", "journal_skipped"] {
        assert!(findings.iter().any(|found| **found == code), "{code}: {findings:?}");
    }
    assert_eq!((said.code, &report["healthy"]), (1, &false.into()), "a journal that fails is wrong");
    let text = sandbox.run(&["doctor"]).out;
    assert!(text.contains("1 project, 3 journals"), "{text}");
    assert!(text.contains("state: 1 failed (not_json), 1 read, 1 skipped (symlink)"), "{text}");

    // What a directory held that cannot be listed now is not gone.
    fs::rename(&chats, home.join("away")).unwrap();
    fs::write(&chats, "no directory").unwrap();
    let text = sandbox.run(&["doctor"]).out;
    assert!(text.contains("1 project, 3 journals"), "what was known stays known: {text}");
}
