-- Moves the end of each owner's own live lease to clock + TTL; acquired_at and the token stay.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  TTLs, whole seconds
--   $4 bigint[]  fencing tokens that must be the current ones, -1 for any
--   $5 bigint[]  not_after, as in acquire.sql
--   $6 text      lock_timeout for this statement
-- One row per input row: its ordinal, a verdict (renewed, not_found, forbidden, busy, late; the last two as in acquire.sql),
-- the lease when renewed, and the clock. Locks first and judges after, as in acquire.sql.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $6::text, true) AS lock_timeout
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.ttl, i.token, i.not_after
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
        WITH ORDINALITY AS i (resource, owner, ttl, token, not_after, ordinal)
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
    SELECT i.ordinal, i.resource, i.ttl, c.now,
        CASE
            WHEN l.resource IS NULL AND p.resource IS NOT NULL THEN 'busy'
            WHEN l.resource IS NULL OR l.released OR l.expires_at <= c.now THEN 'not_found'
            WHEN l.owner <> i.owner OR (i.token >= 0 AND i.token <> l.fencing_token) THEN 'forbidden'
            WHEN (extract(epoch FROM c.now) * 1000000)::bigint > i.not_after THEN 'late'
            ELSE 'renewed'
        END AS verdict
    FROM input AS i
    LEFT JOIN present AS p ON p.resource = i.resource
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    UPDATE {schema}.distributed_locks AS l
    SET expires_at = j.now + make_interval(secs => j.ttl)
    FROM judged AS j
    WHERE l.resource = j.resource AND j.verdict = 'renewed'
    RETURNING l.resource, l.acquired_at, l.expires_at, l.fencing_token
)
SELECT j.ordinal, j.verdict,
    coalesce((extract(epoch FROM w.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((extract(epoch FROM w.expires_at) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(w.fencing_token, 0) AS fencing_token,
    (extract(epoch FROM c.now) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE j.ordinal > 0) AS c
