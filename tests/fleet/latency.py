"""How long changes of a fleet take until every host has them."""
import json
import socket
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


def wait_for(daemon, has_it, begun, times):
    while time.monotonic() < begun + PATIENCE:
        if has_it(daemon):
            times.append(time.monotonic() - begun)
            return
        time.sleep(PAUSE)
    times.append(PATIENCE)


def print_latency(changes, paths, change_of):
    """Makes changes through the daemons in turn, asks all of them until they have each, and prints
    JSON: `p50`, `p99`, `max` in seconds from the sending of the command, over all changes and
    hosts; `late`: how often a host did not have a change within 5 s.

    change_of(i): the i-th change, as the words of a command, and whether a daemon has it.
    """
    operators = [Daemon(path) for path in paths]
    watchers = [Daemon(path) for path in paths]
    times = []
    for i in range(changes):
        words, has_it = change_of(i)
        begun = time.monotonic()
        operators[i % len(paths)].ask(*words)
        threads = [
            threading.Thread(target=wait_for, args=(watcher, has_it, begun, times))
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
