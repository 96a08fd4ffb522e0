-- Ledgers whose budget is for each period by itself, and the periods in which a line counts there.

ALTER TABLE ledgers ADD COLUMN renews BIGINT NOT NULL DEFAULT 0;

ALTER TABLE lines ADD COLUMN first BIGINT;  -- period of its first row; null in a ledger that does not renew
ALTER TABLE lines ADD COLUMN last BIGINT;   -- period of its last row so far
ALTER TABLE lines ADD COLUMN finished BIGINT NOT NULL DEFAULT 0;  -- it has released all that it can
