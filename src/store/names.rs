//! Homes, projects, models and sessions: names that became row ids.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::apply::Applier;
use super::ownership;
use crate::ledger::evidence::{HomeId, ProjectFact};
use crate::ledger::{identity, model, project};

/// Registers a home under its canonical path; the name is given once.
pub(super) fn home(connection: &Connection, path: &str, name: &str) -> Result<(HomeId, String), StoreError> {
    let known = connection
        .query_row("SELECT id, name FROM homes WHERE path = ?1", [path], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((id, name)) = known {
        return Ok((HomeId(id), name));
    }
    let taken = |name: &str| {
        connection.query_row("SELECT count(*) FROM homes WHERE name = ?1", [name], |row| row.get::<_, i64>(0))
    };
    let mut unique = name.to_owned();
    for n in 2.. {
        if taken(&unique)? == 0 {
            break;
        }
        unique = format!("{name}-{n}");
    }
    connection.execute("INSERT INTO homes (path, name) VALUES (?1, ?2)", [path, &unique])?;
    Ok((HomeId(connection.last_insert_rowid()), unique))
}

impl Applier {
    /// The project of a directory, made where it is new.
    pub(super) fn project(
        &mut self,
        c: &Connection,
        home: HomeId,
        dir: &Arc<str>,
    ) -> Result<i64, StoreError> {
        if let Some(id) = self.projects.get(&(home, dir.clone())) {
            return Ok(*id);
        }
        let fact = ProjectFact { home, dir: dir.clone(), root_name: None, root_hash: None };
        self.project_fact(c, &fact)
    }

    /// What became known of a directory: its project, and whether two are one.
    pub(super) fn project_fact(&mut self, c: &Connection, fact: &ProjectFact) -> Result<i64, StoreError> {
        let home = fact.home.0;
        let by_dir = |dir: &str| {
            c.query_row(
                "SELECT coalesce(p.folded_into, p.id) FROM project_dirs d JOIN projects p ON p.id = d.project_id
                 WHERE d.home_id = ?1 AND d.dir = ?2",
                params![home, dir],
                |row| row.get::<_, i64>(0),
            )
            .optional()
        };
        let by_root = |hash: &str| {
            c.query_row(
                "SELECT coalesce(folded_into, id) FROM projects WHERE home_id = ?1 AND root_hash = ?2",
                params![home, hash],
                |row| row.get::<_, i64>(0),
            )
            .optional()
        };
        let own = by_dir(&fact.dir)?;
        // The same root under its other name: the hash directory, or the slug.
        let twin = match &fact.root_hash {
            Some(hash) => match by_dir(hash)? {
                Some(id) => Some(id),
                None => by_root(hash)?,
            },
            None if project::is_hash(&fact.dir) => by_root(&fact.dir)?,
            None => None,
        };
        let id = match (own, twin) {
            (Some(own), Some(twin)) if own != twin => {
                let (kept, folded) = (own.min(twin), own.max(twin));
                c.execute(
                    "UPDATE projects SET folded_into = ?1 WHERE id = ?2 OR folded_into = ?2",
                    [kept, folded],
                )?;
                self.projects.clear();
                kept
            }
            (Some(id), _) | (None, Some(id)) => id,
            (None, None) => self.new_project(c, fact)?,
        };
        c.execute(
            "INSERT OR IGNORE INTO project_dirs (home_id, dir, project_id) VALUES (?1, ?2, ?3)",
            params![home, &*fact.dir, id],
        )?;
        if let Some(hash) = &fact.root_hash {
            c.execute(
                "UPDATE projects SET root_hash = ?1 WHERE id = ?2 AND root_hash IS NULL",
                params![hash, id],
            )?;
        }
        self.projects.insert((fact.home, fact.dir.clone()), id);
        Ok(id)
    }

    fn new_project(&mut self, c: &Connection, fact: &ProjectFact) -> Result<i64, StoreError> {
        let mut statement = c.prepare_cached("SELECT name FROM projects WHERE home_id = ?1")?;
        let names: Vec<String> =
            statement.query_map([fact.home.0], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let name =
            project::name(fact.root_name.as_deref(), &fact.dir, |name| names.iter().any(|n| n == name));
        c.execute("INSERT INTO projects (home_id, name) VALUES (?1, ?2)", params![fact.home.0, name])?;
        Ok(c.last_insert_rowid())
    }

    pub(super) fn project_name(&mut self, c: &Connection, id: i64) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.project_names.get(&id) {
            return Ok(name.clone());
        }
        let name: String = c.query_row("SELECT name FROM projects WHERE id = ?1", [id], |row| row.get(0))?;
        let name: Arc<str> = name.into();
        self.project_names.insert(id, name.clone());
        Ok(name)
    }

    /// Row id and canonical name of a model.
    pub(super) fn model(
        &mut self,
        c: &Connection,
        raw: Option<&Arc<str>>,
    ) -> Result<(i64, Arc<str>), StoreError> {
        let raw = raw.unwrap_or(&self.unknown_model);
        if let Some(known) = self.models.get(raw) {
            return Ok(known.clone());
        }
        let (raw, name) = (raw.clone(), model::canonical(raw).to_owned());
        c.execute("INSERT OR IGNORE INTO models (name) VALUES (?1)", [&name])?;
        let id = c.query_row("SELECT id FROM models WHERE name = ?1", [&name], |row| row.get(0))?;
        let known = (id, Arc::from(name));
        self.models.insert(raw, known.clone());
        Ok(known)
    }

    /// The session of that id and whether it is new: then a nameless one may
    /// turn out to be it, or not to be decidable any more (accounting R13).
    pub(super) fn session(
        &mut self,
        c: &Connection,
        home: HomeId,
        session: &Arc<str>,
        project: i64,
    ) -> Result<(i64, bool), StoreError> {
        let key = (home, session.clone());
        if let Some(id) = self.sessions.get(&key) {
            return Ok((*id, false));
        }
        let known = c
            .prepare_cached("SELECT id FROM sessions WHERE home_id = ?1 AND session = ?2")?
            .query_row(params![home.0, &**session], |row| row.get(0))
            .optional()?;
        let new = known.is_none();
        let id = match known {
            Some(id) => id,
            None => {
                let part = identity::nameless_part(session)
                    .map_or_else(|| identity::name_part(session), str::to_owned);
                c.prepare_cached(
                    "INSERT INTO sessions (home_id, session, name_part, project_id) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![home.0, &**session, part, project])?;
                let id = c.last_insert_rowid();
                ownership::resolve_nameless(c, home, &part)?;
                id
            }
        };
        self.sessions.insert(key, id);
        Ok((id, new))
    }
}
