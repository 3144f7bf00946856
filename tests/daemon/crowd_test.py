"""1,000 clients request as much as they can. Meanwhile the commands of another client run before
most of theirs, the watchdog notifications continue, and memory stays within its limits.

bench/measure/crowd.py measures how long the other client waits.
"""

import multiprocessing
import resource
import selectors
import socket
import threading
import time
import unittest

from harness import SANITIZED, SECONDS, DaemonTest, parse_address, raise_descriptor_limit, until

MIB = 1 << 20
CLIENTS = 100 if SANITIZED else 1000
TUBES = 5_000 if SANITIZED else 100_000
SECONDS_OF_LOAD = 2
PIPELINED_BYTES = 32 * 1024
# The memory of a connection, and the smallest size of a read.
CONNECTION_BYTES = 8 * 1024
# The memory of a client in the middle of a list that it shares with no other client: a pointer per
# part.
LIST_BYTES = TUBES // 256 * 16
# The largest work of a tick (commands/tick_budget.h), in commands.
TICK = 8000
# The commands of one client in its turn, with a crowd.
TURN = max(16, TICK // CLIENTS)
# More commands of a client than run in one tick without a crowd.
BATCH = 2000
NOTIFICATIONS = 10


def crowd(address, clients, batch, replies, reads, connected, begin, sent, stop):
    """Sends `batch` on each connection whenever the socket accepts it. With `replies`, the number
    of bytes of a batch's replies, a connection sends the next batch after it has read these
    replies. Reads replies only if `reads`."""
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
    for client in sockets:  # all have sent before the server continues
        client.send(batch)
    sent.set()
    while not stop.is_set():
        for key, events in selector.select(0.05):
            client = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    client.send(batch)  # may be cut anywhere: most commands are complete
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
        """Makes `count` tubes with names of that length, each kept by a delayed job."""
        client = self.connect(daemon)
        for first in range(0, count, 2000):
            names = [b"%d-" % number for number in range(first, min(first + 2000, count))]
            puts = b"".join(b"use %s\r\nput 0 100000 100 1\r\nx\r\n" % name.ljust(name_bytes, b"n")
                            for name in names)
            client.pump(puts, 2 * len(names))
        client.close()

    def start_crowd(self, daemon, commands, clients=CLIENTS, reads=True, replies=0):
        """All clients send at the same moment: as many `commands` as fill a pipeline or, if
        `replies` (the size of the replies) is given, `commands` once. Returns a function that ends
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


class Turns(CrowdTest):
    """Clients that have sent many commands take turns, and a client with one command is served
    between them. The process is stopped while they all send, so all input has arrived when it
    continues. The replies to `stats` count the commands that ran before."""

    PROBES = 10

    def commands_before(self, stats):
        return sum(value for key, value in stats.items() if key.startswith("cmd-"))

    def check(self, command, reply, prepare=lambda client: None):
        daemon = self.serving()
        probes = [self.connect(daemon) for _ in range(self.PROBES)]
        prepare(probes[0])
        batch = command * (BATCH // command.count(b"\r\n"))
        replies = len(reply) * (BATCH // command.count(b"\r\n"))
        clients = [self.connect(daemon) for _ in range(CLIENTS)]
        for client in clients:  # the server then knows them as clients with much to do
            client.send(batch)
        for client in clients:
            client.read(replies)
        for probe in probes[1:]:
            probe.stats()
        begin = self.commands_before(probes[0].stats())
        daemon.freeze()
        for client in clients:
            client.send(batch)
        for probe in probes:
            probe.send(b"stats\r\n")
        daemon.thaw()
        before = [self.commands_before(probe.reply_to_stats()) - begin for probe in probes]
        print(f"\ncommands of {CLIENTS} clients before those of {self.PROBES} others: {max(before)}")
        # The tick that finds the input serves some clients as without a crowd. After it the server
        # alternates between clients that are new in this wave and clients with more to do.
        self.assertLess(max(before), 2 * TICK + 2 * CLIENTS * TURN)
        for client in clients:
            client.read(replies)
        done = self.commands_before(probes[0].stats()) - begin
        self.assertGreaterEqual(done, CLIENTS * BATCH)

    def test_commands_that_read(self):
        self.check(b"list-tube-used\r\n", b"USING default\r\n")


class Watchdog(CrowdTest):
    def test_notifications_continue(self):
        path = str(self.directory / "notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(path)
        received = []

        def receive():
            while message := manager.recv(4096):
                received.append(message)
        reader = threading.Thread(target=receive)  # the daemon waits for its manager to read
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(manager.shutdown, socket.SHUT_RDWR)
        daemon = self.serving(environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"})
        self.make_tubes(daemon, TUBES, 190)
        end_crowd = self.start_crowd(daemon, b"list-tubes\r\n", clients=2 * CLIENTS)
        before = len(received)
        until("the notifications",
              lambda: sum(b"WATCHDOG=1" in message for message in received[before:])
              >= NOTIFICATIONS)
        end_crowd()


@unittest.skipIf(SANITIZED, "a sanitizer's own memory would be counted")
class Memory(CrowdTest):
    def check_growth(self, daemon, base, what, allowed):
        """Checks that the daemon's memory grows by at most about `allowed` above `base` while the
        crowd runs."""
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
        """The bound is large enough for all memory that the limits allow."""
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
