# For the shell tests of a guest: each prints its results as GoogleTest does, so that one reader
# understands all. Source this file from bash after `set -euo pipefail`.
# shellcheck shell=bash disable=SC2034

sluicectl=/tests/sluicectl sluiced=/tests/sluiced
failures=0
readonly out=/tmp/out err=/tmp/err

# check NAME FUNCTION: FUNCTION, in a shell of its own, says what is wrong and fails, or is silent.
check() {
    local begun=$SECONDS result="      OK"
    echo "[ RUN      ] $1"
    (set -e; trap 'echo "line $LINENO: $BASH_COMMAND"' ERR; set -E; "$2") </dev/null &
    if ! wait $!; then
        result=" FAILED "
        failures=$((failures + 1))
    fi
    echo "[ $result ] $1 ($(((SECONDS - begun) * 1000)) ms)"
}

# attempt COMMAND...: its exit code is in $status, what it says in the files $out and $err.
attempt() {
    status=0
    "$@" >"$out" 2>"$err" || status=$?
}

has() { grep -qF -- "$2" "$1" || { echo "no \"$2\" in:" && cat "$1" && return 1; }; }
has_not() { ! has "$@" >/dev/null || { echo "\"$2\" in:" && cat "$1" && return 1; }; }

make_edge() {
    [[ ! -e /sys/class/net/edge0 ]] || return 0
    ip link add edge0 type veth peer name world0
    ip address add 192.0.2.1/24 dev edge0
    ip link set world0 up
    ip link set edge0 up
}
