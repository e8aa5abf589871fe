//! The facts that sources hand to the ledger, with the cursor that makes them
//! count once. Plain data: no prompt, answer or tool argument is in here.

use std::fmt;
use std::sync::Arc;

use super::model::Role;
use super::tokens::Reading;

/// A home as the ledger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeId(pub i64);

/// Where a journal is: below `.gemini/tmp` of one home.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalPath {
    pub home: HomeId,
    /// The directory below `tmp`: a slug, or a hash in older trees.
    pub project_dir: Arc<str>,
    /// The path below `chats`.
    pub file: Arc<str>,
}

impl fmt::Display for JournalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tmp/{}/chats/{}", self.project_dir, self.file)
    }
}

/// How far a journal was read and what proves that it still is the same
/// content (architecture, house rule 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Bytes read, always just past a newline (of a `.json`: 0, or its whole size).
    pub offset: u64,
    /// Hash of the first up to 256 bytes, and how many they were.
    pub head: u64,
    pub head_len: u16,
    /// Hash of the last up to 256 bytes before `offset`, and how many they were.
    pub marker: u64,
    pub marker_len: u16,
    /// What the lines read so far say about the next one.
    pub context: Context,
    /// Whether the unterminated record at `offset` was already counted as a line.
    pub tail_counted: bool,
    /// A line was over the cap: the journal is a failed read from there on (accounting R15).
    pub failed: Option<Failure>,
    /// The file's metadata when it was last looked at; equal again means unchanged.
    pub seen: Stamp,
}

/// What the lines above a record say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The session of the last header above; `None` before any.
    pub session: Option<Arc<str>>,
    pub subagent: bool,
    /// The model of the last gemini record above (accounting R21).
    pub model: Option<Arc<str>>,
    /// The time of the record above, unix ms (accounting 2.3).
    pub at: Option<i64>,
}

/// Metadata of a file, to tell "nothing happened" without reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub len: u64,
    pub modified_ns: i64,
    pub changed_ns: i64,
    pub inode: u64,
    pub device: u64,
}

/// One step of one journal: what stands between two cursors.
#[derive(Clone, Debug)]
pub struct JournalStep {
    pub path: JournalPath,
    /// The offset and marker the ledger must still hold (compare-and-set).
    pub from: (u64, u64),
    pub to: Cursor,
    pub condition: Condition,
    /// The content before `from` is not what was read: this step began at 0.
    pub revised: bool,
    /// This step holds the whole file, not what was added to it (a `.json`).
    pub whole: bool,
    pub sections: Vec<Section>,
    pub lines: LineCounts,
    pub anomalies: Anomalies,
    /// Bytes read from the file for this step.
    pub bytes: u64,
}

/// Records under one header of a journal.
#[derive(Clone, Debug)]
pub struct Section {
    /// The session id, or `~` and the name's id part where no header names it.
    pub session: Arc<str>,
    pub role: Role,
    /// `startTime` of every header of this session that the step read, unix ms.
    pub starts: Vec<i64>,
    pub requests: Vec<Request>,
    /// Times of user prompts that are not tool answers, unix ms: first and last.
    pub prompts: Option<(i64, i64)>,
    /// Those of them that no request followed in this step, unix ms.
    pub silent_prompts: Vec<i64>,
    pub undecodable: Vec<Undecodable>,
}

/// One billed model request (accounting R16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message id, unique within a home (accounting R17).
    pub id: Box<str>,
    /// When the answer ended, unix ms.
    pub at: i64,
    /// The record named no time; `at` was taken from around it.
    pub undated: bool,
    /// The requested model as the record names it, or the one before it; `None`: unknown.
    pub model: Option<Arc<str>>,
    /// The record named no model (accounting R21).
    pub model_inferred: bool,
    pub reading: Reading,
    pub place: Place,
}

/// Where in a journal a request was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of its own.
    Line,
    /// Inside `$set.messages`, a header's `messages`, or glued to a broken line.
    Inside,
    /// A whole record at the end of the file, its newline not written yet.
    Tail,
}

/// A line of unknown content: not zero (accounting R19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    pub offset: u64,
    pub len: u64,
    pub reason: Broken,
    /// The time of the record before it, unix ms.
    pub at: i64,
    /// Message ids legible in it; the line stops to demote once all were read.
    pub ids: Vec<Box<str>>,
}

