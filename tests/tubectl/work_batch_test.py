"""`tubectl work --batch`: several jobs in one reserve, on tubed; on beanstalkd, which has no
reserve-batch, reserve gives the same results.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/work_batch_test.py
"""

import json
import os
import re
import signal
import stat
import unittest

from programs import DONE, USAGE, ScriptedServer, until
from work_tests import SHORT_TTR, WorkTest, is_alive, is_pending

NOT_FOUND = 127


def reserves(stats):
    """The number of reserves of every kind."""
    return sum(stats.get(name, 0) for name in ("cmd-reserve", "cmd-reserve-with-timeout",
                                               "cmd-reserve-batch"))


class BatchTest(WorkTest):
    def gated(self, *lines):
        """A command that runs until the file `gate` exists."""
        return ("sh", "-c", "; ".join((*lines, f"while ! [ -e {self.path('gate')} ]; "
                                               "do sleep 0.01; done")))

    def running(self):
        """Returns the ids of the jobs whose gated command has started."""
        begun = self.path("begun")
        return sorted(map(int, begun.read_text("utf-8").split())) if begun.exists() else []

    def begins(self):
        return f"echo $TUBED_JOB_ID >> {self.path('begun')}"

    def clean(self):
        for path in self.files.iterdir():
            path.unlink()


