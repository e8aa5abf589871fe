//! What went wrong in other tailers (fluent-bit, Vector, promtail, filebeat,
//! mtail), and what went wrong here once, each by name.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use gemgauge::sources::journal::Limits;

use crate::support::books::{Books, NOW, scratch};
use crate::support::files::{append, rename_over, write};
use crate::support::records::{answer, checkpoint, document, header, update, with_calls};

const SESSION: &str = "aaaaaaaa-0000-4000-8000-000000000001";

/// One home with one journal, being written.
struct Desk {
    dir: tempfile::TempDir,
    books: Books,
    now: i64,
}

impl Desk {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let dir = scratch();
        let books = Books::with(&[dir.path()], limits);
        Self { dir, books, now: NOW }
    }

    fn chats(&self) -> PathBuf {
        self.dir.path().join(".gemini/tmp/p/chats")
    }

    fn journal(&self) -> PathBuf {
        self.chats().join("session-2026-08-20T10-00-aaaaaaaa.jsonl")
    }

    fn append(&mut self, text: &str) -> &mut Self {
        self.now += 3;
        append(&self.journal(), text.as_bytes(), self.now);
        self
    }

    fn line(&mut self, n: u64) -> &mut Self {
        let line = answer(&format!("g{n}"), n) + "\n";
        self.append(&line)
    }

    fn start(&mut self) -> &mut Self {
        self.append(&header(SESSION, 0))
    }

    fn rewrite(&mut self, text: &str) -> &mut Self {
        self.now += 3;
        write(&self.journal(), text.as_bytes(), self.now);
        self
    }

    fn wait(&mut self, ms: i64) -> &mut Self {
        self.now += ms;
        self
    }

    fn scan(&mut self) -> &mut Self {
        self.now += 3;
        self.books.set_now(self.now);
        self.books.scan();
        self
    }

    fn restart(&mut self) -> &mut Self {
        self.books.restart();
        self
    }

    /// The ledger holds exactly these requests, and its counters say the same.
    #[track_caller]
    fn holds(&mut self, ids: &[&str]) -> &mut Self {
        let facts = self.books.facts();
        assert_eq!(facts.ids(), ids);
        assert_eq!(facts.counted(), (ids.len() as u64, facts.classes()));
        self
    }

    #[track_caller]
    fn state(&mut self, state: &str) -> &mut Self {
        assert_eq!(self.books.facts().journal("aaaaaaaa.jsonl").0, state);
        self
    }

    /// How many lines are undecodable, and how many of them demote.
    #[track_caller]
    fn undecodable(&mut self, lines: usize, demoting: usize) -> &mut Self {
        let facts = self.books.facts();
        let open = facts.undecodable.iter().filter(|line| !line.settled).count();
        assert_eq!((facts.undecodable.len(), open), (lines, demoting), "{:?}", facts.undecodable);
        self
    }
}

#[test]
fn r23_an_inode_used_again_is_another_file() {
    let mut desk = Desk::new();
    desk.start().line(1).line(2).scan().wait(20 * 60 * 1000).scan();
    // Long idle, so nobody holds it: the file system may give its number out again.
    let inode = fs::metadata(desk.journal()).unwrap().ino();
    fs::remove_file(desk.journal()).unwrap();
    desk.append(&header("aaaaaaaa-0000-4000-8000-000000000009", 30)).line(3).line(4).line(5);
    if fs::metadata(desk.journal()).unwrap().ino() != inode {
        eprintln!("this file system gave another inode: the case is weaker here");
    }
    desk.scan().holds(&["g1", "g2", "g3", "g4", "g5"]);
}

#[test]
fn r23_a_held_file_keeps_its_inode_from_being_used_again() {
    let mut desk = Desk::new();
    desk.start().line(1).scan();
    fs::remove_file(desk.journal()).unwrap();
    desk.start().line(2).scan().holds(&["g1", "g2"]);
}

