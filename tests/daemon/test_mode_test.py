"""tubed --test-mode: its address, its control connection, its clock, and its end."""

import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import PROGRAM, SECONDS, until


class TestServer:
    """A server in test mode with its control connection on pipes."""

    def __init__(self, *flags, clock=None, **options):
        mode = "--test-mode" if clock is None else f"--test-mode={clock}"
        self.process = subprocess.Popen([PROGRAM, mode, *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.address = self.process.stdout.readline().decode().rstrip("\n")
        self.ended = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def say(self, line):
        """Sends a line and returns the first line of the reply."""
        self.send(line.encode() + b"\n")
        return self.line()

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self):
        return self.process.stdout.readline().decode().rstrip("\n")

    def block(self, line):
        """Sends a line whose reply is OK and a body, and returns the body."""
        word, size = self.say(line).split(" ")
        assert word == "OK", word
        data = self.process.stdout.read(int(size))
        assert self.process.stdout.read(1) == b"\n"
        return data.decode()

    def connect(self):
        if self.address.startswith("unix:"):
            client = socket.socket(socket.AF_UNIX)
            client.connect(self.address[5:])
        else:
            host, port = self.address.rsplit(":", 1)
            client = socket.create_connection((host, int(port)))
        client.settimeout(SECONDS)
        return client

    def end(self):
        """Ends standard input. Returns the exit code and the log."""
        if self.ended:
            return self.ended
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        log = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        self.ended = code, log
        return self.ended


def exchange(client, data, lines=1):
    """Sends bytes and receives `lines` lines."""
    client.sendall(data)
    received = b""
    while received.count(b"\r\n") < lines:
        part = client.recv(65536)
        if not part:
            break
        received += part
    return received


def refusal(*flags, **options):
    done = subprocess.run([PROGRAM, *flags], capture_output=True, timeout=SECONDS, check=False,
                          text=True, **options)
    return done.returncode, done.stderr


class StartTest(unittest.TestCase):
    def test_the_first_line_is_the_address_of_a_free_port(self):
        with TestServer() as server:
            self.assertRegex(server.address, r"^127\.0\.0\.1:\d+$")
            client = server.connect()
            self.assertEqual(exchange(client, b"list-tube-used\r\n"), b"USING default\r\n")
            client.close()
            self.assertEqual(server.end(), (0, ""))

    def test_several_listeners_are_one_line(self):
        with tempfile.TemporaryDirectory() as directory:
            with TestServer("-l", "127.0.0.1:0", "-l", f"unix:{directory}/s") as server:
                self.assertRegex(server.address, rf"^127\.0\.0\.1:\d+ unix:{directory}/s$")

    def test_the_address_goes_to_a_file_and_standard_input_stays_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "address")
            with subprocess.Popen([PROGRAM, "--test-mode", "--no-stdin", "--address-file", path],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
                until("the file", path.exists)
                host, port = path.read_text(encoding="utf-8").strip().split(":")
                with socket.create_connection((host, int(port))) as client:
                    self.assertEqual(exchange(client, b"test-clock\r\n"), b"CLOCK 0 0\r\n")
                self.assertEqual(os.listdir(directory), ["address"])
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(SECONDS), 0)
                self.assertEqual(process.stdout.read(), b"")

    def test_standard_input_must_be_a_connection(self):
        code, log = refusal("--test-mode", stdin=subprocess.DEVNULL)
        self.assertEqual(code, 78)
        self.assertIn("--no-stdin", log)
        with tempfile.TemporaryFile() as file:
            self.assertEqual(refusal("--test-mode", stdin=file)[0], 78)

    def test_no_other_machine_can_connect(self):
        for flags in (["-l", "0.0.0.0:0"], ["-l", "[::]:0"], ["-l", "192.0.2.1:0"],
                      ["--http-listen", "0.0.0.0:0"],
                      ["-l", "127.0.0.1:0", "-l", "0.0.0.0:0"]):
            code, log = refusal("--test-mode", *flags, stdin=subprocess.PIPE)
            self.assertEqual(code, 78, flags)
            self.assertIn("loopback or unix", log)
        with socket.create_server(("0.0.0.0", 0)) as listener:
            hand_over = (f"exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ "
                         f"exec {PROGRAM} --test-mode")
            code, log = refusal_of_shell(hand_over, listener.fileno())
            self.assertEqual(code, 78)
            self.assertIn("loopback or unix", log)

    def test_flags_that_make_no_sense_together(self):
        for flags in (["--no-stdin"], ["--address-file", "/tmp/x"], ["--preload", "x"],
                      ["--test-mode", "--config", "/dev/null"], ["--test-mode", "--dump", "/tmp"]):
            code, log = refusal(*flags, stdin=subprocess.PIPE)
            self.assertEqual(code, 64, flags)
            self.assertEqual(log.count("\n"), 1)
        code, log = refusal("--test-mode=never", stdin=subprocess.PIPE)
        self.assertEqual((code, "none of manual, auto, real" in log), (78, True))

    def test_the_end_of_standard_input_ends_the_server(self):
        server = TestServer("--timeouts-shutdown", "1h")  # it waits for no client
        waiting, holding, silent = (server.connect() for _ in range(3))
        waiting.sendall(b"watch other\r\nignore default\r\nreserve\r\n")
        exchange(holding, b"put 0 0 60 1\r\nx\r\nreserve\r\n", 3)
        self.assertEqual(server.end(), (0, ""))
        for client in (waiting, holding, silent):
            client.close()

    def test_the_server_ends_when_the_test_process_is_killed(self):
        script = ("import subprocess, sys, time\n"
                  f"p = subprocess.Popen([{PROGRAM!r}, '--test-mode'], stdin=subprocess.PIPE,\n"
                  "                     stdout=subprocess.PIPE)\n"
                  "p.stdout.readline()\nprint(p.pid, flush=True)\ntime.sleep(600)\n")
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
            server = os.pidfd_open(int(parent.stdout.readline()))
            parent.kill()
            ended, _, _ = select.select([server], [], [], SECONDS)
            self.assertTrue(ended)
            os.close(server)


