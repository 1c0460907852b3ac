-- Ends each owner's own live lease now. The row stays, with the end it really had; `released` keeps the lease ended even if
-- the clock steps backward, and the key is forgotten so that repeating the acquire makes a new grant.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  fencing tokens that must be the current ones, -1 for any
--   $4 bigint[]  not_after, as in acquire.sql
--   $5 text      lock_timeout for this statement
-- One row per input row: its ordinal, a verdict (released, not_found, forbidden, awaited, busy, late), the lease and its owner
-- as "holder" when forbidden, and the clock. "awaited": it could be released, but somebody may wait for it, so nothing was
-- done. Locks first and judges after, hides its parameters and counts time as acquire.sql does.
WITH given AS MATERIALIZED (
    SELECT $1::text[] AS resources, $2::text[] AS owners, $3::bigint[] AS tokens, $4::bigint[] AS limits,
        set_config('lock_timeout', $5::text, true)
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.token, to_timestamp(i.not_after / 1000000.0::float8) AS not_after
    FROM given AS g
    CROSS JOIN LATERAL unnest(g.resources, g.owners, g.tokens, g.limits)
        WITH ORDINALITY AS i (resource, owner, token, not_after, ordinal)
), locked AS MATERIALIZED (
    SELECT resource, owner, acquired_at, expires_at, released, fencing_token, places
    FROM {schema}.distributed_locks
    WHERE resource = ANY ((SELECT resources FROM given)::text[])
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT i.ordinal, i.resource, c.now, l.owner AS holder, l.acquired_at, l.expires_at, l.fencing_token,
        CASE
            WHEN l.resource IS NULL AND
                (SELECT p.resource FROM {schema}.distributed_locks AS p WHERE p.resource = i.resource) IS NOT NULL THEN 'busy'
            WHEN l.resource IS NULL OR l.released OR l.expires_at <= c.now THEN 'not_found'
            WHEN l.owner <> i.owner OR (i.token >= 0 AND i.token <> l.fencing_token) THEN 'forbidden'
            WHEN l.places > 0 THEN 'awaited'
            WHEN c.now > i.not_after THEN 'late'
            ELSE 'released'
        END AS verdict
    FROM input AS i
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    -- "= ANY (ARRAY[...])" as in renew.sql.
    UPDATE {schema}.distributed_locks AS l
    SET expires_at = j.now, released = true, idempotency_key = NULL, in_delivery = NULL, offered_place = NULL
    FROM judged AS j
    WHERE l.resource = ANY (ARRAY[j.resource]) AND j.verdict = 'released'
)
SELECT j.ordinal, j.verdict,
    CASE WHEN j.verdict = 'forbidden' THEN j.holder ELSE '' END AS holder,
    CASE WHEN j.verdict = 'forbidden' THEN (date_part('epoch', j.acquired_at) * 1000000)::bigint ELSE 0 END AS acquired_at_us,
    CASE WHEN j.verdict = 'forbidden' THEN (date_part('epoch', j.expires_at) * 1000000)::bigint ELSE 0 END AS expires_at_us,
    CASE WHEN j.verdict = 'forbidden' THEN j.fencing_token ELSE 0 END AS fencing_token,
    (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS clock_us
FROM judged AS j
