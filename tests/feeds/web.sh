# A web server in the edge's network, for tests of feeds: source it after daemon.sh.
# shellcheck shell=bash disable=SC2034,SC2154
# start_web PORT [CERTIFICATE]: sets web, its folder.
start_web() {
    web=$work/web
    mkdir -p "$web"
    echo ok >"$web/mode"
    [[ -e $web/list ]] || echo 198.18.0.1 >"$web/list"
    [[ -e $web/requests.log ]] || : >"$web/requests.log"
    netns_start "$LAB_EDGE" python3 "$SLUICE_ROOT/tests/feeds/web.py" "$web" "$@" 2>>"$work/web.log"
    serving=$STARTED_PID
    at_exit stop_process "$serving"
    within 10 listens "$1"
}
listens() { in_edge ss -Hltn "sport = :$1" | grep -q .; }
answers_by() { echo "$1" >"$web/mode"; }
served() { grep -c "^$1 " "$web/requests.log" || true; }
# feed FIELD NAME: of that feed's standing.
feed() { field "[f for f in d['feeds'] if f['name'] == '$2'][0]['$1']" status; }
feed_is() { [[ $(feed "$2" "$3" 2>/dev/null) == "$1" ]]; }
feed_says() { feed error "$2" 2>/dev/null | grep -q "$1"; }
feed_is_good() { feed_is None error "$1"; }
banned() { is drop_banned 'd["verdict"]' why "$1"; }
not_banned() { ! banned "$1"; }
count_is() { is "$1" 'len(d["bans"])' bans --source "$2"; }
