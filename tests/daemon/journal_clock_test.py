"""The wall clock is stepped while the server runs. After a restart, delays and pauses have the same
time left as without a restart. The machine's clock is not changed: a preloaded library steps the
clock of the server only."""

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
        """Steps the server's wall clock by `seconds`. The kernel's report is not sent."""
        self.ahead += seconds
        new = self.clock / "offset.new"
        new.write_text(str(self.ahead), encoding="utf-8")
        new.rename(self.clock / "offset")

    def prepare(self, client):
        """Makes two delays and two pauses and waits until one of each has ended. Returns the time
        at which they began, for check()."""
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

    def both_ways(self, notice, how):
        """Steps the clock an hour ahead, and an hour back. notice(client) lets the server notice
        the step and returns the number of records that it writes."""
        for step in (HOUR, -HOUR):
            with self.subTest(step=step):
                shutil.rmtree(self.journal)
                self.journal.mkdir()
                daemon, client = self.serve()
                begin = self.prepare(client)
                before = client.stats()["binlog-records-written"]
                self.step_clock(step)
                expected = before + notice(client)
                until(f"{expected} records",
                      lambda: client.stats()["binlog-records-written"] == expected)
                daemon.kill() if how == "kill" else self.end(daemon)
                daemon, client = self.serve()
                self.check(client, begin)
                self.end(daemon)

    def test_a_command_that_is_written_notices_it(self):
        def put(client):
            client.put(delay=600)
            return 1 + 5  # the put; then all delays and pauses are written again
        self.both_ways(put, "kill")

    def test_an_idle_server_notices_it(self):
        def report(_):
            (self.clock / "steps").write_bytes(b"x" * 8)
            return 4
        self.both_ways(report, "kill")

    def test_the_kernel_is_asked_to_report_steps(self):
        """The server sets a timer for it, which the preloaded library replaces in other tests."""
        self.environment = {}
        daemon, client = self.serve()
        client.stats()  # the reply shows that the start is complete
        descriptors = pathlib.Path(f"/proc/{daemon.pid}/fdinfo").iterdir()
        timers = [text for text in (path.read_text() for path in descriptors)
                  if "clockid: 0" in text]
        self.assertEqual(len(timers), 1)
        # TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET
        self.assertIn("settime flags: 03", timers[0])

    def test_a_stop_notices_it(self):
        self.both_ways(lambda _: 0, "stop")

    def test_a_start_with_a_wrong_clock_that_is_corrected_later(self):
        self.step_clock(-HOUR)
        daemon, client = self.serve()
        self.step_clock(HOUR)
        begin = self.prepare(client)
        daemon.kill()
        _, client = self.serve()
        self.check(client, begin)


if __name__ == "__main__":
    unittest.main()
