# shellcheck shell=bash
# shellcheck disable=SC2154  # scripts/bench sets what is shared
# What is measured: one function a section. To be sourced after bench/servers.sh. Each step puts load on one server for
# `seconds`, and appends what it found to the file `figures`, a line a figure: key, value, unit, what it is.

warmup_seconds=1

say() { echo "bench: $*" >&2; }

record() { # key value unit label
    [[ $2 =~ ^[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$ ]] || fail "$4: \"$2\" is no figure"
    printf '%s\t%s\t%s\t%s\n' "$@" >>"$figures"
    say "$round_name$4: $(rounded "$2") $3"
}

# Prints the newest figure $1, or nothing.
newest() { awk -F '\t' -v key="$1" '$1 == key { value = $2 } END { print value }' "$figures"; }

# ---- load ----

# Runs `holdfast bench` on URL $1 with the arguments $2...; the report is then in `report`.
put_load() {
    report=$("$holdfast" bench --url "$1" --seconds "$seconds" --warmup-seconds "$warmup_seconds" --json "${@:2}" \
        2>"$logs/load.log") || fail "holdfast bench ${*:2} failed: $(tail -n 3 "$logs/load.log") $report"
    count_errors "holdfast bench ${*:2}"
}

# Runs `rival_load` on rival $1 with the arguments $2...
put_rival_load() {
    report=$("$rival_load" "$1" --seconds "$seconds" --warmup-seconds "$warmup_seconds" --json "${@:2}" \
        2>"$logs/load.log") || fail "rival_load $* failed: $(tail -n 3 "$logs/load.log") $report"
    count_errors "rival_load $*"
}

# Requests that failed are told, and no part of any throughput; nor are those of an open loop that never left.
count_errors() {
    local errors kinds
    errors=$(jq -r '.errors + (.never_started // 0)' <<<"$report")
    [[ $errors == 0 ]] && return
    kinds=$(jq -c '.errors_by_kind + (if (.never_started // 0) > 0 then {"never started": .never_started} else {} end)' <<<"$report")
    # Ports are other ones in each run.
    printf '%s\t%s\t%s\n' "$(sed -E 's/ --(port|url) [^ ]+//' <<<"$1")" "$errors" "$kinds" | tee -a "$errors_seen" >&2
}

reported() { jq -r "$1 // empty" <<<"$report"; }

# Runs pgbench with $1 clients on the file $2 of bench/ and the arguments $3... Sets `per_second`.
put_pgbench() {
    local threads=$(($1 < cores ? $1 : cores)) text
    text=$("$(database_program pgbench)" -n -M prepared -c "$1" -j "$threads" -T "$seconds" -D names="$names" \
        -f "$root/bench/$2" "${@:3}" 2>"$logs/pgbench.log") || fail "pgbench failed: $(tail -n 3 "$logs/pgbench.log")"
    per_second=$(awk '/^tps = / { print $3 }' <<<"$text")
}

# The median of the latencies that pgbench logged, in milliseconds.
logged_median() {
    sort -n -k 3,3 "$work"/latency.* | awk '{ value[NR] = $3 } END { if (NR) printf "%.3f", value[int((NR + 1) / 2)] / 1000 }'
    rm -f "$work"/latency.*
}

# ---- acquire and release by random names: everybody ----

step_pgbench() {
    local clients
    put_pgbench 1 single_statement_acquire.sql -l --log-prefix="$work/latency"
    record pgbench.acquire_p50 "$(logged_median)" ms 'pgbench, 1 client, acquire only: median latency'
    for clients in 1 8 16 32 64; do
        if ((clients == 1)); then
            put_pgbench 1 single_statement_pair.sql -l --log-prefix="$work/latency"
            record pgbench.pair_p50 "$(logged_median)" ms 'pgbench, 1 client: median latency of a pair'
        else
            put_pgbench "$clients" single_statement_pair.sql
        fi
        record "pgbench.$clients" "$per_second" pairs/s "pgbench, $clients $( ((clients == 1)) && echo client || echo clients)"
    done
}

step_redis() {
    local connections
    for connections in 64 256; do
        put_rival_load redis --port "$redis_port" --connections "$connections" --resources "$names"
        record "redis.$connections" "$(reported .pairs_per_second)" pairs/s "Redis, $connections connections"
    done
}

step_etcd() {
    put_rival_load etcd --url "http://127.0.0.1:$etcd_port" --connections 64 --resources "$names"
    record etcd.64 "$(reported .pairs_per_second)" pairs/s 'etcd, 64 connections'
}

step_holdfast() {
    local connections label
    for connections in 1 64 256 1024; do
        put_load "$node_url" --connections "$connections" --resources "$names"
        label="Holdfast, $connections $( ((connections == 1)) && echo connection || echo connections)"
        record "holdfast.$connections" "$(reported .pairs_per_second)" pairs/s "$label"
        record "holdfast.$connections.acquire_p50" "$(reported .latencies_ms.acquire.p50)" ms "$label, acquire: median latency"
        record "holdfast.$connections.pair_p50" "$(reported .latencies_ms.pair.p50)" ms "$label: median latency of a pair"
        record "holdfast.$connections.pair_p99" "$(reported .latencies_ms.pair.p99)" ms "$label: 99th percentile of a pair"
    done
}

# ---- Holdfast alone ----

step_nodes() {
    local connections
    for connections in 64 256; do
        put_load "$balancer_1_url" --connections "$connections" --resources "$names"
        record "nodes.1.$connections" "$(reported .pairs_per_second)" pairs/s "1 node behind HAProxy, $connections connections"
        put_load "$balancer_2_url" --connections "$connections" --resources "$names"
        record "nodes.2.$connections" "$(reported .pairs_per_second)" pairs/s "2 nodes behind HAProxy, $connections connections"
    done
}

step_mixed() {
    put_load "$node_url" --mode mixed --connections 64 --resources "$names"
    record mixed.64 "$(reported .answers_per_second)" answers/s 'Holdfast, mixed load, 64 connections'
    local kind
    for kind in $(jq -r '.latencies_ms | keys[]' <<<"$report"); do
        record "mixed.64.$kind.p99" "$(reported ".latencies_ms.$kind.p99")" ms "Holdfast, mixed load, $kind: 99th percentile"
    done
}

# Open loop: requests are due at a fixed rate, and latency counts from when they were due.
step_open() {
    local full share rate percentile
    full=$(newest holdfast.64)
    if [[ ! $full ]]; then
        put_load "$node_url" --connections 64 --resources "$names"
        full=$(reported .pairs_per_second)
    fi
    for share in 50 80; do
        rate=$(awk -v full="$full" -v share="$share" 'BEGIN { print int(full * share / 100) + 1 }')
        put_load "$node_url" --connections 256 --resources "$names" --rate "$rate"
        record "open.$share" "$(reported .pairs_per_second)" pairs/s "Holdfast, open loop at $share % of its rate with 64 connections"
        for percentile in p50 p99 p999; do
            record "open.$share.$percentile" "$(reported ".latencies_ms.pair.$percentile")" ms \
                "Holdfast, open loop at $share %: $percentile of a pair"
        done
    done
}

# ---- one hot resource ----

# pgbench counts transactions: one answer each, and one more for each release, of which the table knows. Sets `per_second`,
# which are answers, and `pairs_per_second`.
put_hot_pgbench() { # file
    local updates_before updates_after
    updates_before=$(single_statement_updates)
    put_pgbench 64 "$1"
    updates_after=$(single_statement_updates)
    pairs_per_second=$(awk -v updates=$((updates_after - updates_before)) -v seconds="$seconds" 'BEGIN { print updates / 2 / seconds }')
    per_second=$(awk -v tps="$per_second" -v pairs="$pairs_per_second" 'BEGIN { print tps + pairs }')
}

# Backends hand in their counts at the latest when they end.
single_statement_updates() {
    while (($(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"))); do sleep 0.1; done
    sql "SELECT n_tup_upd FROM pg_stat_user_tables WHERE schemaname = 'single_statement'"
}

step_hot() {
    put_hot_pgbench single_statement_hot.sql
    record pgbench.hot "$per_second" answers/s 'pgbench, one hot row, 64 clients'
    put_hot_pgbench single_statement_hot_read_first.sql
    record pgbench.hot_read_first "$per_second" answers/s 'pgbench, one hot row, 64 clients, refusals by a plain read'

    # Meanwhile others go their way.
    local others=$work/others.json pid
    "$holdfast" bench --url "$node_url" --seconds "$seconds" --warmup-seconds "$warmup_seconds" --json --connections 8 \
        --rate 100 --resources "$names" >"$others" 2>"$logs/others.log" &
    pid=$!
    put_load "$node_url" --mode hot --connections 64
    record holdfast.hot "$(reported .answers_per_second)" answers/s 'Holdfast, one hot resource, 64 connections'
    wait "$pid" || fail "the load on other resources failed: $(tail -n 3 "$logs/others.log")"
    report=$(<"$others")
    count_errors 'holdfast bench beside a hot resource'
    record holdfast.hot.others_p50 "$(reported .latencies_ms.pair.p50)" ms 'Holdfast, other resources meanwhile: median of a pair'
    record holdfast.hot.others_p99 "$(reported .latencies_ms.pair.p99)" ms 'Holdfast, other resources meanwhile: 99th percentile of a pair'
}

# ---- waiting in line ----

# What Holdfast does with waiters, and what the rivals do with as many that want one lock, in the same round.
step_waiting() {
    local urls first second
    start_node waiting-1 waiting
    first=$started
    urls=http://127.0.0.1:$node_port
    start_node waiting-2 waiting
    second=$started
    urls+=,http://127.0.0.1:$node_port
    wait_handovers "$urls"
    wait_expiries "$urls"
    wait_contended "$urls"
    stop_server "$first"
    stop_server "$second"
    wait_rivals
    wait_parked
}

# Two owners, each at a node of its own, and nothing else: each release reaches the one node, and the waiter is at the other.
wait_handovers() { # urls
    put_load "$1" --mode wait --connections 2 --hold-ms 20
    local percentile
    for percentile in p50 p99; do
        record "waiting.handover.$percentile" "$(reported ".latencies_ms.handover_across.$percentile")" ms \
            "two nodes, otherwise idle: $percentile from a release to the waiter's grant on the other node"
    done
}

# Leases of a second that nobody releases, and that end at different moments.
wait_expiries() { # urls
    put_load "$1" --mode wait --abandon --ttl-seconds 1 --connections 40 --resources 10
    record waiting.lateness.p50 "$(reported .latencies_ms.lateness.p50)" ms \
        'grant after an expiry: median lateness, from until when the holder before trusted its lease'
    record waiting.lateness.p99 "$(reported .latencies_ms.lateness.p99)" ms 'grant after an expiry: 99th percentile of that'
    record waiting.lateness.stamped "$(reported .latencies_ms.stamped_lateness.p50)" ms \
        "grant after an expiry: median lateness by the database's stamps"
    record waiting.early "$(reported .early)" grants 'grants before the end of the lease before, by the stamps'
}

wait_contended() { # urls
    put_load "$1" --mode wait --connections 200
    record waiting.contended "$(reported .handovers_per_second)" handovers/s '200 waiters for one resource over two nodes'
    record waiting.contended.p50 "$(reported .latencies_ms.handover.p50)" ms '200 waiters: median from a release to the next grant'
    record waiting.contended.p99 "$(reported .latencies_ms.handover.p99)" ms '200 waiters: 99th percentile of that'
}

# pgbench's clients do not wait, they ask again; one acquire and one release that succeed are what a handover is.
wait_rivals() {
    put_hot_pgbench single_statement_hot.sql
    record waiting.pgbench "$per_second" statements/s 'pgbench beside it, one hot row, 64 clients'
    record waiting.pgbench.pairs "$pairs_per_second" pairs/s 'pgbench beside it, one hot row, 64 clients: acquires that were granted, and their releases'
    put_hot_pgbench single_statement_hot_read_first.sql
    record waiting.pgbench.read_first.pairs "$pairs_per_second" pairs/s 'the same, refusals by a plain read'
    put_rival_load etcd --url "http://127.0.0.1:$etcd_port" --mode wait --connections 200 --resource waited-for
    record waiting.etcd "$(reported .handovers_per_second)" handovers/s 'etcd, 200 waiters for one lock'
    record waiting.etcd.p50 "$(reported .latencies_ms.handover.p50)" ms 'etcd, 200 waiters: median from an unlock to the next grant'
    record waiting.etcd.p99 "$(reported .latencies_ms.handover.p99)" ms 'etcd, 200 waiters: 99th percentile of that'
}

# Clock ticks of process $1, and with `all` of its children, also of those that have ended.
ticks() { # pid [all]
    local pid sum=0 line
    for pid in "$1" $([[ ${2-} != all ]] || cat "/proc/$1/task/$1/children"); do
        line=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
        # What follows the name, which may hold spaces: the state is the first.
        read -ra line <<<"${line##*) }"
        sum=$((sum + line[11] + line[12]))
        # shellcheck disable=SC2128  # the first element is not meant
        [[ $pid != "$1" || ${2-} != all ]] || sum=$((sum + line[13] + line[14]))
    done
    echo "$sum"
}

# Records the share of one core that node $2 and PostgreSQL take while nothing happens.
measure_still() { # key node label
    local postmaster node_before database_before share
    postmaster=$(as_database_user head -n 1 "$database/data/postmaster.pid")
    node_before=$(ticks "$2")
    database_before=$(ticks "$postmaster" all)
    sleep "$still_seconds"
    share='BEGIN { printf "%.3f", ticks / hertz / seconds * 100 }'
    record "$1.node" "$(awk -v ticks=$(($(ticks "$2") - node_before)) -v hertz="$(getconf CLK_TCK)" -v seconds="$still_seconds" "$share")" \
        '% of a core' "$3: the node"
    record "$1.database" "$(awk -v ticks=$(($(ticks "$postmaster" all) - database_before)) -v hertz="$(getconf CLK_TCK)" -v seconds="$still_seconds" "$share")" \
        '% of a core' "$3: PostgreSQL"
}

standing() { curl -sf "$1/metrics" | awk '$1 == "holdfast_waiters" { printf "%.0f", $2 }'; }

# Waits until $1 requests stand in line at the node with URL $2, while load $3 runs.
wait_until_standing() {
    local tick now
    for ((tick = 0; tick < 600; ++tick)); do
        now=$(standing "$2") || now=
        [[ $now != "$1" ]] || return 0
        kill -0 "$3" 2>/dev/null || break
        sleep 0.1
    done
    fail "there were never $1 waiters at the node, but ${now:-none}: $(tail -n 3 "$logs/load.log")"
}

# Waiters for locks that stay held, on a node that does nothing else. A resource has 1000 places at most.
wait_parked() {
    local node url load before peak report_file=$work/parked.json
    start_node parked waiting
    node=$started
    url=http://127.0.0.1:$node_port
    curl -s -o /dev/null "$url/locks/none"
    measure_still waiting.idle "$node" 'CPU of an idle node, nobody waits'
    before=$(resident_kib "$node")
    "$holdfast" bench --url "$url" --mode wait --park --json --warmup-seconds 0 --seconds 300 --ttl-seconds 900 \
        --connections "$parked" --resources $((parked / 500)) >"$report_file" 2>"$logs/load.log" &
    load=$!
    server_pids+=("$load") # ended with the others if this fails
    wait_until_standing "$parked" "$url" "$load"
    sleep 1 # what registering them left behind
    measure_still waiting.parked "$node" "CPU while $parked wait and nothing changes"
    peak=$(resident_kib "$node")
    [[ $(standing "$url") == "$parked" ]] || fail "not all of the $parked waiters stayed: $(standing "$url") stand"
    record waiting.parked.resident "$peak" KiB "$parked waiters on one node: its resident memory"
    record waiting.parked.memory "$(awk -v before="$before" -v peak="$peak" -v n="$parked" 'BEGIN { printf "%.2f", (peak - before) / n }')" \
        KiB "$parked waiters on one node: resident memory per waiter"
    stop_server "$load"
    report=$(<"$report_file")
    [[ $(reported .standing.most) ]] || fail "the parked waiters left no report: $(tail -n 3 "$logs/load.log")"
    count_errors "holdfast bench --mode wait --park --connections $parked"
    stop_server "$node"
}

# ---- scale ----

never_seen=1000000000000 # names out of so many are new

# Makes the tables and starts a node on each: one that is empty, and one with many rows. Then lets them be used: whoever
# writes to a page for the first time after a checkpoint writes all of it to the log. In a small table that is over after
# a moment, and it is none of what the number of rows costs.
prepare_scale() {
    need_space $((ended_rows / 1000000 + 12))
    start_node scale-empty scale_empty
    scale_empty_pid=$started
    scale_empty_url=http://127.0.0.1:$node_port
    HOLDFAST_DATABASE_SCHEMA=scale_full "$holdfast" migrate >"$logs/migrate.log" 2>&1 || fail "migrate: $(tail -n 3 "$logs/migrate.log")"
    say "filling a table with $ended_rows ended and $held_rows held leases (takes minutes)"
    sql_file fill.sql schema=scale_full ended="$ended_rows" held="$held_rows"
    sql CHECKPOINT
    start_node scale-full scale_full
    scale_full_pid=$started
    scale_full_url=http://127.0.0.1:$node_port
    say 'using both tables for a while'
    local seconds=$warm_seconds
    put_load "$scale_full_url" --connections 256 --resources "$never_seen"
    put_load "$scale_full_url" --connections 256 --resources "$ended_rows"
    put_load "$node_url" --connections 256 --resources "$names"
}

# Names of the same kind against each other: new ones in the full table and in the empty one, and known ones in the full
# table and in the one of the other measurements.
step_scale() {
    sql 'TRUNCATE scale_empty.distributed_locks'
    put_load "$scale_empty_url" --connections 64 --resources $never_seen
    record scale.new.empty "$(reported .pairs_per_second)" pairs/s 'new names, empty table, 64 connections'
    put_load "$scale_full_url" --connections 64 --resources $never_seen
    record scale.new.full "$(reported .pairs_per_second)" pairs/s "new names, table of $((ended_rows + held_rows)) rows, 64 connections"
    put_load "$node_url" --connections 64 --resources "$names"
    record scale.known.small "$(reported .pairs_per_second)" pairs/s "known names, table of $names rows, 64 connections"
    put_load "$scale_full_url" --connections 64 --resources "$ended_rows"
    record scale.known.full "$(reported .pairs_per_second)" pairs/s "known names, table of $((ended_rows + held_rows)) rows, 64 connections"
}

finish_scale() {
    record scale.size "$(sql "SELECT pg_total_relation_size('scale_full.distributed_locks') / 1048576.0")" MiB \
        "size of the table of $((ended_rows + held_rows)) rows with its indexes"
    stop_server "$scale_empty_pid"
    stop_server "$scale_full_pid"
}

# ---- churn under an old snapshot ----

churn_counts() { sql "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE schemaname = 'churn' AND relname = 'distributed_locks'"; }

# Few names, so that each row is written over and over.
churn() { # key label
    local before after
    before=$(churn_counts)
    put_load "$churn_url" --connections 64 --resources 10000
    after=$(churn_counts)
    record "churn.$1" "$(reported .pairs_per_second)" pairs/s "churn on 10000 names, $2"
    record "churn.$1.hot" "$(awk -F '|' 'NR == 1 { hot = $1; all = $2 } NR == 2 { printf "%.2f", ($2 > all ? ($1 - hot) / ($2 - all) * 100 : 0) }' <<<"$before
$after")" % "churn, $2: updates that stayed in their page (HOT)"
    record "churn.$1.size" "$(sql "SELECT pg_table_size('churn.distributed_locks') / 1048576.0")" MiB "churn, $2: size of the table at the end"
}

# Opens a transaction that keeps a snapshot until close_snapshot.
open_snapshot() {
    local answer
    coproc snapshot { exec "$(database_program psql)" -X -q -A -t 9>&-; }
    snapshot_pid=$!
    snapshot_input=${snapshot[1]}
    echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'open' FROM churn.distributed_locks LIMIT 1;" >&"$snapshot_input"
    read -r -t 10 answer <&"${snapshot[0]}" || answer=
    [[ $answer == open ]] || fail 'no snapshot could be opened'
}

close_snapshot() {
    echo 'COMMIT;' >&"$snapshot_input"
    exec {snapshot_input}>&-
    wait "$snapshot_pid"
}

step_churn() {
    start_node churn churn
    churn_url=http://127.0.0.1:$node_port
    local pid=$started
    churn before 'no old snapshot'
    open_snapshot
    churn held 'an old snapshot is held'
    close_snapshot
    churn after 'after the snapshot ended'
    churn later 'later still'
    stop_server "$pid"
}

# ---- memory ----

resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
descriptors() { find "/proc/$1/fd" -mindepth 1 | wc -l; }

# Starts a fresh node, puts the load $3... on it, and records what it holds in memory per connection, of which there are $2,
# when all of them are there.
measure_memory() { # key connections label bench-arguments
    start_node memory holdfast
    local node=$started before peak=0 now descriptors_before
    # One request warms up what is made once.
    curl -s -o /dev/null "http://127.0.0.1:$node_port/locks/none"
    before=$(resident_kib "$node")
    descriptors_before=$(descriptors "$node")
    "$holdfast" bench --url "http://127.0.0.1:$node_port" --json --warmup-seconds 0 --seconds "$seconds" --resources "$names" \
        "${@:4}" >"$work/memory.json" 2>"$logs/load.log" &
    local load=$!
    while kill -0 "$load" 2>/dev/null; do
        if (($(descriptors "$node") >= descriptors_before + $2)); then
            now=$(resident_kib "$node")
            peak=$((now > peak ? now : peak))
        fi
        sleep 0.2
    done
    wait "$load" || fail "holdfast bench failed: $(tail -n 3 "$logs/load.log")"
    report=$(<"$work/memory.json")
    count_errors "holdfast bench ${*:4}"
    ((peak)) || fail "$3: there were never $2 connections at a time"
    record "$1.resident" "$peak" KiB "$3: resident memory of the node"
    record "$1" "$(awk -v before="$before" -v peak="$peak" -v n="$2" 'BEGIN { printf "%.2f", (peak > before ? (peak - before) / n : 0) }')" \
        KiB "$3: resident memory per connection"
    stop_server "$node"
}

step_memory() {
    measure_memory memory.idle 10000 '10000 idle connections' --connections 0 --idle-connections 10000
    measure_memory memory.busy.64 64 '64 busy connections' --connections 64
    measure_memory memory.busy.1024 1024 '1024 busy connections' --connections 1024
}
