-- Moves the token sequence beyond every token that a forgotten grant may have had. Run once after a restore.
--   $1 bigint    how far
-- One row: the greatest token remembered before, and the least that will be granted from now on.
WITH remembered AS MATERIALIZED (
    SELECT greatest((SELECT last_value FROM {schema}.fencing_tokens),
        (SELECT max(fencing_token) FROM {schema}.distributed_locks)) AS token
)
SELECT token AS previous_token, setval({fencing_tokens}, token + $1::bigint, false) AS next_token
FROM remembered
