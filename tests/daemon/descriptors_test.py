"""The daemon runs out of file descriptors: it answers, does not spin, serves who is inside, and
recovers."""

import time
import unittest

from harness import Client, DaemonTest, Stopwatch, passed, until

DESCRIPTORS = 40
WATCHED_SECONDS = 1.0


class Descriptors(DaemonTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start("--limits-connections", "100", descriptors=DESCRIPTORS)
        # A sanitizer checks a virtual call the first time it comes by, and needs a pipe for it.
        first = self.connect(self.daemon)
        first.ask(f"delete {first.put()}")
        first.put()
        first.ask(f"delete {first.reserve()[0]}")
        first.close()

    def exhaust(self):
        """Connects until no more is let in; returns those that are."""
        inside = []
        while True:
            client = self.connect(self.daemon)
            try:
                answer = client.ask("list-tube-used")
            except (AssertionError, OSError):  # closed, or reset, as it had been told
                answer = "OUT_OF_MEMORY"
            if answer == "OUT_OF_MEMORY":
                return inside
            self.assertEqual(answer, "USING default")
            inside.append(client)
            self.assertLess(len(inside), DESCRIPTORS)

    def test_says_at_the_start_that_they_are_few(self):
        line = self.daemon.wait_for_line("fewer file descriptors than connections")
        self.assertIn(f"descriptors={DESCRIPTORS}", line)

    def test_further_clients_are_told(self):
        inside = self.exhaust()
        self.assertGreater(len(inside), DESCRIPTORS // 2)
        refused_before = inside[0].stats()["refused-connections"]
        watch = Stopwatch(self.daemon)
        for _ in range(50):
            client = self.connect(self.daemon)
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
            client.close()
        self.assertLess(watch.lap(), 5)
        self.assertEqual(inside[0].stats()["refused-connections"], refused_before + 50)
        self.assertIn("reason=", self.daemon.wait_for_line("cannot take connections"))

    def test_a_crowd_is_told(self):
        inside = self.exhaust()
        refused_before = inside[0].stats()["refused-connections"]
        self.daemon.freeze()
        crowd = [self.connect(self.daemon) for _ in range(200)]
        self.daemon.thaw()
        for client in crowd:
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
        self.assertEqual(inside[0].stats()["refused-connections"], refused_before + 200)

    def test_the_last_descriptor_is_given_without_a_complaint(self):
        inside = self.exhaust()
        last = inside.pop()
        stays = inside[0]
        refused_before = stays.stats()["refused-connections"]
        last.close()
        until("the place to be free",
              lambda: stays.stats()["current-connections"] == len(inside))
        self.assertEqual(self.connect(self.daemon).ask("list-tube-used"), "USING default")
        self.assertEqual(stays.stats()["refused-connections"], refused_before)

    def test_does_not_spin_and_serves_who_is_inside(self):
        inside = self.exhaust()
        waiting = [self.connect(self.daemon) for _ in range(5)]  # in or out of the backlog
        before = self.daemon.cpu_seconds()
        begin = time.monotonic()
        job = 0
        slowest = 0.0

        def serve():
            nonlocal job, slowest
            watch = Stopwatch(self.daemon)
            job = inside[0].put()
            self.assertEqual(inside[1].reserve()[0], job)
            self.assertEqual(inside[1].ask(f"delete {job}"), "DELETED")
            slowest = max(slowest, watch.lap())
            late = Client(self.daemon.addresses[0])
            late.close()
            return passed(begin + WATCHED_SECONDS)()

        until("a second to pass", serve)
        share = (self.daemon.cpu_seconds() - before) / (time.monotonic() - begin)
        print(f"\nexhausted: {share:.0%} of a processor, {job} jobs, slowest {slowest * 1e3:.1f} ms")
        self.assertLess(share, 0.2 if job < 500 else 0.5)
        self.assertLess(slowest, 1)
        for client in waiting:
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")

    def test_does_not_spin_when_nobody_comes(self):
        self.exhaust()
        before = self.daemon.cpu_seconds()
        begin = time.monotonic()
        until("a second to pass", passed(begin + WATCHED_SECONDS))
        self.assertLess(self.daemon.cpu_seconds() - before, 0.1)

    def test_recovers(self):
        inside = self.exhaust()
        for client in inside[5:]:
            client.close()
        stays = inside[0]
        until("the places to be free", lambda: stays.stats()["current-connections"] == 5)
        again = [self.connect(self.daemon) for _ in range(len(inside) - 5)]
        for client in again:
            self.assertEqual(client.ask("list-tube-used"), "USING default")


if __name__ == "__main__":
    unittest.main()
