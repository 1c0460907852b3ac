# shellcheck shell=bash
# shellcheck disable=SC2154  # scripts/bench sets what is shared
# Turns the file `figures` into tables and the plot. To be sourced after bench/steps.sh.

# ---- figures ----

# Prints median, lowest and highest of the numbers that come in, or nothing.
spread() {
    sort -g | awk '
        { value[NR] = $1 }
        END { if (NR) print (NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2), value[1], value[NR] }'
}

# Prints the figure $1, one line a round.
each_round() { awk -F '\t' -v key="$1" '$1 == key { print $2 }' "$figures"; }

median() { each_round "$1" | spread | cut -d ' ' -f 1; }

# Prints the median of figure $1 / figure $2 in each round, or nothing. Those of one round were measured within minutes; the
# machine's own speed differs from round to round.
ratio() {
    paste <(each_round "$1") <(each_round "$2") | awk -F '\t' '$1 != "" && $2 > 0 { print $1 / $2 }' | spread | cut -d ' ' -f 1
}

# Prints the client count with which pgbench made the most pairs, or nothing.
best_of_pgbench() {
    local clients value
    for clients in 1 8 16 32 64; do
        value=$(median "pgbench.$clients")
        [[ ! $value ]] || echo "$clients $value"
    done | sort -g -k 2,2 | tail -n 1 | cut -d ' ' -f 1
}

# Prints the sum of the figure $1 over all rounds, or nothing.
total() { awk -F '\t' -v key="$1" '$1 == key { sum += $2; seen = 1 } END { if (seen) print sum }' "$figures"; }

# What waiters cost while nothing changes, beyond what nobody costs, in % of a core; nothing if it was not measured.
still_cpu() {
    awk -v node="$(median waiting.parked.node)" -v database="$(median waiting.parked.database)" \
        -v idle_node="$(median waiting.idle.node)" -v idle_database="$(median waiting.idle.database)" \
        'BEGIN { if (node == "") exit; more = node + database - idle_node - idle_database; print (more > 0 ? more : 0) }'
}

# Short for people: three significant digits of small numbers, all digits before the point of large ones.
rounded() { awk -v n="$1" 'BEGIN { printf((n < 100 ? "%.3g" : "%.0f"), n) }'; }

# ---- what it must reach ----

# One row: the value $5 of $2 must be `at least` or `at most` $3, the goal is $4. `x` as the unit $6 means a ratio.
judge() { # bound measure required goal value unit
    local measure=$2 required=$3 goal=$4 value=$5 unit=$6 verdict
    if [[ ! $value ]]; then
        echo "| $measure | $1 $required$unit | $goal$unit | not measured | |"
        return
    fi
    verdict=$(awk -v bound="$1" -v required="$required" -v goal="$goal" -v value="$value" 'BEGIN {
        sign = bound == "at least" ? 1 : -1
        print(value * sign >= goal * sign ? "goal reached" : value * sign >= required * sign ? "reached" : "**MISSED**")
    }')
    echo "| $measure | $1 $required$unit | $goal$unit | $(rounded "$value")$unit | $verdict |"
}

verdicts() {
    local clients many
    clients=$(best_of_pgbench)
    many="$((ended_rows + held_rows)) rows"
    echo '| measure | required | goal | reached | |'
    echo '|---|---|---|---|---|'
    judge 'at least' "pairs/s, 64 connections, vs the best of pgbench${clients:+ ($clients clients)}" 4 5 "$(ratio holdfast.64 "pgbench.${clients:-none}")" x
    judge 'at least' 'pairs/s, 64 connections, vs etcd' 5 7 "$(ratio holdfast.64 etcd.64)" x
    judge 'at least' 'pairs/s, 256 connections, vs Redis with fsync always' 0.8 1.0 "$(ratio holdfast.256 redis.256)" x
    judge 'at most' 'median latency of an acquire, 1 connection, vs pgbench, 1 client' 2.5 1.5 "$(ratio holdfast.1.acquire_p50 pgbench.acquire_p50)" x
    judge 'at least' 'answers/s on one hot resource, 64 connections, vs pgbench on one hot row' 20 40 "$(ratio holdfast.hot pgbench.hot)" x
    judge 'at most' '99th percentile of a pair on other resources meanwhile' 50 10 "$(median holdfast.hot.others_p99)" ' ms'
    judge 'at most' 'handover across two nodes, release to grant, otherwise idle: median' 8 5 "$(median waiting.handover.p50)" ' ms'
    judge 'at most' 'handover across two nodes, release to grant, otherwise idle: 99th percentile' 40 25 "$(median waiting.handover.p99)" ' ms'
    judge 'at most' 'grant after an expiry: median lateness' 50 20 "$(median waiting.lateness.p50)" ' ms'
    judge 'at most' 'grant after an expiry: grants before the end' 0 0 "$(total waiting.early)" ''
    judge 'at most' "$parked waiters on one node: resident memory of each" 20 12 "$(median waiting.parked.memory)" ' KiB'
    judge 'at most' "CPU while $parked wait and nothing changes, node and PostgreSQL, more than with nobody" 10 5 "$(still_cpu)" ' % of a core'
    judge 'at least' 'handovers/s on one resource, 200 waiters, two nodes, vs single statements of pgbench on one hot row' 0.5 1.0 "$(ratio waiting.contended waiting.pgbench)" x
    judge 'at least' 'the same vs etcd with 200 waiters: handovers/s' 1 3 "$(ratio waiting.contended waiting.etcd)" x
    judge 'at least' 'the same vs etcd with 200 waiters: median from release to grant, etcd'\''s to ours' 1 3 "$(ratio waiting.etcd.p50 waiting.contended.p50)" x
    judge 'at most' 'resident memory per idle connection, 10000 of them' 12 6 "$(median memory.idle)" ' KiB'
    judge 'at least' "pairs/s with $many vs an empty table, new names" 0.8 0.95 "$(ratio scale.new.full scale.new.empty)" x
    judge 'at least' "pairs/s with $many vs $names rows, known names" 0.8 0.95 "$(ratio scale.known.full scale.known.small)" x
    judge 'at least' 'pairs/s of two nodes vs one, both behind HAProxy, 64 connections' 0.95 1.1 "$(ratio nodes.2.64 nodes.1.64)" x
}

