"""The wall clock is stepped while the server runs. After a restart, delays and pauses have the same
time left as without a restart. A preloaded library steps the clock of the server only, not the
machine's.
"""

import os
import pathlib
import shutil
import unittest

from harness import DaemonTest, Elapsed, preloaded, until

HOUR = 3600


class SteppedClock(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.clock = self.directory / "clock"
        self.journal.mkdir()
        self.clock.mkdir()
        os.mkfifo(self.clock / "steps")
        self.ahead = 0
        self.environment = preloaded("stepped_clock", self.directory) | {
            "TUBED_CLOCK_DIRECTORY": str(self.clock)}

    def serve(self):
        daemon = self.start("-b", str(self.journal), environment=self.environment)
        daemon.wait_for_line("recovered")
        return daemon, self.connect(daemon)

    def step_clock(self, seconds):
        """Steps the server's wall clock by `seconds`. The kernel does not report it."""
        self.ahead += seconds
        new = self.clock / "offset.new"
        new.write_text(str(self.ahead), encoding="utf-8")
        new.rename(self.clock / "offset")

    def prepare(self, client):
        """Makes two delays and two pauses and waits until one of each has expired. Returns their
        starting time, for check()."""
        with Elapsed() as begin:
            for tube, delay, pause in (("slow", 1800, 3000), ("brief", 1, 1)):
                client.ask(f"use {tube}")
                client.put(delay=delay)
                self.assertEqual(client.ask(f"pause-tube {tube} {pause}"), "PAUSED")
        until("the short delay to end", lambda: client.stats()["current-jobs-ready"] == 1)
        until("the short pause to end", lambda: client.stats("stats-tube brief")["pause"] == 0)
        return begin

    def check(self, client, begin):
        begin.check_left(self, 1800, lambda: client.stats("stats-job 1")["time-left"])
        begin.check_left(self, 3000, lambda: client.stats("stats-tube slow")["pause-time-left"])
        self.assertEqual(client.stats("stats-job 2")["state"], "ready")
        self.assertEqual(client.stats("stats-tube brief")["pause-time-left"], 0)

    def test_an_idle_server_notices_a_step(self):
        """An hour forward and an hour back; tests/journal/deadline_rewriter_test.cc has other
        steps."""
        for step in (HOUR, -HOUR):
            with self.subTest(step=step):
                shutil.rmtree(self.journal)
                self.journal.mkdir()
                daemon, client = self.serve()
                begin = self.prepare(client)
                before = client.stats()["binlog-records-written"]
                self.step_clock(step)
                (self.clock / "steps").write_bytes(b"x" * 8)  # the report of the kernel
                until("all delays and pauses to be written again",
                      lambda: client.stats()["binlog-records-written"] == before + 4)
                daemon.kill()
                daemon, client = self.serve()
                self.check(client, begin)
                self.end(daemon)

    def test_the_kernel_is_asked_to_report_steps(self):
        """The server sets a timer for this, which the preloaded library replaces in other tests."""
        self.environment = {}
        daemon, client = self.serve()
        client.stats()  # the reply shows that the start is complete
        descriptors = pathlib.Path(f"/proc/{daemon.pid}/fdinfo").iterdir()
        timers = [text for text in (path.read_text() for path in descriptors)
                  if "clockid: 0" in text]
        self.assertEqual(len(timers), 1)
        # TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET
        self.assertIn("settime flags: 03", timers[0])

if __name__ == "__main__":
    unittest.main()
