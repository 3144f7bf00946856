"""A plain client of the beanstalk protocol whose own cost is nobody's figure.

It sends and reads in bulk, many commands at a time. It is slow beside `tubectl bench`; use it where
only the server's processor time counts, or the moment at which bytes arrive.
"""

import select
import socket
import struct
import sys
import time

PATIENCE = 60  # seconds without a byte


class Connection:
    def __init__(self, port, source="127.0.0.1"):
        self.socket = socket.socket()
        # So that no port is taken for good that other connections from this address may share.
        self.socket.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind((source, 0))
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))

    def close(self):
        # Thousands of these end at once, and none of them needs to be remembered by the kernel.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def arrivals(self, requests, lines):
        """Sends `requests` while it reads, until so many lines have come. Returns a list of
        (time.monotonic_ns() when they were read, bytes)."""
        rest = memoryview(requests)
        self.socket.setblocking(False)
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN | select.POLLOUT)
        arrived = []
        while rest or lines > 0:
            events = waiting.poll(PATIENCE * 1000)
            if not events:
                sys.exit(f"the server has been silent for {PATIENCE} s; lines still due: {lines}")
            if events[0][1] & ~select.POLLOUT:
                chunk = self.socket.recv(1 << 16)
                arrived.append((time.monotonic_ns(), chunk))
                if not chunk:
                    sys.exit(f"the server closed a connection; lines still due on it: {lines}")
                lines -= chunk.count(b"\n")
            if rest and events[0][1] & select.POLLOUT:
                rest = rest[self.socket.send(rest[:1 << 18]):]
            if not rest:
                waiting.modify(self.socket, select.POLLIN)
        return arrived

    def exchange(self, requests, lines):
        """The same; returns the bytes as one."""
        return b"".join(chunk for _, chunk in self.arrivals(requests, lines))


def put(body=b"x", delay=0, ttr=60):
    return b"put 0 %d %d %d\r\n%s\r\n" % (delay, ttr, len(body), body)


def replies(data, word, count):
    """The lines of that many replies, split, each of which must begin with `word`. A body of one
    line is left out."""
    rows = data.split(b"\r\n")[:-1]
    if word == b"RESERVED":
        rows = rows[::2]
    rows = [row.split() for row in rows]
    wrong = next((row for row in rows if row[0] != word), None)
    if wrong or len(rows) != count:
        sys.exit(f"{count} replies {word.decode()} were due; there came {len(rows)}"
                 + (f", {wrong} among them" if wrong else ""))
    return rows


def identities(data, word, count):
    """The job of each reply INSERTED or RESERVED."""
    return [int(row[1]) for row in replies(data, word, count)]


def put_many(connection, requests, chunk=1000):
    """`requests` is an iterable of puts, each maybe with a `use` before it. Returns nothing; any
    other answer than INSERTED or USING ends the run."""
    batch = []
    for request in requests:
        batch.append(request)
        if len(batch) == chunk:
            _expect_stored(connection, batch)
            batch = []
    if batch:
        _expect_stored(connection, batch)


def _expect_stored(connection, batch):
    request = b"".join(batch)
    lines = request.count(b"put ") + request.count(b"use ")
    for row in connection.exchange(request, lines).split(b"\r\n")[:-1]:
        if not row.startswith((b"INSERTED ", b"USING ")):
            sys.exit(f"a put was answered with {row!r}")