#[test]
fn r23_equal_first_lines_do_not_hide_other_content() {
    let mut desk = Desk::new();
    desk.start().line(1).line(2).scan();
    desk.rewrite(&(header(SESSION, 0) + &answer("g3", 3) + "\n" + &answer("g4", 4) + "\n"));
    desk.scan().holds(&["g1", "g2", "g3", "g4"]);
}

#[test]
fn r23_truncated_and_grown_past_the_old_length() {
    let mut desk = Desk::new();
    desk.start().line(1).scan();
    let longer: String = (2..6).map(|n| answer(&format!("g{n}"), n) + "\n").collect();
    desk.rewrite(&longer).scan().holds(&["g1", "g2", "g3", "g4", "g5"]);
    assert_eq!(desk.books.facts().counter("journal_revisions", ""), 1);
}

#[test]
fn r23_truncated_while_nobody_ran_and_grown_past_the_old_length() {
    let mut desk = Desk::new();
    desk.start().line(1).scan();
    let longer: String = (2..6).map(|n| answer(&format!("g{n}"), n) + "\n").collect();
    desk.rewrite(&longer).restart().scan().holds(&["g1", "g2", "g3", "g4", "g5"]);
}

#[test]
fn r23_truncated_to_a_prefix_and_written_on() {
    let mut desk = Desk::new();
    desk.start().line(1).line(2).scan();
    let kept = header(SESSION, 0) + &answer("g1", 1) + "\n";
    desk.rewrite(&kept).scan().line(3).scan().holds(&["g1", "g2", "g3"]);
}

#[test]
fn r23_the_offset_never_passes_a_partial_line() {
    let line = answer("g2", 2) + "\n";
    for cut in (1..line.len()).step_by(6) {
        let mut desk = Desk::new();
        desk.start().line(1).append(&line[..cut]).scan().restart();
        let offset = desk.books.facts().journals[0].offset;
        assert_eq!(offset as usize, (header(SESSION, 0) + &answer("g1", 1) + "\n").len());
        desk.append(&line[cut..]).scan().holds(&["g1", "g2"]).undecodable(0, 0);
        assert_eq!(desk.books.facts().counter("journal_lines", "request"), 2, "cut at {cut}");
    }
}

#[test]
fn r23_unlinked_while_open_is_read_to_its_end() {
    let mut desk = Desk::new();
    desk.start().line(1).scan().line(2);
    fs::remove_file(desk.journal()).unwrap();
    desk.scan().holds(&["g1", "g2"]).state("gone");
    assert!(desk.books.facts().session(SESSION).reasons.iter().all(|reason| *reason != "journal_lost"));
}

#[test]
fn r19_an_unlinked_file_is_finished_and_its_tail_is_torn() {
    let mut desk = Desk::new();
    let torn = &answer("g2", 2)[..90];
    desk.start().line(1).scan().append(torn);
    fs::remove_file(desk.journal()).unwrap();
    desk.scan().holds(&["g1"]).state("gone").undecodable(1, 1);
}

#[test]
fn r23_renamed_over_with_its_rest_unread() {
    let mut desk = Desk::new();
    desk.start().line(1).scan().line(2);
    let other = header(SESSION, 30) + &answer("g3", 3) + "\n";
    rename_over(&desk.journal(), other.as_bytes(), desk.now + 1);
    desk.wait(5).scan().holds(&["g1", "g2", "g3"]).state("read");
}

#[test]
fn r23_unlinked_while_another_process_moved_the_cursor() {
    let mut desk = Desk::new();
    desk.start().line(1).scan();
    let mut other = desk.books.beside();
    desk.line(2);
    other.set_now(desk.now);
    other.scan();
    desk.line(3);
    fs::remove_file(desk.journal()).unwrap();
    desk.scan().holds(&["g1", "g2", "g3"]).state("gone");
}

#[test]
fn r23_a_journal_read_before_a_restart_is_held_again() {
    let mut desk = Desk::new();
    desk.start().line(1).scan().restart().scan().line(2);
    fs::remove_file(desk.journal()).unwrap();
    desk.scan().holds(&["g1", "g2"]).state("gone");
}

