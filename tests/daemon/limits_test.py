"""At each limit the daemon replies with an error of the protocol and continues to serve."""

import hashlib
import os
import time
import unittest

from harness import DaemonTest, until

MIB = 1 << 20


class Connections(DaemonTest):
    def test_a_connection_above_the_limit_gets_out_of_memory_and_is_closed(self):
        daemon = self.start("--limits-connections", "3")
        clients = [self.connect(daemon) for _ in range(3)]
        for client in clients:
            self.assertEqual(client.ask("list-tube-used"), "USING default")
        self.assertEqual(self.connect(daemon).rest(), b"OUT_OF_MEMORY\r\n")
        stats = clients[0].stats()
        self.assertEqual(stats["refused-connections"], 1)
        self.assertEqual(stats["current-connections"], 3)
        self.assertEqual(stats["total-connections"], 3)

    def test_a_refused_connection_that_has_already_sent_gets_the_same_reply(self):
        daemon = self.start("--limits-connections", "1")
        first = self.connect(daemon)
        first.ask("list-tube-used")
        for command in (b"list-tube-used\r\n", b"put 0 0 60 60000\r\n" + b"x" * 60000 + b"\r\n"):
            late = self.connect(daemon)
            try:
                late.send(command)
            except OSError:
                pass  # the server may close the connection before everything is sent
            self.assertEqual(late.rest(), b"OUT_OF_MEMORY\r\n")

    def test_a_connection_is_accepted_after_another_is_closed(self):
        daemon = self.start("--limits-connections", "2")
        open_client, closing_client = self.connect(daemon), self.connect(daemon)
        closing_client.ask("list-tube-used")
        closing_client.close()
        until("the connection to be closed",
              lambda: open_client.stats()["current-connections"] == 1)
        self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")

    def test_two_thousand_refusals_are_counted_and_few_are_logged(self):
        daemon = self.start("--limits-connections", "1")
        accepted = self.connect(daemon)
        accepted.ask("list-tube-used")
        begin = time.monotonic()
        for _ in range(10):
            crowd = [self.connect(daemon) for _ in range(200)]
            for late in crowd:
                self.assertEqual(late.rest(), b"OUT_OF_MEMORY\r\n")
                late.close()
        seconds = time.monotonic() - begin
        self.assertEqual(accepted.stats()["refused-connections"], 2000)
        daemon.wait_for_two_ticks()
        lines = daemon.lines_with("connection refused")
        self.assertIn("limits.connections=1", lines[0])
        self.assertGreaterEqual(len(lines), 1)
        self.assertLessEqual(len(lines), 5 * (seconds + 2))


class Bounds(DaemonTest):
    def test_line_bytes(self):
        client = self.connect(self.start("--limits-line-bytes", "300"))
        self.assertEqual(client.ask("a" * 298), "UNKNOWN_COMMAND")
        self.assertEqual(client.ask("a" * 299), "BAD_FORMAT")
        self.assertEqual(client.ask("a" * 5 * MIB), "BAD_FORMAT")
        self.assertEqual(client.ask("list-tube-used"), "USING default")

    def test_large_bodies_are_returned_byte_for_byte(self):
        client = self.connect(self.start("-z", "8MiB"))
        sizes = (8 * MIB, 8 * MIB - 1, 4097, 4096, 4095, 65536, 2048, 2047, 0)
        bodies = [os.urandom(size) for size in sizes]
        for body in bodies:
            client.put(body)
        for job, body in enumerate(bodies, 1):
            number, got = client.reserve()
            self.assertEqual(number, job)
            self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(body).digest())
        client.send(b"put 0 0 60 %d\r\n" % (8 * MIB + 1) + b"x" * (8 * MIB + 1) + b"\r\n")
        self.assertEqual(client.line(), "JOB_TOO_BIG")

if __name__ == "__main__":
    unittest.main()