def refusal_of_shell(command, descriptor):
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=SECONDS,
                          check=False, text=True, stdin=subprocess.PIPE, pass_fds=(descriptor,))
    return done.returncode, done.stderr


class ControlTest(unittest.TestCase):
    def test_lines_end_with_lf_or_crlf_and_replies_with_lf(self):
        with TestServer() as server:
            server.send(b"put 0 0 60 6\na\r\nb\n\0\nput 0 0 60 0\r\n\r\npeek 1\nreserve-job 2\r\n")
            self.assertEqual([server.line(), server.line()], ["INSERTED 1", "INSERTED 2"])
            self.assertEqual(server.line(), "FOUND 1 6")
            self.assertEqual(server.process.stdout.read(7), b"a\r\nb\n\0\n")
            self.assertEqual([server.line(), server.line()], ["RESERVED 2 0", ""])
            self.assertEqual(server.say("nonsense"), "UNKNOWN_COMMAND")
            self.assertEqual(server.say("x" * 5000), "BAD_FORMAT")
            self.assertEqual(server.say("list-tube-used"), "USING default")

    def test_commands_before_the_end_of_input_are_answered(self):
        server = TestServer()
        server.send(b"put 0 100 60 1\nx\ntest-advance 100\nreserve\ndelete 1\n")
        server.process.stdin.close()
        self.assertEqual(server.process.stdout.read(),
                         b"INSERTED 1\nADVANCED 100000\nRESERVED 1 1\nx\nDELETED\n")
        self.assertEqual(server.end()[0], 0)

    def test_a_large_reply_reaches_a_slow_reader(self):
        with TestServer("-z", "4MiB") as server:
            body = bytes(range(256)) * 16384
            client = server.connect()
            exchange(client, b"put 0 0 60 %d\r\n%s\r\n" % (len(body), body))
            server.send(b"peek 1\n")
            # The pipe is full, but other clients are served.
            for _ in range(10):
                self.assertEqual(exchange(client, b"list-tube-used\r\n"), b"USING default\r\n")
            self.assertEqual(server.line(), f"FOUND 1 {len(body)}")
            self.assertEqual(server.process.stdout.read(len(body) + 1), body + b"\n")
            client.close()

    def test_the_descriptors_keep_their_flags(self):
        ours, theirs = socket.socketpair()
        with subprocess.Popen([PROGRAM, "--test-mode"], stdin=theirs, stdout=theirs) as process:
            with ours.makefile("rwb") as control:
                control.readline()
                control.write(b"test-clock\n")
                control.flush()
                self.assertEqual(control.readline(), b"CLOCK 0 0\n")
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(process.wait(SECONDS), 0)
        self.assertTrue(os.get_blocking(theirs.fileno()))
        ours.close()
        theirs.close()


