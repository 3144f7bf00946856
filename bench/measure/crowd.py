"""How long a client, and the watchdog, wait while 1,000 clients request as much as they can.

The waits are elapsed time and CPU time of the server, which is the work that it does for other
clients first. The baseline is the same server before the crowd connects. The crowd runs in a
process of its own and does not delay the client that measures.
"""

import os
import socket
import time
import unittest

from crowd_test import CLIENTS, TUBES, CrowdTest
from figures import figure, figures_of

SECONDS_OF_LOAD = 2
LEAST_STEPS = 100


class Probe:
    """A client with a tube of its own that measures how long its small commands take."""

    def __init__(self, test, daemon):
        self.daemon = daemon
        self.client = test.connect(daemon)
        for command in ("use probe", "watch probe", "ignore default"):
            self.client.ask(command)
        self.cpu_times, self.times = [], []
        test.addCleanup(os.sched_setscheduler, 0, os.sched_getscheduler(0), os.sched_getparam(0))
        try:  # this thread gets a processor at once when a reply arrives
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        except PermissionError:
            pass

    def measured(self, act):
        cpu, begin = self.daemon.cpu_seconds(), time.monotonic()
        result = act()
        self.times.append(time.monotonic() - begin)
        self.cpu_times.append(self.daemon.cpu_seconds() - cpu)
        return result

    def step(self):
        job = self.measured(lambda: self.client.put(b"probe"))
        taken, _ = self.measured(self.client.reserve)
        assert taken == job
        self.measured(lambda: self.client.ask(f"delete {job}"))


class Waits(CrowdTest):
    def measure(self, what, commands, prepare=lambda daemon: None, replies=0):
        daemon = self.serving()
        prepare(daemon)
        probe = Probe(self, daemon)
        for _ in range(LEAST_STEPS):
            probe.step()
        alone = probe.times, probe.cpu_times
        probe.times, probe.cpu_times = [], []
        self.start_crowd(daemon, commands, replies=replies)
        deadline = time.monotonic() + SECONDS_OF_LOAD
        while time.monotonic() < deadline or len(probe.times) <= LEAST_STEPS:
            probe.step()
        print(f"{CLIENTS} clients that pipeline {what}: {len(probe.times)} round trips of another")
        figures_of("  elapsed time", probe.times, alone[0], "without a crowd")
        figures_of("  CPU time of the server", probe.cpu_times, alone[1], "without a crowd")

    def test_stats(self):
        self.measure("stats", b"stats\r\n")

    def test_batches(self):
        """Each batch is smaller than the quantum of a client that is alone."""
        self.measure("batches", b"list-tube-used\r\n" * 900,
                     replies=len(b"USING default\r\n") * 900)

    def test_peek(self):
        self.measure("peek", b"peek 1\r\n",
                     prepare=lambda daemon: self.connect(daemon).put(b"x" * 100))

    def test_put(self):
        # Bodies of 1000 bytes keep the number of jobs small: a queue of many jobs grows its tables
        # in one step, which would be measured.
        put = b"put 0 0 100 1000\r\n%s\r\n" % bytes(1000)
        self.measure("put and reserve", put * 3 + b"reserve\r\n")

    def test_list_tubes(self):
        self.measure("list-tubes", b"list-tubes\r\n",
                     prepare=lambda daemon: self.make_tubes(daemon, TUBES, 190))

    def test_list_tubes_while_tubes_are_created_and_removed(self):
        commands = b"".join(b"use t%d\r\n" % number for number in range(20)) + b"list-tubes\r\n"
        self.measure("use and list-tubes", commands,
                     prepare=lambda daemon: self.make_tubes(daemon, TUBES, 190))


class Watchdog(CrowdTest):
    def test_the_notifications_of_a_loaded_server(self):
        path = str(self.directory / "notify")
        beats = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(0.1)
            period = 0.2
            daemon = self.serving(environment={"NOTIFY_SOCKET": path,
                                               "WATCHDOG_USEC": str(int(2 * period * 1e6))})
            self.make_tubes(daemon, TUBES, 190)
            end_crowd = self.start_crowd(daemon, b"list-tubes\r\n", clients=2 * CLIENTS)
            began = time.monotonic()
            while time.monotonic() < began + 2 * SECONDS_OF_LOAD:
                try:
                    if b"WATCHDOG=1" in manager.recv(4096):
                        beats.append(time.monotonic())
                except TimeoutError:
                    pass
            end_crowd()
        longest = max(after - before for before, after in zip([began, *beats], beats))
        figure(f"longest time between {len(beats)} watchdog notifications, {2 * CLIENTS} clients",
               longest, "s", period, "the period")


if __name__ == "__main__":
    unittest.main()
