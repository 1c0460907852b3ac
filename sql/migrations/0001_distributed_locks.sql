-- The leases. Rules for every migration, this one and later ones:
--   * forward only; one transaction; `holdfast migrate` runs it under a lock, so no IF NOT EXISTS;
--   * the previous release goes on serving while and after it runs: add nullable columns or columns with a constant
--     default, add tables and indexes; never drop, rename or narrow what the release before still reads or writes;
--   * no name without {schema}: nothing relies on search_path.

-- Drawn after the row is locked, so that tokens rise per resource. CACHE 1: a session that kept numbers in store would hand
-- out old ones later. NO CYCLE and the bound keep tokens below 2^53, where every JSON reader is exact.
CREATE SEQUENCE {schema}.fencing_tokens AS bigint MINVALUE 1 MAXVALUE 9007199254740991 NO CYCLE CACHE 1;

-- The limits of names, keys and tokens once more, as the last line of defence. Domains, not CHECK constraints of the tables:
-- those are read and compiled anew by each statement that writes, which took a third of its time, and judge every column on
-- every update; a domain's are compiled once a session, and judge what comes in (docs/benchmarks/steps.md).
-- "C": names are compared byte for byte whatever the database's collation, and sorting needs no locale.
CREATE DOMAIN {schema}.name AS text COLLATE "C"
    CHECK (octet_length(VALUE) BETWEEN 1 AND 255 AND VALUE !~ '[\x01-\x1f\x7f]');
CREATE DOMAIN {schema}.idempotency_key AS text COLLATE "C"
    CHECK (octet_length(VALUE) BETWEEN 1 AND 255 AND VALUE !~ '[^\x21-\x7e]');
CREATE DOMAIN {schema}.fencing_token AS bigint CHECK (VALUE BETWEEN 1 AND 9007199254740991);

-- One row per resource that was held lately. A row outlives its lease (released, or expires_at passed) and is swept much
-- later, so that a statement which drew its token before it waited cannot insert an older token over a newer grant.
-- The rule of holding: NOT released AND expires_at > clock_timestamp().
CREATE TABLE {schema}.distributed_locks (
    id bigint GENERATED ALWAYS AS IDENTITY (CACHE 100) PRIMARY KEY,
    fencing_token {schema}.fencing_token NOT NULL,
    acquired_at timestamptz NOT NULL,
    -- No CHECK against acquired_at: after a backward step of the clock a renewed lease may end before it began.
    expires_at timestamptz NOT NULL,
    -- Says that the lease was ended by its owner. expires_at alone would bring it back to life when the clock steps backward.
    released boolean NOT NULL DEFAULT false,
    resource {schema}.name NOT NULL UNIQUE,
    owner {schema}.name NOT NULL,
    idempotency_key {schema}.idempotency_key
) WITH (
    -- Every grant, renew and release updates a row in place: half-empty pages and no index on expires_at keep those
    -- updates inside the page (HOT), where the next visitor prunes the dead version without waiting for vacuum.
    fillfactor = 50,
    -- Vacuum and analyze early and unthrottled: the table is small, and a bloated or misjudged one slows every request.
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    -- Giving empty pages back to the file system takes an exclusive lock on the table; the pages are used again anyway.
    vacuum_truncate = false
);