class Batches(BatchTest):
    def test_a_thousand_jobs_each_exactly_once(self):
        self.check_that_each_job_is_done_once("--batch", 5)

    def test_one_reserve_brings_several_jobs(self):
        """The jobs of a batch run at the same time, by one connection."""
        server = self.tubed()
        client = self.client(server)
        for body in (b"a", b"b", b"c", b"d", b"e"):
            client.put(body)
        process = self.start_work(server, "-j", 5, "--batch", 10, "--count", 5, "--",
                                  *self.gated(self.begins(), f"cat > {self.files}/$TUBED_JOB_ID"))
        until("all to run", lambda: self.running() == [1, 2, 3, 4, 5])
        stats = client.stats()
        self.assertEqual((stats["cmd-reserve-batch"], reserves(stats)), (1, 1))
        self.assertEqual(stats["current-jobs-reserved"], 5)
        self.path("gate").touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))
        self.assertEqual([self.path(str(job)).read_bytes() for job in range(1, 6)],
                         [b"a", b"b", b"c", b"d", b"e"])
        self.assertEqual(client.stats()["cmd-delete"], 5)

    def test_beanstalkd_has_no_batches(self):
        server = self.beanstalkd()
        client = self.client(server)
        for _ in range(3):
            client.put(b"x")
        process = self.start_work(server, "-j", 3, "--batch", 3, "--count", 3, "--",
                                  *self.gated(self.begins()))
        until("all to run", lambda: self.running() == [1, 2, 3])
        self.assertEqual(client.stats()["cmd-reserve"], 3)
        self.path("gate").touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))

    def test_a_server_with_another_reserve_batch(self):
        """reserve-batch is not used if it has no timeout, or without capabilities."""
        for capabilities in (b"UNKNOWN_COMMAND\r\n", b"OK 20\r\n---\n- reserve-batch\n\r\n"):
            server = ScriptedServer([b"WATCHING 1\r\n", capabilities])
            self.addCleanup(server.close)
            process = self.start_work(server.address, "-j", 2, "--batch", 9, "--", "true")
            until("its reserve", lambda server=server: len(server.commands) >= 3)
            self.assertEqual(server.commands[:3], ["watch default", "capabilities", "reserve"])
            process.kill()

    def test_no_more_jobs_than_places(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(5):
                client.put(b"x")
            process = self.start_work(server, "-j", 3, "--batch", 1000, "--count", 5, "--",
                                      *self.gated(self.begins()))
            until("three to run", lambda: len(self.running()) == 3)
            stats = client.stats()
            self.assertEqual((stats["current-jobs-reserved"], stats["current-jobs-ready"]), (3, 2))
            self.path("gate").touch()
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            self.assertEqual(client.stats()["cmd-delete"], 5)
            self.clean()

    def test_places_are_used_while_a_batch_runs(self):
        """Other connections reserve for the remaining places."""
        server = self.tubed()
        client = self.client(server)
        process = self.start_work(server, "-j", 4, "--batch", 4, "--count", 4, "--",
                                  *self.gated(self.begins()))
        for job in range(1, 5):
            until("a reserve that waits", lambda: client.stats()["current-waiting"] == 1)
            client.put(b"x")
            until("it to run", lambda job=job: len(self.running()) == job)
        self.assertEqual(client.stats()["cmd-reserve-batch"], 3)  # of 4, 3 and 2 jobs
        self.assertEqual(client.stats()["cmd-reserve"], 1)
        self.path("gate").touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))

    def test_count(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(10):
                client.put(b"x")
            self.assertEqual(self.work(server, "-j", 4, "--batch", 4, "--count", 7, "--", "true"),
                             (DONE, "", ""))
            self.assertEqual(client.stats()["current-jobs-ready"], 3)

    def test_each_job_has_its_own_result(self):
        for server in self.servers():
            client = self.client(server)
            expected = {}
            for script, outcome in (("exit 0", "deleted"), ("exit 3", "released"),
                                    ("kill -9 $$", "released"), ("exit 4", "buried")):
                expected[client.put(script.encode(), priority=17)] = outcome
            code, _, errors = self.work(server, "-j", 4, "--batch", 4, "--count", 4, "--json",
                                        "--verbose", "--retry-delay", 7, "--bury-codes", 4, "--",
                                        "sh")
            self.assertEqual(code, DONE)
            lines = [json.loads(line) for line in errors.splitlines()]
            self.assertEqual({line["id"]: line["outcome"] for line in lines}, expected)
            self.assertEqual([self.state_of(client, job) for job in sorted(expected)],
                             [None, "delayed", "delayed", "buried"])
            self.assertEqual(client.stats(f"stats-job {max(expected)}")["pri"], 17)

    def test_a_job_that_fails_comes_again(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            code, output, _ = self.work(server, "-j", 4, "--batch", 4, "--exit-when-idle", 0,
                                        "--retries", 3, "--retry-delay", 0, "--", "sh", "-c",
                                        "printf $TUBED_RELEASES; exit 9")
            self.assertEqual((code, output), (DONE, "0123"))
            self.assertEqual(self.state_of(client, job), "buried")

    def test_a_batch_that_the_server_ends_early(self):
        """limits.output_bytes ends a batch; the next reserve returns the rest."""
        server = self.tubed()
        client = self.client(server)
        for _ in range(20):
            client.put(b"x" * 65535)
        code, output, errors = self.work(server, "-j", 20, "--batch", 20, "--count", 20, "--",
                                         "wc", "-c")
        self.assertEqual((code, errors), (DONE, ""))
        self.assertEqual(output, "65535\n" * 20)
        self.assertEqual(client.stats()["cmd-delete"], 20)


class Touches(BatchTest):
    def test_all_jobs_of_a_batch_are_touched(self):
        server, clock = self.tubed_on_standing_clock()
        client = self.client(server)
        for _ in range(3):
            client.put(b"x", ttr=SHORT_TTR)
        process = self.start_work(server, "-j", 3, "--batch", 3, "--count", 3, "--",
                                  *self.gated(self.begins()))
        for _ in range(4):
            touches = client.stats()["cmd-touch"]
            # The jobs are touched together, so each of them is among the last three.
            until("a touch of each", lambda last=touches: client.stats()["cmd-touch"] >= last + 3)
            clock.advance(SHORT_TTR - 1)
        for job in (1, 2, 3):
            stats = client.stats(f"stats-job {job}")
            self.assertEqual((stats["state"], stats["timeouts"], stats["reserves"]),
                             ("reserved", 0, 1))
        self.path("gate").touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))
        self.assertEqual(client.stats()["cmd-delete"], 3)

    def test_a_job_that_is_lost_ends_its_command_alone(self):
        server, _ = self.tubed_on_standing_clock()
        client = self.client(server)
        for _ in range(2):
            client.put(b"x", ttr=SHORT_TTR)
        process = self.start_work(server, "-j", 2, "--batch", 2, "--count", 2, "--",
                                  *self.gated(self.begins(), f"echo $$ > {self.files}/"
                                                             "$TUBED_JOB_ID"))
        until("both to run", lambda: self.running() == [1, 2])
        self.assertEqual(client.ask("delete-force 1"), "DELETED")
        self.assertRegex(self.error_line(process, "the loss of the job"),
                         "^tubectl: job 1 of default: lost, killed by SIGTERM")
        self.assertTrue(is_alive(self.wait_for_pid("2")))
        self.path("gate").touch()
        self.assertEqual(self.wait_for_end(process), (DONE, ""))
        self.assertIsNone(self.state_of(client, 2))


