-- Quota: what polls and refused requests said. Shares are billionths of a
-- limit; raw values stand beside derived ones (quota Q9). No token, no text.

-- The newest word on each home.
CREATE TABLE quota_homes (
  home_id        INTEGER PRIMARY KEY REFERENCES homes (id),
  at             INTEGER NOT NULL,
  state          TEXT NOT NULL,                -- as the poller said; never stale
  detail         TEXT,
  account        TEXT,                         -- whose quota it is; NULL: not known
  cloud_project  TEXT,
  polled_at      INTEGER,                      -- when a request was made last
  next_poll_at   INTEGER
) STRICT;

-- When the newest good answer of an account and Cloud project came.
CREATE TABLE quota_answers (
  account        TEXT NOT NULL,
  cloud_project  TEXT NOT NULL,
  at             INTEGER NOT NULL,
  PRIMARY KEY (account, cloud_project)
) STRICT, WITHOUT ROWID;

-- A limit with its newest observation and its counter.
CREATE TABLE quota_buckets (
  id             INTEGER PRIMARY KEY,
  account        TEXT NOT NULL,
  cloud_project  TEXT NOT NULL,
  model          TEXT NOT NULL,                -- as Google spells it
  token_type     TEXT NOT NULL,
  born_at        INTEGER NOT NULL,
  at             INTEGER NOT NULL,
  fraction       REAL,                         -- as stated
  amount         INTEGER,                      -- as stated
  remaining      INTEGER,                      -- NULL: not reported
  resets_at      INTEGER,
  limit_amount   INTEGER,                      -- the last that could be derived
  last_reported  INTEGER,                      -- remaining, the last that was reported
  consumed       INTEGER NOT NULL DEFAULT 0,   -- the sum of observed drops; never falls
  thinned_to     INTEGER NOT NULL DEFAULT 0,   -- history before this time is thinned
  UNIQUE (account, cloud_project, model, token_type)
) STRICT;

-- Written once; rows go when they are old and say nothing of their own.
CREATE TABLE quota_history (
  bucket_id  INTEGER NOT NULL REFERENCES quota_buckets (id),
  at         INTEGER NOT NULL,
  fraction   REAL,
  amount     INTEGER,
  remaining  INTEGER,
  resets_at  INTEGER,
  PRIMARY KEY (bucket_id, at)
) STRICT, WITHOUT ROWID;

-- Requests refused for quota or capacity; '' where a reason or model is not stated.
CREATE TABLE quota_rejections (
  id              INTEGER PRIMARY KEY,
  home_id         INTEGER NOT NULL REFERENCES homes (id),
  session         TEXT NOT NULL,
  at              INTEGER NOT NULL,
  model           TEXT NOT NULL,
  reason          TEXT NOT NULL,
  capacity        INTEGER NOT NULL,
  metric          TEXT,
  resets_at       INTEGER,
  retry_after_ms  INTEGER,
  waits           INTEGER NOT NULL,
  door            INTEGER NOT NULL,            -- 1: told by a front door only
  UNIQUE (home_id, session, at, model, reason)
) STRICT;
CREATE INDEX quota_rejections_by_time ON quota_rejections (at);

-- Label sets of the counters of refusals, by canonical model.
CREATE TABLE quota_models (
  id           INTEGER PRIMARY KEY,
  home_id      INTEGER NOT NULL REFERENCES homes (id),
  model        TEXT NOT NULL,
  born_at      INTEGER,                        -- NULL: in a first import, which is history
  capacity     INTEGER NOT NULL DEFAULT 0,
  exhaustions  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (home_id, model)
) STRICT;

CREATE TABLE quota_model_reasons (
  model_id  INTEGER NOT NULL REFERENCES quota_models (id),
  reason    TEXT NOT NULL,
  value     INTEGER NOT NULL,
  PRIMARY KEY (model_id, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE quota_polls (
  home_id  INTEGER NOT NULL REFERENCES homes (id),
  result   TEXT NOT NULL,
  value    INTEGER NOT NULL,
  PRIMARY KEY (home_id, result)
) STRICT, WITHOUT ROWID;
