"""Clients that do not read their replies, or read them slowly, use a bounded amount of memory and
do not delay other clients; clients that are idle or stalled are closed.
"""

import hashlib
import os
import select
import time
import unittest

from harness import SANITIZED, SECONDS, DaemonTest, StandingClock, until

MIB = 1 << 20


class SteppedTest(DaemonTest):
    """Tests with timeouts that must not expire: the clock of the server stops between the steps of
    a test."""

    def start_stepped(self, *flags):
        self.clock = StandingClock(self.directory)
        daemon = self.start(*flags, environment=self.clock.environment)
        self.clock.advance()
        return daemon

    def step(self, daemon, seconds):
        daemon.wait_for_two_ticks()
        self.clock.advance(seconds)
        daemon.wait_for_two_ticks()


class SlowReaders(SteppedTest):
    def test_a_client_that_never_catches_up_uses_little_memory(self):
        # The client has never read all replies, but the replies that it has read must be freed. The
        # buffers of unix sockets stay smaller than limits.output_bytes.
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
        growth = daemon.resident_bytes() - before
        print(f"\n{self._testMethodName}: grew by {growth / MIB:.1f} MiB")
        if not SANITIZED:
            self.assertLess(growth, 8 * MIB)

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
        # Reading takes several times as long as timeouts.stall, but the client always makes
        # progress.
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

if __name__ == "__main__":
    unittest.main()
