"""The server does large work of a client in slices, so that other clients do not wait for it.

While the work runs, another client sends small commands and measures how long each takes. Time in
which the daemon or the test is ready to run and has no processor does not count. The same commands
go to a second, idle daemon as well; its elapsed times are added to the bounds. Both keep load on
the machine from failing the test.
"""

import os
import statistics
import time
import unittest

from harness import SANITIZED, SECONDS, DaemonTest, Stopwatch, passed, until

JOBS = int(os.environ.get("TUBED_TEST_JOBS", "1000000"))
MANY = min(JOBS, 200_000)
MEDIAN_SECONDS = 0.005
P99_SECONDS = 0.020
MAX_SECONDS = 0.050
# Long enough to put MANY jobs before the first of them is due.
TIMED_SECONDS = 12 if SANITIZED else 3
# A sanitizer slows a slice down by this factor.
SLOWNESS = 10 if SANITIZED else 1


class Probe:
    """Two clients that measure, on the daemon at work and on an idle daemon; each uses a tube of
    its own."""

    def __init__(self, test, daemon):
        self.daemon = daemon
        self.busy = self.client(test, daemon)
        self.idle = self.client(test, test.start())
        self.busy_times = []
        self.idle_times = []

    @staticmethod
    def client(test, daemon):
        client = test.connect(daemon)
        for command in ("use probe", "watch probe", "ignore default"):
            client.ask(command)
        return client

    @staticmethod
    def measure(client, seconds):
        """The times of a put and of a reserve. `seconds()` returns the time since its last call."""
        seconds()
        job = client.put(b"probe")
        times = [seconds()]
        taken, _ = client.reserve()
        assert taken == job
        times.append(seconds())
        client.ask(f"delete {job}")
        return times

    def step(self):
        self.busy_times += self.measure(self.busy, Stopwatch(self.daemon).lap)
        self.idle_times += self.measure(self.idle, Stopwatch().lap)

    def check(self, test, what):
        median, p99, longest = self.summary(self.busy_times)
        idle_median, idle_p99, idle_longest = self.summary(self.idle_times)
        print(f"\n{what}: {len(self.busy_times)} round trips: "
              f"median {median * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms, max {longest * 1e3:.2f} ms; "
              f"idle daemon: {idle_median * 1e3:.2f}, {idle_p99 * 1e3:.2f}, "
              f"{idle_longest * 1e3:.2f} ms")
        # A single round trip during work that is not sliced would exceed the bound.
        test.assertGreaterEqual(len(self.busy_times), 4, "the work was over before it was measured")
        test.assertLess(median, MEDIAN_SECONDS * SLOWNESS + idle_median)
        test.assertLess(p99, P99_SECONDS * SLOWNESS + idle_p99)
        test.assertLess(longest, MAX_SECONDS * SLOWNESS + idle_longest)

    @staticmethod
    def summary(times):
        ordered = sorted(times)
        return statistics.median(ordered), ordered[len(ordered) * 99 // 100], ordered[-1]


class Latency(DaemonTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start("--limits-job-memory", "4GiB")
        self.client = self.connect(self.daemon)
        self.watcher = self.connect(self.daemon)

    def measure_while(self, probe, running):
        """Measures until `running()` is false; calls it after each measurement."""
        deadline = time.monotonic() + 3 * SECONDS
        while running():
            probe.step()
            self.assertLess(time.monotonic(), deadline, "the work does not end")

    def test_a_kick_of_a_million(self):
        begin = time.monotonic()
        batch = 20_000
        for first in range(1, JOBS + 1, batch):
            jobs = range(first, min(first + batch, JOBS + 1))
            self.client.put_many(len(jobs))
            taken = b"".join(b"reserve\r\nbury %d 0\r\n" % job for job in jobs)
            self.assertEqual(self.client.pump(taken, 3 * len(jobs)), "BURIED")
        self.assertEqual(self.watcher.stats()["current-jobs-buried"], JOBS)
        print(f"\n{JOBS} jobs buried in {time.monotonic() - begin:.1f} s")
        probe = Probe(self, self.daemon)
        begin = time.monotonic()
        self.client.send(b"kick 1000000\r\n")
        self.client.socket.setblocking(False)

        def running():
            try:
                self.client.receive()
            except BlockingIOError:
                return True
            return False

        self.measure_while(probe, running)
        print(f"kicked in {time.monotonic() - begin:.2f} s")
        self.assertEqual(self.client.line(), f"KICKED {JOBS}")
        probe.check(self, "kick")
        self.assertEqual(self.watcher.stats()["current-jobs-ready"], JOBS)

    def test_the_end_of_a_connection_with_many_reserved_jobs(self):
        self.client.put_many(MANY)
        holder = self.connect(self.daemon)
        holder.pump(b"reserve\r\n" * MANY, 2 * MANY)
        self.assertEqual(self.watcher.stats()["current-jobs-reserved"], MANY)
        probe = Probe(self, self.daemon)
        holder.close()
        self.measure_while(probe, lambda: self.watcher.stats()["current-jobs-ready"] < MANY)
        probe.check(self, f"disconnect of a client with {MANY} jobs")

    def test_many_delays_end_in_the_same_moment(self):
        seconds = TIMED_SECONDS
        self.client.put_many(MANY, delay=seconds)
        over = time.monotonic() + seconds
        self.assertEqual(self.watcher.stats()["current-jobs-delayed"], MANY)  # none is due yet
        probe = Probe(self, self.daemon)
        # The daemon is stopped until all delays have ended, so that all jobs are due in one tick.
        self.daemon.freeze()
        until("the delays to be over", passed(over), seconds + 1)
        self.daemon.thaw()
        self.measure_while(probe, lambda: self.watcher.stats()["current-jobs-ready"] < MANY)
        probe.check(self, f"{MANY} delays that end at once")

    def test_many_reservations_end_in_the_same_moment(self):
        seconds = TIMED_SECONDS
        self.client.put_many(MANY, ttr=seconds)
        holder = self.connect(self.daemon)
        holder.pump(b"reserve\r\n" * MANY, 2 * MANY)
        over = time.monotonic() + seconds
        self.assertEqual(self.watcher.stats()["current-jobs-reserved"], MANY)
        probe = Probe(self, self.daemon)
        self.daemon.freeze()
        until("the TTRs to be over", passed(over), seconds + 1)
        self.daemon.thaw()
        self.measure_while(probe, lambda: self.watcher.stats()["current-jobs-ready"] < MANY)
        self.assertEqual(self.watcher.stats()["job-timeouts"], MANY)
        probe.check(self, f"{MANY} TTRs that end at once")


if __name__ == "__main__":
    unittest.main()
