"""The server does large work of a client in slices, and answers other clients between them.

Each test stops the process, sends the command that causes the work, and sends many commands of a
watcher, whose replies show the progress of the work. All input has arrived when the process
continues. Consecutive replies are at most two slices apart, because an iteration of the event loop
has two ticks; this is a count, which no load on the machine changes. bench/measure/latency.py
measures the times.
"""

import unittest

from harness import DaemonTest, StandingClock, until

SLICE = 50  # limits.work_per_turn
JOBS = 10_000
# The watcher's commands end before the work.
QUESTIONS = 200
HOUR = 3600


class SlicesTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.clock = StandingClock(self.directory)
        self.flags = ("--limits-work-per-turn", str(SLICE), "--limits-output-bytes", "16MiB")
        self.serve()

    def serve(self, *flags):
        self.daemon = self.start(*self.flags, *flags, environment=self.clock.environment)
        self.client = self.connect(self.daemon)
        self.client.ask("use work")
        self.client.ask("watch work")
        self.watcher = self.connect(self.daemon)
        self.watcher.stats()  # the connection is accepted

    def all_hours_pass(self):
        self.clock.advance(2 * HOUR)

    def watch(self, cause, left):
        """Calls `cause` and watches the work: left(stats) is the number of jobs left to do. Returns
        these numbers, in order."""
        self.daemon.freeze()
        cause()
        self.watcher.send(b"stats\r\n" * QUESTIONS)
        self.daemon.thaw()
        return [left(self.watcher.reply_to_stats()) for _ in range(QUESTIONS)]

    def check(self, numbers, most=2 * SLICE, jobs=JOBS):
        steps = [before - after for before, after in zip([jobs, *numbers], numbers)]
        self.assertGreaterEqual(min(steps), 0)
        self.assertLessEqual(max(steps), most, numbers)
        self.assertGreater(len(set(numbers)), 5, "the watcher saw no progress between its commands")
        self.assertGreater(numbers[-1], 0, "the work ended before the last command of the watcher")


class Slices(SlicesTest):
    def not_ready(self, stats):
        return JOBS - stats["current-jobs-ready"]

    def test_many_reservations_end_in_the_same_moment(self):
        self.client.put_many(JOBS, ttr=HOUR)
        holder = self.connect(self.daemon)
        holder.ask("watch work")
        holder.pump(b"reserve\r\n" * JOBS, 2 * JOBS)
        self.check(self.watch(self.all_hours_pass, self.not_ready))
        until("all jobs to be ready",
              lambda: self.watcher.stats()["current-jobs-ready"] == JOBS)
        self.assertEqual(self.watcher.stats()["job-timeouts"], JOBS)


class Flushes(SlicesTest):
    def test_a_flush_with_a_journal(self):
        journal = self.directory / "journal"
        journal.mkdir()
        self.serve("-b", str(journal), "--journal-sync", "50ms")
        self.client.put_many(JOBS)
        job_bytes = self.watcher.stats()["job-memory"] / JOBS
        kept = self.connect(self.daemon)
        kept.ask("watch kept")
        kept.send(b"put-in-tube kept 0 0 60 1\r\nk\r\n")
        kept.line()
        numbers = self.watch(lambda: self.client.send(b"flush-tube work\r\nstats\r\n"),
                             lambda stats: round(stats["job-memory"] / job_bytes))
        # The reply does not wait for the removal of the jobs.
        self.assertEqual(self.client.line(), f"FLUSHED {JOBS}")
        self.assertGreater(self.client.reply_to_stats()["job-memory"], job_bytes * JOBS / 2)
        self.check(numbers, most=2 * SLICE // 8 + 1, jobs=JOBS + 1)
        until("the memory of the jobs to be free",
              lambda: self.watcher.stats()["job-memory"] < 2 * job_bytes)
        self.assertEqual(kept.reserve()[1], b"k")


if __name__ == "__main__":
    unittest.main()