#[test]
fn r23_deleted_before_it_was_read_is_lost_and_said_so() {
    let mut desk = Desk::with(Limits { step_requests: 1, ..Limits::default() });
    desk.start().line(1).line(2).scan().restart().line(3);
    fs::remove_file(desk.journal()).unwrap();
    // Nobody held it: what was appended is not known of, what was read stays.
    desk.scan().holds(&["g1", "g2"]).state("gone");
}

#[test]
fn r23_deleted_and_made_again_between_two_looks() {
    let mut desk = Desk::new();
    desk.start().line(1).scan().line(2);
    fs::remove_file(desk.journal()).unwrap();
    desk.append(&answer("g3", 3)).append("\n").scan().holds(&["g1", "g2", "g3"]).state("read");
}

#[test]
fn r23_a_deleted_journal_that_comes_back_counts_nothing_twice() {
    let mut desk = Desk::new();
    desk.start().line(1).line(2).scan();
    let content = fs::read(desk.journal()).unwrap();
    fs::remove_file(desk.journal()).unwrap();
    desk.scan().state("gone").wait(10);
    write(&desk.journal(), &content, desk.now);
    desk.line(3).scan().holds(&["g1", "g2", "g3"]).state("read");
}

#[test]
fn r23_small_and_empty_files_are_told_apart() {
    let mut desk = Desk::new();
    for n in 0..5 {
        let path = desk.chats().join(format!("session-2026-08-20T10-0{n}-0000000{n}.jsonl"));
        write(&path, b"", NOW);
    }
    desk.scan().holds(&[]);
    for n in 0..5_u64 {
        let path = desk.chats().join(format!("session-2026-08-20T10-0{n}-0000000{n}.jsonl"));
        append(&path, (answer(&format!("g{n}"), n) + "\n").as_bytes(), NOW + 10);
    }
    desk.scan().holds(&["g0", "g1", "g2", "g3", "g4"]);
    assert_eq!(desk.books.facts().sessions.len(), 5, "each is of its own name");
}

#[test]
fn r23_more_journals_than_descriptors_are_held() {
    let mut desk = Desk::new();
    let path = |n: u64| format!("session-2026-08-20T10-00-{n:08}.jsonl");
    for n in 0..200 {
        write(&desk.chats().join(path(n)), (answer(&format!("g{n:03}"), n) + "\n").as_bytes(), NOW);
    }
    desk.scan();
    for n in 0..200 {
        append(&desk.chats().join(path(n)), (answer(&format!("h{n:03}"), n) + "\n").as_bytes(), NOW + 9);
    }
    desk.scan();
    assert_eq!(desk.books.facts().requests.len(), 400);
}

#[test]
fn r23_a_rewritten_backup_is_the_same_session_and_adds_nothing() {
    let mut desk = Desk::new();
    desk.start().line(1).append("{\"id\":\"g2\",\"timest").line(3).scan().holds(&["g1", "g3"]);
    let backup = desk.journal().with_extension("jsonl.unreadable-1780000000000");
    fs::rename(desk.journal(), &backup).unwrap();
    desk.rewrite(&(header(SESSION, 0) + &answer("g1", 1) + "\n" + &answer("g3", 3) + "\n"));
    desk.scan().line(4).scan().holds(&["g1", "g3", "g4"]);
    assert_eq!(desk.books.facts().by(|request| request.session.clone()).len(), 1);
}

#[test]
fn r19_a_torn_tail_that_grows_and_is_finished_stops_to_demote() {
    let line = answer("g2", 2) + "\n";
    let mut desk = Desk::new();
    // No id is legible in the first bytes: only the line itself can settle it.
    desk.start().line(1).append(&line[..8]).wait(6000).scan().state("torn").undecodable(1, 1);
    desk.append(&line[8..40]).scan().state("pending").undecodable(0, 0);
    desk.wait(6000).scan().state("torn").undecodable(1, 1);
    desk.append(&line[40..80]).scan().append(&line[80..]).scan().state("read").undecodable(0, 0);
    desk.holds(&["g1", "g2"]);
}

