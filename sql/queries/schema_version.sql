-- The version of the schema. No parameters. One row; 0 before the first migration.
SELECT coalesce(max(version), 0) AS version
FROM {schema}.schema_migrations
