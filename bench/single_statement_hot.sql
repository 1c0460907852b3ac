-- pgbench: all clients want the same lock. Who gets it gives it back; who is refused asks again. The count makes a row
-- also of a refusal, which \gset needs.
WITH granted AS (
    INSERT INTO single_statement.locks AS l (resource, owner, fencing_token, acquired_at, expires_at)
    VALUES ('hot', 'client-' || :client_id, nextval('single_statement.fencing_tokens'),
        clock_timestamp(), clock_timestamp() + interval '30 s')
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
