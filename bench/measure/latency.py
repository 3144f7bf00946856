"""How long a client waits while the server does large work of another client.

The work is a kick, a flush, the end of a connection, of delays and of reservations, for a million jobs.
The same commands go to an idle daemon, which is the baseline. Time in which the server or the measure
is ready to run and has no processor does not count. tests/daemon/slices_test.py counts the slices.
"""

import os
import time
import unittest

from figures import Stopwatch, figure, figures_of
from harness import DaemonTest, passed, until

JOBS = int(os.environ.get("TUBED_MEASURED_JOBS", "1000000"))
MANY = min(JOBS, 200_000)
# Long enough to put MANY jobs before the first of them is due.
TIMED_SECONDS = 10


class Probe:
    """Two clients that measure, on the daemon at work and on an idle daemon; each uses a tube of
    its own."""

    def __init__(self, test, daemon):
        idle = test.start()
        self.clients = [(self.client(test, one), Stopwatch(one), []) for one in (daemon, idle)]

    @staticmethod
    def client(test, daemon):
        client = test.connect(daemon)
        for command in ("use probe", "watch probe", "ignore default"):
            client.ask(command)
        return client

    def step(self):
        for client, watch, times in self.clients:
            watch.lap()
            job = client.put(b"probe")
            times.append(watch.lap())
            taken, _ = client.reserve()
            assert taken == job
            times.append(watch.lap())
            client.ask(f"delete {job}")

    def report(self, what):
        busy, idle = (times for _, _, times in self.clients)
        figures_of(f"{what}: {len(busy)} commands of another client", busy, idle, "an idle server")


class Latency(DaemonTest):
    def begin(self, *flags):
        self.daemon = self.start("--limits-job-memory", "4GiB", *flags)
        self.client = self.connect(self.daemon)
        self.watcher = self.connect(self.daemon)

    def measure_while(self, what, probe, running):
        """Measures until `running()` is false; calls it after each measurement."""
        begin = time.monotonic()
        while running():
            probe.step()
        figure(f"{what}: duration", time.monotonic() - begin, "s")
        probe.report(what)

    def fewer_ready_than(self, count):
        return lambda: self.watcher.stats()["current-jobs-ready"] < count

    def test_a_kick(self):
        self.begin()
        batch = 20_000
        for first in range(1, JOBS + 1, batch):
            jobs = range(first, min(first + batch, JOBS + 1))
            self.client.put_many(len(jobs))
            taken = b"".join(b"reserve\r\nbury %d 0\r\n" % job for job in jobs)
            self.assertEqual(self.client.pump(taken, 3 * len(jobs)), "BURIED")
        probe = Probe(self, self.daemon)
        self.client.send(b"kick %d\r\n" % JOBS)
        self.measure_while(f"a kick of {JOBS} jobs", probe, self.fewer_ready_than(JOBS))
        self.assertEqual(self.client.line(), f"KICKED {JOBS}")

    def test_the_end_of_a_connection_with_many_reserved_jobs(self):
        self.begin()
        self.client.put_many(MANY)
        holder = self.connect(self.daemon)
        holder.pump(b"reserve\r\n" * MANY, 2 * MANY)
        probe = Probe(self, self.daemon)
        holder.close()
        self.measure_while(f"the end of a client with {MANY} jobs", probe,
                           self.fewer_ready_than(MANY))

    def measure_after(self, what, over):
        """Stops the daemon until `over`: all jobs are due in one tick."""
        probe = Probe(self, self.daemon)
        self.daemon.freeze()
        until("the deadlines to be over", passed(over))
        self.daemon.thaw()
        self.measure_while(what, probe, self.fewer_ready_than(MANY))

    def test_many_delays_end_in_the_same_moment(self):
        self.begin()
        self.client.put_many(MANY, delay=TIMED_SECONDS)
        self.measure_after(f"{MANY} delays that end at once", time.monotonic() + TIMED_SECONDS)

    def test_many_reservations_end_in_the_same_moment(self):
        self.begin()
        self.client.put_many(MANY, ttr=TIMED_SECONDS)
        holder = self.connect(self.daemon)
        holder.pump(b"reserve\r\n" * MANY, 2 * MANY)
        self.measure_after(f"{MANY} TTRs that end at once", time.monotonic() + TIMED_SECONDS)

    def measure_flush(self, what):
        self.client.ask("use work")
        self.client.put_many(JOBS)
        probe = Probe(self, self.daemon)
        watch = Stopwatch(self.daemon)
        self.assertEqual(self.client.ask("flush-tube work"), f"FLUSHED {JOBS}")
        figure(f"{what}: the reply", watch.lap() * 1e3, "ms")
        self.measure_while(what, probe, lambda: self.watcher.stats()["job-memory"] > 1000)

    def test_a_flush_without_a_journal(self):
        self.begin()
        self.measure_flush(f"a flush of {JOBS} jobs")

    def test_a_flush_with_a_journal(self):
        journal = self.directory / "journal"
        journal.mkdir()
        self.begin("-b", str(journal), "--journal-sync", "50ms")
        self.measure_flush(f"a flush of {JOBS} jobs with a journal")


if __name__ == "__main__":
    unittest.main()