#[test]
fn r19_a_torn_tail_that_grows_is_one_line() {
    let line = answer("g2", 2);
    let mut desk = Desk::new();
    desk.start().line(1);
    for cut in [8, 40, 80] {
        let have = fs::metadata(desk.journal()).unwrap().len() as usize - desk.books_offset();
        desk.append(&line[have..cut]).wait(6000).scan().undecodable(1, 1);
    }
    desk.append(&line[80..]).scan().holds(&["g1", "g2"]).undecodable(0, 0).state("read");
}

impl Desk {
    /// Length of the header and the first line.
    fn books_offset(&self) -> usize {
        (header(SESSION, 0) + &answer("g1", 1) + "\n").len()
    }
}

#[test]
fn r19_a_torn_tail_that_something_is_glued_to_is_one_undecodable_line() {
    let mut desk = Desk::new();
    let torn = answer("g2", 2);
    desk.start().line(1).append(&torn[..90]).wait(6000).scan().undecodable(1, 1);
    desk.line(3).scan().holds(&["g1", "g3"]).undecodable(1, 1);
    desk.append(&checkpoint(&[&torn])).scan().holds(&["g1", "g2", "g3"]).undecodable(1, 0);
}

#[test]
fn r19_a_tail_is_pending_until_the_file_is_quiet() {
    let mut desk = Desk::new();
    desk.start().line(1).append(&answer("g2", 2)[..90]).scan().state("pending").undecodable(0, 0);
    desk.wait(4000).scan().state("pending").undecodable(0, 0);
    desk.wait(1000).scan().state("torn").undecodable(1, 1);
    desk.wait(60_000).scan().state("torn").undecodable(1, 1);
    assert_eq!(desk.books.facts().counter("journal_undecodable", "torn_tail"), 1, "said once");
}

#[test]
fn r18_r19_a_checkpoint_without_its_newline_counts() {
    let mut desk = Desk::new();
    let line = checkpoint(&[answer("g1", 1), answer("g2", 2)]);
    desk.start().append(line.trim_end()).scan().holds(&["g1", "g2"]).state("read");
    desk.append("\n").line(3).scan().holds(&["g1", "g2", "g3"]).undecodable(0, 0);
}

#[test]
fn r13_r19_a_header_without_its_newline_names_the_session() {
    let mut desk = Desk::new();
    desk.append(header(SESSION, 0).trim_end()).scan();
    assert!(desk.books.facts().session(SESSION).started);
    desk.append("\n").line(1).scan().holds(&["g1"]);
    assert_eq!(desk.books.facts().session(SESSION).requests, 1);
}

#[test]
fn r15_r19_the_torn_tail_of_a_journal_with_a_line_over_the_cap_is_noted_too() {
    let mut desk = Desk::with(Limits { max_line_bytes: 400, ..Limits::default() });
    let long = with_calls(&answer("g1", 1), &format!("{{\"x\":\"{}\"}}", "y".repeat(400))) + "\n";
    desk.start().append(&long).line(2).append(&answer("g3", 3)[..90]).scan();
    desk.holds(&["g2"]).undecodable(1, 1);
    desk.wait(6000).scan().undecodable(2, 2).state("failed");
    assert_eq!(desk.books.facts().counter("journal_failed_reads", "line_too_long"), 1);
    let rest = answer("g3", 3)[90..].to_owned() + "\n";
    desk.append(&rest).line(4).scan().holds(&["g2", "g3", "g4"]).undecodable(1, 1);
}

#[test]
fn r16_a_tail_that_gets_its_newline_is_counted_as_one_line() {
    let mut desk = Desk::new();
    desk.start().append(&answer("g1", 1)).scan().holds(&["g1"]).restart();
    desk.append("\n").append(&update()).scan().holds(&["g1"]);
    let facts = desk.books.facts();
    assert_eq!(facts.counter("journal_lines", "request"), 1);
    assert_eq!(facts.counter("journal_lines", "repeat"), 0);
}