# ---- everything else ----

all_figures() {
    local key unit label middle low high
    echo '| | median | lowest | highest | |'
    echo '|---|---:|---:|---:|---|'
    while IFS=$'\t' read -r key unit label; do
        read -r middle low high < <(each_round "$key" | spread)
        echo "| $label | $(rounded "$middle") | $(rounded "$low") | $(rounded "$high") | $unit |"
    done < <(awk -F '\t' '!seen[$1]++ { print $1 "\t" $3 "\t" $4 }' "$figures")
}

all_errors() {
    if [[ ! -s $errors_seen ]]; then
        echo 'No request failed.'
        return
    fi
    echo 'Requests that failed; they count nowhere above:'
    echo
    awk -F '\t' '{ printf "- `%s`: %s, `%s`\n", $1, $2, $3 }' "$errors_seen"
}

machine() {
    # shellcheck source=/dev/null
    local system && system=$(. /etc/os-release && echo "$PRETTY_NAME")
    cat <<TEXT
- $cores cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo) GiB of memory
- $system, Linux $(uname -r), data on $(df --output=fstype "$work" | tail -n 1), $disk_flushes fdatasync a second (pg_test_fsync)
- load average when the run began: $load_average
TEXT
}

versions() {
    local name
    cat <<TEXT
- Holdfast: $("$holdfast" version | paste -s -d ' ' | tr -s ' ')
- PostgreSQL: $(sql 'SHOW server_version'); fsync, synchronous_commit and full_page_writes are on (asked for by SHOW), wal_sync_method = $(sql 'SHOW wal_sync_method'); beside the defaults $(database_settings | paste -s -d ',' | sed 's/,/, /g')
TEXT
    [[ ! ${redis_port-} ]] || echo "- Redis: $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/'); appendonly $(redis_setting appendonly), appendfsync $(redis_setting appendfsync) (asked for by CONFIG GET), no snapshots, no rewrite of the log"
    [[ ! ${etcd_port-} ]] || echo "- etcd: $(etcd --version | sed -n 's/^etcd Version: //p'); one member, fsync as by default"
    [[ ! ${balancer_1_url-} ]] || echo "- HAProxy: $(haproxy -v | sed -n '1s/.*version \([^ ]*\).*/\1/p'); as in deploy/haproxy.cfg"
    local variables=()
    for name in "${!HOLDFAST_@}"; do [[ $name == HOLDFAST_DATABASE_URL ]] || variables+=("$name=${!name}"); done
    echo "- Settings of the nodes: $( ((${#variables[@]})) && echo "${variables[*]}" || echo 'the defaults')"
}

write_results() {
    cat <<TEXT
# What scripts/bench measured

Written by \`scripts/bench${given:+ $given}\` on $started_at: $rounds round$( ((rounds == 1)) || echo s), $seconds s a step, $names names.
Figures are medians of the rounds, ratios are medians of the ratios in each round. [How and why](README.md). To repeat it: the
same command on a machine that does nothing else.

## What it must reach

$(verdicts)

![Pairs per second over connections](throughput.svg)

## The machine

$(machine)

## Versions and settings

$(versions)

## All figures

$(all_figures)

$(all_errors)
TEXT
}

# ---- the plot ----

plot_data() {
    local rival title count value line
    while read -r rival title; do
        line=
        for count in 1 8 16 32 64 256 1024; do
            value=$(median "$rival.$count")
            [[ ! $value ]] || line+="$count $value"$'\n'
        done
        [[ ! $line ]] || printf '"%s"\n%s\n\n' "$title" "$line"
    done <<'RIVALS'
holdfast Holdfast
redis Redis, appendfsync always
pgbench PostgreSQL, single statements (pgbench)
etcd etcd
RIVALS
}

# Writes the plot to $1; without a line to draw there is none.
draw_plot() {
    local data=$work/plot.data blocks
    plot_data >"$data"
    blocks=$(grep -c '^"' "$data") || return 0
    gnuplot -e "data='$data'; blocks=$blocks; output='$1'" "$root/bench/plot.gp" || fail 'gnuplot failed'
}
