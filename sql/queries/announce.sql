-- Tells listening nodes to look at places again. As a statement of its own, after what it tells of was committed: a
-- transaction that notifies holds a lock of the whole instance while it commits.
--   $1 text      channel
--   $2 text[]    payloads, "node place;node place"
--   $3 text[]    resources: on each node the first one who waits for these is told too
-- One row: how many notifications were sent.
WITH payloads AS (
    SELECT p.payload FROM unnest($2::text[]) AS p (payload)
    UNION ALL
    SELECT string_agg(f.node || ' ' || f.place, ';')
    FROM (
        SELECT w.resource, w.node, min(w.place) AS place
        FROM {schema}.waiters AS w
        WHERE w.resource = ANY ((SELECT $3::text[])::text[]) AND w.kept_until IS NULL
        GROUP BY w.resource, w.node
    ) AS f
    GROUP BY f.resource
)
SELECT count(pg_notify($1::text, p.payload)) AS sent FROM payloads AS p
