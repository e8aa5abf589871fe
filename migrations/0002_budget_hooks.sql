-- Which thresholds of which budgets hooks were told of: each once in a period,
-- whatever restarts are between. No figure is kept.
CREATE TABLE budget_hooks (
  budget     TEXT NOT NULL,
  period     TEXT NOT NULL,                    -- day, week, month
  starts     TEXT NOT NULL,                    -- first day of the period, 2026-11-01
  threshold  INTEGER NOT NULL,                 -- millionths of the limit
  hook       TEXT NOT NULL,                    -- webhook, command
  at         INTEGER NOT NULL,
  delivered  INTEGER NOT NULL,                 -- 0: given up
  PRIMARY KEY (budget, period, starts, threshold, hook)
) STRICT, WITHOUT ROWID;
