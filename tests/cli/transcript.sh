# Transcripts of sluicectl, compared with golden files: source it after scripts/lib.sh.
# shellcheck shell=bash
#
# A scenario is a list of commands; each is written down with what it prints and its exit code. What
# differs from run to run is masked. UPDATE_GOLDEN=1 writes the files anew, for `git diff` to judge.

: "${pins:?the pin directory of the test}"
readonly golden=$SLUICE_ROOT/tests/cli/golden
work=$(mktemp -d /tmp/sluice-cli.XXXXXX)
at_exit rm -rf "$work"
readonly work
# No daemon, and an audit log that is nobody else's.
# shellcheck disable=SC2034 # by the tests
readonly alone=(--socket "$work/no-daemon" --state-dir "$work/state")
# shellcheck source=tests/expect.sh
. "$SLUICE_ROOT/tests/expect.sh"

# Who asks, from where, and how it looks must not depend on who runs the test.
export SUDO_USER=alice SSH_CONNECTION="203.0.113.7 50000 192.0.2.1 22" TERM=xterm
unset NO_COLOR SSH_CLIENT

# mask: what no two runs have in common.
mask() {
    sed -E \
        -e "s#$pins\b#PINS#g" \
        -e "s#$work#WORK#g" \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z/<time>/g' \
        -e 's/"program_id":[0-9]+/"program_id":N/g' \
        -e 's/"memory_bytes":[0-9]+/"memory_bytes":N/g' \
        -e 's/"(id|time_ns)":[0-9]+/"\1":N/g' \
        -e 's/"(pass_[a-z_]+)":[0-9]+/"\1":N/g' \
        -e '/^pass_[a-z_]+ +[0-9,]+ /d' \
        -e '/^(Banned|Would ban|Allowed)/!s/\bin [0-9]+ (d|h|min|s)( [0-9]+ (h|min|s))?\b/in SPAN/g' \
        -e 's/_s":[0-9.]+/_s":S/g' \
        -e 's/\(program [0-9]+\)/(program N)/' \
        -e 's/(link detach id) [0-9]+/\1 N/' \
        -e 's/x{300}/x…x/' \
        -e 's/(need|only) [0-9]+ MiB/\1 N MiB/g' \
        -e 's/(alone, by a pinned link|beside other XDP programs)/PLACED/' \
        -e 's/"dispatcher":(true|false)/"dispatcher":B/g' \
        -e 's/, under a dispatcher//' \
        -e 's/take [0-9.]+ [KMGT]iB of [0-9.]+ [KMGT]iB/take N of N/' \
        -e 's/takes [0-9.]+ [KMGT]iB/takes N/' \
        -e 's/^(tables +)[0-9.]+ [KMGT]iB/\1N/' \
        -e 's/(generic mode: .* has no native XDP).*/\1/' \
        -e '/SPAN|<time>|ENDS|^SWITCH/s/ {2,}/  /g' \
        -e '/\(a name server\)/d'
}

# scenario NAME: begins one; the next one, or finish_scenario, compares it.
scenario() {
    finish_scenario
    current=$1
    : >"$work/transcript"
}
current=

# run ARGUMENT...: one command of the scenario.
run() {
    local status=0
    run_sluicectl "$@" >"$work/out" 2>"$work/err" || status=$?
    {
        printf '$ sluicectl%s\n' "$( (($# == 0)) || printf ' %q' "$@")"
        cat "$work/out"
        sed 's/^/! /' "$work/err"
        ((status == 0)) || echo "= $status"
        echo
    } | mask >>"$work/transcript"
}

finish_scenario() {
    [[ $current ]] || return 0
    local file=$golden/$current.txt
    if [[ ${UPDATE_GOLDEN-} ]]; then
        cp "$work/transcript" "$file"
    elif diff -u "$file" "$work/transcript"; then
        echo "ok    $current"
    else
        echo "FAIL  $current"
        failures=$((failures + 1))
    fi
    current=
}
