# A small internet in two network namespaces, for tests and the demo: source after scripts/lib.sh.
# shellcheck shell=bash disable=SC2034
#
#   sluice-NAME-world  world0 ─── edge0  sluice-NAME-edge
#
# Everybody who talks to the edge lives in the world, with addresses from the documentation ranges,
# so that all traffic reaches the edge by the one interface that Sluice guards. The world answers for
# every address of the client and attacker ranges; spoofed ranges belong to nobody.

readonly LAB_EDGE_IPV4=192.0.2.1
readonly LAB_EDGE_IPV6=2001:db8:0:1::1
readonly LAB_EDGE_MAC=02:00:00:00:00:01
readonly LAB_CLIENTS_IPV4=198.51.100.0/24
readonly LAB_CLIENTS_IPV6=2001:db8:c::/48
readonly LAB_ATTACKERS_IPV4=203.0.113.0/24
readonly LAB_ATTACKERS_IPV6=2001:db8:a::/48
readonly LAB_SPOOFED_IPV4=198.18.0.0/15
readonly LAB_SPOOFED_IPV6=2001:db8:f::/48

readonly LAB_WORLD_IPV4=192.0.2.2
readonly LAB_WORLD_IPV6=2001:db8:0:1::2
readonly LAB_WORLD_MAC=02:00:00:00:00:02

# lab_create NAME [QUEUES]: sets LAB_EDGE and LAB_WORLD; all of it goes when the script ends.
lab_create() {
    local queues=${2:-2} prefix
    LAB_EDGE=sluice-$1-edge
    LAB_WORLD=sluice-$1-world
    netns_add "$LAB_EDGE"
    netns_add "$LAB_WORLD"

    ip -n "$LAB_EDGE" link add edge0 address "$LAB_EDGE_MAC" \
        numrxqueues "$queues" numtxqueues "$queues" type veth \
        peer name world0 netns "$LAB_WORLD" address "$LAB_WORLD_MAC" \
        numrxqueues "$queues" numtxqueues "$queues"
    lab_configure_end "$LAB_EDGE" edge0 "$LAB_EDGE_IPV4" "$LAB_EDGE_IPV6"
    lab_configure_end "$LAB_WORLD" world0 "$LAB_WORLD_IPV4" "$LAB_WORLD_IPV6"
    lab_add_neighbour "$LAB_EDGE" edge0 "$LAB_WORLD_MAC" "$LAB_WORLD_IPV4" "$LAB_WORLD_IPV6"
    lab_add_neighbour "$LAB_WORLD" world0 "$LAB_EDGE_MAC" "$LAB_EDGE_IPV4" "$LAB_EDGE_IPV6"

    ip -n "$LAB_EDGE" route add default via "$LAB_WORLD_IPV4"
    ip -n "$LAB_EDGE" -6 route add default via "$LAB_WORLD_IPV6"
    for prefix in "$LAB_CLIENTS_IPV4" "$LAB_ATTACKERS_IPV4"; do
        ip -n "$LAB_WORLD" route add local "$prefix" dev lo
    done
    for prefix in "$LAB_CLIENTS_IPV6" "$LAB_ATTACKERS_IPV6"; do
        ip -n "$LAB_WORLD" -6 route add local "$prefix" dev lo
    done
    ip -n "$LAB_WORLD" route add blackhole "$LAB_SPOOFED_IPV4"
    ip -n "$LAB_WORLD" -6 route add blackhole "$LAB_SPOOFED_IPV6"
}

# Receive offload gives a veth the polling that live frames need when no XDP program is attached.
lab_configure_end() {
    local namespace=$1 device=$2
    ip -n "$namespace" address add "$3/24" dev "$device"
    ip -n "$namespace" address add "$4/64" dev "$device" nodad
    ip -n "$namespace" link set "$device" up
    in_netns "$namespace" ethtool -K "$device" gro on
}

# Fixed neighbours: a lab is about floods, not about what a flood does to ARP.
lab_add_neighbour() {
    local address
    for address in "$4" "$5"; do
        ip -n "$1" neighbour replace "$address" lladdr "$3" nud permanent dev "$2"
    done
}

in_edge() { in_netns "$LAB_EDGE" "$@"; }
in_world() { in_netns "$LAB_WORLD" "$@"; }
