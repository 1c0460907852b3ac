-- Where the waiters of a node stand.
--   $1 bigint    the node
-- One row per place that is not merely kept: whether the lock is offered to it, and what is left of the lease before it, 0 if
-- that has ended, in microseconds. LIMIT 1 as in look.sql.
SELECT w.resource, w.place, w.attachment,
    coalesce(l.offered_place = w.place AND NOT l.released AND l.expires_at > c.now, false) AS offered,
    CASE WHEN l.released OR l.expires_at <= c.now THEN 0
        ELSE coalesce((date_part('epoch', l.expires_at - c.now) * 1000000)::bigint, 0) END AS left_us
FROM {schema}.waiters AS w
LEFT JOIN LATERAL (SELECT * FROM {schema}.distributed_locks AS d WHERE d.resource = w.resource LIMIT 1) AS l ON true
CROSS JOIN (SELECT clock_timestamp() AS now) AS c
WHERE w.node = $1::bigint AND w.kept_until IS NULL
