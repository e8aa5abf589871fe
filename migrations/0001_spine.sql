-- Journals to requests: the spine of the ledger.
-- Times are unix milliseconds UTC; counts are tokens. No prompt, answer, tool
-- argument or path inside a workspace is kept (accounting R70).

CREATE TABLE homes (
  id           INTEGER PRIMARY KEY,
  path         TEXT NOT NULL UNIQUE,           -- canonical directory that holds .gemini
  name         TEXT NOT NULL UNIQUE,           -- the home label, given once
  imported_at  INTEGER                         -- end of the first import; NULL: still history
) STRICT;

CREATE TABLE projects (
  id           INTEGER PRIMARY KEY,
  home_id      INTEGER NOT NULL REFERENCES homes (id),
  name         TEXT NOT NULL,                  -- the project label, given once
  root_hash    TEXT,                           -- SHA-256 of the root, hex
  folded_into  INTEGER REFERENCES projects (id), -- found to be the same project later
  UNIQUE (home_id, name)
) STRICT;

-- A project may have two directories below tmp: a hash, and the slug it was copied to.
CREATE TABLE project_dirs (
  home_id     INTEGER NOT NULL REFERENCES homes (id),
  dir         TEXT NOT NULL,
  project_id  INTEGER NOT NULL REFERENCES projects (id),
  PRIMARY KEY (home_id, dir)
) STRICT, WITHOUT ROWID;

CREATE TABLE models (
  id    INTEGER PRIMARY KEY,
  name  TEXT NOT NULL UNIQUE                   -- canonical
) STRICT;

CREATE TABLE sessions (
  id               INTEGER PRIMARY KEY,
  home_id          INTEGER NOT NULL REFERENCES homes (id),
  session          TEXT NOT NULL,              -- the CLI's id, or ~ and eight characters (R13)
  name_part        TEXT NOT NULL,              -- what a journal's name carries of it
  project_id       INTEGER NOT NULL REFERENCES projects (id),
  first_at         INTEGER,                    -- of the requests found in it
  last_at          INTEGER,
  first_prompt_at  INTEGER,
  last_prompt_at   INTEGER,
  resolved_to      INTEGER REFERENCES sessions (id), -- of a nameless one: the session it fits
  UNIQUE (home_id, session)
) STRICT;
CREATE INDEX sessions_by_name_part ON sessions (home_id, name_part);

-- startTime of every header seen: which session a copied request belongs to.
CREATE TABLE session_starts (
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  started_at  INTEGER NOT NULL,
  PRIMARY KEY (session_id, started_at)
) STRICT, WITHOUT ROWID;

-- key: 64 bits of the message id's hash within its home. It keeps the index
-- small; message_id decides (R17).
CREATE TABLE requests (
  id          INTEGER PRIMARY KEY,
  key         INTEGER NOT NULL,
  home_id     INTEGER NOT NULL,
  message_id  TEXT NOT NULL,
  session_id  INTEGER NOT NULL,                -- its owner among the sessions it was found in
  at          INTEGER NOT NULL,
  model_id    INTEGER NOT NULL,
  role        INTEGER NOT NULL,                -- 0 main, 1 subagent
  prompt      INTEGER NOT NULL,
  cached      INTEGER NOT NULL,                -- part of prompt
  tool        INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  thoughts    INTEGER NOT NULL,
  flags       INTEGER NOT NULL,                -- 1 model inferred, 2 undated
  cost        INTEGER,                         -- 10^-12 USD at list price; NULL: no price
  cost_bound  INTEGER NOT NULL                 -- of the price: 0 exact, 1 at least, 2 estimate
) STRICT;
-- requests_by_key and requests_by_session are made when the first import is
-- done: src/store/fresh.rs.

