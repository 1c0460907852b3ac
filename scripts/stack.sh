# shellcheck shell=bash
# What scripts/up, scripts/down and scripts/bench share: where the stack lives, its private PostgreSQL, finding and
# stopping what runs. To be sourced.
#
# A node runs by its stack's own path, <the stack's folder>/holdfast, HAProxy has its configuration's path among its
# arguments, PostgreSQL works in its data directory: by that they are found in /proc, by every user. So there are no files
# with process ids that could be out of date, nothing is lost when .local is removed, and no foreign process can be hit.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# Tests put their stacks elsewhere; everybody else has one in the checkout.
stack=$(readlink -m "${HF_STACK_DIR:-$root/.local}")
logs=$stack/log
# shellcheck disable=SC2034  # for those who source this
binary=$root/build/release/holdfast
# The database survives `down`. Where user postgres cannot enter the stack's folder, it lives under this one.
far_databases=/var/lib/holdfast

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# One up or down at a time for a stack; waits for the other. Children must not inherit descriptor 9.
lock_stack() {
    if [[ ! -d $logs ]]; then
        # Root's stack lets user postgres pass through to the data, if the folders above do.
        (umask "$( ((EUID)) && echo 077 || echo 066)" && mkdir -p "$stack") && (umask 077 && mkdir -p "$logs")
    fi
    check_owner
    if ! : 2>/dev/null >>"$stack/lock"; then
        fail "cannot write to $stack, which user $(stat -c %U "$stack") made; run this as that user"
    fi
    exec 9>>"$stack/lock"
    if ! flock -n 9; then
        echo "${0##*/}: waiting for another scripts/up or scripts/down on $stack" >&2
        flock -w 300 9 || fail "another scripts/up or scripts/down is still at work on $stack"
    fi
    check_owner # the other may have been another user's
}

# Fails, before anything is touched, when this user may not stop all of the stack. The file `owner` holds the id of the
# user whose processes run; it tells also where processes of others are hidden.
check_owner() {
    ((EUID)) || return 0
    local owner pid
    owner=$(cat "$stack/owner" 2>/dev/null) || owner=$EUID
    if [[ $owner != "$EUID" ]]; then
        fail "user $(id -nu "$owner" 2>/dev/null || echo "$owner") started what runs in $stack; run this as that user"
    fi
    for pid in $(stack_processes holdfast; stack_processes haproxy); do
        kill -0 "$pid" 2>/dev/null || [[ ! -e /proc/$pid ]] ||
            fail "process $pid of $stack belongs to user $(stat -c %U "/proc/$pid"); run this as that user"
    done
}

# ---- the binary ----

# Builds build/release/holdfast. The test suites build in the same folder, so their option stays as it was.
build_release() {
    local options=()
    [[ -e $root/build/release/CMakeCache.txt ]] || options+=(-DHOLDFAST_TESTS=OFF)
    (cd "$root" && cmake --preset release "-DHOLDFAST_COMMIT=$(source_revision)" "${options[@]}") &&
        cmake --build "$root/build/release" --target holdfast
}

source_revision() {
    git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown
}

# ---- processes ----

# Prints the ids of the stack's processes that are $1: holdfast or haproxy.
stack_processes() {
    local file pid namespace
    while IFS= read -r file; do
        pid=${file#/proc/}
        pid=${pid%/*}
        # Another container's process may carry the same path; it has another process namespace (which cannot be read of
        # another user's process).
        namespace=$(readlink "/proc/$pid/ns/pid") || true
        [[ -z $namespace || $namespace == "$(readlink /proc/self/ns/pid)" ]] || continue
        [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$1" ]] && echo "$pid"
    done < <(case $1 in
    holdfast) grep -lzxsF -- "$stack/holdfast" /proc/[0-9]*/cmdline ;;
    haproxy) grep -lzxsF -- "$stack/haproxy.cfg" /proc/[0-9]*/cmdline ;;
    esac)
    return 0
}

