-- What this session can do, and the time. No parameters. One row. "outgrown" says that the table has at least doubled since
-- its statistics were taken: prepared plans made for a small table read all of it, until an ANALYZE makes them anew.
SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery()
        AND has_table_privilege({table}, 'INSERT') AND has_table_privilege({table}, 'UPDATE') AS writable,
    current_setting('transaction_isolation') AS isolation,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout_ms,
    pg_relation_size({table}) / current_setting('block_size')::bigint
        > 2 * greatest((SELECT relpages FROM pg_class WHERE oid = {table}::regclass), 16) AS outgrown,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us
