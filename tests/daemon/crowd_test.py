"""1,000 clients request as much as they can. Meanwhile another client waits only briefly, the
watchdog notifications continue, and memory stays within its limits.

The crowd runs in a process of its own, so that it does not delay the client that measures. The
waits of that client are measured in CPU time of the server's thread, which is the work that the
server does for other clients first. On an idle machine this equals the elapsed time, which is
printed as well.
"""

import multiprocessing
import os
import pathlib
import resource
import selectors
import socket
import time
import unittest

from harness import SANITIZED, SECONDS, DaemonTest, parse_address, raise_descriptor_limit, until

MIB = 1 << 20
CLIENTS = 100 if SANITIZED else 1000
TUBES = 5_000 if SANITIZED else 100_000
SECONDS_OF_LOAD = 2
PIPELINED_BYTES = 32 * 1024
# The memory of a connection, and the smallest number of bytes that a read asks for.
CONNECTION_BYTES = 8 * 1024
# The memory of a client in the middle of a list that it shares with no other: a pointer per part.
LIST_BYTES = TUBES // 256 * 16
P99_SECONDS = 0.020
MAX_SECONDS = 0.050
# The kernel counts the time that another virtual machine takes from a processor as the server's. A
# server that lets a client wait does so in each measurement; a busy host does not.
MEASUREMENTS = 3
# A sanitizer slows the server down by this factor.
SLOWNESS = 10 if SANITIZED else 1


def crowd(address, clients, batch, replies, reads, connected, begin, sent, stop):
    """Sends `batch` on each connection whenever the socket takes it. With `replies`, the number of
    bytes of a batch's replies, a connection sends the next batch after it has read these replies.
    Reads replies only if `reads`."""
    raise_descriptor_limit(clients + 100)
    family, peer = parse_address(address)
    selector = selectors.EpollSelector()
    events = (0 if replies else selectors.EVENT_WRITE) | (selectors.EVENT_READ if reads else 0)
    sockets = [socket.socket(family, socket.SOCK_STREAM) for _ in range(clients)]
    taken = dict.fromkeys(sockets, 0)
    for client in sockets:
        client.connect(peer)
        client.setblocking(False)
        selector.register(client, events)
    connected.set()
    begin.wait()
    space = bytearray(MIB)
    for client in sockets:  # all have sent before the server runs again
        client.send(batch)
    sent.set()
    while not stop.is_set():
        for key, events in selector.select(0.05):
            client = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    client.send(batch)  # cut anywhere: most commands are complete
                if events & selectors.EVENT_READ:
                    count = client.recv_into(space)
                    if not count:
                        selector.unregister(client)
                    taken[client] += count
                if replies and taken[client] >= replies:
                    taken[client] -= replies
                    client.send(batch)
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(client)
    for client in sockets:
        client.close()


