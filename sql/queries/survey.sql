-- Where the waiters of a node stand.
--   $1 bigint    the node
-- One row per place that is not merely kept: whether the lock is offered to it, and what is left of the lease before it, 0 if
-- that has ended, in microseconds. Each lock is looked up once, however many wait for it; LIMIT 1 as in
-- look.sql.
SELECT w.resource, p.place, p.attachment,
    coalesce(l.offered_place = p.place AND NOT l.released AND l.expires_at > c.now, false) AS offered,
    CASE WHEN l.released OR l.expires_at <= c.now THEN 0
        ELSE coalesce((date_part('epoch', l.expires_at - c.now) * 1000000)::bigint, 0) END AS left_us
FROM (
    SELECT resource, array_agg(place) AS places, array_agg(attachment) AS attachments
    FROM {schema}.waiters
    WHERE node = $1::bigint AND kept_until IS NULL
    GROUP BY resource
) AS w
LEFT JOIN LATERAL (SELECT * FROM {schema}.distributed_locks AS d WHERE d.resource = w.resource LIMIT 1) AS l ON true
CROSS JOIN LATERAL unnest(w.places, w.attachments) AS p (place, attachment)
CROSS JOIN (SELECT clock_timestamp() AS now) AS c
