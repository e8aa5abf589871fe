//! Which session a request found in several belongs to, kept true as headers
//! appear (accounting, settled choices on identity).

use rusqlite::{Connection, params};

use super::StoreError;
use crate::ledger::evidence::HomeId;
use crate::ledger::identity::{Candidate, nameless, owner, resolve_nameless as fits};

/// Decides anew what the nameless session of a name part is, if there is one.
pub(super) fn resolve_nameless(c: &Connection, home: HomeId, part: &str) -> Result<(), StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT id, session, resolved_to FROM sessions WHERE home_id = ?1 AND name_part = ?2",
    )?;
    let sessions: Vec<(i64, String, Option<i64>)> = statement
        .query_map(params![home.0, part], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let name = nameless(part);
    let Some((nameless_id, _, before)) = sessions.iter().find(|(_, session, _)| *session == name) else {
        return Ok(());
    };
    let fit = fits(part, sessions.iter().map(|(_, session, _)| session.as_str()));
    let now =
        fit.and_then(|fit| sessions.iter().find(|(_, session, _)| session == fit)).map(|(id, _, _)| *id);
    if now != *before {
        c.execute("UPDATE sessions SET resolved_to = ?1 WHERE id = ?2", params![now, nameless_id])?;
        reown_session(c, *nameless_id)?;
    }
    Ok(())
}

/// Notes that a request was found in another session than its owner.
pub(super) fn sighted(
    c: &Connection,
    request: i64,
    at: i64,
    owner: i64,
    session: i64,
) -> Result<(), StoreError> {
    let mut insert =
        c.prepare_cached("INSERT OR IGNORE INTO sightings (request_id, session_id) VALUES (?1, ?2)")?;
    insert.execute([request, owner])?;
    if insert.execute([request, session])? > 0 {
        reown(c, request, at)?;
    }
    Ok(())
}

/// Decides anew the owner of every request that was found in this session and another.
pub(super) fn reown_session(c: &Connection, session: i64) -> Result<(), StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT r.id, r.at FROM sightings s JOIN requests r ON r.id = s.request_id WHERE s.session_id = ?1",
    )?;
    let shared: Vec<(i64, i64)> =
        statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    shared.into_iter().try_for_each(|(request, at)| reown(c, request, at))
}

/// Decides anew whose a request is, if it was found in several sessions.
pub(super) fn reown(c: &Connection, request: i64, at: i64) -> Result<(), StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT s.id, coalesce(t.session, s.session),
                (SELECT min(started_at) FROM session_starts WHERE session_id = coalesce(t.id, s.id)),
                (SELECT max(started_at) FROM session_starts WHERE session_id = coalesce(t.id, s.id) AND started_at <= ?2)
         FROM sightings i JOIN sessions s ON s.id = i.session_id LEFT JOIN sessions t ON t.id = s.resolved_to
         WHERE i.request_id = ?1 ORDER BY s.id",
    )?;
    type Row = (i64, String, Option<i64>, Option<i64>);
    let found: Vec<Row> = statement
        .query_map([request, at], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Ok(());
    }
    let candidates: Vec<_> = found
        .iter()
        .map(|(_, session, first, before)| Candidate {
            session_id: session,
            first_start: *first,
            start_before: *before,
        })
        .collect();
    let session = found[owner(&candidates)].0;
    c.prepare_cached("UPDATE requests SET session_id = ?1 WHERE id = ?2 AND session_id <> ?1")?
        .execute([session, request])?;
    Ok(())
}
