"""The daemon runs out of file descriptors. It answers further clients, does not spin, serves the
connected clients, and recovers when descriptors become free."""

import time
import unittest

from harness import Client, DaemonTest, Stopwatch, passed, until

DESCRIPTORS = 40
WATCHED_SECONDS = 1.0


class Descriptors(DaemonTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start("--limits-connections", "100", descriptors=DESCRIPTORS)
        # A sanitizer checks each virtual call the first time it is made, and needs a pipe for it.
        first = self.connect(self.daemon)
        first.ask(f"delete {first.put()}")
        first.put()
        first.ask(f"delete {first.reserve()[0]}")
        first.close()

    def exhaust(self):
        """Connects until a client is refused; returns the clients that were accepted."""
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
        watch = Stopwatch(self.daemon)
        for _ in range(50):
            client = self.connect(self.daemon)
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
            client.close()
        self.assertLess(watch.lap(), 5)
        self.assertEqual(accepted[0].stats()["refused-connections"], refused_before + 50)
        self.assertIn("reason=", self.daemon.wait_for_line("cannot take connections"))

    def test_a_crowd_is_answered(self):
        accepted = self.exhaust()
        refused_before = accepted[0].stats()["refused-connections"]
        self.daemon.freeze()
        crowd = [self.connect(self.daemon) for _ in range(200)]
        self.daemon.thaw()
        for client in crowd:
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
        self.assertEqual(accepted[0].stats()["refused-connections"], refused_before + 200)

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

    def test_does_not_spin_and_serves_connected_clients(self):
        accepted = self.exhaust()
        waiting = [self.connect(self.daemon) for _ in range(5)]  # in the backlog or refused
        before = self.daemon.cpu_seconds()
        begin = time.monotonic()
        job = 0
        slowest = 0.0

        def serve():
            nonlocal job, slowest
            watch = Stopwatch(self.daemon)
            job = accepted[0].put()
            self.assertEqual(accepted[1].reserve()[0], job)
            self.assertEqual(accepted[1].ask(f"delete {job}"), "DELETED")
            slowest = max(slowest, watch.lap())
            late = Client(self.daemon.addresses[0])
            late.close()
            return passed(begin + WATCHED_SECONDS)()

        until("a second to pass", serve)
        share = (self.daemon.cpu_seconds() - before) / (time.monotonic() - begin)
        print(f"\nno descriptors: {share:.0%} of a processor, {job} jobs, "
              f"slowest {slowest * 1e3:.1f} ms")
        self.assertLess(share, 0.2 if job < 500 else 0.5)
        self.assertLess(slowest, 1)
        for client in waiting:
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")

    def test_does_not_spin_without_further_clients(self):
        self.exhaust()
        before = self.daemon.cpu_seconds()
        begin = time.monotonic()
        until("a second to pass", passed(begin + WATCHED_SECONDS))
        self.assertLess(self.daemon.cpu_seconds() - before, 0.1)

    def test_recovers(self):
        accepted = self.exhaust()
        for client in accepted[5:]:
            client.close()
        first = accepted[0]
        until("the connections to be closed", lambda: first.stats()["current-connections"] == 5)
        again = [self.connect(self.daemon) for _ in range(len(accepted) - 5)]
        for client in again:
            self.assertEqual(client.ask("list-tube-used"), "USING default")


if __name__ == "__main__":
    unittest.main()
