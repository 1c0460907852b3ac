-- Makes this run of a node known. No parameters. One row: its number.
INSERT INTO {schema}.nodes (node, beat_at)
VALUES (nextval({node_numbers}), clock_timestamp())
RETURNING node