# Sends SIGTERM to every process named $1 of the stack and SIGKILL to what is left after $2 seconds.
stop_processes() {
    local pids
    mapfile -t pids < <(stack_processes "$1")
    ((${#pids[@]})) || return 0
    kill -TERM "${pids[@]}" 2>/dev/null || true
    local tick
    for ((tick = 0; tick < $2 * 10; ++tick)); do
        mapfile -t pids < <(stack_processes "$1")
        ((${#pids[@]})) || return 0
        sleep 0.1
    done
    echo "${0##*/}: $1 (process ${pids[*]}) did not stop within $2 s; killed" >&2
    kill -KILL "${pids[@]}" 2>/dev/null || true
    for ((tick = 0; tick < 50; ++tick)); do
        mapfile -t pids < <(stack_processes "$1")
        ((${#pids[@]})) || return 0
        sleep 0.1
    done
    fail "$1 (process ${pids[*]}) cannot be stopped"
}

# The balancer goes last, so that requests find a node for as long as there is one.
stop_nodes() {
    stop_processes holdfast 15
    stop_processes haproxy 5
}

port_taken() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() {
    local candidate
    while :; do
        candidate=$((20000 + RANDOM % 12000))
        port_taken "$candidate" || break
    done
    echo "$candidate"
}

# Waits until $1/readyz is 200; gives up when process $2 ends or after a minute.
wait_ready() {
    local tick
    for ((tick = 0; tick < 300; ++tick)); do
        [[ $(curl -s -o /dev/null -m 5 -w '%{http_code}' "$1/readyz") == 200 ]] && return 0
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

# Prints the configuration of HAProxy on port $1 before nodes on the ports $2... The deadline of requests, in whole seconds
# up, is part of two time limits and of a promise in the balancer's answers.
balancer_settings() {
    local milliseconds=${HOLDFAST_REQUEST_DEADLINE_MS:-5000} deadline
    deadline=$(((10#$milliseconds + 999) / 1000))
    awk '/^resolvers/ { skip = 1 } /^$/ { skip = 0 } !skip && !/^    server /' "$root/deploy/haproxy.cfg" |
        sed -e "s/^    bind .*/    bind 127.0.0.1:$1/" \
            -e "s/^    timeout server .*/    timeout server $((deadline + 60))s/" \
            -e "s/^    timeout client .*/    timeout client $((deadline + 70))s/" \
            -e "s/final [0-9]* seconds after/final $((deadline + 1)) seconds after/"
    local node_port number=0
    for node_port in "${@:2}"; do
        echo "    server node-$((++number)) 127.0.0.1:$node_port"
    done
    if ((EUID == 0)); then printf '\nglobal\n    user haproxy\n    group haproxy\n'; fi
}

# ---- the private PostgreSQL ----

# PostgreSQL refuses to run as root, and should: root runs it as postgres, or as the data's owner.
as_database_user() {
    local user
    user=$(stat -c %U "${database-/nowhere}" 2>/dev/null) || user=postgres
    [[ $user != root ]] || user=postgres
    (
        unset PGDATA PGHOST PGHOSTADDR PGPORT PGUSER PGDATABASE PGOPTIONS PGSERVICE
        cd /
        if ((EUID)); then "$@"; else runuser -u "$user" -- "$@"; fi
    )
}

# Sets `database` to the folder of the private PostgreSQL (data, log, port, passwords), which need not exist yet.
locate_database() {
    if [[ -e $stack/postgresql ]]; then
        database=$(readlink -f "$stack/postgresql")
    elif ((EUID)) || as_database_user test -x "$stack" 2>/dev/null; then
        database=$stack/postgresql
    else
        database=$far_databases/$(printf %s "$stack" | sha256sum | cut -c 1-16)
    fi
}

# Prints the process id of the running postmaster of `database`; a left-over file whose process is gone, or is
# somebody else's by now, counts for nothing.
postmaster() {
    local pid
    pid=$(head -n 1 "$database/data/postmaster.pid" 2>/dev/null) || return 1
    [[ $pid =~ ^[0-9]+$ && $(as_database_user readlink "/proc/$pid/cwd") == "$database/data" ]] || return 1
    echo "$pid"
}

# Prints the ids of all processes of `database`, also of backends that outlived their postmaster.
database_processes() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    as_database_user bash -c '
        for directory in /proc/[0-9]*; do
            [[ $(readlink "$directory/cwd") == "$1" && $(cat "$directory/comm") == postgres ]] && echo "${directory#/proc/}"
        done' - "$database/data" 2>/dev/null
    return 0
}

# PostgreSQL's programs of the version that made the data, else the newest.
database_program() {
    local version directory
    version=$(cat "$database/data/PG_VERSION" 2>/dev/null || echo '*')
    # shellcheck disable=SC2086  # the version may be a pattern
    directory=$(compgen -G "/usr/lib/postgresql/$version/bin" | sort -t / -k 5 -V | tail -n 1)
    [[ $directory ]] || fail "no programs of PostgreSQL $version, which made $database/data; install them or use --reset"
    echo "$directory/$1"
}

stop_database() {
    locate_database
    local pg_ctl pids
    if postmaster >/dev/null; then
        pg_ctl=$(database_program pg_ctl)
        as_database_user "$pg_ctl" stop -D "$database/data" -m fast -w -t 30 >/dev/null 2>&1 ||
            as_database_user "$pg_ctl" stop -D "$database/data" -m immediate -w -t 10 >/dev/null 2>&1 || true
    fi
    mapfile -t pids < <(database_processes)
    if ((${#pids[@]})); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
}
