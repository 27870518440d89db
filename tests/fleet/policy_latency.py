"""How long a change of the fleet's policy takes until every host enforces it.

usage: policy_latency.py CHANGES SOCKET...

Goes to and fro between the version in force and the one before.
"""
import sys

from latency import Daemon, print_latency

paths = sys.argv[2:]
current = Daemon(paths[0]).ask("status")["policy"]["fleet"]["version"]


def change_of(i):
    version = current - 1 if i % 2 == 0 else current

    def has_it(daemon):
        fleet = daemon.ask("status")["policy"]["fleet"]
        return fleet is not None and fleet["version"] == version

    return ("policy", "promote", str(version)), has_it


print_latency(int(sys.argv[1]), paths, change_of)
