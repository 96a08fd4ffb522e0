-- One schema for SQLite and PostgreSQL. Costs are JSON lists of hexadecimal floats, so that no bit is lost.

CREATE TABLE place (
    id TEXT NOT NULL,        -- random: the same in a copy, so that a witness recognises it
    identity TEXT NOT NULL   -- where the database was when it was last accepted: file, or server and timeline
);

CREATE TABLE ledgers (
    population TEXT PRIMARY KEY,
    unit TEXT NOT NULL,
    neighbours TEXT,
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    events BIGINT NOT NULL,
    chain TEXT NOT NULL
);

CREATE TABLE lines (
    lineage TEXT PRIMARY KEY,
    population TEXT NOT NULL REFERENCES ledgers (population),
    reserved TEXT NOT NULL,
    spent TEXT NOT NULL,
    generation BIGINT,       -- null if a store guards the states of the stream
    t BIGINT,
    k BIGINT,
    token TEXT,
    closed BIGINT NOT NULL
);
CREATE INDEX lines_of_population ON lines (population);

CREATE TABLE events (
    population TEXT NOT NULL REFERENCES ledgers (population),
    number BIGINT NOT NULL,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    version TEXT NOT NULL,
    kind TEXT NOT NULL,
    lineage TEXT NOT NULL,
    content TEXT NOT NULL,
    chain TEXT NOT NULL,
    PRIMARY KEY (population, number)
);

CREATE TABLE streams (
    name TEXT PRIMARY KEY,
    lineage TEXT NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    token TEXT NOT NULL,
    t BIGINT NOT NULL,
    k BIGINT NOT NULL,
    reserved TEXT NOT NULL,
    spent TEXT NOT NULL,
    chain TEXT NOT NULL,
    about TEXT NOT NULL,     -- public JSON of the one who made the stream
    ledger TEXT,             -- address of its ledger, "" if the ledger is in this database, null if there is none
    population TEXT,
    closed BIGINT NOT NULL,
    state BYTEA NOT NULL,    -- secret
    input BYTEA NOT NULL     -- secret
);

CREATE TABLE releases (
    lineage TEXT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    t BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (lineage, first)
);

CREATE TABLE witnessed (
    place TEXT NOT NULL,      -- id of the database that is watched
    subject TEXT NOT NULL,    -- a lineage, or "ledger of " and a population
    generation BIGINT NOT NULL,
    chain TEXT NOT NULL,
    reserved TEXT NOT NULL,   -- of a ledger, the sum of its reservations
    PRIMARY KEY (place, subject)
);
