"""`tubectl work`: servers that end or are silent, and the messages about jobs.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/work_outages_test.py
"""

import json
import signal
import socket
import subprocess
import unittest

from programs import DONE, SECONDS, UNAVAILABLE, ScriptedServer, until
from harness import preloaded  # noqa: E402  programs.py has added its folder to the path
from work_tests import WorkTest, is_alive, is_pending


class Reports(WorkTest):
    def test_in_words(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            code, _, errors = self.work(server, "--count", 1, "-v", "--", "true")
            self.assertEqual(code, DONE)
            self.assertRegex(errors, rf"^tubectl: job {job} of default: deleted, exit code 0 after "
                                     r"[0-9]+\.[0-9]{3} s\n$")
            client.put(b"x")
            self.assertEqual(self.work(server, "--count", 1, "-q", "--", "false"), (DONE, "", ""))

    def test_as_json(self):
        for server in self.servers():
            client = self.client(server)
            expected = []
            for script, told in (
                    ("exit 0", {"outcome": "deleted", "exit-code": 0}),
                    ("exit 3", {"outcome": "released", "exit-code": 3, "delay": 7}),
                    ("kill -9 $$", {"outcome": "released", "signal": 9, "delay": 7}),
                    ("exit 4", {"outcome": "buried", "exit-code": 4})):
                job = client.put(script.encode())
                expected.append({"event": "job", "id": job, "tube": "default"} | told)
            code, _, errors = self.work(server, "--count", len(expected), "--json", "--verbose",
                                        "--retry-delay", 7, "--bury-codes", 4, "--", "sh")
            self.assertEqual(code, DONE)
            lines = [json.loads(line) for line in errors.splitlines()]
            for line in lines:
                self.assertGreaterEqual(line.pop("seconds"), 0)
            self.assertEqual(lines, expected)


class Outages(WorkTest):
    """Starts beanstalkd or tubed on a unix socket that the next server can reuse."""

    def start_server(self, name):
        """Returns (the address, a function that ends the server as a crash does)."""
        path = self.files / f"{name}.sock"
        if name == "tubed":
            server = self.start(listen=f"unix:{path}")
        else:
            path.unlink(missing_ok=True)
            server = self.start_beanstalkd(path=path)
        return f"unix:{path}", server.kill

    def both(self):
        for name in ("tubed", "beanstalkd"):
            with self.subTest(server=name):
                yield name

    def test_it_comes_back_to_a_server_that_comes_back(self):
        for name in self.both():
            address, kill = self.start_server(name)
            process = self.start_work(address, "-j", 3, "--count", 3, "--json", "--", "cat",
                                      stdout=subprocess.PIPE)
            client = self.client(address)
            until("all to wait", lambda: client.stats()["current-waiting"] == 3)
            kill()
            line = json.loads(self.error_line(process, "the loss of the connection"))
            self.assertEqual(line["event"], "disconnected")
            address, _ = self.start_server(name)
            client = self.client(address)
            for _ in range(3):
                client.put(b"after all\n")
            output, errors = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, output), (DONE, b"after all\n" * 3))
            self.assertEqual(json.loads(errors)["event"], "connected")

    def test_a_command_goes_on_without_its_server(self):
        for name in self.both():
            address, kill = self.start_server(name)
            job = self.client(address).put(b"x", ttr=60)
            gate = self.path("gate")
            process = self.start_work(
                address, "--", "sh", "-c",
                f"echo $$ > {self.path('pid')}; while ! [ -e {gate} ]; do sleep 0.01; done")
            pid = self.wait_for_pid("pid")
            kill()
            self.assertIn("trying again", self.error_line(process, "the loss of the connection"))
            self.start_server(name)
            self.assertTrue(is_alive(pid))
            gate.touch()
            self.assertRegex(self.error_line(process, "what became of the job"),
                             rf"job {job} of default: lost, exit code 0 after .*: the connection "
                             "was lost while the command ran\n")
            self.assertEqual(self.error_line(process, "a connection"),
                             "tubectl: connected again\n")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            gate.unlink()
            self.path("pid").unlink()

    def test_it_can_be_ended_while_there_is_no_server(self):
        for name in self.both():
            address, kill = self.start_server(name)
            process = self.start_work(address, "--", "true")
            client = self.client(address)
            until("it to wait", lambda: client.stats()["current-waiting"] == 1)
            kill()
            self.error_line(process, "the loss of the connection")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.wait_for_end(process), (DONE, ""))

    def test_when_idle_it_does_not_wait_for_a_server(self):
        for name in self.both():
            address, kill = self.start_server(name)
            # The server ends before the time of --exit-when-idle, even on a busy machine.
            process = self.start_work(address, "--exit-when-idle", 4, "--quiet", "--", "true")
            client = self.client(address)
            until("it to wait", lambda: client.stats()["current-waiting"] == 1)
            kill()
            code, errors = self.wait_for_end(process)
            self.assertEqual((code, errors),
                             (UNAVAILABLE, "tubectl: the server is gone\n"))

    def test_it_waits_for_the_first_server_if_it_is_told_so(self):
        for name in self.both():
            address = f"unix:{self.files / f'{name}.sock'}"
            process = self.start_work(address, "--wait", "--count", 1, "--", "true")
            self.assertIn("cannot connect", self.error_line(process, "an attempt to connect"))
            self.start_server(name)
            self.client(address).put(b"x")
            self.assertEqual(self.wait_for_end(process), (DONE, "tubectl: connected again\n"))


