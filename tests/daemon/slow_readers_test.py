"""Clients that do not read their replies, or read them slowly, use a bounded amount of memory and
do not delay other clients; clients that are idle or stalled are closed."""

import hashlib
import os
import select
import signal
import time
import unittest

from harness import SANITIZED, SECONDS, DaemonTest, StandingClock, until

MIB = 1 << 20


class SteppedTest(DaemonTest):
    """Tests of timeouts that must not end: the clock of the server stands between the steps of a test."""

    def start_stepped(self, *flags):
        self.clock = StandingClock(self.directory)
        daemon = self.start(*flags, environment=self.clock.environment)
        self.clock.advance()
        return daemon

    def wait_for_two_ticks(self, daemon):
        """Waits until the server has done all that it could do when this was called."""
        for _ in range(2):
            count = len(daemon.lines_with("not draining"))
            daemon.signal(signal.SIGUSR2)
            daemon.wait_for_line("not draining", count + 1)

    def step(self, daemon, seconds):
        self.wait_for_two_ticks(daemon)
        self.clock.advance(seconds)
        self.wait_for_two_ticks(daemon)


class SlowReaders(SteppedTest):
    def send_without_reading(self, client, data):
        """Sends as much of `data` as the socket takes; returns the number of bytes."""
        client.socket.setblocking(False)
        sent = 0
        while sent < len(data) and select.select([], [client.socket], [], 0.2)[1]:
            sent += client.socket.send(data[sent:])
        client.socket.setblocking(True)
        return sent

    def check_growth(self, daemon, before, allowed):
        growth = daemon.resident_bytes() - before
        print(f"\n{self._testMethodName}: grew by {growth / MIB:.1f} MiB")
        if not SANITIZED:
            self.assertLess(growth, allowed)

    def test_twenty_clients_that_never_read_use_little_memory(self):
        daemon = self.start("-z", "1MiB")
        other = self.connect(daemon)
        small, large = other.put(b"s" * 1000), other.put(b"l" * MIB)
        before = daemon.resident_bytes()
        for i in range(20):
            client = self.connect(daemon, receive_buffer=4096)
            command = b"peek %d\r\n" % (small if i % 2 else large)
            self.send_without_reading(client, command * 20_000)
        for _ in range(100):
            self.assertEqual(other.ask("list-tube-used"), "USING default")
        self.check_growth(daemon, before, 20 * 2 * MIB)

    def test_a_client_that_never_catches_up_uses_little_memory(self):
        # The client never has read all replies, and the replies that it has read must be freed all
        # the same. The buffers of unix sockets stay smaller than limits.output_bytes.
        daemon = self.start(listen=f"unix:{self.directory}/socket")
        other = self.connect(daemon)
        job = other.put(b"s" * 1500)
        client = self.connect(daemon)
        commands = b"peek %d\r\n" % job * 4000
        before = daemon.resident_bytes()
        sent = taken = 0
        client.socket.setblocking(False)
        while taken < 150 * MIB:
            readable, writable, _ = select.select([client.socket], [client.socket], [], SECONDS)
            self.assertTrue(readable or writable)
            # The client sends as fast as it can, and reads only when it cannot send.
            if writable:
                sent += client.socket.send(commands[sent % len(commands):])
            elif readable:
                taken += len(client.socket.recv(4096))
        self.check_growth(daemon, before, 8 * MIB)

    def test_the_replies_of_all_clients_have_a_bound(self):
        daemon = self.start("-z", "8MiB", "--limits-output-memory", "16MiB")
        other = self.connect(daemon)
        job = other.put(b"l" * 8 * MIB)
        clients = []
        for _ in range(10):
            clients.append(self.connect(daemon, receive_buffer=4096))
            clients[-1].send(b"peek %d\r\n" % job)
        # The slowest readers are closed first, and the others get their replies. The number of
        # closed clients depends on how much of each reply the kernel buffers.
        until("some clients to be closed", lambda: other.stats()["current-connections"] <= 8)
        self.assertIn("limits.output_memory", daemon.wait_for_line("closing a client"))
        self.assertEqual(clients[-1].body(), (["FOUND", str(job), str(8 * MIB)], b"l" * 8 * MIB))
        self.assertLess(len(clients[0].rest()), 8 * MIB)

    def test_a_client_whose_body_stops_arriving_is_closed(self):
        daemon = self.start("--timeouts-stall", "1s")
        other = self.connect(daemon)
        client = self.connect(daemon)
        begin = time.monotonic()
        client.send(b"put 0 0 60 10000\r\nhe")
        self.assertEqual(client.rest(), b"")
        self.assertGreater(time.monotonic() - begin, 0.9)
        self.assertEqual(other.stats()["job-memory"], 0)
        self.assertIn("timeouts.stall", daemon.wait_for_line("closing a client"))

    def test_a_client_whose_body_arrives_slowly_is_not_closed(self):
        daemon = self.start_stepped("--timeouts-stall", "10s")
        slow, stalled = self.connect(daemon), self.connect(daemon)
        for client in (slow, stalled):
            client.send(b"put 0 0 60 5\r\n")
        for byte in (b"h", b"e", b"l", b"l", b"o"):
            self.step(daemon, 6)
            slow.send(byte)
        self.assertEqual(slow.ask("").split()[0], "INSERTED")
        self.assertEqual(stalled.rest(), b"")

    def test_a_client_that_reads_nothing_is_closed_and_its_jobs_are_ready_again(self):
        daemon = self.start("-z", "4MiB", "--timeouts-stall", "1s")
        other = self.connect(daemon)
        for _ in range(8):
            other.put(b"x" * 4 * MIB)
        client = self.connect(daemon, receive_buffer=4096)
        begin = time.monotonic()
        client.send(b"reserve\r\n" * 8)
        line = daemon.wait_for_line("closing a client")
        self.assertIn("timeouts.stall", line)
        self.assertGreater(time.monotonic() - begin, 0.9)
        until("its jobs to be ready", lambda: other.stats()["current-jobs-ready"] == 8)
        self.assertEqual(other.stats("stats-job 1")["reserves"], 1)
        self.assertEqual(other.stats()["current-connections"], 1)

    def test_a_slow_reader_gets_every_byte(self):
        # Reading takes several times as long as timeouts.stall, and the client makes progress all the time.
        daemon = self.start_stepped("-z", "4MiB", "--timeouts-stall", "20s")
        other = self.connect(daemon)
        bodies = [os.urandom(size) for size in (4 * MIB, 3 * MIB, 100, 5 * MIB // 2, 70_000)]
        for body in bodies:
            other.put(body)
        expected = b"".join(b"RESERVED %d %d\r\n%s\r\n" % (job, len(body), body)
                            for job, body in enumerate(bodies, 1))
        expected += b"USING default\r\n" * 1000
        client = self.connect(daemon, receive_buffer=65536)
        client.send(b"reserve\r\n" * len(bodies) + b"list-tube-used\r\n" * 1000)
        got = bytearray()
        while len(got) < len(expected):
            portion = min(len(expected), len(got) + MIB // 4)
            while len(got) < portion:
                chunk = client.socket.recv(portion - len(got))
                self.assertTrue(chunk, f"closed after {len(got)} of {len(expected)} bytes")
                got += chunk
            self.step(daemon, 2)
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(expected).digest())
        self.assertEqual(client.ask("list-tube-used"), "USING default")


class Idle(SteppedTest):
    def test_only_idle_clients_are_closed(self):
        daemon = self.start_stepped("--timeouts-idle", "10s")
        holder, waiter, talker = (self.connect(daemon) for _ in range(3))
        job = holder.put(ttr=1000)
        self.assertEqual(holder.reserve()[0], job)
        waiter.send(b"reserve\r\n")
        idle = [self.connect(daemon) for _ in range(10)]
        half = self.connect(daemon)
        half.send(b"put 0 0 10 5\r\nhe")  # an incomplete body

        def talk():
            self.assertEqual(talker.ask("list-tube-used"), "USING default")
            return talker.stats()["current-connections"]

        until("all clients to be connected", lambda: talk() == 14)
        self.step(daemon, 9)
        self.assertEqual(talk(), 14)
        self.step(daemon, 2)
        until("the idle clients to be closed", lambda: talk() == 3)
        for client in [*idle, half]:
            self.assertEqual(client.rest(), b"")
        for _ in range(5):
            self.step(daemon, 6)
            self.assertEqual(talk(), 3)
        self.assertIn("timeouts.idle", daemon.wait_for_line("closing a client"))
        self.assertEqual(talker.put(body=b"other"), job + 1)
        self.assertEqual(waiter.body()[0], ["RESERVED", str(job + 1), "5"])
        self.assertEqual(holder.ask(f"delete {job}"), "DELETED")
        for _ in range(2):
            self.step(daemon, 6)
        self.assertEqual(holder.rest(), b"")  # the client is idle without a job

    def test_by_default_no_client_is_closed(self):
        daemon = self.start_stepped()
        client, other = self.connect(daemon), self.connect(daemon)
        other.ask("list-tube-used")
        for _ in range(3):
            self.step(daemon, 24 * 3600)
        self.assertEqual(client.ask("list-tube-used"), "USING default")


if __name__ == "__main__":
    unittest.main()
