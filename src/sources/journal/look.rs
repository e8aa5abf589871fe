//! One journal at a time: open it or take the held descriptor, read what was
//! added, say what became of it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::discover::{self, open_regular};
use super::name::{self, Format};
use super::scan::{Closed, JournalSource, Known, Sink, no_name};
use super::tail::{Look, Looked};
use crate::ledger::evidence::{
    Anomalies, Broken, Condition, Cursor, Failure, JournalPath, JournalStep, LineCounts, Section, Skip,
    Stamp, Undecodable,
};
use crate::ledger::identity::nameless;
use crate::ledger::model::Role;

impl JournalSource {
    /// Looks at journals in turn, one step each, until all are read.
    pub(super) fn look_at(
        &mut self,
        mut queue: VecDeque<JournalPath>,
        now_ms: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        while let Some(path) = queue.pop_front() {
            if self.look(&path, now_ms, sink)? {
                queue.push_back(path);
            }
        }
        Ok(())
    }

    /// One step of one journal; `true` if more is there.
    fn look(&mut self, path: &JournalPath, now_ms: i64, sink: &mut dyn Sink) -> Result<bool, Closed> {
        let Some(real) = self.real_path(path) else { return Ok(false) };
        let again = self.held.recalled(path);
        self.read_out(path, &again, now_ms, sink)?;
        let opened = match self.held.same(path, &real) {
            Some((file, stamp)) => Ok((file, stamp)),
            None => {
                // Another file stands there now: what the old one still holds comes first.
                self.drain(path, now_ms, sink)?;
                open_regular(&real).map(|(file, stamp)| (Arc::new(file), stamp))
            }
        };
        let (file, stamp) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.unopened(path, &error, sink).map(|()| false),
        };
        let unchanged = |known: &Known| {
            matches!(known.condition, Condition::Read | Condition::Torn) && known.cursor.seen == stamp
        };
        if self.known.get(path).is_some_and(unchanged) {
            self.held.hold(path, file, stamp, now_ms);
            return Ok(false);
        }
        let more = match self.read(path, &file, stamp, now_ms, false, sink)? {
            Ok(more) => more,
            Err(error) => return self.failed(path, failure(&error), sink).map(|()| false),
        };
        self.held.hold(path, file, stamp, now_ms);
        Ok(more)
    }

    /// Reads one step from an open journal and hands it on.
    fn read(
        &mut self,
        path: &JournalPath,
        file: &std::fs::File,
        stamp: Stamp,
        now_ms: i64,
        unlinked: bool,
        sink: &mut dyn Sink,
    ) -> Result<io::Result<bool>, Closed> {
        let Some(known) = self.known.get_mut(path) else { return Ok(Ok(false)) };
        let quiet = unlinked || now_ms - stamp.modified_ns / 1_000_000 >= self.limits.quiet_ms;
        let look = Look {
            path,
            name: &known.name,
            cursor: &known.cursor,
            stamp,
            now_ms,
            quiet,
            limits: &self.limits,
        };
        let looked = match known.name.format {
            Format::Jsonl => look.read(file, &mut self.buffer),
            Format::Json => look.read_document(file),
        };
        let Looked { step, more } = match looked {
            Ok(looked) => looked,
            Err(error) => return Ok(Err(error)),
        };
        let nothing =
            step.to == known.cursor && step.condition == known.condition && step.sections.is_empty();
        known.cursor = step.to.clone();
        known.condition = step.condition;
        if !nothing {
            sink.step(step)?;
        }
        Ok(Ok(more))
    }

    /// Reads what an unlinked or replaced file still holds, then lets it go.
    fn drain(&mut self, path: &JournalPath, now_ms: i64, sink: &mut dyn Sink) -> Result<bool, Closed> {
        let mut files = self.held.recalled(path);
        files.extend(self.held.release(path, now_ms));
        self.read_out(path, &files, now_ms, sink)?;
        Ok(!files.is_empty())
    }

    /// Reads files that lost their name to their end.
    fn read_out(
        &mut self,
        path: &JournalPath,
        files: &[Arc<std::fs::File>],
        now_ms: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        for file in files {
            let Ok(metadata) = file.metadata() else { continue };
            while let Ok(true) = self.read(path, file, discover::stamp(&metadata), now_ms, true, sink)? {}
        }
        Ok(())
    }

    pub(super) fn vanish(
        &mut self,
        path: &JournalPath,
        now_ms: i64,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        let drained = self.drain(path, now_ms, sink)?;
        let Some(known) = self.known.get(path) else { return Ok(()) };
        let mut sections = Vec::new();
        let condition = match known.condition {
            Condition::Skipped(_) => Condition::Gone,
            // What stood behind the break is not known.
            Condition::Failed(Failure::NotJson) => Condition::Lost,
            Condition::Pending if known.name.format == Format::Jsonl => {
                sections.push(torn(known));
                Condition::Gone
            }
            Condition::Pending | Condition::Behind | Condition::Failed(Failure::Permission | Failure::Io)
                if !drained =>
            {
                Condition::Lost
            }
            _ => Condition::Gone,
        };
        self.tell(path, condition, sections, sink)
    }

    pub(super) fn skipped(
        &mut self,
        path: JournalPath,
        skip: Skip,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        let condition = Condition::Skipped(skip);
        let scan = self.scan;
        let known = self.known.entry(path.clone()).or_insert_with(|| Known {
            name: name::of_path(&path.file).unwrap_or_else(no_name),
            cursor: Cursor::default(),
            condition: Condition::Behind,
            scan,
        });
        known.scan = scan;
        if known.condition == condition { Ok(()) } else { self.tell(&path, condition, Vec::new(), sink) }
    }

    /// A journal that was listed and cannot be opened.
    fn unopened(&mut self, path: &JournalPath, error: &io::Error, sink: &mut dyn Sink) -> Result<(), Closed> {
        let Some(known) = self.known.get(path) else { return Ok(()) };
        match error.kind() {
            io::ErrorKind::NotFound => {
                let unread = !matches!(known.condition, Condition::Read | Condition::Torn | Condition::Gone);
                self.tell(path, if unread { Condition::Lost } else { Condition::Gone }, Vec::new(), sink)
            }
            io::ErrorKind::InvalidInput => {
                self.tell(path, Condition::Skipped(Skip::NotRegular), Vec::new(), sink)
            }
            // A link planted between the listing and now.
            _ if discover::is_link_refused(error) => {
                self.tell(path, Condition::Skipped(Skip::Symlink), Vec::new(), sink)
            }
            _ => self.failed(path, failure(error), sink),
        }
    }

    fn failed(&mut self, path: &JournalPath, failure: Failure, sink: &mut dyn Sink) -> Result<(), Closed> {
        self.tell(path, Condition::Failed(failure), Vec::new(), sink)
    }

    /// Hands on a journal's condition where nothing was read of it.
    fn tell(
        &mut self,
        path: &JournalPath,
        condition: Condition,
        sections: Vec<Section>,
        sink: &mut dyn Sink,
    ) -> Result<(), Closed> {
        let Some(known) = self.known.get_mut(path) else { return Ok(()) };
        if known.condition == condition && sections.is_empty() && known.cursor != Cursor::default() {
            return Ok(());
        }
        known.condition = condition;
        sink.step(JournalStep {
            path: path.clone(),
            from: (known.cursor.offset, known.cursor.marker),
            to: known.cursor.clone(),
            condition,
            revised: false,
            whole: false,
            sections,
            lines: LineCounts::default(),
            anomalies: Anomalies::default(),
            bytes: 0,
        })
    }
}

/// The unfinished tail of a journal that was deleted before it was finished.
fn torn(known: &Known) -> Section {
    let at = known.cursor.context.at.unwrap_or(known.name.minute);
    let session = known.name.parent.clone().or_else(|| known.cursor.context.session.clone());
    Section {
        session: session.unwrap_or_else(|| nameless(&known.name.id_part).into()),
        role: if known.name.parent.is_some() { Role::Subagent } else { Role::Main },
        starts: Vec::new(),
        requests: Vec::new(),
        prompts: None,
        silent_prompts: Vec::new(),
        undecodable: vec![Undecodable {
            offset: known.cursor.offset,
            len: known.cursor.seen.len.saturating_sub(known.cursor.offset),
            reason: Broken::TornTail,
            at,
            ids: Vec::new(),
        }],
    }
}

fn failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::PermissionDenied { Failure::Permission } else { Failure::Io }
}
