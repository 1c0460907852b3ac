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

-- Works commands on waiting lines off, in their order. A function, since each statement of a function that is VOLATILE sees
-- what was committed before it began: the rows of the locks are locked first, and whatever is read afterwards is younger
-- than the lock. One statement that locks and reads places would read them as they were before it waited. To the caller it
-- is one statement, one transaction and one round trip.
--   kinds         stand, claim, withdraw, leave, hand_over, release, give_back or tidy
--   resources     sorted by bytes; those with the same resource follow each other
--   owners        of stand, claim, leave, release, give_back; '' else
--   ttls          of stand and claim, whole seconds
--   keys          idempotency keys of stand and claim, '' for none
--   nodes         where a stand waits, -1 if it does not; with hand_over, release and give_back the node that asks: if the
--                 first waiter stands there, its client is connected, and it is granted the lock at once
--   places, attachments   of claim and withdraw
--   tokens        that must be the current ones at a release, -1 for any
--   limits        not_after, as in queries/acquire.sql
--   places_max    how many places a resource may have
--   skip_locked   whether to leave rows that are locked alone, else waits for them
--   lock_wait     lock_timeout
-- One row per command: its ordinal, a verdict (below), the lease as it is then, the clock, the place, its attachment and
-- its position, whom the command concerns beside the one who asks, as "node place;node place;", and the place that was
-- granted the lock at once (0: none), with its attachment and its owner: the lease is its then.
--   stand      granted, standing, refused, full
--   claim      granted, not_offered, kept, gone
--   withdraw   kept, gone
--   leave      left, not_found
--   hand_over  held, free; tidy the same, and removes what is no place any more even while the lock is held
--   release, give_back   released, not_found, forbidden
--   all        busy: the row is locked by somebody else; late: not_after has passed; in both cases nothing was done
-- Plans must not depend on how full the tables were when a session planned: hence the settings.
CREATE FUNCTION {schema}.run_queue(kinds text[], resources text[], owners text[], ttls bigint[], keys text[],
    nodes bigint[], places bigint[], attachments bigint[], tokens bigint[], limits bigint[],
    places_max bigint, skip_locked boolean, lock_wait text)
RETURNS TABLE (out_ordinal bigint, out_verdict text, out_acquired_at timestamptz, out_expires_at timestamptz,
    out_token bigint, out_clock timestamptz, out_place bigint, out_attachment bigint, out_position bigint, out_wakes text,
    out_handed_place bigint, out_handed_attachment bigint, out_handed_owner text)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $run_queue$
#variable_conflict use_column
DECLARE
    offer_length CONSTANT interval := '2 s';
    kept_for CONSTANT interval := '5 s';
    dead_after CONSTANT interval := '3 s';
    -- The command at hand.
    its_kind text;
    its_resource text COLLATE "C";
    its_owner text COLLATE "C";
    its_node bigint;
    its_key text COLLATE "C";
    locked {schema}.distributed_locks[];        -- The locks that are ours, by resource.
    next_locked integer := 1;
    lease {schema}.distributed_locks%ROWTYPE;   -- As it will be written when the resource's last command is done.
    before {schema}.distributed_locks%ROWTYPE;
    is_there boolean;
    is_ours boolean;
    clock timestamptz;
    is_live boolean;
    settles boolean;                            -- If nobody holds the lock then, it goes to the first living waiter.
    mine {schema}.waiters%ROWTYPE;
    first {schema}.waiters%ROWTYPE;
    first_lives boolean;
    ends_offer boolean;
    removed bigint;                             -- How many places were none any more.
    silent_node bigint;                         -- It has let an offer pass, and has not beaten since that was made.
