"""How long a change of the fleet's policy takes until every host enforces it.

usage: policy_latency.py CHANGES SOCKET...

Goes to and fro between two versions through the daemons in turn, asks all of them which is in
force, and prints JSON: `p50`, `p99`, `max` in seconds from the sending of the command, over all
changes and hosts; `late`: changes that some host did not have within 5 s.
"""
import json
import sys
import threading
import time

from feed_latency import PATIENCE, PAUSE, Daemon


def wait_for(daemon, version, begun, times):
    while time.monotonic() < begun + PATIENCE:
        fleet = daemon.ask("status")["policy"]["fleet"]
        if fleet is not None and fleet["version"] == version:
            times.append(time.monotonic() - begun)
            return
        time.sleep(PAUSE)
    times.append(PATIENCE)


def main():
    changes, paths = int(sys.argv[1]), sys.argv[2:]
    operators = [Daemon(path) for path in paths]
    watchers = [Daemon(path) for path in paths]
    current = operators[0].ask("status")["policy"]["fleet"]["version"]
    versions = [current - 1, current]
    times = []
    for i in range(changes):
        begun = time.monotonic()
        operators[i % len(paths)].ask("policy", "promote", str(versions[i % 2]))
        threads = [
            threading.Thread(target=wait_for, args=(watcher, versions[i % 2], begun, times))
            for watcher in watchers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    times.sort()
    print(json.dumps({
        "p50": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
        "max": times[-1],
        "late": sum(1 for t in times if t >= PATIENCE),
    }))


main()
