-- Gives fresh grants a new stamp: a grant that was inserted after a rival's insert had been waited for, and was rolled back,
-- carries a lease computed before the wait. Acts only while the lease is still the same grant and live.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  TTLs, whole seconds
--   $4 bigint[]  fencing tokens of the grants
--   $5 bigint[]  not_after, as in acquire.sql
--   $6 text      lock_timeout for this statement
-- One row per input row: its ordinal, the verdict restamped or refused, the lease when restamped, and the clock.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $6::text, true) AS lock_timeout
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.ttl, i.token, i.not_after
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
        WITH ORDINALITY AS i (resource, owner, ttl, token, not_after, ordinal)
), locked AS MATERIALIZED (
    SELECT resource, owner, expires_at, released, fencing_token
    FROM {schema}.distributed_locks
    WHERE resource = ANY ($1::text[])
        AND (SELECT lock_timeout FROM limits) IS NOT NULL
    ORDER BY resource
    FOR UPDATE
), judged AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.ttl, c.now,
        coalesce(l.owner = i.owner AND l.fencing_token = i.token AND NOT l.released AND l.expires_at > c.now
            AND (extract(epoch FROM c.now) * 1000000)::bigint <= i.not_after, false) AS ours
    FROM input AS i
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    -- "= ANY (ARRAY[...])" as in renew.sql.
    UPDATE {schema}.distributed_locks AS l
    SET acquired_at = j.now, expires_at = j.now + make_interval(secs => j.ttl)
    FROM judged AS j
    WHERE l.resource = ANY (ARRAY[j.resource]) AND j.ours
    RETURNING l.resource, l.acquired_at, l.expires_at
)
SELECT j.ordinal,
    CASE WHEN w.resource IS NULL THEN 'refused' ELSE 'restamped' END AS verdict,
    coalesce((extract(epoch FROM w.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((extract(epoch FROM w.expires_at) * 1000000)::bigint, 0) AS expires_at_us,
    (extract(epoch FROM c.now) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE j.ordinal > 0) AS c
