-- pgbench: take a random lock and give it back, each with one statement that commits by itself, as a client would that
-- works between the two.
\set name random(0, :names - 1)
INSERT INTO single_statement.locks AS l (resource, owner, fencing_token, acquired_at, expires_at)
VALUES ('bench:' || :name, 'client-' || :client_id, nextval('single_statement.fencing_tokens'),
    clock_timestamp(), clock_timestamp() + interval '30 s')
ON CONFLICT (resource) DO UPDATE
SET owner = EXCLUDED.owner, fencing_token = nextval('single_statement.fencing_tokens'),
    acquired_at = clock_timestamp(), expires_at = clock_timestamp() + interval '30 s'
WHERE l.expires_at <= clock_timestamp()
RETURNING fencing_token, acquired_at, expires_at;
UPDATE single_statement.locks
SET expires_at = clock_timestamp()
WHERE resource = 'bench:' || :name AND owner = 'client-' || :client_id AND expires_at > clock_timestamp()
RETURNING fencing_token;
