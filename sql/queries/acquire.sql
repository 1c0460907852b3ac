-- Makes each owner the holder of its resource if the lease there has ended or is the owner's own.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  TTLs, whole seconds
--   $4 text[]    idempotency keys, '' for none
--   $5 bigint[]  not_after: the last moment at which the row may be written, microseconds since the epoch by this
--                database's clock
--   $6 bigint    the least of $5
--   $7 text      lock_timeout for this statement
-- One row per input row: its ordinal, a verdict, and
--   granted  the grant as it is now (also that of a repeated key), how old its stamp was when it was written
--   held     what is left of the lease of another owner, read from the locked row
--   busy     the row is locked by somebody else (or was deleted meanwhile): nothing is known, nothing was done
--   late     not_after has passed: nothing was done
--   raced    somebody else wrote the row in between: nothing was done, ask again
-- Lock first, judge after: "judged" reads the clock when the row is ours. Conditions on a row that a statement waited for
-- are evaluated again only if the row changed, while the clock ran on in any case.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', $7::text, true) AS lock_timeout
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.ttl, nullif(i.key, '') AS key, i.not_after
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[])
        WITH ORDINALITY AS i (resource, owner, ttl, key, not_after, ordinal)
), present AS MATERIALIZED (
    SELECT resource
    FROM {schema}.distributed_locks
    WHERE resource = ANY ($1::text[])
), locked AS MATERIALIZED (
    SELECT resource, owner, acquired_at, expires_at, released, fencing_token, idempotency_key
    FROM {schema}.distributed_locks
    WHERE resource = ANY ($1::text[])
        AND (SELECT lock_timeout FROM limits) IS NOT NULL
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT i.*, l.acquired_at, l.expires_at, l.fencing_token,
        CASE
            WHEN l.resource IS NULL AND p.resource IS NOT NULL THEN 'busy'
            WHEN NOT l.released AND l.expires_at > c.now AND l.owner = i.owner AND l.idempotency_key = i.key THEN 'replay'
            WHEN NOT l.released AND l.expires_at > c.now AND l.owner <> i.owner THEN 'held'
            WHEN (extract(epoch FROM c.now) * 1000000)::bigint > i.not_after THEN 'late'
            ELSE 'eligible'
        END AS verdict
    FROM input AS i
    LEFT JOIN present AS p ON p.resource = i.resource
    LEFT JOIN locked AS l ON l.resource = i.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
), written AS (
    INSERT INTO {schema}.distributed_locks AS l (resource, owner, acquired_at, expires_at, fencing_token, idempotency_key)
    SELECT j.resource, j.owner, c.now, c.now + make_interval(secs => j.ttl), nextval({fencing_tokens}), j.key
    FROM (SELECT * FROM judged WHERE verdict = 'eligible' ORDER BY ordinal) AS j
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE j.ordinal > 0) AS c
    WHERE (SELECT lock_timeout FROM limits) IS NOT NULL
    ON CONFLICT (resource) DO UPDATE
    -- One clock reading and one token per row, both after the row's lock. The sub-select must mention EXCLUDED: one that
    -- depends on nothing runs once per statement. The TTL goes through seconds: an interval with days follows the
    -- session's time zone.
    SET (acquired_at, expires_at, fencing_token, owner, idempotency_key, released) = (
        SELECT c.now, c.now + make_interval(secs => extract(epoch FROM EXCLUDED.expires_at - EXCLUDED.acquired_at)::float8),
            c.token, EXCLUDED.owner, EXCLUDED.idempotency_key, false
        FROM (SELECT clock_timestamp() AS now, nextval({fencing_tokens}) AS token WHERE EXCLUDED.resource IS NOT NULL) AS c
    )
    WHERE (l.released OR l.expires_at <= clock_timestamp()
            OR (l.owner = EXCLUDED.owner AND (l.idempotency_key = EXCLUDED.idempotency_key) IS NOT TRUE))
        AND ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint <= $6::bigint
            OR (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
                <= (SELECT i.not_after FROM input AS i WHERE i.resource = EXCLUDED.resource))
    RETURNING l.resource, l.acquired_at, l.expires_at, l.fencing_token, clock_timestamp() - l.acquired_at AS stamp_age
)
SELECT j.ordinal,
    CASE
        WHEN w.resource IS NOT NULL OR j.verdict = 'replay' THEN 'granted'
        WHEN j.verdict = 'eligible' THEN 'raced'
        ELSE j.verdict
    END AS verdict,
    coalesce((extract(epoch FROM coalesce(w.acquired_at, j.acquired_at)) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((extract(epoch FROM coalesce(w.expires_at, j.expires_at)) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(w.fencing_token, j.fencing_token, 0) AS fencing_token,
    coalesce((extract(epoch FROM w.stamp_age) * 1000000)::bigint, 0) AS stamp_age_us,
    (extract(epoch FROM c.now) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE j.ordinal > 0) AS c
