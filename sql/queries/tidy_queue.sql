-- Removes what nobody else comes by: places that were kept too long or whose node is dead, of resources that nobody asks
-- for, and nodes that died long ago and have no places left. Skips what somebody has locked.
--   $1 bigint    how many resources at most
-- One row: how many resources were looked at, how many nodes went, and whom it concerns, as in run_queue.
WITH stale AS MATERIALIZED (
    SELECT DISTINCT w.resource
    FROM {schema}.waiters AS w
    LEFT JOIN {schema}.nodes AS n ON n.node = w.node
    WHERE w.kept_until < clock_timestamp() - interval '5 s'
        OR (w.kept_until IS NULL AND coalesce(n.beat_at, '-infinity') < clock_timestamp() - interval '15 s')
    ORDER BY w.resource
    LIMIT $1::bigint
), given AS MATERIALIZED (
    SELECT coalesce(array_agg(s.resource ORDER BY s.resource), '{}') AS resources, count(*)::integer AS number FROM stale AS s
), tidied AS MATERIALIZED (
    SELECT r.*
    FROM given AS g
    CROSS JOIN LATERAL {schema}.run_queue(array_fill('tidy'::text, ARRAY[g.number]), g.resources,
        array_fill(''::text, ARRAY[g.number]), array_fill(0::bigint, ARRAY[g.number]), array_fill(''::text, ARRAY[g.number]),
        array_fill(-1::bigint, ARRAY[g.number]), array_fill(0::bigint, ARRAY[g.number]),
        array_fill(0::bigint, ARRAY[g.number]), array_fill(-1::bigint, ARRAY[g.number]),
        array_fill(9000000000000000::bigint, ARRAY[g.number]), 0, true, '50ms') AS r
    WHERE g.number > 0
), gone AS (
    DELETE FROM {schema}.nodes
    WHERE node = ANY (ARRAY(
        SELECT n.node FROM {schema}.nodes AS n
        WHERE n.beat_at < clock_timestamp() - interval '60 s'
            AND NOT EXISTS (SELECT FROM {schema}.waiters AS w WHERE w.node = n.node)
        FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT (SELECT count(*) FROM tidied) AS resources, (SELECT count(*) FROM gone) AS nodes,
    coalesce((SELECT string_agg(t.out_wakes, '') FROM tidied AS t), '') AS wakes
