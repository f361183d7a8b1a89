-- What a state directory is on one machine. The row is also the lock of its log: every write takes it first.
CREATE TABLE rekindle.space (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL UNIQUE CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    leader       text,
    leader_epoch bigint NOT NULL DEFAULT 0,
    leader_until timestamptz NOT NULL DEFAULT '-infinity',
    head_seq     bigint NOT NULL DEFAULT 0,
    head_hash    bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    last_line    bigint NOT NULL DEFAULT 0
);

-- The truth: events, each hashed over the one before it. Free text is bytea, because text refuses U+0000.
CREATE TABLE rekindle.event (
    space   bigint NOT NULL REFERENCES rekindle.space,
    seq     bigint NOT NULL,
    time_ms bigint NOT NULL,
    run     bytea NOT NULL,
    kind    bytea NOT NULL,
    agent   bytea,
    task    bytea,
    epoch   bigint,
    details bytea NOT NULL,
    hash    bytea NOT NULL,
    PRIMARY KEY (space, seq)
);
CREATE INDEX event_by_kind ON rekindle.event (space, kind, seq);

-- States after an event, for a fast start; the hash binds state and event.
CREATE TABLE rekindle.snapshot (
    space bigint NOT NULL REFERENCES rekindle.space,
    seq   bigint NOT NULL,
    state bytea NOT NULL,
    hash  bytea NOT NULL,
    PRIMARY KEY (space, seq)
);

-- The index of agents' output.
CREATE TABLE rekindle.line (
    space   bigint NOT NULL REFERENCES rekindle.space,
    seq     bigint NOT NULL,
    attempt bigint NOT NULL,
    agent   bytea NOT NULL,
    epoch   bigint NOT NULL,
    stream  smallint NOT NULL,
    time_ms bigint NOT NULL,
    pos     bigint NOT NULL,
    len     bigint NOT NULL,
    torn    boolean NOT NULL,
    text    bytea NOT NULL,
    sum     bigint NOT NULL,
    PRIMARY KEY (space, seq)
);
CREATE INDEX line_by_attempt ON rekindle.line (space, attempt, seq);
CREATE INDEX line_by_agent ON rekindle.line (space, agent, seq);

-- Places of log lines that were removed on purpose: a gap that is recorded here is no damage.
CREATE TABLE rekindle.removed_line (
    space bigint NOT NULL REFERENCES rekindle.space,
    first bigint NOT NULL,
    last  bigint NOT NULL,
    sum   bigint NOT NULL,
    PRIMARY KEY (space, first)
);

-- How far each spool has been read.
CREATE TABLE rekindle.spool (
    space   bigint NOT NULL REFERENCES rekindle.space,
    attempt bigint NOT NULL,
    stream  smallint NOT NULL,
    next    bigint NOT NULL,
    sum     bigint NOT NULL,
    PRIMARY KEY (space, attempt, stream)
);

-- The derived tables, for reading; `kind` is one of run, task, attempt, question.
CREATE TABLE rekindle.derived (
    space bigint NOT NULL REFERENCES rekindle.space,
    kind  text NOT NULL,
    run   bytea NOT NULL,
    key   bytea NOT NULL,
    ord   bigint NOT NULL,
    json  bytea NOT NULL,
    sum   bigint NOT NULL,
    PRIMARY KEY (space, kind, run, key)
);

