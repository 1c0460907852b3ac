-- Who holds each resource. Changes nothing, waits for nobody.
--   $1 text[]    resources, in any order, repetitions allowed
-- One row per input row: found, not_found or ended, the lease, the clock, and whether the session is read-only: a standby's
-- "not found" could be old news. "ended" while the statement ran: perhaps renewed since its snapshot, so ask again.
-- LIMIT 1 leaves the planner only the way by name. A plain join it may also answer by reading the whole table once, and does
-- where the statistics count no rows: taken during a long load, or before an emptied table was filled again.
SELECT i.ordinal,
    CASE
        WHEN l.resource IS NULL THEN 'not_found'
        WHEN l.expires_at <= c.now THEN 'ended'
        ELSE 'found'
    END AS verdict,
    coalesce(l.owner, '') AS owner,
    coalesce((date_part('epoch', l.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((date_part('epoch', l.expires_at) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(l.fencing_token, 0) AS fencing_token,
    (date_part('epoch', c.now) * 1000000)::bigint AS clock_us,
    current_setting('transaction_read_only') AS read_only
FROM unnest((SELECT $1::text[])) WITH ORDINALITY AS i (resource, ordinal)
CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
LEFT JOIN LATERAL (
    SELECT * FROM {schema}.distributed_locks AS d
    WHERE d.resource = i.resource AND NOT d.released AND d.expires_at > statement_timestamp()
    LIMIT 1
) AS l ON true
