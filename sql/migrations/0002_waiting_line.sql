-- The waiting line: who stands in the queue for which lock, and which nodes live. The protocol is told in
-- include/holdfast/store/wait_queue.hpp. Whoever changes a place has locked the lock's row before.

ALTER TABLE {schema}.distributed_locks
    -- How many places there are for this resource: its rows in waiters. The fast statements keep off the row where that
    -- matters.
    ADD COLUMN places bigint NOT NULL DEFAULT 0,
    -- The lease was granted to a request that waits, or would have, and nobody but its node has answered with it: the
    -- attachment of the place that was granted it at once, else 0.
    ADD COLUMN in_delivery bigint,
    -- The lease is an offer to this place, not yet confirmed.
    ADD COLUMN offered_place bigint;

-- Drawn while the lock's row is locked: the order of arrival. CACHE 1: a session that kept numbers in store would hand out
-- old ones later.
CREATE SEQUENCE {schema}.places AS bigint MINVALUE 1 NO CYCLE CACHE 1;
CREATE SEQUENCE {schema}.attachments AS bigint MINVALUE 1 NO CYCLE CACHE 1;
CREATE SEQUENCE {schema}.node_numbers AS bigint MINVALUE 1 NO CYCLE CACHE 1;

-- One row per run of a node. Written every second: many rows' room on a page keeps the updates inside it.
CREATE TABLE {schema}.nodes (
    node bigint PRIMARY KEY,
    beat_at timestamptz NOT NULL
) WITH (
    fillfactor = 10,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = false
);

-- No foreign keys: they would lock rows in an order of their own.
CREATE TABLE {schema}.waiters (
    place bigint NOT NULL,
    node bigint NOT NULL,
    -- Which request of the owner stands here; drawn anew by each.
    attachment bigint NOT NULL,
    -- Nothing while a request is attached.
    kept_until timestamptz,
    -- What the request asked for: with these it can be granted the lock by whoever gives it back on the same node.
    ttl_seconds bigint NOT NULL,
    idempotency_key {schema}.idempotency_key,
    resource {schema}.name NOT NULL,
    owner {schema}.name NOT NULL,
    PRIMARY KEY (resource, place),
    UNIQUE (resource, owner)
) WITH (
    fillfactor = 70,
    -- Rows come and go with every wait.
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = false
);

CREATE INDEX waiters_by_node ON {schema}.waiters (node);
