-- Streams that have ended, and that no server shows any more: they keep their releases and their line in the ledger.

ALTER TABLE streams ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
