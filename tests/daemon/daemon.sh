# A daemon on an interface of its own, for tests: source it, then daemon_lab NAME [TOOL...].
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

# Sets pins, work, socket and state; all of it goes when the test ends. Skips without the tools.
daemon_lab() {
    ((EUID == 0)) || skip "needs root"
    local tool
    for tool in ip nsenter python3 "${@:2}"; do
        have "$tool" || skip "$tool is not installed"
    done
    ensure_bpffs
    pins=/sys/fs/bpf/sluice-test-$1-$$
    work=$(mktemp -d "/tmp/sluice-$1.XXXXXX")
    socket=$work/sock state=$work/state
    at_exit rm -rf "$work"
    at_exit rm -rf "$pins"
    lab_create "$1-$$"
    unset SSH_CONNECTION SSH_CLIENT SUDO_USER
}

finish() { ((failures == 0)) || { tail -50 "$work/log"; die "$failures failed"; }; }
# within SECONDS COMMAND...: it holds before the time is over.
within() {
    local end=$((SECONDS + $1 + 1))
    until "${@:2}"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

ctl() { in_edge "$sluicectl" --socket "$socket" --pin-dir "$pins" --state-dir "$state" "$@"; }
quietly() { ctl "$@" >/dev/null 2>&1; }
# field EXPRESSION COMMAND...: of the data in a JSON answer, d.
field() {
    ctl --json "${@:2}" |
        python3 -c 'import json,sys; print(eval(sys.argv[1], {"d": json.load(sys.stdin)["data"]}))' "$1"
}
is() { [[ $(field "${@:2}") == "$1" ]]; }
answers() { is True 'd["daemon"]["running"]' status 2>/dev/null; }
logged() { grep -q "$1" "$work/log"; }

# With $work/sluice.toml and FLAGS, behind the words of WRAPPED; its pid is in $daemon.
WRAPPED=() FLAGS=()
begin_daemon() {
    netns_start "$LAB_EDGE" "${WRAPPED[@]}" "$sluiced" --config "$work/sluice.toml" \
        --pin_dir "$pins" --socket "$socket" --state_dir "$state" "${FLAGS[@]}" 2>>"$work/log"
    daemon=$STARTED_PID
}
# The same, and waits until it answers.
start_daemon() {
    begin_daemon
    at_exit stop_process "$daemon"
    within 20 answers || { cat "$work/log" >&2; die "sluiced does not answer"; }
}
kill_daemon() {
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || true
}
stop_daemon() {
    kill -TERM "$daemon"
    wait "$daemon" || true
}

# Datagrams that reached the edge's stack.
received() { in_edge nstat -asz UdpNoPorts | awk '$1 == "UdpNoPorts" { print $2 }'; }
# flood SOURCE PORT ARGUMENT...
flood() {
    in_world "$lab_flood" --dev world0 --base-address "$1" --destination "$LAB_EDGE_IPV4" \
        --dport "$2" "${@:3}" >/dev/null
}
# Goes on until stop_flood.
start_flood() {
    netns_start "$LAB_WORLD" "$lab_flood" --dev world0 --base-address "$1" \
        --destination "$LAB_EDGE_IPV4" --dport "$2" "${@:3}" >/dev/null
    flooding=$STARTED_PID
    at_exit stop_process "$flooding"
}
stop_flood() { stop_process "$flooding"; }
