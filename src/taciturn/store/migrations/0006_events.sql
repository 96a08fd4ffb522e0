-- Events: rows whose labels come later. The n-th event of a stream is its n-th round.

CREATE TABLE event_logs (
    lineage TEXT PRIMARY KEY,
    opened BIGINT NOT NULL,      -- how many events were opened
    sealed BIGINT NOT NULL,      -- the last event that takes no label any more
    at BIGINT NOT NULL           -- when the last was opened, in milliseconds since 1970-01-01 in UTC
);

CREATE TABLE stream_events (
    lineage TEXT NOT NULL,
    number BIGINT NOT NULL,
    id BYTEA NOT NULL,           -- keyed hash of its id
    body BYTEA NOT NULL,         -- keyed hash of the request that opened it
    due BIGINT NOT NULL,         -- when its wait ends, in milliseconds since 1970-01-01 in UTC
    content BYTEA,               -- secret: its row; null once it is learnt
    closed BYTEA,                -- keyed hash of its label; null without one
    label BYTEA,                 -- secret: its label; null without one, and once it is learnt
    PRIMARY KEY (lineage, number)
);
CREATE UNIQUE INDEX stream_events_by_id ON stream_events (lineage, id);
