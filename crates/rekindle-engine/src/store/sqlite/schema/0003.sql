-- Places of log lines that were removed on purpose: a gap that stands here is no damage.
CREATE TABLE removed_line (
    first INTEGER PRIMARY KEY,
    last  INTEGER NOT NULL,
    sum   INTEGER NOT NULL
) STRICT;
