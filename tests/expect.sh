# What shell tests say and count: source it, and fail at the end where $failures is not 0.
# shellcheck shell=bash disable=SC2034
failures=0

# expect WHAT COMMAND...: holds where the command succeeds.
expect() {
    if "${@:2}"; then
        echo "ok    $1"
    else
        echo "FAIL  $1"
        failures=$((failures + 1))
    fi
}
