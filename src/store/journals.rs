//! Journal rows: cursors under compare-and-set, conditions, and what their
//! changes count.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::{JOURNAL_FAILED_READS, JOURNAL_SKIPPED, JOURNALS_LOST};
use crate::ledger::evidence::{
    Condition, Context, Cursor, Failure, HomeId, JournalPath, JournalStep, Skip, Stamp,
};

/// What the ledger held of a journal before a step.
pub(super) struct Before {
    pub id: i64,
    pub cursor: Cursor,
    pub condition: Condition,
}

const COLUMNS: &str = "id, state, reason, offset, head, head_len, marker, marker_len, tail_counted, failed,
     session, subagent, model, last_at, len, modified_ns, changed_ns, inode, device";

/// The journal's row, made where it is new.
pub(super) fn before(c: &Connection, path: &JournalPath) -> Result<Before, StoreError> {
    if let Some(before) = find(c, path)? {
        return Ok(before);
    }
    c.prepare_cached(
        "INSERT INTO journals (home_id, project_dir, file, state, offset, head, head_len, marker, marker_len,
             tail_counted, subagent, len, modified_ns, changed_ns, inode, device)
         VALUES (?1, ?2, ?3, 'behind', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
    )?
    .execute(params![path.home.0, &*path.project_dir, &*path.file])?;
    Ok(Before { id: c.last_insert_rowid(), cursor: Cursor::default(), condition: Condition::Behind })
}

fn find(c: &Connection, path: &JournalPath) -> Result<Option<Before>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM journals WHERE home_id = ?1 AND project_dir = ?2 AND file = ?3");
    let mut statement = c.prepare_cached(&sql)?;
    Ok(statement.query_row(params![path.home.0, &*path.project_dir, &*path.file], row_before).optional()?)
}

/// Every journal of these homes with its cursor.
pub(super) fn all(c: &Connection, home: HomeId) -> Result<Vec<(JournalPath, Cursor, Condition)>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, project_dir, file FROM journals WHERE home_id = ?1");
    let mut statement = c.prepare(&sql)?;
    let rows = statement.query_map([home.0], |row| {
        let before = row_before(row)?;
        let path = JournalPath {
            home,
            project_dir: row.get::<_, String>(19)?.into(),
            file: row.get::<_, String>(20)?.into(),
        };
        Ok((path, before.cursor, before.condition))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn row_before(row: &Row<'_>) -> rusqlite::Result<Before> {
    let state: String = row.get(1)?;
    let reason: Option<String> = row.get(2)?;
    let failed: Option<String> = row.get(9)?;
    let hash = |n: usize| row.get::<_, i64>(n).map(i64::cast_unsigned);
    Ok(Before {
        id: row.get(0)?,
        condition: condition(&state, reason.as_deref()),
        cursor: Cursor {
            offset: hash(3)?,
            head: hash(4)?,
            head_len: row.get(5)?,
            marker: hash(6)?,
            marker_len: row.get(7)?,
            tail_counted: row.get(8)?,
            failed: failed.as_deref().and_then(failure),
            context: Context {
                session: row.get::<_, Option<String>>(10)?.map(Into::into),
                subagent: row.get(11)?,
                model: row.get::<_, Option<String>>(12)?.map(Into::into),
                at: row.get(13)?,
            },
            seen: Stamp {
                len: hash(14)?,
                modified_ns: row.get(15)?,
                changed_ns: row.get(16)?,
                inode: hash(17)?,
                device: hash(18)?,
            },
        },
    })
}

fn failure(name: &str) -> Option<Failure> {
    Failure::ALL.into_iter().find(|failure| failure.as_str() == name)
}

fn condition(state: &str, reason: Option<&str>) -> Condition {
    let skip = || Skip::ALL.into_iter().find(|skip| Some(skip.as_str()) == reason);
    match state {
        "read" => Condition::Read,
        "pending" => Condition::Pending,
        "torn" => Condition::Torn,
        "gone" => Condition::Gone,
        "lost" => Condition::Lost,
        "failed" => reason.and_then(failure).map_or(Condition::Behind, Condition::Failed),
        "skipped" => skip().map_or(Condition::Behind, Condition::Skipped),
        _ => Condition::Behind,
    }
}

impl Applier {
    /// Moves a journal's cursor, if the ledger still holds the one the step began at.
    pub(super) fn advance(
        &mut self,
        c: &Connection,
        before: &Before,
        step: &JournalStep,
    ) -> Result<bool, StoreError> {
        let to = &step.to;
        let moved = c
            .prepare_cached(
                "UPDATE journals SET state = ?4, reason = ?5, offset = ?6, head = ?7, head_len = ?8, marker = ?9,
                     marker_len = ?10, tail_counted = ?11, failed = ?12, session = ?13, subagent = ?14, model = ?15,
                     last_at = ?16, len = ?17, modified_ns = ?18, changed_ns = ?19, inode = ?20, device = ?21,
                     failed_since = CASE WHEN ?12 IS NULL AND ?4 NOT IN ('failed', 'lost') THEN NULL
                                         ELSE coalesce(failed_since, last_at, 0) END
                 WHERE id = ?1 AND offset = ?2 AND marker = ?3",
            )?
            .execute(params![
                before.id,
                step.from.0.cast_signed(),
                step.from.1.cast_signed(),
                step.condition.state(),
                step.condition.reason(),
                to.offset.cast_signed(),
                to.head.cast_signed(),
                to.head_len,
                to.marker.cast_signed(),
                to.marker_len,
                to.tail_counted,
                to.failed.map(Failure::as_str),
                to.context.session.as_deref(),
                to.context.subagent,
                to.context.model.as_deref(),
                to.context.at,
                to.seen.len.cast_signed(),
                to.seen.modified_ns,
                to.seen.changed_ns,
                to.seen.inode.cast_signed(),
                to.seen.device.cast_signed(),
            ])?;
        if moved == 0 {
            return Ok(false);
        }
        self.count_condition(before, step);
        Ok(true)
    }

    /// Counts what a condition newly says: each failure once, not each attempt.
    fn count_condition(&mut self, before: &Before, step: &JournalStep) {
        match (step.to.failed, step.condition) {
            (Some(failure), _) if before.cursor.failed.is_none() => {
                self.count(JOURNAL_FAILED_READS, failure.as_str(), 1);
            }
            (None, Condition::Failed(failure)) if before.condition != step.condition => {
                self.count(JOURNAL_FAILED_READS, failure.as_str(), 1);
            }
            (_, Condition::Skipped(skip)) if before.condition != step.condition => {
                self.count(JOURNAL_SKIPPED, skip.as_str(), 1);
            }
            (_, Condition::Lost) if before.condition != step.condition => self.count(JOURNALS_LOST, "", 1),
            _ => {}
        }
    }
}