class CrowdTest(DaemonTest):
    def make_tubes(self, daemon, count, name_bytes):
        """Makes `count` tubes with names of that length, each with a delayed job that keeps it."""
        client = self.connect(daemon)
        for first in range(0, count, 2000):
            names = [b"%d-" % number for number in range(first, min(first + 2000, count))]
            puts = b"".join(b"use %s\r\nput 0 100000 100 1\r\nx\r\n" % name.ljust(name_bytes, b"n")
                            for name in names)
            client.pump(puts, 2 * len(names))
        client.close()

    def start_crowd(self, daemon, commands, clients=CLIENTS, reads=True, replies=0):
        """All clients send at the same moment: as many `commands` as fill a pipeline or, if
        `replies`, the size of the replies, is given, `commands` once. Returns a function that ends
        the crowd."""
        batch = commands if replies else commands * (PIPELINED_BYTES // len(commands) + 1)
        connected, begin, sent, stop = (multiprocessing.Event() for _ in range(4))
        process = multiprocessing.Process(
            target=crowd,
            args=(daemon.addresses[0], clients, batch, replies, reads,
                  connected, begin, sent, stop))
        process.start()

        def end():
            stop.set()
            process.join(SECONDS)
            if process.is_alive():
                process.kill()
        self.addCleanup(end)
        self.assertTrue(connected.wait(SECONDS), f"the crowd did not connect within {SECONDS} s")
        daemon.freeze()
        begin.set()
        self.assertTrue(sent.wait(SECONDS), f"the crowd did not send within {SECONDS} s")
        daemon.thaw()
        return end

    def serving(self, *flags, **options):
        raise_descriptor_limit(2 * CLIENTS + 500)
        return self.start("--limits-tubes", str(2 * TUBES), *flags, **options)


class Probe:
    """A client with a tube of its own that measures how long its small commands take."""

    def __init__(self, test, daemon):
        self.schedstat = pathlib.Path(f"/proc/{daemon.pid}/schedstat")
        self.client = test.connect(daemon)
        for command in ("use probe", "watch probe", "ignore default"):
            self.client.ask(command)
        self.cpu_times, self.times = [], []
        test.addCleanup(os.sched_setscheduler, 0, os.sched_getscheduler(0), os.sched_getparam(0))
        try:  # so that this thread gets a processor at once when a reply arrives
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        except PermissionError:
            pass

    def measured(self, act):
        cpu, begin = self.cpu_seconds(), time.monotonic()
        result = act()
        self.times.append(time.monotonic() - begin)
        self.cpu_times.append(self.cpu_seconds() - cpu)
        return result

    def cpu_seconds(self):
        return int(self.schedstat.read_text(encoding="ascii").split()[0]) / 1e9

    def step(self):
        job = self.measured(lambda: self.client.put(b"probe"))
        taken, _ = self.measured(self.client.reserve)
        assert taken == job
        self.measured(lambda: self.client.ask(f"delete {job}"))

    def is_in_time(self, what):
        """Prints the measured times, and forgets them. Whether they are within the bounds."""
        summaries = []
        for times in (self.cpu_times, self.times):
            ordered = sorted(times)
            summaries.append((ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100],
                              ordered[-1]))
        print(f"\n{what}: {len(self.times)} round trips: median, p99, max "
              + "; ".join(f"{median * 1e3:.2f}, {p99 * 1e3:.2f}, {longest * 1e3:.2f} ms {of}"
                          for (median, p99, longest), of
                          in zip(summaries, ("of the server's CPU", "on the clock"))))
        self.cpu_times, self.times = [], []
        _, p99, longest = summaries[0]
        return p99 < P99_SECONDS * SLOWNESS and longest < MAX_SECONDS * SLOWNESS


class Waits(CrowdTest):
    def measure(self, what, commands, prepare=lambda daemon: None, replies=0):
        daemon = self.serving()
        prepare(daemon)
        probe = Probe(self, daemon)
        self.start_crowd(daemon, commands, replies=replies)
        for _ in range(MEASUREMENTS):
            deadline = time.monotonic() + SECONDS_OF_LOAD
            while time.monotonic() < deadline or len(probe.times) <= 100:
                probe.step()
            if probe.is_in_time(f"{CLIENTS} clients that pipeline {what}"):
                return
        self.fail(f"{MEASUREMENTS} measurements exceed {P99_SECONDS * SLOWNESS} s for 99 of 100 "
                  f"commands, or {MAX_SECONDS * SLOWNESS} s for one")

    def test_stats(self):
        self.measure("stats", b"stats\r\n")

    def test_batches(self):
        """Each batch is smaller than the quantum of a client that is alone."""
        self.measure("batches", b"list-tube-used\r\n" * 900,
                     replies=len(b"USING default\r\n") * 900)

    def test_peek(self):
        self.measure("peek", b"peek 1\r\n",
                     prepare=lambda daemon: self.connect(daemon).put(b"x" * 100))

    def test_put(self):
        # Bodies of 1000 bytes keep the number of jobs small: a queue of many jobs grows its tables
        # in one step, which would be measured.
        put = b"put 0 0 100 1000\r\n%s\r\n" % bytes(1000)
        self.measure("put and reserve", put * 3 + b"reserve\r\n")

    def test_list_tubes(self):
        self.measure("list-tubes", b"list-tubes\r\n",
                     prepare=lambda daemon: self.make_tubes(daemon, TUBES, 190))

    def test_list_tubes_while_tubes_are_created_and_removed(self):
        commands = b"".join(b"use t%d\r\n" % number for number in range(20)) + b"list-tubes\r\n"
        self.measure("use and list-tubes", commands,
                     prepare=lambda daemon: self.make_tubes(daemon, TUBES, 190))


