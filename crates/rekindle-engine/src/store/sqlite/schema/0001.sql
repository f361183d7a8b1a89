-- The truth: events, each hashed over the one before it.
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    time_ms INTEGER NOT NULL,
    run     TEXT NOT NULL,
    kind    TEXT NOT NULL,
    agent   TEXT,
    task    TEXT,
    epoch   INTEGER,
    details TEXT NOT NULL,
    hash    BLOB NOT NULL
) STRICT;

-- States after an event, for a fast start; the hash binds state and event.
CREATE TABLE snapshot (
    seq   INTEGER PRIMARY KEY,
    state BLOB NOT NULL,
    hash  BLOB NOT NULL
) STRICT;

-- Who wrote a line, said once for all its lines.
CREATE TABLE source (
    id      INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    agent   TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    stream  INTEGER NOT NULL,
    UNIQUE (attempt, stream, agent, epoch)
) STRICT;
CREATE INDEX source_by_agent ON source (agent);

-- The index of agents' output; the spool is its source. The checksum covers the line and its source.
CREATE TABLE line (
    seq     INTEGER PRIMARY KEY,
    source  INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    pos     INTEGER NOT NULL,
    len     INTEGER NOT NULL,
    torn    INTEGER NOT NULL,
    text    TEXT NOT NULL,
    sum     INTEGER NOT NULL
) STRICT;
CREATE INDEX line_by_source ON line (source);

-- How far each spool has been read.
CREATE TABLE spool (
    attempt INTEGER NOT NULL,
    stream  INTEGER NOT NULL,
    next    INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    PRIMARY KEY (attempt, stream)
) STRICT, WITHOUT ROWID;

-- Derived tables, for reading.
CREATE TABLE run (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    ord  INTEGER NOT NULL,
    json TEXT NOT NULL,
    sum  INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE task (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    ord  INTEGER NOT NULL,
    json TEXT NOT NULL,
    sum  INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE attempt (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    ord  INTEGER NOT NULL,
    json TEXT NOT NULL,
    sum  INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE question (
    run  TEXT NOT NULL,
    key  TEXT NOT NULL,
    ord  INTEGER NOT NULL,
    json TEXT NOT NULL,
    sum  INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

-- The store's own numbers: how far lines are in the text index, whether derived tables are behind the events.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL,
    sum   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The text index proposes, the line itself decides: so it needs neither content nor positions.
CREATE VIRTUAL TABLE line_text USING fts5 (text, content = '', columnsize = 0, detail = none, tokenize = 'trigram');