-- A line's text as it is searched: ASCII in lower case, every other byte in octal. A query is written the same way.
CREATE FUNCTION rekindle.searchable(bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT lower(encode($1, 'escape') COLLATE "C") $$;

-- Makes a space unless it exists.
CREATE FUNCTION rekindle.make_space(a_name text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
DECLARE
    found bigint;
BEGIN
    INSERT INTO space (name) VALUES (a_name) ON CONFLICT (name) DO NOTHING;
    SELECT id INTO found FROM space WHERE name = a_name;
    RETURN found;
END $$;

-- Makes a holder lead a space for a while. The holder that leads already gets a new epoch at once, so that its own earlier
-- process is fenced off; anybody else waits until the lease is over. All times are the database's.
CREATE FUNCTION rekindle.lead(a_space bigint, a_holder text, a_lease_ms bigint,
                              OUT epoch bigint, OUT head_seq bigint, OUT head_hash bytea, OUT last_line bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
DECLARE
    found space%ROWTYPE;
BEGIN
    SELECT * INTO STRICT found FROM space s WHERE s.id = a_space FOR UPDATE;
    IF found.leader IS DISTINCT FROM a_holder AND found.leader_until > clock_timestamp() THEN
        RAISE EXCEPTION 'led by % for % more seconds', found.leader,
            ceil(extract(epoch FROM found.leader_until - clock_timestamp()))
            USING ERRCODE = 'RK002';
    END IF;
    UPDATE space s SET leader = a_holder, leader_epoch = s.leader_epoch + 1,
                       leader_until = clock_timestamp() + make_interval(secs => a_lease_ms / 1000.0)
        WHERE s.id = a_space RETURNING s.leader_epoch INTO epoch;
    head_seq := found.head_seq;
    head_hash := found.head_hash;
    last_line := found.last_line;
END $$;

-- Locks a space for a write of its leader, or refuses: another one leads, or the lease is over.
CREATE FUNCTION rekindle.fence(a_space bigint, a_epoch bigint) RETURNS rekindle.space
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
DECLARE
    found space%ROWTYPE;
BEGIN
    SELECT * INTO STRICT found FROM space s WHERE s.id = a_space FOR UPDATE;
    IF found.leader_epoch <> a_epoch THEN
        RAISE EXCEPTION 'epoch % is over: % leads with epoch %', a_epoch, found.leader, found.leader_epoch
            USING ERRCODE = 'RK001';
    END IF;
    IF found.leader_until <= clock_timestamp() THEN
        RAISE EXCEPTION 'the lease ended % seconds ago',
            ceil(extract(epoch FROM clock_timestamp() - found.leader_until))
            USING ERRCODE = 'RK003';
    END IF;
    RETURN found;
END $$;

-- Extends a lease. One that is over is extended too as long as nobody else took the lead: its epoch still stands.
CREATE FUNCTION rekindle.renew(a_space bigint, a_epoch bigint, a_lease_ms bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
BEGIN
    UPDATE space SET leader_until = clock_timestamp() + make_interval(secs => a_lease_ms / 1000.0)
        WHERE id = a_space AND leader_epoch = a_epoch;
    IF NOT FOUND THEN
        PERFORM fence(a_space, a_epoch);
    END IF;
END $$;

-- Gives the lead up, so that the next one need not wait. The epoch stays: it is never given out twice.
CREATE FUNCTION rekindle.resign(a_space bigint, a_epoch bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$ UPDATE space SET leader_until = '-infinity' WHERE id = a_space AND leader_epoch = a_epoch $$;

-- Everything one step makes durable. Hashes and sums are the leader's; places and the chain's end are checked here.
CREATE FUNCTION rekindle.append(
    a_space bigint, a_epoch bigint, a_head bigint, a_head_hash bytea, a_last_line bigint,
    e_time bigint[], e_run bytea[], e_kind bytea[], e_agent bytea[], e_task bytea[], e_epoch bigint[], e_details bytea[], e_hash bytea[],
    l_attempt bigint[], l_agent bytea[], l_epoch bigint[], l_stream smallint[], l_time bigint[], l_pos bigint[], l_len bigint[],
    l_torn boolean[], l_text bytea[], l_sum bigint[],
    o_attempt bigint[], o_stream smallint[], o_next bigint[], o_sum bigint[],
    r_kind text[], r_run bytea[], r_key bytea[], r_ord bigint[], r_json bytea[], r_sum bigint[],
    s_state bytea, s_hash bytea, s_kept bigint
) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
DECLARE
    found space%ROWTYPE;
    events bigint := cardinality(e_time);
    lines bigint := cardinality(l_attempt);
BEGIN
    found := fence(a_space, a_epoch);
    IF found.head_seq <> a_head OR found.head_hash <> a_head_hash OR found.last_line <> a_last_line THEN
        RAISE EXCEPTION 'the log ends at %', found.head_seq USING ERRCODE = 'RK004';
    END IF;
    IF events > 0 THEN
        INSERT INTO event SELECT a_space, a_head + n, t, r, k, a, s, p, d, h
            FROM unnest(e_time, e_run, e_kind, e_agent, e_task, e_epoch, e_details, e_hash)
                 WITH ORDINALITY AS u (t, r, k, a, s, p, d, h, n);
    END IF;
    IF lines > 0 THEN
        INSERT INTO line SELECT a_space, a_last_line + n, a, g, p, s, t, o, l, c, x, m
            FROM unnest(l_attempt, l_agent, l_epoch, l_stream, l_time, l_pos, l_len, l_torn, l_text, l_sum)
                 WITH ORDINALITY AS u (a, g, p, s, t, o, l, c, x, m, n);
    END IF;
    IF events > 0 OR lines > 0 THEN
        UPDATE space SET head_seq = a_head + events, last_line = a_last_line + lines,
                         head_hash = CASE WHEN events > 0 THEN e_hash[events] ELSE space.head_hash END
            WHERE id = a_space;
    END IF;
    IF cardinality(o_attempt) > 0 THEN
        INSERT INTO spool SELECT a_space, a, s, n, m FROM unnest(o_attempt, o_stream, o_next, o_sum) AS u (a, s, n, m)
            ON CONFLICT (space, attempt, stream) DO UPDATE SET next = excluded.next, sum = excluded.sum;
    END IF;
    IF cardinality(r_kind) > 0 THEN
        INSERT INTO derived SELECT a_space, d, r, k, o, j, m
            FROM unnest(r_kind, r_run, r_key, r_ord, r_json, r_sum) AS u (d, r, k, o, j, m)
            ON CONFLICT (space, kind, run, key) DO UPDATE SET ord = excluded.ord, json = excluded.json, sum = excluded.sum;
    END IF;
    IF s_state IS NOT NULL THEN
        INSERT INTO snapshot VALUES (a_space, a_head + events, s_state, s_hash)
            ON CONFLICT (space, seq) DO UPDATE SET state = excluded.state, hash = excluded.hash;
        DELETE FROM snapshot WHERE space = a_space AND seq NOT IN
            (SELECT seq FROM snapshot WHERE space = a_space ORDER BY seq DESC LIMIT s_kept);
    END IF;
END $$;

-- Makes the derived tables exactly these rows.
CREATE FUNCTION rekindle.replace_rows(
    a_space bigint, a_epoch bigint,
    r_kind text[], r_run bytea[], r_key bytea[], r_ord bigint[], r_json bytea[], r_sum bigint[]
) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
BEGIN
    PERFORM fence(a_space, a_epoch);
    DELETE FROM derived WHERE space = a_space;
    INSERT INTO derived SELECT a_space, d, r, k, o, j, m
        FROM unnest(r_kind, r_run, r_key, r_ord, r_json, r_sum) AS u (d, r, k, o, j, m);
END $$;

-- Removes log lines and keeps on record which: `r_*` are the parts that the record has afterwards in their place.
CREATE FUNCTION rekindle.remove_lines(
    a_space bigint, a_epoch bigint, a_seq bigint[], gone bigint[], r_first bigint[], r_last bigint[], r_sum bigint[]
) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rekindle, pg_temp
    AS $$
BEGIN
    PERFORM fence(a_space, a_epoch);
    DELETE FROM line WHERE space = a_space AND seq = ANY (a_seq);
    DELETE FROM removed_line WHERE space = a_space AND first = ANY (gone);
    INSERT INTO removed_line SELECT a_space, f, l, m FROM unnest(r_first, r_last, r_sum) AS u (f, l, m);
END $$;

-- Nobody writes but through the functions, and only whom the owner has granted them.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rekindle FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rekindle.searchable(bytea) TO PUBLIC;
