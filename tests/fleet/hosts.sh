# Several hosts, each with a gate and a daemon of its own, and one Redis: source it, then
# fleet_lab NAME HOSTS [TOOL...].
# shellcheck shell=bash disable=SC2034,SC2154
# The test's arguments: sluiced, sluicectl, lab_flood.
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=scripts/lab.sh
. "$SLUICE_ROOT/scripts/lab.sh"
# shellcheck source=tests/expect.sh
. "$SLUICE_ROOT/tests/expect.sh"
sluiced=$1 sluicectl=$2 lab_flood=$3

skip() {
    echo "SKIP: $*"
    exit "$SLUICE_SKIP_CODE"
}

# Sets work and the edges and worlds of hosts 1 to HOSTS; all of it goes when the test ends.
fleet_lab() {
    ((EUID == 0)) || skip "needs root"
    local tool
    for tool in ip nsenter python3 redis-server redis-cli "${@:3}"; do
        have "$tool" || skip "$tool is not installed"
    done
    ensure_bpffs
    hosts=$2
    work=$(mktemp -d "/tmp/sluice-$1.XXXXXX")
    chmod 755 "$work"
    pins=/sys/fs/bpf/sluice-test-$1-$$
    at_exit rm -rf "$work"
    local host
    for ((host = 1; host <= hosts; host++)); do
        at_exit rm -rf "$pins-$host"
        lab_create "$1$host-$$"
        edge[host]=$LAB_EDGE world[host]=$LAB_WORLD
        # Through its eyes the counters of a network namespace are read.
        netns_start "$LAB_EDGE" sleep 1000
        witness[host]=$STARTED_PID
        at_exit stop_process "$STARTED_PID"
    done
    unset SSH_CONNECTION SSH_CLIENT SUDO_USER
}
declare -a edge world witness daemon flooding

finish() {
    ((failures == 0)) && return
    tail -n 20 "$work"/log-*
    die "$failures failed"
}
# within SECONDS COMMAND...: it holds before the time is over.
within() {
    local end=$((SECONDS + $1 + 1))
    until "${@:2}"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

# --- Redis ---------------------------------------------------------------------------------------

redis_socket() { echo "$work/redis.sock"; }
start_redis() {
    setpriv --pdeathsig TERM redis-server --port 0 --unixsocket "$(redis_socket)" --dir "$work" \
        --save "" --daemonize no >"$work/redis.log" 2>&1 &
    redis=$!
    at_exit stop_process "$redis"
    within 10 in_redis PING || die "redis-server does not answer"
}
in_redis() { redis-cli -s "$(redis_socket)" "$@" >/dev/null 2>&1; }

# --- hosts ---------------------------------------------------------------------------------------

ctl() { # HOST ARGUMENT...
    nsenter --net="/run/netns/${edge[$1]}" "$sluicectl" --socket "$work/sock-$1" \
        --pin-dir "$pins-$1" --state-dir "$work/state-$1" "${@:2}"
}
# field EXPRESSION HOST COMMAND...: of the data in a JSON answer, d.
field() {
    ctl "$2" --json "${@:3}" |
        python3 -c 'import json,sys; print(eval(sys.argv[1], {"d": json.load(sys.stdin)["data"]}))' "$1"
}
is() { [[ $(field "${@:2}") == "$1" ]]; }
# With $work/sluice.toml.
start_host() {
    netns_start "${edge[$1]}" "$sluiced" --config "$work/sluice.toml" --pin_dir "$pins-$1" \
        --socket "$work/sock-$1" --state_dir "$work/state-$1" 2>>"$work/log-$1"
    daemon[$1]=$STARTED_PID
    at_exit stop_process "${daemon[$1]}"
}
start_hosts() {
    local host
    for ((host = 1; host <= hosts; host++)); do start_host "$host"; done
    for ((host = 1; host <= hosts; host++)); do
        within 60 is True 'd["daemon"]["running"]' "$host" status 2>/dev/null ||
            { cat "$work/log-$host"; die "sluiced of host $host does not answer"; }
    done
}
# flood HOST RATE [FIRST-SOURCE]: so many datagrams a second of 250 sources, until stop_floods.
flood() {
    netns_start "${world[$1]}" "$lab_flood" --dev world0 --base-address "${3:-198.18.0.1}" --sources 250 \
        --destination "$LAB_EDGE_IPV4" --dport 9 --rate "$2" --duration 120 >/dev/null
    flooding+=("$STARTED_PID")
    at_exit stop_process "$STARTED_PID"
}
stop_floods() {
    stop_process "${flooding[@]}"
    flooding=()
}

# measure SECONDS: what the stacks behind all gates received meanwhile, as JSON: a second on average,
# and in the fullest second of all; per host as well.
measure() {
    python3 "$SLUICE_ROOT/tests/fleet/receivers.py" "$1" "${witness[@]}"
}
