-- Ends one owner's live lease and makes the next owner the holder, as release.sql and acquire.sql one right after the other
-- would, where nothing is in the way of either.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners that release
--   $3 bigint[]  fencing tokens that must be the current ones, -1 for any
--   $4 text[]    owners that acquire
--   $5 bigint[]  TTLs, whole seconds
--   $6 text[]    idempotency keys, '' for none
--   $7 boolean[] whether the grant may be given back, as in acquire.sql
--   $8 bigint[]  not_after, as in acquire.sql, for both
-- One row per input row: its ordinal, the verdict passed or apart, the grant with the age of its stamp, and the clock.
-- "apart": nothing was done, since the lease is not the first owner's, somebody waits for it or has the row locked, or not_after
-- has passed. Locks first and judges after, hides its parameters and counts time as acquire.sql does.
WITH given AS MATERIALIZED (
    SELECT $1::text[] AS resources, $2::text[] AS owners, $3::bigint[] AS tokens, $4::text[] AS next_owners, $5::bigint[] AS ttls,
        $6::text[] AS keys, $7::boolean[] AS returnable, $8::bigint[] AS limits
), input AS MATERIALIZED (
    SELECT i.*, to_timestamp(i.not_after_us / 1000000.0::float8) AS not_after
    FROM given AS g
    CROSS JOIN LATERAL unnest(g.resources, g.owners, g.tokens, g.next_owners, g.ttls, g.keys, g.returnable, g.limits)
        WITH ORDINALITY AS i (resource, owner, token, next_owner, ttl, key, is_returnable, not_after_us, ordinal)
), locked AS MATERIALIZED (
    SELECT resource, owner, fencing_token
    FROM {schema}.distributed_locks
    WHERE resource = ANY ((SELECT resources FROM given)::text[])
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT i.*, c.now, l.fencing_token AS ending
    FROM input AS i
    JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
    WHERE l.owner = i.owner AND (i.token < 0 OR i.token = l.fencing_token) AND c.now <= i.not_after
), written AS (
    -- The token that is offered for the row is that of the lease which ends: it names one grant, and the row must still be it.
    INSERT INTO {schema}.distributed_locks AS l
        (resource, owner, acquired_at, expires_at, fencing_token, idempotency_key, in_delivery)
    SELECT j.resource, j.next_owner, j.now, j.now + make_interval(secs => j.ttl), j.ending, nullif(j.key, ''),
        CASE WHEN j.is_returnable THEN 0::bigint END
    FROM judged AS j
    ON CONFLICT (resource) DO UPDATE
    SET owner = EXCLUDED.owner, acquired_at = EXCLUDED.acquired_at, expires_at = EXCLUDED.expires_at,
        fencing_token = nextval({fencing_tokens}), idempotency_key = EXCLUDED.idempotency_key,
        in_delivery = EXCLUDED.in_delivery, offered_place = NULL
    -- The least not_after of all mostly spares the look-up of the row's own.
    WHERE l.fencing_token = EXCLUDED.fencing_token AND NOT l.released AND l.expires_at > clock_timestamp() AND l.places = 0
        AND (clock_timestamp() <= (SELECT min(j.not_after) FROM judged AS j)
            OR clock_timestamp() <= (SELECT j.not_after FROM judged AS j WHERE j.resource = EXCLUDED.resource))
    RETURNING l.resource, l.acquired_at, l.expires_at, l.fencing_token, clock_timestamp() - l.acquired_at AS stamp_age
)
SELECT i.ordinal,
    CASE WHEN w.resource IS NULL THEN 'apart' ELSE 'passed' END AS verdict,
    coalesce((date_part('epoch', w.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((date_part('epoch', w.expires_at) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(w.fencing_token, 0) AS fencing_token,
    coalesce((date_part('epoch', w.stamp_age) * 1000000)::bigint, 0) AS stamp_age_us,
    (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS clock_us
FROM input AS i
LEFT JOIN written AS w ON w.resource = i.resource
