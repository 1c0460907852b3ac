-- Makes each owner the holder of its resource if the lease there has ended or is the owner's own.
--   $1 text[]    resources, sorted by bytes, each once
--   $2 text[]    owners
--   $3 bigint[]  TTLs, whole seconds
--   $4 text[]    idempotency keys, '' for none
--   $5 bigint[]  not_after: the last moment at which the row may be written, microseconds since the epoch by this
--                database's clock
--   $6 bigint    the least of $5
--   $7 text      lock_timeout for this statement
--   $8 boolean[] whether the grant may be given back until somebody else is answered with it; what is missing is not
-- One row per input row: its ordinal, a verdict, and
--   granted  the grant as it is now (also that of a repeated key), how old its stamp was when it was written, and whether
--            somebody waits for it
--   held     the lease of another owner, and that owner as "holder"
--   awaited  waiters are concerned, nothing was done: the lock is free, or merely offered to the owner; or the grant of the
--            repeated key is one that may still be given back
--   busy     the row is locked by somebody else (or was deleted meanwhile): nothing is known, nothing was done
--   late     not_after has passed: nothing was done
--   raced    somebody else wrote the row in between: nothing was done, ask again
-- Lock first, judge after: "judged" reads the clock when the row is ours. Conditions on a row that a statement waited for
-- are evaluated again only if the row changed, while the clock ran on in any case.
-- But what is held by another owner is refused by what was committed when the statement began ("seen"), without the row's
-- lock: who has locked a row waits for the disk at the commit. Only if nobody has locked or is writing the row, or it would be
-- busy: its xmax is empty then, or that of the transaction which wrote this version and had locked the one before. Whose
-- lock has ended meanwhile cannot be told here, with savepoints and shared locks about: that row is locked, and judged as others.
-- "given" hides the parameters from the planner. Arrays whose length it sees tempt it to plan every execution anew, which
-- took longer than the execution (docs/benchmarks/steps.md). Reading any of its columns sets the lock_timeout first.
-- date_part, not extract: double precision is exact to the microsecond until the year 2106, and far cheaper than numeric.
WITH given AS MATERIALIZED (
    SELECT $1::text[] AS resources, $2::text[] AS owners, $3::bigint[] AS ttls, $4::text[] AS keys, $5::bigint[] AS limits,
        $8::boolean[] AS returnable, to_timestamp($6::bigint / 1000000.0::float8) AS least_not_after,
        set_config('lock_timeout', $7::text, true)
), input AS MATERIALIZED (
    SELECT i.ordinal, i.resource, i.owner, i.ttl, nullif(i.key, '') AS key,
        to_timestamp(i.not_after / 1000000.0::float8) AS not_after, CASE WHEN i.is_returnable THEN 0::bigint END AS in_delivery
    FROM given AS g
    CROSS JOIN LATERAL unnest(g.resources, g.owners, g.ttls, g.keys, g.limits, g.returnable)
        WITH ORDINALITY AS i (resource, owner, ttl, key, not_after, is_returnable, ordinal)
), seen AS MATERIALIZED (
    SELECT i.*, l.owner AS holder, l.acquired_at, l.expires_at, l.fencing_token, l.places, l.resource IS NOT NULL AS is_there,
        NOT l.released AND l.expires_at > clock_timestamp() AND l.owner <> i.owner AND (l.xmax = '0'::xid OR l.xmax = l.xmin)
            AS is_refused
    FROM input AS i
    LEFT JOIN LATERAL (SELECT d.*, d.xmin, d.xmax FROM {schema}.distributed_locks AS d
        WHERE d.resource = i.resource LIMIT 1) AS l ON true
), locked AS MATERIALIZED (
    SELECT resource, owner, acquired_at, expires_at, released, fencing_token, idempotency_key, places, in_delivery,
        offered_place
    FROM {schema}.distributed_locks
    WHERE resource = ANY (ARRAY(SELECT s.resource FROM seen AS s WHERE s.is_there AND NOT s.is_refused))
    ORDER BY resource
    FOR UPDATE {skip_locked}
), judged AS MATERIALIZED (
    SELECT s.ordinal, s.resource, s.owner, s.ttl, s.key, s.not_after, s.in_delivery, coalesce(l.owner, s.holder) AS holder,
        coalesce(l.acquired_at, s.acquired_at) AS acquired_at, coalesce(l.expires_at, s.expires_at) AS expires_at,
        coalesce(l.fencing_token, s.fencing_token) AS fencing_token, coalesce(l.places, s.places) AS places,
        CASE
            WHEN s.is_refused THEN 'held'
            WHEN l.resource IS NULL AND s.is_there THEN 'busy'
            WHEN NOT l.released AND l.expires_at > c.now AND l.owner = s.owner AND l.idempotency_key = s.key
                THEN CASE WHEN l.in_delivery IS NOT NULL THEN 'awaited' ELSE 'replay' END
            WHEN NOT l.released AND l.expires_at > c.now AND l.owner <> s.owner THEN 'held'
            WHEN l.places > 0 AND (l.released OR l.expires_at <= c.now OR l.offered_place IS NOT NULL) THEN 'awaited'
            WHEN c.now > s.not_after THEN 'late'
            ELSE 'eligible'
        END AS verdict
    FROM seen AS s
    LEFT JOIN locked AS l ON l.resource = s.resource
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE s.ordinal > 0) AS c
), written AS (
    INSERT INTO {schema}.distributed_locks AS l
        (resource, owner, acquired_at, expires_at, fencing_token, idempotency_key, in_delivery)
    SELECT j.resource, j.owner, c.now, c.now + make_interval(secs => j.ttl), nextval({fencing_tokens}), j.key, j.in_delivery
    FROM (SELECT * FROM judged WHERE verdict = 'eligible' ORDER BY ordinal) AS j
    CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE j.ordinal > 0) AS c
    ON CONFLICT (resource) DO UPDATE
    -- One clock reading and one token per row, both after the row's lock. The sub-select must mention EXCLUDED: one that
    -- depends on nothing runs once per statement. The TTL goes through seconds: an interval with days follows the
    -- session's time zone.
    SET (acquired_at, expires_at, fencing_token, owner, idempotency_key, released, in_delivery, offered_place) = (
        SELECT c.now, c.now + make_interval(secs => date_part('epoch', EXCLUDED.expires_at - EXCLUDED.acquired_at)),
            c.token, EXCLUDED.owner, EXCLUDED.idempotency_key, false, EXCLUDED.in_delivery, NULL::bigint
        FROM (SELECT clock_timestamp() AS now, nextval({fencing_tokens}) AS token WHERE EXCLUDED.resource IS NOT NULL) AS c
    )
    -- Their number is on the row, so it is seen as it is now; the places themselves would be those of the snapshot.
    WHERE CASE
            WHEN l.released OR l.expires_at <= clock_timestamp() THEN l.places = 0
            WHEN l.owner <> EXCLUDED.owner OR l.places > 0 AND l.offered_place IS NOT NULL THEN false
            ELSE (l.idempotency_key = EXCLUDED.idempotency_key) IS NOT TRUE
        END
        AND (clock_timestamp() <= (SELECT least_not_after FROM given)
            OR clock_timestamp() <= (SELECT i.not_after FROM input AS i WHERE i.resource = EXCLUDED.resource))
    RETURNING l.resource, l.acquired_at, l.expires_at, l.fencing_token, l.places,
        clock_timestamp() - l.acquired_at AS stamp_age
)
SELECT j.ordinal,
    CASE
        WHEN w.resource IS NOT NULL OR j.verdict = 'replay' THEN 'granted'
        WHEN j.verdict = 'eligible' THEN 'raced'
        ELSE j.verdict
    END AS verdict,
    CASE WHEN j.verdict = 'held' THEN j.holder ELSE '' END AS holder,
    coalesce((date_part('epoch', coalesce(w.acquired_at, j.acquired_at)) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((date_part('epoch', coalesce(w.expires_at, j.expires_at)) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(w.fencing_token, j.fencing_token, 0) AS fencing_token,
    (coalesce(w.places, j.places, 0) > 0)::integer AS is_awaited,
    coalesce((date_part('epoch', w.stamp_age) * 1000000)::bigint, 0) AS stamp_age_us,
    (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS clock_us
FROM judged AS j
LEFT JOIN written AS w ON w.resource = j.resource
