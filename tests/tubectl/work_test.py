"""`tubectl work`: a command for each job, on tubed and on beanstalkd.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/work_test.py
"""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import unittest

from programs import DONE, SECONDS, TUBECTL, UNAVAILABLE, USAGE, until
from work_tests import SHORT_TTR, WorkTest, is_alive, is_pending

NOT_EXECUTABLE, NOT_FOUND = 126, 127


class Jobs(WorkTest):
    def test_the_body_arrives_as_it_is(self):
        bodies = [b"", b"\r\n", bytes(range(256)) * 4, b"no line end", os.urandom(65535)]
        for server in self.servers():
            client = self.client(server)
            for body in bodies:
                client.put(body)
            got = self.path("got")
            code, output, errors = self.work(
                server, "--count", len(bodies), "--",
                "sh", "-c", f"cat > {self.files}/$TUBED_JOB_ID")
            self.assertEqual((code, output, errors), (DONE, "", ""))
            self.assertEqual([self.path(str(job + 1)).read_bytes() for job in range(len(bodies))],
                             bodies)
            self.assertEqual(client.stats()["current-jobs-reserved"], 0)
            self.assertEqual(client.stats()["cmd-delete"], len(bodies))
            self.assertFalse(got.exists())

    def test_what_the_command_prints_passes_through(self):
        for server in self.servers():
            self.client(server).put(b"words")
            code, output, errors = self.work(server, "--count", 1, "--", "sh", "-c",
                                             "cat; echo complaint >&2")
            self.assertEqual((code, output, errors), (DONE, "words", "complaint\n"))

    def test_a_command_inherits_neither_a_mask_nor_ignored_signals(self):
        # tubectl inherits blocked and ignored signals from this parent.
        parent = ("import os, signal, sys\n"
                  "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
                  "for one in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):\n"
                  "    signal.signal(one, signal.SIG_IGN)\n"
                  "os.execv(sys.argv[1], sys.argv[1:])\n")
        status = self.path("status")
        for server in self.servers():
            client = self.client(server)
            client.put(b"")
            done = subprocess.run([sys.executable, "-c", parent, TUBECTL, "work", "-s", server,
                                   "--count", "1", "--", "cp", "/proc/self/status", str(status)],
                                  check=False, capture_output=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr), (DONE, b""))
            self.assertEqual(client.stats()["cmd-delete"], 1)
            fields = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
            self.assertEqual(int(fields["SigBlk"], 16), 0)
            # nohup(1) applies to the commands too.
            self.assertEqual(int(fields["SigIgn"], 16), 1 << (signal.SIGHUP - 1))

    def test_the_environment(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("use faxes")
            job = client.put(b"x", priority=77, ttr=88)
            client.ask("watch faxes")
            client.reserve()
            client.ask(f"release {job} 99 0")
            code, output, errors = self.work(
                server, "-t", "emails", "--tube", "faxes", "--count", 1, "--", "env")
            self.assertEqual((code, errors), (DONE, ""))
            got = {key: value for key, value in (line.split("=", 1) for line in output.split("\n")
                                                 if line.startswith("TUBED_"))
                   if key != "TUBED_SERVER" and key not in os.environ}
            self.assertEqual(got, {"TUBED_JOB_ID": str(job), "TUBED_TUBE": "faxes",
                                   "TUBED_PRIORITY": "99", "TUBED_TTR": "88",
                                   "TUBED_RESERVES": "2", "TUBED_RELEASES": "1"})

    def test_the_process_of_the_command_is_as_a_shell_makes_it(self):
        """The command inherits no descriptors of tubectl, but the original limits and signals."""
        look = ("import os, signal, resource; print(sorted(os.listdir('/proc/self/fd'))[:-1], "
                "os.getpgrp() == os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, ()), "
                "resource.getrlimit(resource.RLIMIT_NOFILE)[0])")
        for server in self.servers():
            self.client(server).put(b"x")
            process = subprocess.run(
                ["sh", "-c", 'ulimit -Sn 100; exec "$0" "$@"', TUBECTL, "work", "-s",
                 server, "-j", "200", "--count", "1", "--", sys.executable, "-c", look],
                capture_output=True, timeout=SECONDS, check=False, text=True)
            self.assertEqual((process.returncode, process.stderr), (DONE, ""))
            self.assertEqual(process.stdout, "['0', '1', '2'] True set() 100\n")

    def test_arguments_pass_as_they_are(self):
        words = ["[a,b]", "{}", "%%", "--", "-t", "put", "", "a b", "--help", "[]"]
        for server in self.servers():
            for separated in (True, False):
                self.client(server).put(b"x")
                command = ["sh", "-c", 'printf "<%s>" "$@"', "sh", *words]
                if not separated:  # a command without options
                    command = ["printf", "<%s>", *words]
                code, output, errors = self.work(server, "--count", 1,
                                                 *(["--"] if separated else []), *command)
                self.assertEqual((code, errors), (DONE, ""))
                self.assertEqual(output, "".join(f"<{word}>" for word in words))

    def test_only_the_tubes_that_were_named(self):
        for server in self.servers():
            client = self.client(server)
            other = client.put(b"in default")
            client.ask("use emails")
            client.put(b"in emails")
            code, output, _ = self.work(server, "-t", "emails", "-t", "emails",
                                        "--exit-when-idle", 0, "--", "cat")
            self.assertEqual((code, output), (DONE, "in emails"))
            self.assertEqual(self.state_of(client, other), "ready")

    def test_who_does_not_read_blocks_nobody(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(3):
                client.put(b"x" * 65535)
            self.assertEqual(self.work(server, "--count", 3, "--", "true"), (DONE, "", ""))
            self.assertEqual(client.stats()["cmd-delete"], 3)

    def test_grandchildren_hold_nobody_up(self):
        for server in self.servers():
            client = self.client(server)
            client.put(b"x")
            script = f"sleep 1000 > /dev/null 2>&1 & echo $! > {self.path('pid')}"
            self.assertEqual(self.work(server, "--count", 1, "--", "sh", "-c", script),
                             (DONE, "", ""))
            pid = self.wait_for_pid("pid")
            self.assertTrue(is_alive(pid))
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(client.stats()["cmd-delete"], 1)
            self.path("pid").unlink()

    def test_a_thousand_jobs_each_exactly_once(self):
        self.check_that_each_job_is_done_once()

    def test_so_many_at_once_and_never_more(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(5):
                client.put(b"x")
            gate = self.path("gate")
            process = self.start_work(server, "-j", 3, "--count", 5, "--", "sh", "-c",
                                      f"echo >> {self.path('begun')}; "
                                      f"while ! [ -e {gate} ]; do sleep 0.01; done")
            until("three to run", lambda: self.path("begun").exists() and
                  len(self.path("begun").read_text("utf-8")) == 3)
            stats = client.stats()
            self.assertEqual((stats["current-jobs-reserved"], stats["current-jobs-ready"]), (3, 2))
            gate.touch()
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            self.assertEqual(client.stats()["cmd-delete"], 5)
            gate.unlink()
            self.path("begun").unlink()


class Failures(WorkTest):
    def fail_once(self, server, *arguments, command=("false",)):
        """Runs one job that fails once. Returns its stats, or nothing, and the messages."""
        client = self.client(server)
        job = client.put(b"x", priority=17)
        code, _, errors = self.work(server, "--count", 1, *arguments, "--", *command)
        self.assertEqual(code, DONE, errors)
        stats = client.stats(f"stats-job {job}") if self.state_of(client, job) else None
        client.ask(f"delete {job}")
        return stats, errors

    def test_the_delay_doubles_and_then_it_is_buried(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x", priority=17)
            for delay in (10, 20, 40, 50):
                code, _, errors = self.work(server, "--count", 1, "--retries", 4, "--retry-delay",
                                            10, "--max-delay", 50, "--", "false")
                self.assertEqual(code, DONE)
                self.assertRegex(errors, rf"^tubectl: job {job} of default: released for {delay} s,"
                                         r" exit code 1 after [0-9.]+ s\n$")
                stats = client.stats(f"stats-job {job}")
                self.assertEqual((stats["state"], stats["delay"], stats["pri"]),
                                 ("delayed", delay, 17))
                self.assertEqual(client.ask("kick 10"), "KICKED 1")
            code, _, errors = self.work(server, "--count", 1, "--retries", 4, "--", "false")
            self.assertIn(f"job {job} of default: buried, exit code 1", errors)
            stats = client.stats(f"stats-job {job}")
            self.assertEqual((stats["state"], stats["pri"]), ("buried", 17))

    def test_the_defaults(self):
        for server in self.servers():
            stats, _ = self.fail_once(server)
            self.assertEqual((stats["state"], stats["delay"], stats["releases"]), ("delayed", 1, 1))

    def test_without_a_delay_it_comes_again_at_once(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            code, output, _ = self.work(server, "--exit-when-idle", 0, "--retries", 3,
                                        "--retry-delay", 0, "--", "sh", "-c",
                                        "printf $TUBED_RELEASES; exit 9")
            self.assertEqual((code, output), (DONE, "0123"))
            self.assertEqual(self.state_of(client, job), "buried")

    def test_what_the_user_chose(self):
        for server in self.servers():
            stats, errors = self.fail_once(server, "--on-failure", "bury")
            self.assertEqual((stats["state"], stats["pri"]), ("buried", 17))
            self.assertIn("buried, exit code 1", errors)
            stats, errors = self.fail_once(server, "--on-failure", "delete")
            self.assertIsNone(stats)
            self.assertIn("deleted, exit code 1", errors)
            stats, errors = self.fail_once(server, "--on-failure", "release", "--retries", 0)
            self.assertEqual(stats["state"], "buried")

    def test_exit_codes_that_bury(self):
        for server in self.servers():
            for exit_code, state in ((64, "delayed"), (65, "buried"), (70, "buried"),
                                     (75, "delayed"), (126, "delayed"), (127, "delayed")):
                stats, errors = self.fail_once(server, "--bury-codes", "65,70",
                                               command=("sh", "-c", f"exit {exit_code}"))
                self.assertEqual(stats["state"], state)
                self.assertIn(f"exit code {exit_code}", errors)

    def test_a_killed_command_has_failed(self):
        for server in self.servers():
            stats, errors = self.fail_once(server, command=("sh", "-c", "kill -9 $$"))
            self.assertEqual(stats["state"], "delayed")
            self.assertIn("killed by SIGKILL", errors)

    def test_who_runs_too_long_is_ended(self):
        for server in self.servers():
            stats, errors = self.fail_once(server, "--max-run", 0.05, command=self.sleeper())
            self.assertEqual(stats["state"], "delayed")
            self.assertIn("ran too long", errors)
            # Not a success, even with exit code 0.
            stats, _ = self.fail_once(server, "--max-run", 0.05, command=(
                "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.01; done"))
            self.assertEqual(stats["state"], "delayed")

    def test_who_ignores_sigterm_is_killed(self):
        for server in self.servers():
            script = f"trap '' TERM; echo $$ > {self.path('pid')}; while :; do sleep 0.01; done"
            # Gives the shell time to start.
            stats, errors = self.fail_once(server, "--max-run", 2, "--kill-after", 0.1,
                                           command=("sh", "-c", script))
            self.assertEqual(stats["state"], "delayed")
            self.assertIn("ran too long", errors)
            self.assertFalse(is_alive(self.wait_for_pid("pid")))


class Touches(WorkTest):
    def lose(self, process, client, clock, job):
        """Stops the process, and lets the TTR of its job end. `client` then holds the job."""
        os.kill(process.pid, signal.SIGSTOP)
        client.stats()  # after the last touch
        clock.advance(2 * SHORT_TTR)
        self.assertEqual(client.reserve(), (job, b"x"))

    def test_a_slow_command_keeps_its_job(self):
        server, clock = self.tubed_on_standing_clock()
        client = self.client(server)
        job = client.put(b"x", ttr=SHORT_TTR)
        gate = self.path("gate")
        process = self.start_work(server, "--count", 1, "--", "sh", "-c",
                                  f"while ! [ -e {gate} ]; do sleep 0.01; done")
        for _ in range(4):
            touches = client.stats()["cmd-touch"]
            until("a touch", lambda last=touches: client.stats()["cmd-touch"] > last)
            clock.advance(SHORT_TTR - 1)
        stats = client.stats(f"stats-job {job}")
        self.assertEqual((stats["state"], stats["timeouts"], stats["reserves"]),
                         ("reserved", 0, 1))
        gate.touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))
        self.assertIsNone(self.state_of(client, job))

    def test_a_slow_command_touches_its_job_on_each_server(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x", ttr=30)
            gate = self.path("gate")
            process = self.start_work(server, "--count", 1, "--", "sh", "-c",
                                      f"while ! [ -e {gate} ]; do sleep 0.01; done")
            until("a touch", lambda client=client: client.stats()["cmd-touch"] > 0)
            gate.touch()
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            self.assertIsNone(self.state_of(client, job))
            gate.unlink()

    def test_a_job_that_is_lost_before_its_command_starts(self):
        """The job was sent to a tubectl that was stopped for longer than its TTR."""
        server, clock = self.tubed_on_standing_clock()
        client = self.client(server)
        process = self.start_work(server, "--", "touch", self.path("begun"))
        until("it to wait", lambda: client.stats()["current-waiting"] == 1)
        os.kill(process.pid, signal.SIGSTOP)
        job = client.put(b"x", ttr=SHORT_TTR)
        clock.advance(2 * SHORT_TTR)
        self.assertEqual(client.reserve(), (job, b"x"))
        # The job is ready now, and remains so.
        self.assertEqual(client.ask("pause-tube default 1000"), "PAUSED")
        self.assertEqual(client.ask(f"release {job} 0 0"), "RELEASED")
        os.kill(process.pid, signal.SIGCONT)
        until("it to wait again", lambda: client.stats()["current-waiting"] == 1)
        self.assertFalse(self.path("begun").exists())
        self.assertEqual(self.state_of(client, job), "ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.wait_for_end(process), (DONE, ""))

    def test_who_has_lost_its_job_is_ended(self):
        server, clock = self.tubed_on_standing_clock()
        client = self.client(server)
        job = client.put(b"x", ttr=SHORT_TTR)
        process = self.start_work(server, "--count", 1, "--", *self.sleeper())
        pid = self.wait_for_pid("pid")
        self.lose(process, client, clock, job)
        self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        os.kill(process.pid, signal.SIGCONT)
        code, errors = self.wait_for_end(process)
        self.assertEqual(code, DONE)
        self.assertRegex(errors, rf"^tubectl: job {job} of default: lost, killed by SIGTERM "
                                 r"after [0-9.]+ s: its time to run was over")
        self.assertFalse(is_alive(pid))
        self.path("pid").unlink()

    def test_a_job_that_was_lost_while_nobody_looked(self):
        server, clock = self.tubed_on_standing_clock()
        client = self.client(server)
        job = client.put(b"x", ttr=SHORT_TTR)
        gate = self.path("gate")
        process = self.start_work(
            server, "--count", 1, "--", "sh", "-c",
            f"echo $$ > {self.path('pid')}; while ! [ -e {gate} ]; do sleep 0.01; done")
        pid = self.wait_for_pid("pid")
        self.lose(process, client, clock, job)
        gate.touch()
        until("the command to end", lambda: not is_alive(pid))
        os.kill(process.pid, signal.SIGCONT)
        code, errors = self.wait_for_end(process)
        self.assertEqual(code, DONE)
        self.assertIn(f"job {job} of default: lost, exit code 0", errors)
        self.assertEqual(self.state_of(client, job), "reserved")
        gate.unlink()
        self.path("pid").unlink()


class Ends(WorkTest):
    def test_count(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(10):
                client.put(b"x")
            self.assertEqual(self.work(server, "-j", 4, "--count", 7, "--", "true"),
                             (DONE, "", ""))
            self.assertEqual(client.stats()["current-jobs-ready"], 3)

    def test_when_idle(self):
        for server in self.servers():
            client = self.client(server)
            self.assertEqual(self.work(server, "--exit-when-idle", 0, "--", "true"),
                             (DONE, "", ""))
            for _ in range(3):
                client.put(b"x")
            self.assertEqual(self.work(server, "-j", 2, "--exit-when-idle", 0, "--", "true"),
                             (DONE, "", ""))
            self.assertEqual(client.stats()["cmd-delete"], 3)
            # More workers than --count allows to reserve at a time: each must have timed out once.
            # Which worker is answered first is random, hence the repetition.
            for _ in range(5):
                client.put(b"x")
                self.assertEqual(self.work(server, "-j", 8, "--count", 4, "--exit-when-idle", 0,
                                           "--", "true"), (DONE, "", ""))

    def test_when_idle_for_so_long(self):
        server = self.tubed()
        client = self.client(server)
        client.put(b"x")
        self.assertEqual(self.work(server, "-j", 2, "--exit-when-idle", 1, "--", "true"),
                         (DONE, "", ""))
        self.assertEqual(client.stats()["cmd-delete"], 1)

    def test_a_job_that_runs_is_not_idle(self):
        for server in self.servers():
            client = self.client(server)
            client.put(b"first")
            gate = self.path("gate")
            process = self.start_work(
                server, "-j", 2, "--exit-when-idle", 0, "--", "sh", "-c",
                f"echo >> {self.path('begun')}; while ! [ -e {gate} ]; do sleep 0.01; done")
            self.wait_for_file("begun")
            # The other worker's reserve timed out, and it waits again, for longer.
            until("another reserve", lambda: client.stats()["cmd-reserve-with-timeout"] >= 3)
            client.put(b"second")
            until("both to run", lambda: len(self.path("begun").read_text("utf-8")) == 2)
            gate.touch()
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            self.assertEqual(client.stats()["cmd-delete"], 2)
            self.assertLess(client.stats()["cmd-reserve-with-timeout"], 100)
            gate.unlink()
            self.path("begun").unlink()

    def test_a_signal_lets_the_commands_finish(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for server in self.servers():
                client = self.client(server)
                job = client.put(b"x")
                gate = self.path("gate")
                process = self.start_work(
                    server, "-j", 2, "--", "sh", "-c",
                    f"echo $$ > {self.path('pid')}; while ! [ -e {gate} ]; do sleep 0.01; done")
                pid = self.wait_for_pid("pid")
                until("both connections", lambda: client.stats()["current-waiting"] == 1)
                process.send_signal(number)
                # The other connection is closed; this connection is not.
                until("no more waiting", lambda: client.stats()["current-waiting"] == 0)
                self.assertTrue(is_alive(pid))
                other = client.put(b"y")
                self.assertEqual(self.state_of(client, job), "reserved")
                gate.touch()
                self.assertEqual(self.wait_for_end(process), (DONE, ""))
                self.assertIsNone(self.state_of(client, job))
                self.assertEqual(self.state_of(client, other), "ready")
                gate.unlink()
                self.path("pid").unlink()

    def test_a_second_signal_ends_the_commands(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x", priority=5)
            process = self.start_work(server, "--verbose", "--", *self.sleeper())
            pid = self.wait_for_pid("pid")
            connections = client.stats()["current-connections"]
            self.assertEqual(connections, 2)
            process.send_signal(signal.SIGTERM)
            # The program must take the first signal before the second is sent, because pending
            # signals are not counted.
            until("the signal to be taken", lambda: not is_pending(process, signal.SIGTERM))
            self.assertTrue(is_alive(pid))
            process.send_signal(signal.SIGTERM)
            code, errors = self.wait_for_end(process)
            self.assertEqual(code, DONE)
            self.assertIn("returned, killed by SIGTERM", errors)
            self.assertFalse(is_alive(pid))
            self.wait_for_state(client, job, "ready")
            stats = client.stats(f"stats-job {job}")
            self.assertEqual((stats["state"], stats["pri"], stats["releases"], stats["timeouts"]),
                             ("ready", 5, 0, 0))
            self.path("pid").unlink()

    def test_a_second_signal_kills_who_ignores_it(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            script = f"trap '' TERM; echo $$ > {self.path('pid')}; while :; do sleep 0.01; done"
            process = self.start_work(server, "--kill-after", 0.1, "--", "sh", "-c", script)
            pid = self.wait_for_pid("pid")
            process.send_signal(signal.SIGINT)
            until("the signal to be taken", lambda: not is_pending(process, signal.SIGINT))
            process.send_signal(signal.SIGTERM)
            code, errors = self.wait_for_end(process)
            self.assertEqual(code, DONE)
            self.assertIn("returned, killed by SIGKILL", errors)
            self.assertFalse(is_alive(pid))
            self.wait_for_state(client, job, "ready")
            self.path("pid").unlink()

    def test_if_it_dies_its_commands_end_and_its_jobs_go_back(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            process = self.start_work(server, "--", *self.sleeper())
            pid = self.wait_for_pid("pid")
            process.kill()
            until("the command to end", lambda: not is_alive(pid))
            self.wait_for_state(client, job, "ready")
            self.path("pid").unlink()


class Mistakes(WorkTest):
    def test_the_command_is_looked_for_at_the_start(self):
        plain = self.path("plain")
        plain.write_text("no program", encoding="utf-8")
        for server in self.servers():
            for code, command in ((NOT_FOUND, "no-such-program"), (NOT_FOUND, "./no-such-program"),
                                  (NOT_EXECUTABLE, plain), (NOT_EXECUTABLE, self.files)):
                errors = self.refused(code, server, "work", "--", command)
                self.assertIn(f"cannot run {command}: ", errors)

    def test_a_line_for_a_shell(self):
        nowhere = f"unix:{self.directory}/nobody"
        for line in ("cat | wc -c", "echo $HOME"):
            self.assertIn(f"; a shell takes it as: sh -c '{line}'\n",
                          self.refused(NOT_FOUND, nowhere, "work", "--", line))
        self.assertIn("; a shell takes it after: sh -c\n",
                      self.refused(NOT_FOUND, nowhere, "work", "--", "echo 'a b'"))
        self.assertNotIn("shell", self.refused(NOT_FOUND, nowhere, "work", "--", "no-such", "|"))

    def test_a_command_that_goes_away_stops_it_and_the_job_is_unharmed(self):
        for server in self.servers():
            for code in (NOT_FOUND, NOT_EXECUTABLE):
                client = self.client(server)
                program = self.path(f"program-{code}")
                program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
                program.chmod(stat.S_IRWXU)
                process = self.start_work(server, "--verbose", "--json", "--", program)
                first = client.put(b"x", priority=5)
                until("the first to be done", lambda: self.state_of(client, first) is None)
                if code == NOT_FOUND:
                    program.unlink()
                else:
                    program.chmod(stat.S_IRUSR)
                    # Root may execute any program with an x bit, so this program has no such bit.
                second = client.put(b"x", priority=5)
                got, errors = self.wait_for_end(process)
                self.assertEqual(got, code, errors)
                lines = errors.splitlines()
                self.assertEqual(json.loads(lines[1])["outcome"], "returned")
                self.assertTrue(lines[2].startswith(f"tubectl: cannot run {program}: "), lines)
                self.wait_for_state(client, second, "ready")
                stats = client.stats(f"stats-job {second}")
                self.assertEqual((stats["state"], stats["pri"], stats["releases"]),
                                 ("ready", 5, 0))
                client.ask(f"delete {second}")
                if program.exists():
                    program.unlink()

    def test_usage(self):
        server = "unix:/no/such/socket"
        for arguments in ((), ("--",), ("-j", "0", "--", "true"), ("-j", "1001", "--", "true"),
                          ("--bogus", "--", "true"), ("-t", "a b", "--", "true"),
                          ("--on-failure", "kick", "--", "true"),
                          ("--bury-codes", "65,x", "--", "true"),
                          ("--bury-codes", "0", "--", "true"), ("--count", "0", "--", "true"),
                          ("--retry-delay", "-1", "--", "true"), ("--max-run", "0", "--", "true"),
                          ("-q", "-v", "--", "true"), ("true", "--bogus")):
            self.refused(USAGE, server, "work", *arguments)

    def test_more_slots_than_descriptors(self):
        process = subprocess.run(
            ["sh", "-c", 'ulimit -n 100; exec "$0" "$@"', TUBECTL, "work", "-j",
             "100", "--", "true"], capture_output=True, timeout=SECONDS, check=False, text=True)
        self.assertEqual(process.returncode, USAGE)
        self.assertIn("open files", process.stderr)

    def test_no_server(self):
        self.refused(UNAVAILABLE, f"unix:{self.files}/nobody", "work", "--", "true")


if __name__ == "__main__":
    unittest.main()
