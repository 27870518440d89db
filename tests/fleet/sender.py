"""Sends datagrams of one source at an even rate until it is ended, and makes up for lost time.

usage: sender.py SOURCE DESTINATION PORT PER-SECOND
"""
import socket
import sys
import time


def main():
    source, destination, port, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind((source, 0))
    start, sent = time.monotonic(), 0
    while True:
        while sent < (time.monotonic() - start) * rate:
            out.sendto(b"x" * 32, (destination, port))
            sent += 1
        time.sleep(0.5 / rate)


main()
