-- A database remembers its witness, and a stream the commit before its last.

ALTER TABLE place ADD COLUMN witness TEXT NOT NULL DEFAULT '';     -- id of the database that is its witness, "" without one
ALTER TABLE place ADD COLUMN witness_at TEXT NOT NULL DEFAULT '';  -- where that was when it was last named, without passwords

ALTER TABLE streams ADD COLUMN previous TEXT;  -- chain before the last commit, "" at the first state, null if not known
ALTER TABLE lines ADD COLUMN previous TEXT;    -- the same for states that the ledger guards, by their tokens
