# Shell helpers for Sluice's scripts: source this file from bash after `set -euo pipefail`.
# shellcheck shell=bash disable=SC2034

SLUICE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SLUICE_BUILD=${SLUICE_BUILD_DIR:-$SLUICE_ROOT/build}
readonly SLUICE_ROOT SLUICE_BUILD
# The code by which ctest knows a test that could not run here.
readonly SLUICE_SKIP_CODE=77

note() { printf '%s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Administration tools lie in sbin folders, which a user's PATH may lack.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# run_as_root COMMAND...: directly when root, else through sudo.
run_as_root() {
    if ((EUID == 0)); then
        "$@"
    elif have sudo; then
        sudo -- "$@"
    else
        die "needs root: run it as root, or install sudo"
    fi
}

# require_root "$@": starts the calling script anew as root when it is not root already.
require_root() {
    ((EUID == 0)) && return
    have sudo || die "needs root: run it as root, or install sudo"
    exec sudo --preserve-env=SLUICE_BUILD_DIR -- "$0" "$@"
}

# at_exit COMMAND...: runs COMMAND when the script ends, in whatever way; last in, first out.
SLUICE_EXIT_COMMANDS=()

at_exit() {
    SLUICE_EXIT_COMMANDS+=("$(printf '%q ' "$@")")
    trap run_exit_commands EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

run_exit_commands() {
    local status=$?
    trap '' INT TERM HUP
    unwind 0
    return "$status"
}

# unwind COUNT: runs the commands of at_exit now, last first, until only the first COUNT are left.
unwind() {
    local command
    while ((${#SLUICE_EXIT_COMMANDS[@]} > $1)); do
        command=${SLUICE_EXIT_COMMANDS[-1]}
        unset 'SLUICE_EXIT_COMMANDS[-1]'
        eval "$command" || true
    done
}

# stop_process PID...: ends background jobs of this script, politely first. An id that is no longer
# one of its running jobs may belong to somebody else by now, and is left alone.
stop_process() {
    local pid tries
    for pid in "$@"; do
        for ((tries = 0; tries < 30; tries++)); do
            is_running_job "$pid" || break
            ((tries)) || kill -TERM "$pid" || true
            sleep 0.1
        done
        ! is_running_job "$pid" || kill -KILL "$pid" || true
        wait "$pid" 2>/dev/null || true
    done
}

is_running_job() { [[ $'\n'$(jobs -rp)$'\n' == *$'\n'"$1"$'\n'* ]]; }

ensure_bpffs() {
    [[ $(stat -f -c %T /sys/fs/bpf 2>/dev/null) == bpf_fs ]] && return
    mount -t bpf bpf /sys/fs/bpf || die "cannot mount bpffs on /sys/fs/bpf"
}

# netns_add NAME: a network namespace of that name, removed when the script ends.
netns_add() {
    [[ $1 == sluice-* ]] || die "namespace names start with sluice-: $1"
    [[ ! -e /run/netns/$1 ]] || die "namespace $1 exists already: another run, or ip netns del $1"
    ip netns add "$1"
    at_exit netns_remove "$1"
    in_netns "$1" ip link set lo up
}

netns_remove() { [[ ! -e /run/netns/$1 ]] || ip netns del "$1"; }

# in_netns NAME COMMAND...: `ip netns exec` would hide bpffs, this does not.
in_netns() { nsenter --net="/run/netns/$1" -- "${@:2}"; }

# netns_start NAME COMMAND...: starts COMMAND in the background and sets STARTED_PID to its own id,
# not to that of a shell around it. It ends with this script, even where that is killed.
netns_start() {
    setpriv --pdeathsig TERM nsenter --net="/run/netns/$1" -- "${@:2}" &
    STARTED_PID=$!
}
