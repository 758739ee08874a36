# SPDX-License-Identifier: Apache-2.0
"""A UDP relay between one client and an agent; a seed determines which datagrams it loses.

Run as `python lossy_relay.py AGENT_PORT LOSS SEED`, it prints its own port, relays on loopback until standard input is
closed, and then prints the numbers of datagrams passed and lost in each direction."""

from __future__ import annotations

import json
import random
import select
import socket
import sys

BUFFER_BYTES = 1 << 22
BATCH = 64


def open_socket() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    opened.bind(("127.0.0.1", 0))
    opened.setblocking(False)
    return opened


def main() -> None:
    agent = ("127.0.0.1", int(sys.argv[1]))
    loss, generator = float(sys.argv[2]), random.Random(int(sys.argv[3]))
    towards_client, towards_agent = open_socket(), open_socket()
    client: tuple[str, int] | None = None
    counts = {"passed_up": 0, "lost_up": 0, "passed_down": 0, "lost_down": 0}
    poller = select.epoll()
    for source in (towards_client.fileno(), towards_agent.fileno(), sys.stdin.fileno()):
        poller.register(source, select.EPOLLIN)
    print(towards_client.getsockname()[1], flush=True)
    running = True
    while running:
        for source, _ in poller.poll():
            if source == sys.stdin.fileno():
                running = bool(sys.stdin.buffer.read1(64))
                continue
            up = source == towards_client.fileno()
            for _ in range(BATCH):
                try:
                    message, sender = (towards_client if up else towards_agent).recvfrom(65536)
                except (BlockingIOError, ConnectionRefusedError):
                    break
                if up:
                    client = sender
                lost = generator.random() < loss
                counts[("lost" if lost else "passed") + ("_up" if up else "_down")] += 1
                if lost or client is None:
                    continue
                try:
                    if up:
                        towards_agent.sendto(message, agent)
                    else:
                        towards_client.sendto(message, client)
                except (BlockingIOError, ConnectionRefusedError):
                    continue
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main()
