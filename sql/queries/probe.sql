-- What this session can do, and the time. No parameters. One row.
SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery() AS writable,
    current_setting('transaction_isolation') AS isolation,
    current_setting('server_encoding') AS encoding,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout_ms,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock_us