class ClockTest(unittest.TestCase):
    def test_an_automatic_clock_jumps_to_the_next_deadline(self):
        with TestServer(clock="auto") as server:
            client = server.connect()
            self.assertEqual(exchange(client, b"reserve-with-timeout 30\r\n"), b"TIMED_OUT\r\n")
            self.assertEqual(
                exchange(client, b"put 0 86400 60 1\r\nx\r\nreserve\r\n", 3),
                b"INSERTED 1\r\nRESERVED 1 1\r\nx\r\n")
            # The last second of the TTR of a held job ends a wait.
            self.assertEqual(exchange(client, b"reserve\r\n"), b"DEADLINE_SOON\r\n")
            self.assertEqual(server.say("test-clock"), "CLOCK 86489000 86490000")
            client.close()

    def test_a_real_clock_runs_and_can_be_advanced(self):
        with TestServer(clock="real") as server:
            client = server.connect()
            exchange(client, b"put 0 3600 60 1\r\nx\r\n")
            client.sendall(b"reserve\r\n")
            until("the wait", lambda: "current-waiting: 1\n" in server.block("stats"))
            word, now = server.say("test-advance 3599").split(" ")
            self.assertEqual(word, "ADVANCED")
            self.assertGreaterEqual(int(now), 3599000)
            self.assertTrue(exchange(client, b"", 2).startswith(b"RESERVED 1 1\r\n"))
            client.close()

    def test_statistics_are_the_same_in_each_run(self):
        def stats():
            with TestServer() as server:
                server.say("test-advance 100")
                lines = server.block("stats").splitlines()
            return [line for line in lines if not line.startswith("pid: ")]

        one = stats()
        self.assertEqual(one, stats())
        for line in ("uptime: 100", "rusage-utime: 0.000000", "id: a000000000000000"):
            self.assertIn(line, one)


