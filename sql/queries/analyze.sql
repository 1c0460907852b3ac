-- Takes the table's statistics anew, which also makes every session plan its statements anew. No parameters, no rows.
-- Autovacuum does the same, but sleeps for a minute between its rounds (its default).
ANALYZE {schema}.distributed_locks
