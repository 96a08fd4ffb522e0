-- Users' records of a stream, in layers that are never changed: a commit adds some and removes those it has merged.

CREATE TABLE layers (
    lineage TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,       -- id of the key that encrypts the content, "" if it is not encrypted
    content BYTEA NOT NULL,  -- secret
    PRIMARY KEY (lineage, name)
);
