"""tubectl --watch: on a pipe, in JSON and on a terminal; a server that goes away and comes back.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/watch_test.py
"""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import threading
import unittest

from fake_admin import FakeAdmin
from job_tests import Gate
from programs import (DONE, FAILURE, IO, SECONDS, UNAVAILABLE, USAGE, TubectlTest, until, within)

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class WatchTest(TubectlTest):
    def watch(self, server, *arguments, **options):
        process = self.popen(server, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             **options)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def line(self, stream):
        return within("a line", stream.readline).decode()

    def stop(self, process, number=signal.SIGINT):
        """Ends it by a signal; returns the rest of its stderr."""
        process.send_signal(number)
        _, errors = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, DONE, errors)
        return errors.decode()


class Pipe(WatchTest):
    def test_each_look_follows_its_time(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("use mail")
            process = self.watch(server, "stats", "mail", "--watch", "0.1")
            for jobs in (0, 1):
                if jobs > 0:
                    client.put(b"x")
                until("the number", lambda process=process, jobs=jobs:
                      self.line(process.stdout) == f"current-jobs-ready     {jobs}\n")
            until("a time", lambda process=process:
                  re.fullmatch(TIME + "\n", self.line(process.stdout)))
            self.assertTrue(self.line(process.stdout).startswith("name "))
            self.assertEqual(self.stop(process), "")

    def test_json_has_the_time_in_each_object(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("watch a-tube")
            for arguments in (("stats",), ("tubes", "--names"), ("tubes", "--interval", "0"),
                              ("tubes", "--interval", "0.1")):
                process = self.watch(server, *arguments, "--json", "--watch=0.1")
                for _ in range(5):
                    told = json.loads(self.line(process.stdout))
                    self.assertRegex(told["time"], f"^{TIME}$")
                    self.assertEqual(next(iter(told)), "time")
                self.assertEqual(self.stop(process, signal.SIGTERM), "")

    def test_all_that_show_a_state(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use mail")
        job = client.put(b"x")
        admin = FakeAdmin(pathlib.Path(self.directory, "admin"))
        self.addCleanup(admin.close)
        for arguments, shown in ((("list", "mail"), f"{job} "), (("clients",), "id "),
                                 (("job", job), "state      ready"), (("policy", "mail"), "ttl "),
                                 (("tubes", "mail"), "mail "),
                                 (("cluster", "status", "--admin", admin.address), "cluster ")):
            with self.subTest(arguments=arguments):
                process = self.watch(server, *arguments, "--watch", "0.1")
                for _ in range(2):
                    until(shown, lambda process=process, shown=shown:
                          self.line(process.stdout).lstrip().startswith(shown))
                self.assertEqual(self.stop(process), "")

    def test_rates_are_those_since_the_last_look(self):
        server = self.tubed()
        client = self.client(server)
        client.put(b"x")
        process = self.watch(server, "tubes", "--json", "--interval", "0.1", "--watch", "0.1")
        told = json.loads(self.line(process.stdout))
        self.assertEqual((told["total-jobs"], told["puts-per-second"]), (1, 0))
        client.put(b"x")
        # One look, and no other, sees the second put.
        rates = []

        def after():
            told = json.loads(self.line(process.stdout))
            rates.append(told["puts-per-second"])
            return told["total-jobs"] == 2 and rates[-1] == 0
        until("the end of the rate", after)
        self.assertEqual(len([rate for rate in rates if rate > 0]), 1)
        self.stop(process)

    def test_a_signal_ends_it_while_the_server_is_silent(self):
        silent = threading.Event()
        ends = threading.Event()
        self.addCleanup(ends.set)
        gate = Gate(self.tubed(), b"stats\r\n")
        self.addCleanup(gate.close)

        def second():
            silent.set()
            ends.wait()

        def first():
            gate.reached = second
        gate.reached = first
        process = self.watch(gate.address, "stats", "--watch", "0.1")
        self.line(process.stdout)
        self.assertTrue(silent.wait(SECONDS))
        self.assertEqual(self.stop(process), "")

    def test_a_restart_is_reported_once(self):
        path = self.directory / "socket"
        server = f"unix:{path}"
        daemon = self.start(listen=server)
        process = self.watch(server, "stats", "--watch", "0.1")
        self.assertRegex(self.line(process.stdout), f"^{TIME}\n$")
        daemon.end()
        self.assertRegex(self.line(process.stderr), f"^tubectl: {TIME}: .*; trying again\n$")
        self.start(listen=server)
        self.assertRegex(self.line(process.stderr), f"^tubectl: {TIME}: the server is back\n$")
        self.assertEqual(self.stop(process), "")

    def test_a_connection_that_the_server_closes_is_opened_again(self):
        server = self.tubed("--timeouts-idle", "100ms")
        process = self.watch(server, "stats", "--watch", "0.3")
        for _ in range(3):
            until("a look", lambda: re.fullmatch(TIME + "\n", self.line(process.stdout)))
        self.assertEqual(self.stop(process), "")

    def test_a_first_look_that_fails_ends_it(self):
        server = self.tubed()
        self.assertEqual(self.refused(FAILURE, server, "stats", "none", "--watch"),
                         "tubectl: there is no tube none\n")
        self.refused(UNAVAILABLE, f"unix:{self.directory}/nobody", "stats", "--watch")
        self.assertIn("list-clients", self.refused(FAILURE, self.beanstalkd(), "clients", "--watch"))
        for arguments in (("stats", "--watch=x"), ("policy", "mail", "ttl", "5", "--watch"),
                          ("stats", "--watch", "0.01", "a", "b"),
                          ("cluster", "remove", "b", "--watch")):
            self.refused(USAGE, server, *arguments)

    def test_a_tube_that_goes_away_is_reported_and_does_not_end_it(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("watch mail")
        process = self.watch(server, "stats", "mail", "--watch", "0.1")
        self.line(process.stdout)
        client.ask("ignore mail")
        self.assertEqual(self.line(process.stderr), "tubectl: there is no tube mail\n")
        client.ask("watch mail")
        until("the tube", lambda: self.line(process.stdout).startswith("name "))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, DONE)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            process = self.popen(self.tubed(), "stats", "--watch", stdout=full,
                                 stderr=subprocess.PIPE)
            _, errors = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, IO, errors)


class Terminal(WatchTest):
    def on_screen(self, server, *arguments):
        """Runs it on a terminal; returns the process and the terminal's other end."""
        leader, follower = pty.openpty()
        process = self.popen(server, *arguments, stdout=follower, stderr=follower,
                             environment={"TERM": "xterm"})
        os.close(follower)
        self.addCleanup(process.kill)
        return process, leader

    def test_each_look_replaces_the_last(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use mail")
        process, terminal = self.on_screen(server, "stats", "mail", "--watch", "0.1")
        shown = bytearray()

        def has(text):
            shown.extend(os.read(terminal, 1 << 16))
            return text in shown
        until("the first look", lambda: has(b"current-jobs-ready     0"))
        self.assertTrue(shown.startswith(b"\x1b[?1049h"), shown)
        self.assertIn(f"tubectl stats on {server}  every 0.1 s".encode(), shown)
        client.put(b"x")
        until("the second look", lambda: has(b"current-jobs-ready     1"))
        frames = bytes(shown).split(b"\x1b[H")[1:]
        self.assertGreater(len(frames), 1)
        process.send_signal(signal.SIGINT)

        def read():
            try:
                while chunk := os.read(terminal, 1 << 16):
                    shown.extend(chunk)
            except OSError:
                return True
        within("the end", read)
        self.assertEqual(process.wait(SECONDS), DONE)
        os.close(terminal)
        # The terminal is restored, and the last look stays.
        rest = bytes(shown).rpartition(b"\x1b[?7h\x1b[?25h\x1b[?1049l")[2]
        self.assertIn(b"current-jobs-ready     1", rest)
        self.assertNotIn(b"\x1b[?", rest)
        self.assertTrue(rest.endswith(b"\n"))

    def test_a_lost_server_is_reported_above_the_last_look(self):
        path = self.directory / "socket"
        daemon = self.start(listen=f"unix:{path}")
        process, terminal = self.on_screen(f"unix:{path}", "tubes", "--names", "--watch", "0.1")
        shown = bytearray()

        def has(text):
            shown.extend(os.read(terminal, 1 << 16))
            return text in shown
        until("a look", lambda: has(b"default"))
        daemon.end()
        until("the loss", lambda: has(b"; trying again"))
        last = bytes(shown).split(b"\x1b[H")[-1]
        self.assertLess(last.find(b"trying again"), last.find(b"default"))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS), DONE)
        os.close(terminal)


if __name__ == "__main__":
    unittest.main()