/// Why a line could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    NotUtf8,
    NotJson,
    NotObject,
    /// A gemini record whose token counters break R21.
    BadTokens,
    /// Over the line cap (accounting R15).
    TooLong,
    /// An unterminated tail that nobody is writing to any more.
    TornTail,
}

impl Broken {
    pub const ALL: [Self; 6] =
        [Self::NotUtf8, Self::NotJson, Self::NotObject, Self::BadTokens, Self::TooLong, Self::TornTail];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::NotObject => "not_object",
            Self::BadTokens => "bad_tokens",
            Self::TooLong => "line_too_long",
            Self::TornTail => "torn_tail",
        }
    }
}

/// Lines of a step by kind, besides its [`Place::Line`] requests: whether such
/// a line is a request or repeats one, the ledger knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that repeat a request already read from this journal.
    pub repeats: u64,
    /// `$set`, `$rewindTo`, `$patch` and headers.
    pub control: u64,
    /// User, info, warning and error records, and gemini records without tokens.
    pub other: u64,
    pub undecodable: u64,
}

/// Oddities of records that change no figure silently: each is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    pub total_mismatch: u64,
    pub cached_above_input: u64,
    pub model_missing: u64,
    pub undated: u64,
    pub name_mismatch: u64,
    pub glued: u64,
}

impl Anomalies {
    pub const KINDS: [&'static str; 6] =
        ["total_mismatch", "cached_above_input", "model_missing", "undated", "name_mismatch", "glued"];

    /// The counts in the order of [`Self::KINDS`].
    #[must_use]
    pub fn counts(&self) -> [u64; 6] {
        [
            self.total_mismatch,
            self.cached_above_input,
            self.model_missing,
            self.undated,
            self.name_mismatch,
            self.glued,
        ]
    }
}

/// The state of a journal after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Read to its end.
    #[default]
    Read,
    /// More is there than was read yet.
    Behind,
    /// It ends in an unfinished line that may still be written.
    Pending,
    /// It ends in an unfinished line that nobody writes any more.
    Torn,
    /// Something keeps it, or a part of it, from being read.
    Failed(Failure),
    /// Deleted after it was read to its end.
    Gone,
    /// Deleted before it was read to its end.
    Lost,
    /// Never opened.
    Skipped(Skip),
}

impl Condition {
    pub const STATES: [&'static str; 8] =
        ["read", "behind", "pending", "torn", "failed", "gone", "lost", "skipped"];

    #[must_use]
    pub fn state(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Behind => "behind",
            Self::Pending => "pending",
            Self::Torn => "torn",
            Self::Failed(_) => "failed",
            Self::Gone => "gone",
            Self::Lost => "lost",
            Self::Skipped(_) => "skipped",
        }
    }

    #[must_use]
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Failed(failure) => Some(failure.as_str()),
            Self::Skipped(skip) => Some(skip.as_str()),
            _ => None,
        }
    }
}

/// Why a journal, or a part of it, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    Permission,
    Io,
    /// Larger than the file cap; what can be decoded still counts (accounting R15).
    TooLarge,
    LineTooLong,
    /// A `.json` that is no document though nobody writes it (accounting R24).
    NotJson,
}

impl Failure {
    pub const ALL: [Self; 5] = [Self::Permission, Self::Io, Self::TooLarge, Self::LineTooLong, Self::NotJson];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Io => "io",
            Self::TooLarge => "too_large",
            Self::LineTooLong => "line_too_long",
            Self::NotJson => "not_json",
        }
    }
}

/// Why something with a journal's name is not opened (accounting R73).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    Symlink,
    NotRegular,
    /// The CLI's own unfinished rewrite (accounting R12).
    Temporary,
}

impl Skip {
    pub const ALL: [Self; 3] = [Self::Symlink, Self::NotRegular, Self::Temporary];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Symlink => "symlink",
            Self::NotRegular => "not_regular",
            Self::Temporary => "temporary",
        }
    }
}

/// A project as the file system names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFact {
    pub home: HomeId,
    pub dir: Arc<str>,
    /// The base name of the project's root, where it is known. The root itself is not kept.
    pub root_name: Option<String>,
    /// SHA-256 of the root in hex: the directory name of the same project before 0.29.
    pub root_hash: Option<String>,
}
