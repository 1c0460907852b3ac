-- pgbench: only the first statement of the pair, for its latency. The lease is so short that the next visitor finds it
-- ended, as after a release.
\set name random(0, :names - 1)
INSERT INTO single_statement.locks AS l (resource, owner, fencing_token, acquired_at, expires_at)
VALUES ('bench:' || :name, 'client-' || :client_id, nextval('single_statement.fencing_tokens'),
    clock_timestamp(), clock_timestamp() + interval '10 us')
ON CONFLICT (resource) DO UPDATE
SET owner = EXCLUDED.owner, fencing_token = nextval('single_statement.fencing_tokens'),
    acquired_at = clock_timestamp(), expires_at = clock_timestamp() + interval '10 us'
WHERE l.expires_at <= clock_timestamp()
RETURNING fencing_token, acquired_at, expires_at;