-- Only requests found in several sessions stand here: a copy of history.
CREATE TABLE sightings (
  request_id  INTEGER NOT NULL REFERENCES requests (id),
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  PRIMARY KEY (request_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sightings_by_session ON sightings (session_id);

CREATE TABLE journals (
  id             INTEGER PRIMARY KEY,
  home_id        INTEGER NOT NULL REFERENCES homes (id),
  project_dir    TEXT NOT NULL,
  file           TEXT NOT NULL,                -- below chats
  state          TEXT NOT NULL,
  reason         TEXT,
  offset         INTEGER NOT NULL,             -- just past the last complete line read
  head           INTEGER NOT NULL,             -- hashes that prove continuity
  head_len       INTEGER NOT NULL,
  marker         INTEGER NOT NULL,
  marker_len     INTEGER NOT NULL,
  tail_counted   INTEGER NOT NULL,
  failed         TEXT,                         -- a line over the cap was met (R15)
  session        TEXT,                         -- context of the next line
  subagent       INTEGER NOT NULL,
  model          TEXT,
  last_at        INTEGER,
  len            INTEGER NOT NULL,             -- metadata when last looked at
  modified_ns    INTEGER NOT NULL,
  changed_ns     INTEGER NOT NULL,
  inode          INTEGER NOT NULL,
  device         INTEGER NOT NULL,
  UNIQUE (home_id, project_dir, file)
) STRICT;

CREATE INDEX journals_by_state ON journals (state);

-- Which journals held requests of which session.
CREATE TABLE journal_sessions (
  journal_id  INTEGER NOT NULL REFERENCES journals (id),
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  PRIMARY KEY (journal_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_sessions_by_session ON journal_sessions (session_id);

-- Lines of unknown content: never the content itself.
CREATE TABLE undecodable (
  journal_id  INTEGER NOT NULL REFERENCES journals (id),
  offset      INTEGER NOT NULL,
  len         INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  at          INTEGER NOT NULL,
  PRIMARY KEY (journal_id, offset, len)
) STRICT, WITHOUT ROWID;
CREATE INDEX undecodable_by_session ON undecodable (session_id);

-- Message ids legible in such a line; it demotes until all of them were read.
CREATE TABLE undecodable_ids (
  journal_id  INTEGER NOT NULL,
  offset      INTEGER NOT NULL,
  len         INTEGER NOT NULL,
  home_id     INTEGER NOT NULL,
  key         INTEGER NOT NULL,
  message_id  TEXT NOT NULL,
  PRIMARY KEY (journal_id, offset, len, message_id),
  FOREIGN KEY (journal_id, offset, len) REFERENCES undecodable (journal_id, offset, len) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Label sets of the token and request counters, first come, first kept.
CREATE TABLE tuples (
  id          INTEGER PRIMARY KEY,
  home_id     INTEGER NOT NULL REFERENCES homes (id),
  project     TEXT NOT NULL,
  model       TEXT NOT NULL,
  role        TEXT NOT NULL,
  born_at     INTEGER,                         -- NULL: in a first import, which is history
  requests        INTEGER NOT NULL DEFAULT 0,
  uncached_input  INTEGER NOT NULL DEFAULT 0,
  cached_input    INTEGER NOT NULL DEFAULT 0,
  tool_input      INTEGER NOT NULL DEFAULT 0,
  output          INTEGER NOT NULL DEFAULT 0,
  thoughts        INTEGER NOT NULL DEFAULT 0,
  -- At the first price of each request, in 10^-12 USD; what has none, in tokens.
  cost_uncached_input      INTEGER NOT NULL DEFAULT 0,
  cost_cached_input        INTEGER NOT NULL DEFAULT 0,
  cost_tool_input          INTEGER NOT NULL DEFAULT 0,
  cost_output              INTEGER NOT NULL DEFAULT 0,
  cost_thoughts            INTEGER NOT NULL DEFAULT 0,
  cost_estimated           INTEGER NOT NULL DEFAULT 0,
  cache_savings            INTEGER NOT NULL DEFAULT 0,
  long_context_surcharge   INTEGER NOT NULL DEFAULT 0,
  unpriced_uncached_input  INTEGER NOT NULL DEFAULT 0,
  unpriced_cached_input    INTEGER NOT NULL DEFAULT 0,
  unpriced_tool_input      INTEGER NOT NULL DEFAULT 0,
  unpriced_output          INTEGER NOT NULL DEFAULT 0,
  unpriced_thoughts        INTEGER NOT NULL DEFAULT 0,
  -- What repricing changed since, signed.
  cost_adjustment          INTEGER NOT NULL DEFAULT 0,
  UNIQUE (home_id, project, model, role)
) STRICT;

-- Counters of the service's own work: name, label value, value.
CREATE TABLE counters (
  name   TEXT NOT NULL,
  label  TEXT NOT NULL,
  value  INTEGER NOT NULL,
  PRIMARY KEY (name, label)
) STRICT, WITHOUT ROWID;
