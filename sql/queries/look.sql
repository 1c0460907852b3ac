-- Who holds each resource. Changes nothing, waits for nobody.
--   $1 text[]    resources, in any order, repetitions allowed
-- One row per input row: its ordinal, the verdict found or not_found, the lease when found, the clock, and whether the
-- session is read-only: on a standby "not found" could be old news.
SELECT i.ordinal,
    CASE WHEN l.resource IS NULL THEN 'not_found' ELSE 'found' END AS verdict,
    coalesce(l.owner, '') AS owner,
    coalesce((extract(epoch FROM l.acquired_at) * 1000000)::bigint, 0) AS acquired_at_us,
    coalesce((extract(epoch FROM l.expires_at) * 1000000)::bigint, 0) AS expires_at_us,
    coalesce(l.fencing_token, 0) AS fencing_token,
    (extract(epoch FROM c.now) * 1000000)::bigint AS clock_us,
    current_setting('transaction_read_only') AS read_only
FROM unnest($1::text[]) WITH ORDINALITY AS i (resource, ordinal)
CROSS JOIN LATERAL (SELECT clock_timestamp() AS now WHERE i.ordinal > 0) AS c
LEFT JOIN {schema}.distributed_locks AS l
    ON l.resource = i.resource AND NOT l.released AND l.expires_at > c.now
