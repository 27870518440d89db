"""Counts datagrams that reached the stacks of processes' network namespaces.

usage: receivers.py SECONDS PID...

Prints JSON: `mean`, of all namespaces together, a second; `fullest`, the most in any second;
`hosts`, the mean of each. They reach closed ports, which the kernel counts as UdpNoPorts.
"""
import json
import sys
import time

STEP = 0.02  # seconds between two looks


def received(pid):
    with open(f"/proc/{pid}/net/snmp") as file:
        lines = [line.split() for line in file if line.startswith("Udp:")]
    return int(lines[1][lines[0].index("NoPorts")])


def main():
    seconds, pids = float(sys.argv[1]), sys.argv[2:]
    looks = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # The counters are read one after the other, so a look lies between two times.
        before = time.monotonic()
        counts = [received(pid) for pid in pids]
        looks.append((before, time.monotonic(), counts))
        time.sleep(STEP)
    fullest, last = 0.0, 0
    for first in range(len(looks)):
        while last + 1 < len(looks) and looks[last + 1][1] - looks[first][0] <= 1:
            last += 1
        fullest = max(fullest, sum(looks[last][2]) - sum(looks[first][2]))
    (start, _, first), (_, stop, final) = looks[0], looks[-1]
    hosts = [(b - a) / (stop - start) for a, b in zip(first, final)]
    print(json.dumps({"mean": sum(hosts), "fullest": fullest, "hosts": hosts}))


main()
