"""How long a ban of the fleet takes until every host enforces it.

usage: feed_latency.py CHANGES SOCKET...

Bans and unbans one address after the other, and asks what the packet path would do with it.
"""
import sys

from latency import print_latency


def change_of(i):
    address = f"198.18.{i // 2 // 250}.{i // 2 % 250 + 1}"
    banned = i % 2 == 0

    def has_it(daemon):
        return (daemon.ask("why", address)["verdict"] == "drop_banned") == banned

    return ("ban" if banned else "unban", address, "--fleet"), has_it


print_latency(int(sys.argv[1]), sys.argv[2:], change_of)
