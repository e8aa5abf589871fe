-- Turns: what front doors and telemetry saw, and what all evidence makes of it.

-- Spool files read so far: one file is one process behind a door.
CREATE TABLE spools (
  name    TEXT PRIMARY KEY,
  offset  INTEGER NOT NULL,
  ended   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One process behind a door, or one host that posts events.
CREATE TABLE connections (
  id          INTEGER PRIMARY KEY,
  name        TEXT NOT NULL UNIQUE,            -- the spool's, or http: and the host
  door        TEXT NOT NULL,                   -- acp, http, run
  home_id     INTEGER REFERENCES homes (id),
  configured  TEXT,                            -- the runtime that the command names (R2)
  runtime     TEXT,                            -- the one the handshake names (R1)
  version     TEXT,
  remote      INTEGER NOT NULL,                -- on another host (R62)
  started_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  exit_code   INTEGER,
  exit_signal INTEGER,
  mismatched  INTEGER NOT NULL DEFAULT 0       -- it was said that the two differ (R8)
) STRICT;
CREATE INDEX connections_open ON connections (started_at) WHERE ended_at IS NULL;

-- Which sessions a process opened.
CREATE TABLE connection_sessions (
  connection_id  INTEGER NOT NULL REFERENCES connections (id),
  session_id     INTEGER NOT NULL REFERENCES sessions (id),
  opened_at      INTEGER NOT NULL,
  resumed        INTEGER NOT NULL,             -- it existed before (R41)
  session_role   TEXT,                         -- what an orchestrator says it is for (R45)
  ended_at       INTEGER,                      -- an orchestrator said that it ended
  PRIMARY KEY (connection_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX connection_sessions_by_session ON connection_sessions (session_id);

-- Which model came into force when (R33, R36).
CREATE TABLE model_settings (
  id             INTEGER PRIMARY KEY,
  connection_id  INTEGER NOT NULL REFERENCES connections (id),
  session_id     INTEGER NOT NULL REFERENCES sessions (id),
  at             INTEGER NOT NULL,
  model          TEXT
) STRICT;
CREATE INDEX model_settings_by_session ON model_settings (session_id);

-- One view of one turn: a door's, or telemetry's. Views of one prompt are one
-- turn: those but the first are part_of it, and hold no figure.
CREATE TABLE turns (
  id             INTEGER PRIMARY KEY,
  session_id     INTEGER NOT NULL REFERENCES sessions (id),
  connection_id  INTEGER REFERENCES connections (id), -- NULL: telemetry
  key            TEXT NOT NULL,                -- among those of its connection
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  cancel_sent    INTEGER NOT NULL DEFAULT 0,
  lossy          INTEGER NOT NULL DEFAULT 0,   -- frames were lost while it was open
  lapsed         INTEGER NOT NULL DEFAULT 0,   -- open for longer than a turn can be
  result         TEXT,                         -- counts, codes and names, as JSON
  part_of        INTEGER REFERENCES turns (id),
  -- What all evidence makes of it.
  unit           INTEGER NOT NULL DEFAULT 0,   -- calls outside of all turns (R66)
  ending         TEXT,
  model_id       INTEGER REFERENCES models (id), -- in force when the prompt was sent
  closed_at      INTEGER,                      -- its ending, or its process's
  bound          INTEGER,                      -- 0 exact, 1 at least, 2 unmeasured
  reasons        INTEGER NOT NULL DEFAULT 0,
  strict_bound   INTEGER,
  strict_reasons INTEGER NOT NULL DEFAULT 0,
  basis          INTEGER NOT NULL DEFAULT 0,
  prompt         INTEGER,                      -- the figure; NULL: unmeasured
  cached         INTEGER,
  tool           INTEGER,
  output         INTEGER,
  thoughts       INTEGER,
  billed         INTEGER NOT NULL DEFAULT 0,   -- requests, by whichever source says most
  -- Once it is final.
  settled_at     INTEGER,
  settled_bound  INTEGER,
  -- Counted above its requests, and not yet found among them.
  counted_requests        INTEGER NOT NULL DEFAULT 0,
  counted_uncached_input  INTEGER NOT NULL DEFAULT 0,
  counted_cached_input    INTEGER NOT NULL DEFAULT 0,
  counted_tool_input      INTEGER NOT NULL DEFAULT 0,
  counted_output          INTEGER NOT NULL DEFAULT 0,
  counted_thoughts        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX turns_by_key ON turns (session_id, coalesce(connection_id, 0), key);
CREATE INDEX turns_unsettled ON turns (session_id) WHERE settled_at IS NULL AND part_of IS NULL;

-- What a turn's figure holds above its requests, by model and role.
CREATE TABLE turn_parts (
  turn_id     INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  model_id    INTEGER NOT NULL REFERENCES models (id),
  role        INTEGER NOT NULL,
  requests    INTEGER NOT NULL,
  prompt      INTEGER NOT NULL,
  cached      INTEGER NOT NULL,
  tool        INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  thoughts    INTEGER NOT NULL,
  claim       INTEGER NOT NULL,                -- of a cost: 0 exact, 1 at least, 2 estimate
  cost        INTEGER,
  cost_bound  INTEGER NOT NULL,
  PRIMARY KEY (turn_id, model_id, role)
) STRICT, WITHOUT ROWID;

-- Prompts that no request followed in what was read with them.
CREATE TABLE silent_prompts (
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  at          INTEGER NOT NULL,
  PRIMARY KEY (session_id, at)
) STRICT, WITHOUT ROWID;

-- Events that an orchestrator posted, each once.
CREATE TABLE posted (
  event_id  TEXT PRIMARY KEY,
  at        INTEGER NOT NULL                   -- when it was taken
) STRICT, WITHOUT ROWID;

-- Gemini CLI's own records of model calls, each once (R66).
CREATE TABLE telemetry (
  id          INTEGER PRIMARY KEY,
  key_high    INTEGER NOT NULL,
  key_low     INTEGER NOT NULL,
  occurrence  INTEGER NOT NULL,
  session_id  INTEGER NOT NULL REFERENCES sessions (id),
  at          INTEGER NOT NULL,
  kind        INTEGER NOT NULL,                -- 0 prompt, 1 request, 2 response, 3 error, 4 clean exit
  prompt_id   TEXT NOT NULL,
  role        INTEGER NOT NULL,
  model_id    INTEGER NOT NULL REFERENCES models (id),
  prompt      INTEGER NOT NULL,
  cached      INTEGER NOT NULL,
  tool        INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  thoughts    INTEGER NOT NULL,
  received    INTEGER NOT NULL                 -- 1: over the network, where gaps are possible
) STRICT;
CREATE UNIQUE INDEX telemetry_by_key ON telemetry (key_high, key_low, occurrence);
CREATE INDEX telemetry_by_session ON telemetry (session_id);

-- When the receiver was there: records may be missing outside of it.
CREATE TABLE listening (
  id       INTEGER PRIMARY KEY,
  started  INTEGER NOT NULL,
  until    INTEGER NOT NULL
) STRICT;

-- How far telemetry's outfiles were read, with the proof of continuity.
CREATE TABLE outfiles (
  path        TEXT PRIMARY KEY,
  offset      INTEGER NOT NULL,
  head        INTEGER NOT NULL,
  head_len    INTEGER NOT NULL,
  marker      INTEGER NOT NULL,
  marker_len  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters of a home by up to two labels.
CREATE TABLE home_counters (
  id       INTEGER PRIMARY KEY,
  home_id  INTEGER NOT NULL REFERENCES homes (id),
  name     TEXT NOT NULL,
  first    TEXT NOT NULL,
  second   TEXT NOT NULL,
  value    INTEGER NOT NULL,
  born_at  INTEGER,                            -- NULL: in a first import, which is history
  UNIQUE (home_id, name, first, second)
) STRICT;

ALTER TABLE requests ADD COLUMN turn_id INTEGER REFERENCES turns (id);
-- What stands in a ledger without turns is settled: no door claims it any more.
ALTER TABLE requests ADD COLUMN settled INTEGER NOT NULL DEFAULT 1;
CREATE INDEX requests_unsettled ON requests (at) WHERE settled = 0;

ALTER TABLE journals ADD COLUMN failed_since INTEGER; -- the last time read before it failed
UPDATE journals SET failed_since = coalesce(last_at, 0) WHERE failed IS NOT NULL OR state IN ('failed', 'lost');

ALTER TABLE sessions ADD COLUMN runtime TEXT;        -- of another agent: it is not measured (R1)
ALTER TABLE sessions ADD COLUMN torn_loose INTEGER NOT NULL DEFAULT 0; -- a torn line is in no turn
ALTER TABLE sessions ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;    -- among the sessions started

ALTER TABLE tuples ADD COLUMN settled_exact INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tuples ADD COLUMN settled_at_least INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tuples ADD COLUMN settled_cost_exact INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tuples ADD COLUMN settled_cost_at_least INTEGER NOT NULL DEFAULT 0;
UPDATE tuples SET
  settled_at_least = uncached_input + cached_input + tool_input + output + thoughts,
  settled_cost_at_least = cost_uncached_input + cost_cached_input + cost_tool_input + cost_output + cost_thoughts;

UPDATE sessions SET counted = 1 WHERE (first_at IS NOT NULL OR first_prompt_at IS NOT NULL);
INSERT INTO home_counters (home_id, name, first, second, value)
  SELECT s.home_id, 'sessions_started', p.name, '', count(*)
  FROM sessions s JOIN projects p ON p.id = s.project_id
  WHERE s.counted = 1 AND s.resolved_to IS NULL GROUP BY s.home_id, p.name;
