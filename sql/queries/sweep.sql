-- Removes rows whose lease ended long ago and that nobody waits for, from a range of pages; skips rows that somebody has
-- locked, and does nothing while another node sweeps. Deleting a row forgets its token, which is safe only when no statement can still be under way
-- that drew its token before the row's last grant: hence the long wait ($3).
--   $1 text      first row address of the range, '(page,0)'
--   $2 text      row address after the range
--   $3 bigint    how long ago a lease must have ended, seconds
--   $4 text      name of the sweepers' advisory lock
-- One row: whether this node may sweep, how many rows went, and how many pages the table has.
WITH gate AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended($4::text, 0)) AS mine
), ended AS MATERIALIZED (
    SELECT ctid
    FROM {schema}.distributed_locks
    WHERE ctid >= $1::tid AND ctid < $2::tid
        AND places = 0
        AND expires_at <= clock_timestamp() - make_interval(secs => $3::bigint)
        AND (SELECT mine FROM gate)
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM {schema}.distributed_locks
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM ended))
    RETURNING 1
)
SELECT (SELECT mine FROM gate) AS mine,
    (SELECT count(*) FROM deleted) AS deleted,
    pg_relation_size({table}) / current_setting('block_size')::bigint AS pages
