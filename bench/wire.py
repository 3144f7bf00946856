"""A plain client of the beanstalk protocol, for loads in which its own cost is not measured.

It sends and reads in bulk, many commands at a time. It is slower than `tubectl bench`; use it to
measure only the server's processor time, or the moment at which bytes arrive.
"""

import select
import socket
import struct
import sys
import time

from servers import harness


class Connection:
    def __init__(self, address, source="127.0.0.1"):
        self.socket = socket.socket()
        # The kernel chooses the port at connect(), and may use one port for several addresses.
        self.socket.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind((source, 0))
        self.socket.settimeout(harness.SECONDS)
        self.socket.connect(harness.parse_address(address)[1])

    def close(self):
        # Thousands of connections end at the same time, and the kernel need not keep their state.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def arrivals(self, requests, lines):
        """Sends `requests` while it reads, until `lines` lines have arrived. Returns a list of
        (time.monotonic_ns() at the read, bytes)."""
        return [(moment, chunk) for moment, _, chunk in arrivals_at([(self, requests, lines)])]

    def exchange(self, requests, lines):
        """The same; returns the bytes as a single object."""
        return b"".join(chunk for _, chunk in self.arrivals(requests, lines))


class _Exchange:
    """The bytes to send on a connection, and the number of lines to receive."""

    def __init__(self, connection, requests, lines):
        self.socket = connection.socket
        self.rest = memoryview(requests)
        self.lines = lines

    def receive(self):
        chunk = self.socket.recv(1 << 16)
        if not chunk:
            sys.exit(f"the server closed a connection; lines still due on it: {self.lines}")
        self.lines -= chunk.count(b"\n")
        return chunk

    def send(self):
        self.rest = self.rest[self.socket.send(self.rest[:1 << 18]):]


def arrivals_at(exchanges):
    """The same at many connections at once. `exchanges` is a list of (connection, requests, lines),
    the result a list of (ns, the connection's place in `exchanges`, bytes)."""
    waiting = select.poll()
    unfinished = {}
    for place, each in enumerate(exchanges):
        exchange = _Exchange(*each)
        exchange.socket.setblocking(False)
        waiting.register(exchange.socket, select.POLLIN | (select.POLLOUT if exchange.rest else 0))
        unfinished[exchange.socket.fileno()] = (place, exchange)
    arrived = []
    while unfinished:
        events = waiting.poll(harness.SECONDS * 1000)
        if not events:
            due = sum(exchange.lines for _, exchange in unfinished.values())
            sys.exit(f"the server has been silent for {harness.SECONDS} s; lines still due: {due}")
        for number, event in events:
            place, exchange = unfinished[number]
            if event & ~select.POLLOUT:
                chunk = exchange.receive()
                arrived.append((time.monotonic_ns(), place, chunk))
            if exchange.rest and event & select.POLLOUT:
                exchange.send()
                if not exchange.rest:
                    waiting.modify(number, select.POLLIN)
            if not exchange.rest and exchange.lines <= 0:
                waiting.unregister(number)
                del unfinished[number]
    return arrived


def put(body=b"x", delay=0, ttr=60):
    return b"put 0 %d %d %d\r\n%s\r\n" % (delay, ttr, len(body), body)


def replies(data, word, count):
    """The lines of that many replies, split, each of which must begin with `word`. A body of one
    line is omitted."""
    rows = data.split(b"\r\n")[:-1]
    if word == b"RESERVED":
        rows = rows[::2]
    rows = [row.split() for row in rows]
    wrong = next((row for row in rows if row[0] != word), None)
    if wrong or len(rows) != count:
        sys.exit(f"{count} replies {word.decode()} were due; {len(rows)} arrived"
                 + (f", {wrong} among them" if wrong else ""))
    return rows


def identities(data, word, count):
    """The job's id in each reply INSERTED or RESERVED."""
    return [int(row[1]) for row in replies(data, word, count)]


def put_many(connection, requests, chunk=1000):
    """`requests` is an iterable of puts, each optionally preceded by a `use`. Returns nothing; an
    answer other than INSERTED or USING ends the run."""
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
