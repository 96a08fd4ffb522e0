-- What a server needs beside streams: tokens, requests that were answered, the usual writer of a stream, and ticks.

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,  -- SHA-256 of 256 random bits
    scopes TEXT NOT NULL,        -- separated by blanks
    stream TEXT,                 -- name of the only stream that it is for; null for all
    label TEXT NOT NULL,
    parent TEXT,                 -- of a browser's session: the token that it was opened with
    created BIGINT NOT NULL,     -- these three in milliseconds since 1970-01-01 in UTC
    expires BIGINT,
    revoked BIGINT
);

CREATE TABLE requests (
    lineage TEXT NOT NULL,
    key BYTEA NOT NULL,          -- keyed hash of the idempotency key
    body BYTEA NOT NULL,         -- keyed hash of the request
    first BIGINT NOT NULL,       -- the rounds of its rows
    last BIGINT NOT NULL,
    PRIMARY KEY (lineage, key)
);

CREATE TABLE leases (
    lineage TEXT PRIMARY KEY,
    holder TEXT NOT NULL,        -- the process that wrote last
    expires BIGINT NOT NULL      -- in milliseconds since 1970-01-01 in UTC
);

ALTER TABLE releases ADD COLUMN visible_at BIGINT;  -- the same; null if they may be shown once they are committed