#[test]
fn r24_a_json_rewritten_in_place_is_read_anew_and_each_id_counts_once() {
    let mut desk = Desk::new();
    let path = desk.chats().join("session-2026-08-20T10-00-aaaaaaaa.json");
    let records: Vec<String> = (1..5).map(|n| answer(&format!("g{n}"), n)).collect();
    for n in 1..=4 {
        desk.wait(10);
        let text = document(SESSION, &records[..n]);
        // Half of it is there, then all of it.
        write(&path, &text.as_bytes()[..text.len() / 2], desk.now);
        desk.scan();
        assert_eq!(desk.books.facts().journal(".json").0, "pending");
        write(&path, text.as_bytes(), desk.now + 1);
        desk.scan();
        assert_eq!(desk.books.facts().requests.len(), n);
        assert_eq!(desk.books.facts().journal(".json").0, "read");
    }
    desk.holds(&["g1", "g2", "g3", "g4"]);
}

#[test]
fn r24_a_json_that_stays_broken_failed_and_one_that_is_deleted_so_was_lost() {
    let mut desk = Desk::new();
    let path = desk.chats().join("session-2026-08-20T10-00-aaaaaaaa.json");
    let text = document(SESSION, &[answer("g1", 1), answer("g2", 2)]);
    write(&path, &text.as_bytes()[..text.len() - 60], desk.now);
    desk.scan().wait(6000).scan();
    // What stands whole before the break was billed.
    desk.holds(&["g1"]);
    assert_eq!(desk.books.facts().journal(".json"), ("failed", Some("not_json")));
    assert!(desk.books.facts().session(SESSION).reasons.contains(&"journal_failed"));
    fs::remove_file(&path).unwrap();
    desk.scan();
    assert_eq!(desk.books.facts().journal(".json").0, "lost");
    assert!(desk.books.facts().session(SESSION).reasons.contains(&"journal_lost"));
}

#[test]
fn r23_steps_of_any_size_say_the_same() {
    for (step_bytes, step_requests) in [(1, 1000), (300, 1000), (1 << 22, 1), (1 << 22, 3)] {
        let mut desk = Desk::with(Limits { step_bytes, step_requests, ..Limits::default() });
        desk.start();
        for n in 10..30 {
            desk.line(n).append(&update());
        }
        let ids: Vec<String> = (10..30).map(|n| format!("g{n}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        desk.scan().holds(&ids).state("read");
        assert_eq!(desk.books.facts().counter("journal_lines", "request"), 20);
        assert_eq!(desk.books.facts().counter("journal_lines", "control"), 21);
    }
}

#[test]
fn r17_a_date_that_comes_late_decides_anew_whose_the_request_is() {
    let undated = answer("g1", 1).replace(r#""timestamp":"2026-08-20T10:01:00.000Z","#, "");
    let dated = answer("g1", 1).replace("10:01:00", "10:45:00") + "\n";
    let other = "bbbbbbbb-0000-4000-8000-000000000002";
    for scan_between in [false, true] {
        let mut desk = Desk::new();
        desk.start().append(&(undated.clone() + "\n"));
        let copy = header(other, 30) + &undated + "\n";
        write(&desk.chats().join("session-2026-08-20T10-30-bbbbbbbb.jsonl"), copy.as_bytes(), NOW);
        if scan_between {
            desk.scan();
        }
        desk.append(&dated).scan().holds(&["g1"]);
        // Answered after the other session began, and found in it.
        assert_eq!(desk.books.facts().requests[0].session, other, "scan between: {scan_between}");
    }
}

#[test]
fn r71_two_processes_that_look_at_once_count_once() {
    let mut desk = Desk::new();
    desk.start().line(1);
    let mut other = desk.books.beside();
    for n in 2..6 {
        desk.line(n);
        desk.books.set_now(desk.now);
        desk.books.look();
        other.look();
        other.scan();
        desk.scan();
    }
    desk.holds(&["g1", "g2", "g3", "g4", "g5"]);
    assert_eq!(desk.books.facts().counter("journal_lines", "request"), 5);
    assert_eq!(desk.books.facts().counter("journal_bytes", ""), fs::metadata(desk.journal()).unwrap().len());
}