class Watchdog(CrowdTest):
    def test_notifications_continue(self):
        path = str(self.directory / "notify")
        beats = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(0.1)
            period = 0.2
            daemon = self.serving(environment={"NOTIFY_SOCKET": path,
                                               "WATCHDOG_USEC": str(int(2 * period * 1e6))})
            self.make_tubes(daemon, TUBES, 190)
            end_crowd = self.start_crowd(daemon, b"list-tubes\r\n", clients=2 * CLIENTS)
            began = time.monotonic()
            while time.monotonic() < began + 2 * SECONDS_OF_LOAD:
                try:
                    if b"WATCHDOG=1" in manager.recv(4096):
                        beats.append(time.monotonic())
                except TimeoutError:
                    pass
            end_crowd()
        longest = max(after - before for before, after in zip([began, *beats], beats))
        print(f"\n{2 * CLIENTS} clients: {len(beats)} beats, {longest:.3f} s apart at most")
        self.assertLess(longest, period + (10 if SANITIZED else 1))


@unittest.skipIf(SANITIZED, "a sanitizer's own memory would be counted")
class Memory(CrowdTest):
    def check_growth(self, daemon, base, what, allowed):
        """Checks that the daemon's memory stays below `base` and `allowed` while the crowd runs."""
        most = 0
        deadline = time.monotonic() + SECONDS_OF_LOAD
        while time.monotonic() < deadline:
            most = max(most, daemon.resident_bytes() - base)
            time.sleep(0.01)
        print(f"\n{what}: {most / MIB:.0f} MiB of {allowed / MIB:.0f} MiB allowed")
        self.assertLess(most, 1.1 * allowed)

    def test_replies_that_are_not_read(self):
        output, waiting = 64 * MIB, 8 * MIB
        daemon = self.serving("--limits-output-memory", str(output),
                              "--limits-input-memory", str(waiting))
        self.make_tubes(daemon, TUBES, 190)
        base = daemon.resident_bytes()
        self.start_crowd(daemon, b"list-tubes\r\n", reads=False)
        self.check_growth(daemon, base, "list-tubes that is not read",
                   output + waiting + TUBES * 193 + CLIENTS * CONNECTION_BYTES)
        self.assertEqual(self.connect(daemon).ask("use a"), "USING a")

    def test_lists_that_differ_and_are_not_read(self):
        output, waiting = 64 * MIB, 8 * MIB
        daemon = self.serving("--limits-output-memory", str(output),
                              "--limits-input-memory", str(waiting))
        self.make_tubes(daemon, TUBES, 190)
        base = daemon.resident_bytes()
        commands = b"use a\r\nuse %s\r\nlist-tubes\r\n" % (b"b" * 190)
        self.start_crowd(daemon, commands, reads=False)
        self.check_growth(daemon, base, "lists that differ",
                   output + waiting + TUBES * 193 + CLIENTS * (CONNECTION_BYTES + LIST_BYTES))

    def test_input_that_waits(self):
        bound = 4 * MIB
        daemon = self.serving("--limits-input-memory", str(bound))
        base = daemon.resident_bytes()
        self.start_crowd(daemon, b"reserve\r\n" + b"list-tube-used\r\n" * 100, reads=False)
        self.check_growth(daemon, base, "input after a reserve", bound + CLIENTS * CONNECTION_BYTES)
        probe = self.connect(daemon)
        until("input to wait", lambda: probe.stats()["input-memory"] > bound // 2)
        until("all clients to wait", lambda: probe.stats()["current-waiting"] == CLIENTS)
        stats = probe.stats()
        self.assertLess(stats["input-memory"], bound + CLIENTS * CONNECTION_BYTES)

    def test_the_server_survives_in_a_bounded_address_space(self):
        """The bound has room for all memory that the limits allow."""
        daemon = self.serving("--limits-output-memory", str(64 * MIB))
        if not SANITIZED:  # a sanitizer reserves terabytes of address space
            resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (1024 * MIB, 1024 * MIB))
        self.make_tubes(daemon, TUBES, 190)
        end_crowd = self.start_crowd(daemon, b"list-tubes\r\n", clients=400, reads=False)
        probe = self.connect(daemon)
        until("the crowd to be served", lambda: probe.stats()["cmd-list-tubes"] >= 300)
        end_crowd()
        self.assertEqual(probe.ask("use a"), "USING a")


if __name__ == "__main__":
    unittest.main()
