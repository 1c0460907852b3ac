-- The table of the rival "PostgreSQL, one statement at a time", as somebody would make it who wants speed from single
-- statements: the name is the primary key, so there is one index; no further checks. Page filling and vacuum are set as in
-- Holdfast's own table, which matters for updates in place. It starts with a row for every name, so that a measurement does
-- not begin with inserts and end with updates.
--   :names   how many names there are
CREATE SCHEMA single_statement;
CREATE SEQUENCE single_statement.fencing_tokens AS bigint CACHE 1;
CREATE TABLE single_statement.locks (
    resource text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    fencing_token bigint NOT NULL,
    acquired_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = false
);
INSERT INTO single_statement.locks (resource, owner, fencing_token, acquired_at, expires_at)
SELECT 'bench:' || n, 'nobody', nextval('single_statement.fencing_tokens'), now(), now()
FROM generate_series(0, :names - 1) AS n;
VACUUM (FREEZE, ANALYZE) single_statement.locks;
