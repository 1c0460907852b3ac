# shellcheck shell=bash
# shellcheck disable=SC2154  # scripts/bench sets what is shared
# Servers of one run of scripts/bench: each its own, on a free port, with its data in one folder that goes when the run
# ends. To be sourced after scripts/stack.sh. All of them are reached over TCP on loopback, as they would be over a network.

# Process ids of everything started here but PostgreSQL, which has a program of its own to stop it.
server_pids=()
picked_ports=' '

# Sets `picked` to a free port that was not picked before.
pick_port() {
    while :; do
        picked=$(free_port)
        [[ $picked_ports == *" $picked "* ]] || break
    done
    picked_ports+="$picked "
}

# Starts $2... as the server $1, whose log is then $logs/$1.log. Sets `started`.
start_server() {
    setsid "${@:2}" >"$logs/$1.log" 2>&1 </dev/null 9>&- &
    started=$!
    server_pids+=("$started")
}

# Waits at most half a minute until $3... succeeds; process $2, called $1, must live.
wait_for_server() {
    local tick
    for ((tick = 0; tick < 300; ++tick)); do
        "${@:3}" >/dev/null 2>&1 && return 0
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    fail "$1 did not start; the end of its log:
$(tail -n 5 "$logs/$1.log")"
}

# Stops the server with process id $1, and waits for its end.
stop_server() {
    local tick
    kill -TERM "$1" 2>/dev/null || true
    for ((tick = 0; tick < 200; ++tick)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
    local pid others=()
    for pid in "${server_pids[@]}"; do [[ $pid == "$1" ]] || others+=("$pid"); done
    server_pids=("${others[@]}")
}

stop_all_servers() {
    local pid
    # HAProxy and nodes would drain; nobody is left who would mind.
    for pid in "${server_pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    for pid in "${server_pids[@]}"; do wait "$pid" 2>/dev/null; done
    server_pids=()
    if [[ -e ${database-}/data/postmaster.pid ]]; then
        as_database_user "$(database_program pg_ctl)" stop -D "$database/data" -m immediate -w -t 30 >/dev/null 2>&1
    fi
}

# ---- where the data lies ----

is_on_disk() { [[ ! $(stat -f -c %T "$1") =~ ^(tmpfs|ramfs)$ ]]; }

# Makes the folder `work`: in the build folder, or where user postgres cannot enter that, in /var/tmp.
make_work_folder() {
    work=$(mktemp -d "$output/data.XXXXXX")
    chmod 711 "$work"
    if ((EUID == 0)) && ! as_database_user test -x "$work" 2>/dev/null; then
        rmdir "$work"
        work=$(mktemp -d /var/tmp/holdfast-bench.XXXXXX)
        chmod 711 "$work"
    fi
    is_on_disk "$work" || fail "$work is kept in memory, where a flush costs nothing; the benchmark needs a disk"
}

# Fails unless there are $1 GiB left for `work`.
need_space() {
    local free
    free=$(df --output=avail -B 1G "$work" | tail -n 1)
    ((free >= $1)) || fail "the data of this run needs $1 GiB, and $work has $free GiB left"
}

# How often a second the disk makes one small write durable.
measure_disk() {
    local file=$work/flush
    [[ ! -d $database ]] || file=$database/flush
    disk_flushes=$(as_database_user "$(database_program pg_test_fsync)" -s 1 -f "$file" 2>/dev/null |
        awk '$1 == "fdatasync" && NF > 2 { printf "%.0f", $2; exit }')
    as_database_user rm -f "$file"
    [[ $disk_flushes ]] || fail 'pg_test_fsync did not say how fast the disk is'
}

# ---- PostgreSQL ----

# Prints what differs from PostgreSQL's defaults. Durability is left as it is: on.
database_settings() {
    local quarter_of_memory
    quarter_of_memory=$(awk '/^MemTotal/ { print int($2 / 1024 / 4) }' /proc/meminfo)
    cat <<SETTINGS
max_connections = 200
shared_buffers = $((quarter_of_memory < 4096 ? quarter_of_memory : 4096))MB
max_wal_size = 8GB
checkpoint_timeout = 30min
SETTINGS
}

start_postgresql() {
    database=$work/postgresql
    mkdir "$database"
    if ((EUID == 0)); then chown postgres: "$database"; fi
    chmod 700 "$database"
    local password
    password=$(od -An -N 24 -t x1 /dev/urandom | tr -d ' \n')
    (umask 077 && as_database_user tee "$database/password" >/dev/null <<<"$password")
    as_database_user "$(database_program initdb)" -D "$database/data" -U postgres --pwfile="$database/password" \
        --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 >"$logs/initdb.log" 2>&1
    pick_port
    {
        database_settings
        echo "port = $picked"
        echo "listen_addresses = '127.0.0.1'"
        echo "unix_socket_directories = ''"
    } | as_database_user tee -a "$database/data/postgresql.conf" >/dev/null
    as_database_user "$(database_program pg_ctl)" start -D "$database/data" -l "$database/log" -w -t 60 \
        >/dev/null 2>&1 9>&- || fail "PostgreSQL did not start:
$(as_database_user tail -n 5 "$database/log")"
    export PGHOST=127.0.0.1 PGPORT=$picked PGUSER=postgres PGPASSWORD=$password PGDATABASE=holdfast
    PGDATABASE=postgres sql "CREATE ROLE holdfast LOGIN PASSWORD '$password'"
    PGDATABASE=postgres sql 'CREATE DATABASE holdfast OWNER holdfast'
    export HOLDFAST_DATABASE_URL=postgresql://holdfast:$password@127.0.0.1:$picked/holdfast
}

# Prints what the statement $1 returns, without decoration; $2... go to psql.
sql() { "$(database_program psql)" -X -q -A -t -v ON_ERROR_STOP=1 "${@:2}" -c "$1"; }

# Runs the file $1 of bench/ with variables, NAME=VALUE.
sql_file() {
    local variable options=()
    for variable in "${@:2}"; do options+=(-v "$variable"); done
    "$(database_program psql)" -X -q -v ON_ERROR_STOP=1 "${options[@]}" -f "$root/bench/$1" >/dev/null
}

# Both roles are asked, since settings can hang on a role.
check_database_is_durable() {
    local url name value
    for url in "postgresql://postgres@127.0.0.1:$PGPORT/holdfast" "$HOLDFAST_DATABASE_URL"; do
        for name in fsync synchronous_commit full_page_writes; do
            value=$(sql "SHOW $name" -d "$url")
            [[ $value == on ]] || fail "PostgreSQL says that $name is $value; a benchmark without durability says nothing"
        done
    done
}

# ---- Redis and etcd ----

start_redis() {
    pick_port
    redis_port=$picked
    mkdir "$work/redis"
    # No rewrite of the log in the midst of a measurement; it would only cost Redis time.
    start_server redis redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$work/redis" --save '' \
        --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0
    wait_for_server redis "$started" redis-cli -e -p "$redis_port" ping
}

redis_setting() { redis-cli -e -p "$redis_port" config get "$1" | tail -n 1; }

check_redis_is_durable() {
    [[ $(redis_setting appendonly) == yes ]] || fail 'Redis says that appendonly is off'
    [[ $(redis_setting appendfsync) == always ]] || fail "Redis says that appendfsync is $(redis_setting appendfsync)"
}

# etcd has no setting that would make it less durable, but for --unsafe-no-fsync.
start_etcd() {
    pick_port
    etcd_port=$picked
    pick_port
    ETCD_UNSUPPORTED_ARCH=$([[ $(uname -m) != aarch64 ]] || echo arm64) start_server etcd \
        etcd --data-dir "$work/etcd" --log-level error --quota-backend-bytes $((8 << 30)) \
        --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$picked" --initial-advertise-peer-urls "http://127.0.0.1:$picked" \
        --initial-cluster "default=http://127.0.0.1:$picked"
    wait_for_server etcd "$started" curl -sf "http://127.0.0.1:$etcd_port/health"
}

# ---- Holdfast ----

# Starts a node that is called $1, on schema $2. Sets `started` and `node_port`.
start_node() {
    pick_port
    node_port=$picked
    HOLDFAST_DATABASE_SCHEMA=$2 start_server "$1" "$holdfast" serve --listen-address 127.0.0.1 --port "$node_port"
    wait_ready "http://127.0.0.1:$node_port" "$started" || fail "$1 did not become ready; the end of its log:
$(tail -n 5 "$logs/$1.log")"
}

# Starts HAProxy, called $1, before the nodes on the ports $2... Sets `balancer_port`.
start_balancer() {
    pick_port
    balancer_port=$picked
    balancer_settings "$balancer_port" "${@:2}" >"$work/$1.cfg"
    start_server "$1" haproxy -db -f "$work/$1.cfg"
    wait_ready "http://127.0.0.1:$balancer_port" "$started" || fail "$1 did not become ready; the end of its log:
$(tail -n 5 "$logs/$1.log")"
}
