-- Says that a node lives, and lets its own listener hear it. Nothing in it is worth waiting for the disk.
--   $1 bigint    the node
--   $2 text      channel
-- One row: the notification.
WITH quick AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true) AS quick
), beat AS (
    INSERT INTO {schema}.nodes (node, beat_at)
    SELECT $1::bigint, clock_timestamp() FROM quick WHERE quick.quick IS NOT NULL
    ON CONFLICT (node) DO UPDATE SET beat_at = clock_timestamp()
    RETURNING node
)
SELECT pg_notify($2::text, beat.node || ' 0') FROM beat
