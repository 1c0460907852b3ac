-- Says that a node lives, and lets its own listener hear it.
--   $1 bigint    the node
--   $2 text      channel
-- One row: the notification.
WITH beat AS (
    INSERT INTO {schema}.nodes (node, beat_at)
    SELECT $1::bigint, clock_timestamp()
    ON CONFLICT (node) DO UPDATE SET beat_at = clock_timestamp()
    RETURNING node
)
SELECT pg_notify($2::text, beat.node || ' 0') FROM beat
