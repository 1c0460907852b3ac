-- Ends each owner's own live lease now. The row stays, with the end it really had; `released` keeps the lease ended even if
-- the clock steps backward, and the key is forgotten so that repeating the acquire makes a new grant.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  fencing tokens that must be the current ones, -1 for any
--   $4 bigint[]  not_after, as in acquire.sql
--   $5 text      lock_timeout for this statement
-- One row per input row: its ordinal, a verdict (released, not_found, forbidden, busy, late), and the clock. Locks first and
-- judges after, as in acquire.sql.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $5::text, true) AS lock_timeout
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.token, i.not_after
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
        WITH ORDINALITY AS i (resource, owner, token, not_after, ordinal)
), present AS MATERIALIZED (
    SELECT resource
    FROM {schema}.distributed_locks
    WHERE resource = ANY ($1::text[])
), locked AS MATERIALIZED (
    SELECT resource, owner, expires_at, released, fencing_token
    FROM {schema}.distributed_locks
    WHERE resource = ANY ($1::text[])
        AND (SELECT lock_timeout FROM limits) IS NOT NULL
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT i.ordinal, i.resource, c.now,
        CASE
            WHEN l.resource IS NULL AND p.resource IS NOT NULL THEN 'busy'
            WHEN l.resource IS NULL OR l.released OR l.expires_at <= c.now THEN 'not_found'
            WHEN l.owner <> i.owner OR (i.token >= 0 AND i.token <> l.fencing_token) THEN 'forbidden'
            WHEN (extract(epoch FROM c.now) * 1000000)::bigint > i.not_after THEN 'late'
            ELSE 'released'
        END AS verdict
    FROM input AS i
    LEFT JOIN present AS p ON p.resource = i.resource
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    UPDATE {schema}.distributed_locks AS l
    SET expires_at = j.now, released = true, idempotency_key = NULL
    FROM judged AS j
    WHERE l.resource = j.resource AND j.verdict = 'released'
    RETURNING l.resource
)
SELECT j.ordinal, j.verdict,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