class SilentServer:
    """A server on a unix socket that gives out one job and counts its touches."""

    def __init__(self, path, body):
        self.path = str(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(0)
        self.listener.settimeout(SECONDS)
        self.body = body
        self.touches = 0

    def accept(self):
        """Returns a worker's connection once the worker waits in a reserve."""
        connection, _ = self.listener.accept()
        connection.settimeout(SECONDS)
        commands = connection.makefile("rb")
        while (line := commands.readline()) != b"reserve\r\n":
            assert line.split()[0] in (b"watch", b"ignore"), line
            connection.sendall(b"WATCHING 1\r\n")
        return connection, commands

    def give_job(self, connection, commands, touches, ttr=1, time_left=0):
        connection.sendall(b"RESERVED 7 %d\r\n%s\r\n" % (len(self.body), self.body))
        stats = b"---\nid: 7\ntube: default\nstate: reserved\npri: 0\nttr: %d\ntime-left: %d\n"
        stats %= (ttr, time_left)
        while self.touches < touches:
            command = commands.readline().split()[0]
            if command == b"touch":
                self.touches += 1
                connection.sendall(b"TOUCHED\r\n")
            elif command == b"stats-job":
                connection.sendall(b"OK %d\r\n%s\r\n" % (len(stats), stats))

    def close(self):
        self.listener.close()


class Connections(WorkTest):
    def test_without_threads_one_line_says_so(self):
        for server in self.servers():
            for arguments in (("work", "--", "cat"), ("top", "--tubes", "x")):
                code, _, errors = self.run_tubectl(
                    server, *arguments, environment=preloaded("few_threads", self.directory) | {
                        "TUBED_THREADS": "0", "TERM": "dumb"})
                self.assertNotIn(code, (DONE, -signal.SIGABRT), errors)
                self.assertEqual(errors.count("\n"), 1, errors)

    def test_a_connect_that_hangs_delays_no_touches(self):
        server = SilentServer(self.files / "silent.sock", b"x")
        self.addCleanup(server.close)
        hang = self.directory / "hang"
        process = self.start_work(
            f"unix:{server.path}", "-j", 2, "--", *self.sleeper(),
            environment=preloaded("hanging_connect", self.directory) | {"TUBED_HANG": str(hang)})
        connection, commands = server.accept()
        other, other_commands = server.accept()
        with connection, commands, other, other_commands:
            hang.touch()
            other.shutdown(socket.SHUT_RDWR)
            self.assertIn("trying again", self.error_line(process, "the loss of a connection"))
            until("a connect that hangs", hang.with_suffix(".begun").exists)
            server.give_job(connection, commands, touches=12)

    def test_a_job_that_waited_for_long_is_touched_at_once(self):
        server = SilentServer(self.files / "silent.sock", b"x")
        self.addCleanup(server.close)
        self.start_work(f"unix:{server.path}", "--", *self.sleeper())
        connection, commands = server.accept()
        with connection, commands:
            server.give_job(connection, commands, touches=1, ttr=1_000_000, time_left=1)

    def test_a_second_signal_reports_what_the_server_has_not_settled(self):
        server = ScriptedServer([
            b"WATCHING 1\r\n", b"RESERVED 7 1\r\nx\r\n",
            b"OK 57\r\n---\ntube: default\nstate: reserved\nttr: 100\ntime-left: 99\n\r\n", b""])
        self.addCleanup(server.close)
        process = self.start_work(server.address, "--", "true")
        until("its delete", lambda: server.commands[-1:] == ["delete 7"])
        process.send_signal(signal.SIGTERM)
        until("the signal to be taken", lambda: not is_pending(process, signal.SIGTERM))
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        code, errors = self.wait_for_end(process)
        self.assertEqual(code, DONE)
        self.assertRegex(errors, r"^tubectl: job 7 of default: lost, exit code 0 after [0-9.]+ s: "
                                 "tubectl was ended before the server answered\n$")


if __name__ == "__main__":
    unittest.main()
