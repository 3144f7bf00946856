"""Many TLS handshakes on the real daemon: slow handshakes do not delay other clients, are bounded
in number and time, and leak nothing; nor do handshakes that succeed or fail.

TUBED_HANDSHAKES is the number of handshakes of the memory test.
"""

import contextlib
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import unittest

from harness import (SANITIZED, SECONDS, Client, StandingClock, parse_address, raise_descriptor_limit,
                     tls_context, until)
from tls_tests import TlsTest

SLOW = 2_000 if not SANITIZED else 500
PENDING = 300
HANDSHAKES = int(os.environ.get("TUBED_HANDSHAKES", "5000" if not SANITIZED else "1000"))
# Growth of memory allowed in the last three quarters of the handshakes, whatever their number.
GROWTH = 1 << 20
FIRST_BYTE = b"\x16"


class SlowHandshakesTest(TlsTest):
    def setUp(self):
        super().setUp()
        raise_descriptor_limit(2 * SLOW + 500)

    def open_slow(self, daemon, count, sent=FIRST_BYTE):
        family, peer = parse_address(daemon.addresses[0])
        for _ in range(count):
            client = socket.socket(family, socket.SOCK_STREAM)
            self.addCleanup(client.close)
            client.connect(peer)
            client.sendall(sent)
            yield client


class SlowHandshakes(SlowHandshakesTest):
    def ended(self, sockets):
        """Returns how many of the connections the server has closed."""
        poll = select.poll()
        for one in sockets:
            poll.register(one, select.POLLIN)
        return len(poll.poll(0))

    def serve_with_clock(self, settings=""):
        """Starts a daemon in which a handshake times out when the test advances its clock."""
        self.clock = StandingClock(self.directory)
        daemon = self.serve(settings=f"timeouts.handshake = \"1m\"\n{settings}",
                            environment=self.clock.environment)
        self.clock.advance()
        return daemon

    def end_a_minute(self, client):
        self.clock.advance(61)
        client.ask("list-tube-used")  # makes the daemon notice it

    def test_slow_handshakes(self):
        daemon = self.serve_with_clock(f"limits.handshakes = {PENDING}\n")
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        descriptors = self.open_descriptors(daemon)
        slow = []
        for number, one in enumerate(self.open_slow(daemon, SLOW)):
            slow.append(one)
            if number % 20 == 0:
                client.ask("list-tube-used")
        self.assertLessEqual(self.open_descriptors(daemon), descriptors + PENDING + 1)
        until("the oldest to be closed", lambda: self.ended(slow) >= SLOW - PENDING)
        # Another client is served as one more handshake, while the others still have time.
        other = self.connect_tls(daemon)
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        self.assertLessEqual(self.ended(slow), SLOW - PENDING + 1)
        self.end_a_minute(client)
        until("all to be closed", lambda: self.ended(slow) == SLOW)
        until("their descriptors to be closed",
              lambda: self.open_descriptors(daemon) == descriptors + 1)
        daemon.wait_for_line("too many handshakes at once")
        self.assertEqual(client.stats()["current-connections"], 2)

    def test_a_handshake_that_stops_anywhere_ends_in_time(self):
        """Includes clients that send a part of their half of the handshake, or nothing."""
        hello = ssl.MemoryBIO()
        with self.assertRaises(ssl.SSLWantReadError):
            tls_context().wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
        hello = hello.read()
        daemon = self.serve_with_clock()
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        before = self.open_descriptors(daemon)
        slow = [one for cut in (0, 1, 5, 100, len(hello) - 1, len(hello))
                for one in self.open_slow(daemon, 2, hello[:cut])]
        until("all to be accepted", lambda: self.open_descriptors(daemon) == before + len(slow))
        until("the half of the server", lambda: self.ended(slow[-2:]) == 2)
        self.assertEqual(self.ended(slow[:-2]), 0)
        self.end_a_minute(client)
        for one in slow:
            one.settimeout(SECONDS)
            with contextlib.suppress(ConnectionResetError):
                while one.recv(4096):
                    pass
        until("their descriptors", lambda: self.open_descriptors(daemon) == before)
        self.assertEqual(client.ask("list-tube-used"), "USING default")

    def test_a_stop_does_not_wait_for_handshakes(self):
        daemon = self.serve(settings="timeouts.handshake = \"1h\"\n")
        slow = list(self.open_slow(daemon, 50))
        self.connect_tls(daemon).ask("list-tube-used")
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)  # would time out long before the hour ends
        self.assertEqual(self.ended(slow), 50)

    def test_connections_above_the_limit(self):
        daemon = self.serve(settings="limits.connections = 2\n")
        clients = [self.connect_tls(daemon) for _ in range(2)]
        for client in clients:
            client.ask("list-tube-used")
        with self.assertRaises((OSError, AssertionError)):
            self.connect_tls(daemon).ask("list-tube-used")
        clients[0].close()
        until("the end of a client", lambda: clients[1].stats()["current-connections"] == 1)
        self.assertEqual(self.connect_tls(daemon).ask("list-tube-used"), "USING default")


class Memory(TlsTest):
    def shake_hands(self, daemon, seconds):
        """Makes new handshakes without resumption for `seconds`; returns their number."""
        done = subprocess.run(["openssl", "s_time", "-connect", daemon.addresses[0], "-new", "-time",
                               str(seconds)], capture_output=True, text=True, check=False,
                              timeout=SECONDS + seconds)
        return int(re.search(r"^(\d+) connections in \d+ real", done.stdout, re.MULTILINE)[1])

    def some_of_each_kind(self, daemon):
        """Makes connections that end in other ways than s_time's: work, failures, resets."""
        for _ in range(20):
            client = self.connect_tls(daemon)
            job = client.put(b"x" * 30_000)
            client.reserve()
            client.ask(f"delete {job}")
            client.half_close()
            client.rest()
            client.close()
            plain = Client(daemon.addresses[0])
            plain.send(b"stats\r\n")
            plain.rest()
            plain.close()
            client = self.connect_tls(daemon, context=tls_context())
            client.reset()

    def test_handshakes_leave_no_memory(self):
        daemon = self.serve()
        done, figures = 0, []
        # After an answer the daemon has opened everything that it needs, including this connection.
        self.connect_tls(daemon).ask("list-tube-used")
        descriptors = self.open_descriptors(daemon)
        self.some_of_each_kind(daemon)
        while done < HANDSHAKES:
            done += self.shake_hands(daemon, 1 + HANDSHAKES // 100_000)
            self.some_of_each_kind(daemon)
            until("all to be closed", lambda: self.open_descriptors(daemon) == descriptors)
            figures.append((done, daemon.resident_bytes()))
        quarter = next(bytes for count, bytes in figures if count * 4 >= done)
        if not SANITIZED:
            self.assertLess(figures[-1][1] - quarter, GROWTH, figures)
        # No client of the queue remains.
        self.assertEqual(self.connect_tls(daemon).stats()["current-connections"], 2)


if __name__ == "__main__":
    unittest.main()
