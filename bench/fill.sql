-- Fills a table of Holdfast with ended leases named bench:0, bench:1 … and with held ones named held:0 …
--   :schema   the schema of the table
--   :ended    how many ended leases
--   :held     how many held ones
INSERT INTO :"schema".distributed_locks (resource, owner, fencing_token, acquired_at, expires_at, released)
SELECT 'bench:' || n, 'nobody', nextval(format('%I.fencing_tokens', :'schema')), now() - interval '30 s', now(), true
FROM generate_series(0, :ended - 1) AS n;
INSERT INTO :"schema".distributed_locks (resource, owner, fencing_token, acquired_at, expires_at)
SELECT 'held:' || n, 'somebody', nextval(format('%I.fencing_tokens', :'schema')), now(), now() + interval '1 day'
FROM generate_series(0, :held - 1) AS n;
VACUUM (FREEZE, ANALYZE) :"schema".distributed_locks;
