"""The daemon runs out of file descriptors. It answers further clients, does not spin, serves the
connected clients, and recovers when descriptors become free.
"""

import unittest

from harness import DaemonTest, StandingClock, until

DESCRIPTORS = 40


class Descriptors(DaemonTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start("--limits-connections", "100", descriptors=DESCRIPTORS)
        # On the first call of each virtual function a sanitizer checks it, and needs a pipe.
        first = self.connect(self.daemon)
        first.ask(f"delete {first.put()}")
        first.put()
        first.ask(f"delete {first.reserve()[0]}")
        first.close()

    def exhaust(self):
        """Connects until a client is refused; returns the accepted clients."""
        accepted = []
        while True:
            client = self.connect(self.daemon)
            try:
                answer = client.ask("list-tube-used")
            except (AssertionError, OSError):  # closed or reset after the refusal
                answer = "OUT_OF_MEMORY"
            if answer == "OUT_OF_MEMORY":
                return accepted
            self.assertEqual(answer, "USING default")
            accepted.append(client)
            self.assertLess(len(accepted), DESCRIPTORS)

    def test_too_few_descriptors_are_logged_at_the_start(self):
        line = self.daemon.wait_for_line("fewer file descriptors than connections")
        self.assertIn(f"descriptors={DESCRIPTORS}", line)

    def test_further_clients_are_answered(self):
        accepted = self.exhaust()
        self.assertGreater(len(accepted), DESCRIPTORS // 2)
        refused_before = accepted[0].stats()["refused-connections"]
        for _ in range(50):
            client = self.connect(self.daemon)
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
            client.close()
        self.assertEqual(accepted[0].stats()["refused-connections"], refused_before + 50)
        self.assertIn("reason=", self.daemon.wait_for_line("cannot take connections"))

    def test_the_last_descriptor_is_used_without_a_refusal(self):
        accepted = self.exhaust()
        last = accepted.pop()
        first = accepted[0]
        refused_before = first.stats()["refused-connections"]
        last.close()
        until("the connection to be closed",
              lambda: first.stats()["current-connections"] == len(accepted))
        self.assertEqual(self.connect(self.daemon).ask("list-tube-used"), "USING default")
        self.assertEqual(first.stats()["refused-connections"], refused_before)

    def test_recovers(self):
        accepted = self.exhaust()
        for client in accepted[5:]:
            client.close()
        first = accepted[0]
        until("the connections to be closed", lambda: first.stats()["current-connections"] == 5)
        again = [self.connect(self.daemon) for _ in range(len(accepted) - 5)]
        for client in again:
            self.assertEqual(client.ask("list-tube-used"), "USING default")


class TooFewDescriptors(DaemonTest):
    OWN, HELD, HTTP, WAITS = 64, 256, 128, 1000

    def warning(self, descriptors, *flags):
        """Returns the warning about too few descriptors; None if the server logs none before the
        listener is open."""
        daemon = self.start("--limits-connections", "100", *flags, descriptors=descriptors)
        lines = daemon.lines_with("fewer file descriptors than connections")
        self.end(daemon)
        return lines[0] if lines else None

    def check(self, needed, *flags):
        self.assertIsNone(self.warning(needed, *flags))
        line = self.warning(needed - 1, *flags)
        self.assertIn(f"descriptors={needed - 1} needed={needed} limits.connections=100", line)

    def test_held_connections_are_counted(self):
        self.check(100 + self.OWN + self.HELD + self.HTTP)

    def test_requests_that_wait_are_counted(self):
        self.check(100 + self.OWN + self.HELD + self.HTTP + self.WAITS,
                   "--http-listen", "127.0.0.1:0", "--http-api", "read")


class HeldConnections(DaemonTest):
    def test_refused_connections_take_no_descriptor_from_others(self):
        # No time passes in the server, so a held connection never expires.
        clock = StandingClock(self.directory)
        daemon = self.start("--limits-connections", "3", descriptors=DESCRIPTORS,
                            environment=clock.environment)
        clock.advance()
        clients = [self.connect(daemon) for _ in range(3)]
        for client in clients:
            client.ask("list-tube-used")
        for _ in range(3 * DESCRIPTORS):
            self.assertEqual(self.connect(daemon).line(), "OUT_OF_MEMORY")
        self.assertEqual(clients[0].stats()["refused-connections"], 3 * DESCRIPTORS)
        clients.pop().close()
        until("room", lambda: clients[0].stats()["current-connections"] == 2)
        self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")
        self.assertEqual(daemon.lines_with("cannot take connections"), [])


if __name__ == "__main__":
    unittest.main()