class StateTest(unittest.TestCase):
    def test_what_is_dumped_can_be_loaded(self):
        with TestServer() as server:
            client = server.connect()
            exchange(client, b"use mails\r\nput 5 0 60 3\r\none\r\nput 6 100 60 3\r\n\xfftw\r\n"
                             b"put 7 0 60 5\r\nthree\r\nwatch mails\r\nreserve\r\nbury 1 9\r\n"
                             b"reserve\r\npause-tube mails 500\r\n", 11)
            server.say("test-advance 10")
            dump = server.block("test-dump")
            lines = [json.loads(line) for line in dump.splitlines()]
            self.assertEqual(lines[0], {"clock_ms": 10000, "draining": False})
            self.assertIn({"connection": "c1", "used": "mails", "watched": ["default", "mails"],
                           "holds": [3], "waiting": False}, lines)
            jobs = [line for line in lines if "state" in line]
            self.assertEqual([job["state"] for job in jobs], ["buried", "delayed", "reserved"])
            self.assertEqual(jobs[1]["body_base64"], "/3R3")
            self.assertEqual(jobs[1]["time_left_ms"], 90000)
            self.assertEqual(jobs[2]["holder"], "c1")
            client.close()
            server.say("test-reset")
            server.send(b"test-load %d\n%s\n" % (len(dump.encode()), dump.encode()))
            self.assertEqual(server.line(), "LOADED 3")
            again = [json.loads(line) for line in server.block("test-dump").splitlines()]
            again = {job["id"]: job for job in again if "state" in job}
            self.assertEqual([again[i]["state"] for i in (1, 2, 3)], ["buried", "delayed", "ready"])
            self.assertEqual(again[2]["time_left_ms"], 90000)
            self.assertIn("pause-time-left: 490\n", server.block("stats-tube mails"))
            self.assertEqual(server.say("put 0 0 60 1\nx"), "INSERTED 4")

    def test_unique_jobs_are_dumped_and_loaded(self):
        with TestServer() as server:
            self.assertEqual(server.say("put 0 0 60 1 idp:k:100\nx"), "INSERTED 1")
            self.assertEqual(server.say("put 0 0 60 1 idp:l:100\nx"), "INSERTED 2")
            self.assertEqual(server.say("delete 2"), "DELETED")
            dump = server.block("test-dump")
            jobs = [json.loads(line) for line in dump.splitlines() if '"state"' in line]
            self.assertEqual([job["tags"] for job in jobs], ["idp:k:100"])
            server.say("test-snapshot before")
            server.say("test-reset")
            self.assertEqual(server.say("put 0 0 60 1 idp:k\nx"), "INSERTED 1")
            # A job whose key is taken is loaded without the key.
            server.send(b"test-load %d\n%s\n" % (len(dump.encode()), dump.encode()))
            self.assertEqual(server.line(), "LOADED 1")
            self.assertNotIn("idempotency-key", server.block("stats-job 2"))
            server.say("test-reset")
            server.send(b"test-load %d\n%s\n" % (len(dump.encode()), dump.encode()))
            self.assertEqual(server.line(), "LOADED 1")
            self.assertEqual(server.say("put 0 0 60 1 idp:k\nx"), "INSERTED 1 READY")
            self.assertEqual(server.say("test-restore before"), "RESTORED 1")
            self.assertEqual(server.say("put 0 0 60 1 idp:l\nx"), "INSERTED 2 DELETED")
            # The end of a cooldown is not an event.
            server.say("test-advance 200")
            self.assertEqual(server.say("put 0 0 60 1 idp:l\nx"), "INSERTED 3")
            self.assertEqual(server.block("test-events").splitlines()[1:], ["- 1 put 3 default"])

    def test_marks_and_policies_are_loaded_and_survive_a_restart(self):
        def state(server):
            lines = [json.loads(line) for line in server.block("test-dump").splitlines()]
            return ([line for line in lines if "id" in line or "policy" in line]
                    + [re.sub("\nfile: .*", "", server.block(line))
                       for line in ("tube-policy default", "stats-job 1", "stats-job 3",
                                    "stats-group g")])

        with tempfile.TemporaryDirectory() as directory:
            with TestServer() as server:
                server.say("tube-policy default max-attempts 1")
                server.say("put 0 0 60 1\na")
                server.say("put 9 0 60 1 grp:g\nb")
                server.say("put 9 0 60 1 aft:g\nc")
                for line, reply in (("reserve", "RESERVED 1 1"), ("release 1 0 0", "a"),
                                    ("stats-tube none", "RELEASED")):
                    self.assertEqual(server.say(line), reply)
                self.assertEqual(server.line(), "NOT_FOUND")
                before = state(server)
                self.assertIn("dead-reason: attempts\n", before[-3])
                path = pathlib.Path(directory, "dump.jsonl")
                path.write_text(server.block("test-dump"), encoding="utf-8")
            journal = directory + "/journal"
            os.mkdir(journal)
            with TestServer("-b", journal, "--preload", str(path)) as server:
                self.assertEqual(state(server), before)
                self.assertEqual(server.end(), (0, ""))
            with TestServer("-b", journal) as server:
                self.assertEqual(state(server), before)

    def test_nothing_is_loaded_from_a_malformed_file(self):
        with TestServer() as server:
            for text in (b'{"body":"a"}\n{"body":1}', b"no", b'{"tube":"a b","body":"x"}',
                         b'{"body":"a","id":18446744073709551615}', b'{"state":"ready"}',
                         b'{"body":"%s"}' % (b"x" * 70000)):
                server.send(b"test-load %d\n%s\n" % (len(text), text))
                self.assertEqual(server.line(), "BAD_FORMAT", text[:50])
            self.assertIn("total-jobs: 0\n", server.block("stats"))

    def test_the_first_jobs_come_from_a_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "jobs.jsonl")
            path.write_text('{"body":"one","tube":"mails"}\n{"body":"two","id":7,"age":100}\n',
                            encoding="utf-8")
            with TestServer("--preload", str(path)) as server:
                self.assertEqual(server.say("peek 1"), "FOUND 1 3")
                self.assertEqual(server.line(), "one")
                self.assertIn("age: 100\n", server.block("stats-job 7"))
            path.write_text('{"body":"one"}\n{"nothing":1}\n', encoding="utf-8")
            code, log = refusal("--test-mode", "--preload", path, stdin=subprocess.PIPE)
            self.assertEqual(code, 78)
            self.assertIn("line 2: it is neither a job nor a line of test-dump", log)
            self.assertEqual(refusal("--test-mode", "--preload", directory + "/none",
                                     stdin=subprocess.PIPE)[0], 78)

    def test_a_journal_keeps_what_was_not_reset(self):
        with tempfile.TemporaryDirectory() as directory:
            with TestServer("-b", directory) as server:
                server.say("put 0 0 60 1\na")
                server.say("pause-tube default 1000")
                server.say("test-snapshot one")
                server.say("put 0 0 60 1\nb")
                self.assertEqual(server.say("test-restore one"), "RESTORED 1")
                self.assertEqual(server.say("put 0 3600 60 1\nc"), "INSERTED 2")
                self.assertEqual(server.end(), (0, ""))
            with TestServer("-b", directory) as server:
                self.assertEqual(server.say("peek 1"), "FOUND 1 1")
                self.assertEqual(server.line(), "a")
                self.assertEqual(server.say("peek 2"), "FOUND 2 1")
                self.assertEqual(server.line(), "c")
                self.assertIn("pause-time-left: 1000\n", server.block("stats-tube default"))
                self.assertEqual(server.say("test-reset"), "RESET")
                self.assertEqual(server.say("put 0 0 60 1\nd"), "INSERTED 1")
                self.assertEqual(server.end(), (0, ""))
            with TestServer("-b", directory) as server:
                self.assertEqual(server.say("peek 1"), "FOUND 1 1")
                self.assertEqual(server.line(), "d")
                self.assertEqual(server.say("peek 2"), "NOT_FOUND")

    def test_a_fault_closes_a_connection(self):
        with TestServer() as server:
            client = server.connect()
            self.assertEqual(server.say("test-fault reserve 1 CLOSE"), "FAULT_SET")
            self.assertEqual(exchange(client, b"reserve\r\n"), b"")
            client.close()


if __name__ == "__main__":
    unittest.main()
