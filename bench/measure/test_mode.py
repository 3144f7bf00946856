"""Test mode: the start of a server, a reset, and a suite of tests."""

import os
import statistics
import subprocess
import time
import unittest

from figures import figure
from test_mode_test import TestServer, exchange


class Speed(unittest.TestCase):
    def test_start(self):
        times, baseline = [], []
        for _ in range(40):
            begin = time.monotonic()
            subprocess.run([os.environ["TUBED_PROGRAM"], "--version"], check=True,
                           stdout=subprocess.DEVNULL)
            baseline.append(time.monotonic() - begin)
            begin = time.monotonic()
            with TestServer() as server:
                server.say("test-clock")
                times.append(time.monotonic() - begin)
        figure("start to first reply, median of 40", statistics.median(times) * 1e3, "ms",
               statistics.median(baseline) * 1e3, "--version")

    def test_reset(self):
        with TestServer() as server:
            times, baseline = [], []
            for _ in range(200):
                server.send(b"put 0 0 60 1\nx\n" * 300)
                for _ in range(300):
                    server.line()
                for command, into in (("test-clock", baseline), ("test-reset", times)):
                    begin = time.monotonic()
                    server.say(command)
                    into.append(time.monotonic() - begin)
        figure("test-reset of 300 jobs, median of 200", statistics.median(times) * 1e3, "ms",
               statistics.median(baseline) * 1e3, "test-clock")

    def test_suite(self):
        begin = time.monotonic()
        with TestServer() as server:
            client = server.connect()
            for _ in range(1000):
                exchange(client, b"put 0 3600 60 1\r\nx\r\n")
                server.say("test-advance 3600")
                exchange(client, b"reserve\r\n", 2)
                exchange(client, b"delete 1\r\n")
                server.say("test-reset")
            client.close()
        figure("1,000 tests of five commands", time.monotonic() - begin, "s")


if __name__ == "__main__":
    unittest.main()