class Ends(BatchTest):
    def test_when_idle(self):
        for server in self.servers():
            client = self.client(server)
            self.assertEqual(self.work(server, "-j", 4, "--batch", 4, "--exit-when-idle", 0, "--",
                                       "true"), (DONE, "", ""))
            for _ in range(6):
                client.put(b"x")
            self.assertEqual(self.work(server, "-j", 4, "--batch", 4, "--exit-when-idle", 0, "--",
                                       "true"), (DONE, "", ""))
            self.assertEqual(client.stats()["cmd-delete"], 6)

    def test_one_wait_is_enough_for_all_places(self):
        server = self.tubed()
        self.assertEqual(self.work(server, "-j", 30, "--batch", 30, "--exit-when-idle", 1, "--",
                                   "true"), (DONE, "", ""))
        self.assertLessEqual(self.client(server).stats()["cmd-reserve-batch"], 4)  # not 30 waits

    def test_a_signal_lets_the_commands_finish(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(2):
                client.put(b"x")
            process = self.start_work(server, "-j", 3, "--batch", 3, "--", *self.gated(
                self.begins()))
            until("both to run", lambda: self.running() == [1, 2])
            until("a reserve that waits", lambda client=client:
                  client.stats()["current-waiting"] == 1)
            process.send_signal(signal.SIGTERM)
            until("no more waiting", lambda client=client: client.stats()["current-waiting"] == 0)
            other = client.put(b"y")
            self.path("gate").touch()
            self.assertEqual(self.wait_for_end(process), (DONE, ""))
            self.assertEqual([self.state_of(client, job) for job in (1, 2, other)],
                             [None, None, "ready"])
            self.clean()

    def test_a_second_signal_ends_all_commands(self):
        for server in self.servers():
            client = self.client(server)
            for _ in range(3):
                client.put(b"x", priority=5)
            process = self.start_work(server, "-j", 3, "--batch", 3, "--",
                                      *self.gated(self.begins()))
            until("all to run", lambda: self.running() == [1, 2, 3])
            process.send_signal(signal.SIGTERM)
            until("the signal to be taken", lambda process=process:
                  not is_pending(process, signal.SIGTERM))
            process.send_signal(signal.SIGTERM)
            code, errors = self.wait_for_end(process)
            self.assertEqual(code, DONE)
            self.assertEqual(sorted(map(int, re.findall(
                r"job (\d) of default: returned, killed by SIGTERM", errors))), [1, 2, 3])
            for job in (1, 2, 3):
                self.wait_for_state(client, job, "ready")
                stats = client.stats(f"stats-job {job}")
                self.assertEqual((stats["pri"], stats["releases"], stats["timeouts"]), (5, 0, 0))
            self.clean()

    def test_a_signal_while_commands_start(self):
        """Jobs without a command return when the running commands have ended."""
        stats = b"---\ntube: default\nstate: reserved\nttr: 100\ntime-left: 99\n"
        stats = b"OK %d\r\n%s\r\n" % (len(stats), stats)
        block = b"---\n- reserve-batch:timeout\n"
        scripted = ScriptedServer([
            b"WATCHING 1\r\n", b"OK %d\r\n%s\r\n" % (len(block), block),
            b"RESERVED_BATCH 2\r\nRESERVED 7 1\r\nx\r\nRESERVED 8 1\r\ny\r\n", stats, b"",
            stats + b"DELETED\r\n"])
        self.addCleanup(scripted.close)
        process = self.start_work(scripted.address, "-j", 2, "--batch", 2, "--verbose", "--",
                                  *self.gated(self.begins()))
        until("the first to run", lambda: self.running() == [7])
        process.send_signal(signal.SIGTERM)
        until("the signal to be taken", lambda: not is_pending(process, signal.SIGTERM))
        self.path("gate").touch()
        code, errors = self.wait_for_end(process)
        self.assertEqual(code, DONE)
        self.assertRegex(errors, r"^tubectl: job 7 of default: deleted, exit code 0 after [0-9.]+ "
                                 r"s\n$")
        self.assertIn("delete 7", scripted.commands)
        self.assertEqual(self.running(), [7])

    def test_a_command_that_cannot_run_harms_no_job(self):
        server = self.tubed()
        client = self.client(server)
        program = self.path("program")
        program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        program.chmod(stat.S_IRWXU)
        process = self.start_work(server, "-j", 3, "--batch", 3, "--", program)
        until("it to wait", lambda: client.stats()["current-waiting"] == 1)
        program.unlink()
        self.assertEqual(client.ask("pause-tube default 100"), "PAUSED")
        for _ in range(3):
            client.put(b"x", priority=5)
        self.assertEqual(client.ask("pause-tube default 0"), "PAUSED")
        code, errors = self.wait_for_end(process)
        self.assertEqual(code, NOT_FOUND, errors)
        for job in (1, 2, 3):
            self.wait_for_state(client, job, "ready")
            stats = client.stats(f"stats-job {job}")
            self.assertEqual((stats["pri"], stats["releases"]), (5, 0))

    def test_a_server_that_ends_while_a_batch_runs(self):
        daemon = self.start()
        server = daemon.addresses[0]
        client = self.client(server)
        for _ in range(2):
            client.put(b"x")
        process = self.start_work(server, "-j", 2, "--batch", 2, "--", *self.gated(self.begins()))
        until("both to run", lambda: self.running() == [1, 2])
        daemon.kill()
        self.assertIn("trying again", self.error_line(process, "the loss of the connection"))
        self.path("gate").touch()
        # The jobs may have two connections. The loss of the second may be noticed after the end of
        # its command.
        lost = sorted(self.error_line(process, "a lost job") for _ in range(2))
        for job, line in enumerate(lost, 1):
            self.assertRegex(line, rf"^tubectl: job {job} of default: lost, exit code 0 after .*: "
                                   "the connection was lost (while the command ran|"
                                   "before the server had answered)\n$")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.wait_for_end(process)[0], DONE)

    def test_usage(self):
        for batch in ("0", "1001", "x"):
            self.refused(USAGE, "unix:/no/such/socket", "work", "--batch", batch, "--", "true")


if __name__ == "__main__":
    unittest.main()
