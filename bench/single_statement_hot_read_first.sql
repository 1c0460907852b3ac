-- pgbench: the same, but a plain read comes first within the statement and refuses without touching the row when its
-- snapshot shows a live lease. An upsert that refuses has locked the row, and so has to wait, and to flush its commit.
WITH granted AS (
    INSERT INTO single_statement.locks AS l (resource, owner, fencing_token, acquired_at, expires_at)
    SELECT 'hot', 'client-' || :client_id, nextval('single_statement.fencing_tokens'),
        clock_timestamp(), clock_timestamp() + interval '30 s'
    WHERE NOT EXISTS (
        SELECT FROM single_statement.locks AS held WHERE held.resource = 'hot' AND held.expires_at > clock_timestamp()
    )
    ON CONFLICT (resource) DO UPDATE
    SET owner = EXCLUDED.owner, fencing_token = nextval('single_statement.fencing_tokens'),
        acquired_at = clock_timestamp(), expires_at = clock_timestamp() + interval '30 s'
    WHERE l.expires_at <= clock_timestamp()
    RETURNING fencing_token
)
SELECT count(*) AS grants FROM granted \gset
\if :grants
UPDATE single_statement.locks
SET expires_at = clock_timestamp()
WHERE resource = 'hot' AND owner = 'client-' || :client_id AND expires_at > clock_timestamp()
RETURNING fencing_token;
\endif
