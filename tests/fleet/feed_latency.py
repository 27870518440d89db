"""How long a change of the fleet takes until every host enforces it.

usage: feed_latency.py CHANGES SOCKET...

Bans and unbans one address after the other through the daemons in turn, asks all of them what the
packet path would do with it, and prints JSON: `p50`, `p99`, `max` in seconds from the sending of the
command, over all changes and hosts; `late`: changes that some host did not have within 5 s.
"""
import json
import socket
import sys
import threading
import time

PATIENCE = 5.0
PAUSE = 0.005  # seconds between two questions to one host


class Daemon:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r")

    def ask(self, command, *arguments):
        request = {"id": 1, "command": command, "args": list(arguments)}
        self.socket.sendall((json.dumps(request) + "\n").encode())
        answer = json.loads(self.lines.readline())
        if not answer["ok"]:
            raise RuntimeError(f"{command} {arguments}: {answer['error']}")
        return answer["data"]


def wait_for(daemon, address, banned, begun, times):
    while time.monotonic() < begun + PATIENCE:
        if (daemon.ask("why", address)["verdict"] == "drop_banned") == banned:
            times.append(time.monotonic() - begun)
            return
        time.sleep(PAUSE)
    times.append(PATIENCE)


def main():
    changes, paths = int(sys.argv[1]), sys.argv[2:]
    operators = [Daemon(path) for path in paths]
    watchers = [Daemon(path) for path in paths]
    times = []
    for i in range(changes):
        address = f"198.18.{i // 2 // 250}.{i // 2 % 250 + 1}"
        banned = i % 2 == 0
        begun = time.monotonic()
        operators[i % len(paths)].ask("ban" if banned else "unban", address, "--fleet")
        threads = [
            threading.Thread(target=wait_for, args=(watcher, address, banned, begun, times))
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


if __name__ == "__main__":
    main()
