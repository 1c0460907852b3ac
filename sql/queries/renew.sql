-- Moves the end of each owner's own live lease to clock + TTL; acquired_at and the token stay.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  TTLs, whole seconds
--   $4 bigint[]  fencing tokens that must be the current ones, -1 for any
--   $5 bigint[]  not_after, as in acquire.sql
--   $6 text      lock_timeout for this statement
-- One row per input row: its ordinal, a verdict (renewed, not_found, offered, forbidden, busy, late; the last two as in
-- acquire.sql), the lease when renewed or forbidden, with its owner as "holder" when forbidden, whether somebody waits for it,
-- and the clock. "offered": the lease is but an offer to the owner. Locks first and judges after, hides its parameters and
-- counts time as acquire.sql does.
WITH given AS MATERIALIZED (
    SELECT $1::text[] AS resources, $2::text[] AS owners, $3::bigint[] AS ttls, $4::bigint[] AS tokens,
        $5::bigint[] AS limits, set_config('lock_timeout', $6::text, true)
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.ttl, i.token, to_timestamp(i.not_after / 1000000.0::float8) AS not_after
    FROM given AS g
    CROSS JOIN LATERAL unnest(g.resources, g.owners, g.ttls, g.tokens, g.limits)
        WITH ORDINALITY AS i (resource, owner, ttl, token, not_after, ordinal)
), locked AS MATERIALIZED (
    SELECT resource, owner, acquired_at, expires_at, released, fencing_token, places, offered_place
    FROM {schema}.distributed_locks
    WHERE resource = ANY ((SELECT resources FROM given)::text[])
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.ttl, c.now, l.owner AS holder, l.acquired_at, l.expires_at, l.fencing_token, l.places,
        CASE
            WHEN l.resource IS NULL AND
                (SELECT p.resource FROM {schema}.distributed_locks AS p WHERE p.resource = i.resource) IS NOT NULL THEN 'busy'
            WHEN l.resource IS NULL OR l.released OR l.expires_at <= c.now THEN 'not_found'
            WHEN l.owner = i.owner AND l.offered_place IS NOT NULL THEN 'offered'
            WHEN l.owner <> i.owner OR (i.token >= 0 AND i.token <> l.fencing_token) THEN 'forbidden'
            WHEN c.now > i.not_after THEN 'late'
            ELSE 'renewed'
        END AS verdict
    FROM input AS i
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    -- "= ANY (ARRAY[...])" leaves the planner only the way by name, as LIMIT 1 does in look.sql.
    UPDATE {schema}.distributed_locks AS l
    SET expires_at = j.now + make_interval(secs => j.ttl), in_delivery = NULL
    FROM judged AS j
    WHERE l.resource = ANY (ARRAY[j.resource]) AND j.verdict = 'renewed'
    RETURNING l.resource, l.expires_at
)
SELECT j.ordinal, j.verdict,
    CASE WHEN j.verdict = 'forbidden' THEN j.holder ELSE '' END AS holder,
    coalesce((date_part('epoch', j.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((date_part('epoch', CASE j.verdict WHEN 'renewed' THEN w.expires_at ELSE j.expires_at END) * 1000000)::bigint, 0)
        AS expires_at_us,
    coalesce(j.fencing_token, 0) AS fencing_token,
    (coalesce(j.places, 0) > 0)::integer AS is_awaited,
    (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