BEGIN
    -- Each statement in here costs what a look-up in an index does; an expression without a table next to nothing.
    lock_wait := set_config('lock_timeout', lock_wait, true);
    IF skip_locked THEN
        locked := ARRAY(SELECT l FROM {schema}.distributed_locks AS l WHERE l.resource = ANY (resources)
            ORDER BY l.resource FOR UPDATE SKIP LOCKED);
    ELSE
        locked := ARRAY(SELECT l FROM {schema}.distributed_locks AS l WHERE l.resource = ANY (resources)
            ORDER BY l.resource FOR UPDATE);
    END IF;

    -- A lock that nobody held lately has no row yet: an ended one will do. In order, as everybody inserts.
    IF cardinality(locked) < cardinality(resources) AND 'stand' = ANY (kinds) THEN
        INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, released, fencing_token)
        SELECT DISTINCT ON (g.resource COLLATE "C") g.resource, g.owner, clock_timestamp(), clock_timestamp(), true,
            nextval({fencing_tokens})
        FROM unnest(kinds, resources, owners) AS g (kind, resource, owner)
        WHERE g.kind = 'stand'
            AND NOT EXISTS (SELECT FROM {schema}.distributed_locks AS l WHERE l.resource = g.resource)
        ORDER BY g.resource COLLATE "C"
        ON CONFLICT (resource) DO NOTHING;
        locked := ARRAY(SELECT l FROM {schema}.distributed_locks AS l WHERE l.resource = ANY (resources)
            ORDER BY l.resource FOR UPDATE SKIP LOCKED);
    END IF;

    FOR i IN 1 .. cardinality(kinds) LOOP
        its_kind := kinds[i];
        its_resource := resources[i];
        its_owner := owners[i];
        its_node := nodes[i];
        its_key := nullif(keys[i], '');
        IF resources[i - 1] IS DISTINCT FROM its_resource THEN
            WHILE (locked[next_locked]).resource < its_resource LOOP
                next_locked := next_locked + 1;
            END LOOP;
            lease := locked[next_locked];
            is_ours := lease.resource IS NOT DISTINCT FROM its_resource;
            is_there := is_ours;
            IF NOT is_ours THEN
                lease := NULL;
                is_there := EXISTS (SELECT FROM {schema}.distributed_locks AS l WHERE l.resource = its_resource);
            END IF;
            before := lease;
        END IF;

        clock := clock_timestamp();
        out_ordinal := i;
        out_place := 0;
        out_attachment := 0;
        out_position := 0;
        out_wakes := '';
        out_handed_place := 0;
        out_handed_attachment := 0;
        out_handed_owner := '';
        mine := NULL;
        settles := false;
        ends_offer := false;
        is_live := is_ours AND NOT lease.released AND lease.expires_at > clock;

        -- What the command does before the lock is handed over, or instead of that.
        IF clock > to_timestamp(limits[i] / 1000000.0::float8) THEN
            out_verdict := 'late';
        ELSIF is_there AND NOT is_ours OR its_kind = 'stand' AND NOT is_there THEN
            out_verdict := 'busy';
        ELSIF NOT is_there THEN
            out_verdict := CASE its_kind WHEN 'claim' THEN 'gone' WHEN 'withdraw' THEN 'gone' WHEN 'hand_over' THEN 'free'
                ELSE 'not_found' END;

        ELSIF its_kind = 'stand' THEN
            IF lease.places > 0 THEN
                SELECT * INTO mine FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.owner = its_owner;
                -- Kept too long, or its node died too long ago: a place no more.
                IF mine.kept_until <= clock OR mine.place IS NOT NULL AND mine.kept_until IS NULL AND NOT EXISTS (
                        SELECT FROM {schema}.nodes AS n
                        WHERE n.node = mine.node AND n.beat_at > clock - dead_after - kept_for) THEN
                    DELETE FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.place = mine.place;
                    mine := NULL;
                    lease.places := lease.places - 1;
                END IF;
            END IF;
            IF is_live AND lease.owner = its_owner AND lease.idempotency_key = its_key THEN
                out_verdict := 'granted';
                -- From now on more than one answer has told of this grant: nobody may give it back.
                lease.in_delivery := NULL;
            ELSIF is_live AND lease.owner = its_owner AND lease.offered_place = mine.place THEN
                out_verdict := 'confirmed';
            ELSIF is_live AND lease.owner = its_owner THEN
                out_verdict := 'granted anew';
            ELSE
                out_verdict := 'standing';
                settles := true;
            END IF;

        ELSIF its_kind = 'claim' THEN
            SELECT * INTO mine FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.place = places[i];
            IF mine.place IS NOT NULL AND mine.attachment = attachments[i] THEN
                out_verdict := CASE WHEN mine.kept_until IS NOT NULL THEN 'kept'
                    WHEN is_live AND lease.offered_place = mine.place AND lease.owner = its_owner THEN 'confirmed'
                    ELSE 'not_offered' END;
            ELSIF is_live AND lease.offered_place IS NULL AND lease.owner = its_owner
                    AND (lease.idempotency_key = its_key OR lease.in_delivery = attachments[i]) THEN
                out_verdict := 'granted';
                lease.in_delivery := NULL;
                mine := NULL;
            ELSE
                out_verdict := 'gone';
            END IF;

        ELSIF its_kind = 'withdraw' THEN
            UPDATE {schema}.waiters AS w SET kept_until = clock + kept_for
            WHERE w.resource = its_resource AND w.place = places[i] AND w.attachment = attachments[i]
            RETURNING * INTO mine;
            out_verdict := CASE WHEN mine.place IS NULL THEN 'gone' ELSE 'kept' END;
            settles := mine.place IS NOT NULL;
            ends_offer := is_live AND lease.offered_place = mine.place;

        ELSIF its_kind = 'leave' THEN
            DELETE FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.owner = its_owner
            RETURNING * INTO mine;
            out_verdict := CASE WHEN mine.place IS NULL OR mine.kept_until <= clock THEN 'not_found' ELSE 'left' END;
            settles := mine.place IS NOT NULL;
            lease.places := lease.places - settles::integer;
            ends_offer := is_live AND lease.offered_place = mine.place;
            IF mine.place IS NOT NULL AND mine.kept_until IS NULL THEN
                out_wakes := mine.node || ' ' || mine.place || ';';
            END IF;

        ELSIF its_kind IN ('hand_over', 'tidy') THEN
            out_verdict := 'held';
            settles := true;
            IF its_kind = 'tidy' THEN
                DELETE FROM {schema}.waiters AS w
                WHERE w.resource = its_resource
                    AND (w.kept_until <= clock OR w.kept_until IS NULL AND NOT EXISTS (
                        SELECT FROM {schema}.nodes AS n
                        WHERE n.node = w.node AND n.beat_at > clock - dead_after - kept_for));
                lease.places := (SELECT count(*) FROM {schema}.waiters AS w WHERE w.resource = its_resource);
            END IF;

        ELSIF NOT is_live OR lease.offered_place IS NOT NULL AND lease.owner = its_owner THEN
            -- An offer that was not confirmed is no lock of its owner yet.
            out_verdict := 'not_found';
            settles := NOT is_live;
        ELSIF lease.owner <> its_owner OR tokens[i] >= 0 AND tokens[i] <> lease.fencing_token
                OR its_kind = 'give_back' AND lease.in_delivery IS NULL THEN
            out_verdict := 'forbidden';
        ELSE
            out_verdict := 'released';
            settles := true;
        END IF;

        IF ends_offer OR out_verdict = 'released' THEN
            lease.expires_at := clock;
            lease.released := true;
            lease.offered_place := NULL;
            lease.in_delivery := NULL;
            lease.idempotency_key := NULL;
            is_live := false;
        END IF;

        -- Nobody holds the lock: it goes to the first living waiter, or to the asker if that one stands nearer.
        IF settles AND NOT is_live THEN
            first := NULL;
            silent_node := NULL;
            IF lease.places > 0 THEN
                IF lease.offered_place IS NOT NULL THEN
                    -- An offer that nobody confirmed: its place keeps its order only, until it is asked for again.
                    UPDATE {schema}.waiters AS w SET kept_until = clock + kept_for
                    WHERE w.resource = its_resource AND w.place = lease.offered_place AND w.kept_until IS NULL
                    RETURNING w.node, w.place INTO first.node, first.place;
                    IF FOUND THEN
                        out_wakes := out_wakes || first.node || ' ' || first.place || ';';
                        silent_node := (SELECT n.node FROM {schema}.nodes AS n
                            WHERE n.node = first.node AND n.beat_at < lease.acquired_at);
                    END IF;
                    lease.offered_place := NULL;
                END IF;
                SELECT w.place, w.node, w.attachment, w.owner, w.ttl_seconds, w.idempotency_key,
                    w.kept_until IS NULL AND n.node IS NOT NULL
                INTO first.place, first.node, first.attachment, first.owner, first.ttl_seconds, first.idempotency_key,
                    first_lives
                FROM {schema}.waiters AS w
                LEFT JOIN {schema}.nodes AS n
                    ON n.node = w.node AND n.beat_at > clock - dead_after AND n.node IS DISTINCT FROM silent_node
                WHERE w.resource = its_resource
                ORDER BY w.place
                LIMIT 1;
                IF first_lives IS NOT TRUE THEN
                    SELECT w.* INTO first
                    FROM {schema}.waiters AS w
                    JOIN {schema}.nodes AS n
                        ON n.node = w.node AND n.beat_at > clock - dead_after AND n.node IS DISTINCT FROM silent_node
                    WHERE w.resource = its_resource AND w.kept_until IS NULL
                    ORDER BY w.place
                    LIMIT 1;
                    -- Places that are none any more, as far as they were in the way.
                    DELETE FROM {schema}.waiters AS w
                    WHERE w.resource = its_resource AND w.place < coalesce(first.place, 9223372036854775807)
                        AND w.place IS DISTINCT FROM mine.place
                        AND (w.kept_until <= clock OR w.kept_until IS NULL AND NOT EXISTS (
                            SELECT FROM {schema}.nodes AS n
                            WHERE n.node = w.node AND n.beat_at > clock - dead_after - kept_for));
                    GET DIAGNOSTICS removed = ROW_COUNT;
                    -- Where nobody lives the number is taken anew, so that it cannot keep the lock from those who come.
                    lease.places := CASE WHEN first.place IS NOT NULL THEN lease.places - removed
                        ELSE (SELECT count(*) FROM {schema}.waiters AS w WHERE w.resource = its_resource) END;
                END IF;
            END IF;
            IF out_verdict = 'standing' AND (first.place IS NULL OR first.place >= mine.place) THEN
                out_verdict := 'granted anew';
            ELSIF first.place IS NOT NULL THEN
                lease.owner := first.owner;
                lease.acquired_at := clock;
                lease.fencing_token := nextval({fencing_tokens});
                lease.released := false;
                is_live := true;
                IF first.node = its_node AND its_kind <> 'stand' THEN
                    lease.expires_at := clock + make_interval(secs => first.ttl_seconds);
                    lease.idempotency_key := first.idempotency_key;
                    lease.in_delivery := first.attachment;
                    lease.offered_place := NULL;
                    DELETE FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.place = first.place;
                    lease.places := lease.places - 1;
                    out_handed_place := first.place;
                    out_handed_attachment := first.attachment;
                    out_handed_owner := first.owner;
                ELSE
                    lease.expires_at := clock + offer_length;
                    lease.idempotency_key := NULL;
                    lease.in_delivery := NULL;
                    lease.offered_place := first.place;
                    out_wakes := out_wakes || first.node || ' ' || first.place || ';';
                END IF;
            END IF;
        END IF;

        IF out_verdict IN ('confirmed', 'granted anew') THEN
            IF out_verdict = 'granted anew' THEN
                lease.fencing_token := nextval({fencing_tokens});
            END IF;
            lease.owner := its_owner;
            lease.acquired_at := clock;
            lease.expires_at := clock + make_interval(secs => ttls[i]);
            lease.idempotency_key := its_key;
            lease.released := false;
            -- No attachment: the claim that is answered here is not answered twice.
            lease.in_delivery := CASE WHEN its_kind = 'claim' OR its_node >= 0 THEN 0 END;
            lease.offered_place := NULL;
            is_live := true;
            out_verdict := 'granted';
            IF mine.place IS NOT NULL THEN
                DELETE FROM {schema}.waiters AS w WHERE w.resource = its_resource AND w.place = mine.place;
                lease.places := lease.places - 1;
            END IF;
            IF its_kind = 'stand' AND (mine.place IS NOT NULL OR lease.places > 0) THEN
                -- The owner's older request is over, and for the others the end of the lease has moved.
                IF mine.kept_until IS NULL AND mine.place IS NOT NULL THEN
                    out_wakes := out_wakes || mine.node || ' ' || mine.place || ';';
                END IF;
                out_wakes := out_wakes || coalesce((
                    SELECT string_agg(f.node || ' ' || f.place || ';', '')
                    FROM (SELECT w.node, min(w.place) AS place FROM {schema}.waiters AS w
                        WHERE w.resource = its_resource AND w.kept_until IS NULL GROUP BY w.node) AS f), '');
            END IF;

        ELSIF out_verdict = 'standing' AND its_node < 0 THEN
            out_verdict := 'refused';
        ELSIF out_verdict = 'standing' AND mine.place IS NOT NULL THEN
            IF mine.kept_until IS NULL THEN
                out_wakes := out_wakes || mine.node || ' ' || mine.place || ';';
            END IF;
            UPDATE {schema}.waiters AS w
            SET node = its_node, attachment = nextval({attachments}), kept_until = NULL, ttl_seconds = ttls[i],
                idempotency_key = its_key
            WHERE w.resource = its_resource AND w.place = mine.place
            RETURNING * INTO mine;
        ELSIF out_verdict = 'standing' THEN
            IF lease.places >= places_max THEN
                DELETE FROM {schema}.waiters AS w
                WHERE w.resource = its_resource
                    AND (w.kept_until <= clock OR w.kept_until IS NULL AND NOT EXISTS (
                        SELECT FROM {schema}.nodes AS n
                        WHERE n.node = w.node AND n.beat_at > clock - dead_after - kept_for));
                lease.places := (SELECT count(*) FROM {schema}.waiters AS w WHERE w.resource = its_resource);
            END IF;
            IF lease.places >= places_max THEN
                out_verdict := 'full';
            ELSE
                INSERT INTO {schema}.waiters (resource, place, owner, node, attachment, ttl_seconds, idempotency_key)
                VALUES (its_resource, nextval({places}), its_owner, its_node, nextval({attachments}),
                    ttls[i], its_key)
                RETURNING * INTO mine;
                lease.places := lease.places + 1;
                out_position := lease.places;
            END IF;
        ELSIF out_verdict = 'held' AND NOT is_live THEN
            out_verdict := 'free';
        END IF;

        IF out_verdict IN ('standing', 'kept') THEN
            out_place := mine.place;
            out_attachment := mine.attachment;
            IF out_position = 0 THEN
                out_position := (SELECT count(*) FROM {schema}.waiters AS w
                    WHERE w.resource = its_resource AND w.place <= mine.place
                        AND (w.kept_until IS NULL OR w.kept_until > clock));
            END IF;
        END IF;
        out_clock := clock;
        out_token := coalesce(lease.fencing_token, 0);
        out_acquired_at := coalesce(lease.acquired_at, clock);
        out_expires_at := CASE WHEN is_live THEN lease.expires_at ELSE clock END;
        RETURN NEXT;

        IF resources[i + 1] IS DISTINCT FROM its_resource AND is_ours THEN
            IF lease IS DISTINCT FROM before THEN
                UPDATE {schema}.distributed_locks AS l
                SET owner = lease.owner, acquired_at = lease.acquired_at, expires_at = lease.expires_at,
                    fencing_token = lease.fencing_token, idempotency_key = lease.idempotency_key,
                    released = lease.released,
                    places = lease.places,
                    in_delivery = lease.in_delivery,
                    offered_place = lease.offered_place
                WHERE l.resource = its_resource;
            END IF;
        END IF;
    END LOOP;
END
$run_queue$;
