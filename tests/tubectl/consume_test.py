"""`tubectl reserve`, and the subcommands for jobs with given ids: delete, release, bury, kick.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/consume_test.py
"""

import json
import subprocess
import unittest

from job_tests import CapabilityTest
from programs import (BAD_INPUT, DONE, FAILURE, IO, SECONDS, TIMED_OUT, UNAVAILABLE, USAGE,
                      ScriptedServer, until)

JOB_KEYS = ["id", "tube", "state", "pri", "age", "delay", "ttr", "time-left", "file", "reserves",
            "timeouts", "releases", "buries", "kicks"]


class QueueTest(CapabilityTest):
    """Yields servers, each with a client of the test."""

    def queues(self):
        for server in self.servers():
            yield server, self.client(server)

    def state(self, client, job):
        """Returns (state, priority, delay), or None."""
        stats = client.stats_if_found(f"stats-job {job}")
        if stats is None:
            return None
        return stats["state"], stats["pri"], stats["delay"]

    def states(self, client, *jobs):
        return [state and state[0] for state in (self.state(client, job) for job in jobs)]

    def failed(self, server, *arguments, code=FAILURE, stdin=b""):
        """Returns (stdout, the lines of stderr)."""
        got, output, errors = self.run_tubectl(server, *arguments, stdin=stdin)
        self.assertEqual(got, code, (output, errors))
        return output, errors.splitlines()


class Reserve(QueueTest):
    def test_without_a_fate_the_job_goes_back(self):
        for server, client in self.queues():
            client.put(b"a\0\xff", priority=5)
            output, _ = self.popen(server, "reserve", stdout=subprocess.PIPE).communicate(
                timeout=SECONDS)
            self.assertEqual(output, b"a\0\xff")
            until("it to go back", lambda: self.state(client, 1) == ("ready", 5, 0))

    def test_delete(self):
        for server, client in self.queues():
            client.put(b"a")
            self.assertEqual(self.tubectl(server, "reserve", "--delete"), "a")
            self.assertIsNone(self.state(client, 1))

    def test_release_and_bury_keep_the_priority_or_give_another(self):
        for server, client in self.queues():
            client.put(b"a", priority=5)
            for arguments, state in (((), ("ready", 5, 0)),
                                     (("-p", 8), ("ready", 8, 0)),
                                     (("--delay", 1000), ("delayed", 8, 1000))):
                self.assertEqual(self.tubectl(server, "reserve", "--release", *arguments), "a")
                self.assertEqual(self.state(client, 1), state)
            client.put(b"b", priority=6)
            client.put(b"c", priority=7)
            self.assertEqual(self.tubectl(server, "reserve", "--bury"), "b")
            self.assertEqual(self.tubectl(server, "reserve", "--bury", "--priority", 9), "c")
            self.assertEqual([self.state(client, job)[:2] for job in (2, 3)],
                             [("buried", 6), ("buried", 9)])

    def test_json(self):
        for server, client in self.queues():
            client.ask("use mail")
            client.put(b"\xc3\xa9", priority=5, ttr=70)
            client.put(b"\xff")
            lines = self.tubectl(server, "reserve", "-t", "mail", "-n", 2, "--delete", "--json")
            second, first = map(json.loads, lines.splitlines())
            self.assertEqual(list(first), [*JOB_KEYS, "body"])
            self.assertEqual((first["id"], first["tube"], first["state"], first["pri"],
                              first["ttr"], first["reserves"], first["body"]),
                             (1, "mail", "reserved", 5, 70, 1, "\u00e9"))
            self.assertEqual((second["id"], second["body_base64"]), (2, "/w=="))

    def test_several_have_a_line_end_each(self):
        for server, client in self.queues():
            for body in (b"a", b"b", b"c"):
                client.put(body)
            self.assertEqual(self.tubectl(server, "reserve", "--count", 2, "--delete"), "a\nb\n")
            # The jobs are released after the last was reserved: no job is reserved twice.
            client.put(b"d")
            self.assertEqual(self.tubectl(server, "reserve", "-n", 2, "--release", "-d", 99),
                             "c\nd\n")
            self.assertEqual(self.states(client, 1, 2, 3, 4), [None, None, "delayed", "delayed"])

    def test_only_the_tubes_that_are_named(self):
        for server, client in self.queues():
            client.put(b"default")
            for tube in ("mail", "images"):
                client.ask(f"use {tube}")
                client.put(tube.encode())
            reserve = ("reserve", "--timeout", 0, "--delete", "-t")
            self.assertEqual(self.tubectl(server, *reserve, "images"), "images")
            self.assertEqual(self.tubectl(server, *reserve, "images", "-t", "mail"), "mail")
            self.refused(TIMED_OUT, server, *reserve, "images", "-t", "mail")
            self.assertEqual(self.tubectl(server, *reserve, "mail", "-t", "default"), "default")
            client.ask("use word")
            client.put(b"word")
            self.assertEqual(self.tubectl(server, *reserve[:-1], "mail", "word"), "word")

    def test_nothing_in_time(self):
        for server, client in self.queues():
            self.assertIn("in time", self.refused(TIMED_OUT, server, "reserve", "--timeout", 0))
            self.refused(TIMED_OUT, server, "reserve", "--timeout", 0, "--json")
            client.put(b"a", priority=5)
            output, errors = self.failed(server, "reserve", "-n", 3, "--timeout", 0, "--release",
                                         "--delay", 50, code=TIMED_OUT)
            self.assertEqual((output, len(errors)), ("a\n", 1))
            self.assertEqual(self.state(client, 1), ("delayed", 5, 50))

    def test_nothing_within_a_second(self):
        self.refused(TIMED_OUT, self.tubed(), "reserve", "--timeout", 1, "--json")

    def test_it_waits_for_a_job(self):
        for server, client in self.queues():
            process = self.popen(server, "reserve", "--delete", stdout=subprocess.PIPE)
            with process:
                until("it to wait", lambda: client.stats()["current-waiting"] == 1)
                client.put(b"late")
                output, _ = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, output), (DONE, b"late"))

    def test_a_job_that_is_held_runs_out_of_time(self):
        server = self.tubed()
        self.client(server).put(b"a", ttr=10)
        output, errors = self.failed(server, "reserve", "-n", 2, code=TIMED_OUT)
        self.assertEqual(output, "a\n")
        self.assertIn("DEADLINE_SOON", errors[0])

    def test_what_was_not_written_is_not_deleted(self):
        for server, client in self.queues():
            client.put(b"a")
            for fate in ("--delete", "--bury", "--release"):
                with open("/dev/full", "wb") as full:
                    process = self.popen(server, "reserve", fate, stdout=full,
                                         stderr=subprocess.PIPE)
                    _, errors = process.communicate(timeout=SECONDS)
                self.assertEqual(process.returncode, IO, errors)
                until("it to go back", lambda: self.state(client, 1) == ("ready", 0, 0))

    def test_a_job_whose_time_ran_out_meanwhile(self):
        server = ScriptedServer([b"RESERVED 5 1\r\na\r\n", b"NOT_FOUND\r\n"])
        self.addCleanup(server.close)
        output, errors = self.failed(server.address, "reserve", "--delete")
        self.assertEqual(output, "a")
        self.assertIn("job 5: its time to run is over", errors[0])
        self.assertEqual(server.commands, ["reserve", "delete 5"])

    def test_a_job_that_comes_again_is_not_printed_again(self):
        server = self.tubed()
        client = self.client(server)
        size = 65_000  # the second body blocks the pipe
        for body in (b"a", b"b"):
            client.put(body * size, ttr=10)
        process = self.popen(server, "reserve", "-n", 3, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        with process:
            until("both to be held", lambda: client.stats()["current-jobs-reserved"] == 2)
            until("both to run out", lambda: client.stats()["current-jobs-reserved"] == 0)
            output, errors = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, TIMED_OUT, errors)
        self.assertEqual(output, b"a" * size + b"\n" + b"b" * size + b"\n")
        self.assertRegex(errors, rb"^tubectl: job 1: its time to run was over .*\n$")

    def test_a_job_that_comes_again_is_released_as_the_others(self):
        reserved = b"RESERVED 5 1\r\na\r\n"
        server = ScriptedServer([reserved, reserved, b"RELEASED\r\n"])
        self.addCleanup(server.close)
        output, errors = self.failed(server.address, "reserve", "-n", 9, "--release", "-p", 4,
                                     code=TIMED_OUT)
        self.assertEqual((output, len(errors)), ("a\n", 1))
        self.assertEqual(server.commands, ["reserve", "reserve", "release 5 4 0"])

    def test_a_tube_that_the_server_refuses(self):
        server = self.tubed("--limits-tubes", "1")
        client = self.client(server)
        client.put(b"a")
        for tubes in (("-t", "mail"), ("-t", "default", "-t", "mail")):
            why = self.refused(FAILURE, server, "reserve", *tubes, "--timeout", 0, "--delete")
            self.assertIn("watch mail: the server has no room (OUT_OF_MEMORY)", why)
        stats = client.stats()
        self.assertEqual((stats["current-jobs-ready"], stats["cmd-delete"]), (1, 0))

    def test_nothing_is_reserved_when_default_cannot_be_ignored(self):
        server = ScriptedServer([b"WATCHING 2\r\n", b"NOT_IGNORED\r\n"])
        self.addCleanup(server.close)
        why = self.refused(FAILURE, server.address, "reserve", "-t", "mail")
        self.assertIn("ignore default", why)
        self.assertEqual(server.commands, ["watch mail", "ignore default"])

    def test_mistakes_and_no_server(self):
        nowhere = f"unix:{self.directory}/nobody"
        self.refused(UNAVAILABLE, nowhere, "reserve")
        for arguments in (("--delete", "--bury"), ("--delete", "--release"),
                          ("--bury", "--release"), ("--delay", 3), ("--bury", "--delay", 3),
                          ("--priority", 3),
                          ("--delete", "--priority", 3), ("--count", 0), ("--timeout", "x"),
                          ("-t", "-"), ("a b",)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "reserve", *arguments)


class ById(QueueTest):
    def put_states(self, client):
        """Job 1 is ready, 2 delayed, 3 buried and 4 reserved by the client."""
        for delay in (0, 1000, 0, 0):
            client.put(b"x", priority=7, delay=delay)
        for job in (3, 4):
            client.reserve(f"reserve-job {job}")
        client.ask("bury 3 7")

    def test_delete(self):
        for server, client in self.queues():
            self.put_states(client)
            self.assertEqual(self.tubectl(server, "delete", 1, 3), "")
            output, errors = self.failed(server, "delete", 4, 2, 99)
            self.assertEqual((output, len(errors)), ("", 2))
            self.assertRegex(errors[0], "^tubectl: job 4: .* another client has it")
            self.assertRegex(errors[1], "^tubectl: job 99: there is no such job")
            self.assertEqual(self.states(client, 1, 2, 3, 4), [None, None, None, "reserved"])

    def test_delete_json(self):
        for server, client in self.queues():
            self.put_states(client)
            self.assertEqual(self.tubectl_json(server, "delete", 1, 2), {"deleted": 2, "failed": 0})
            output, errors = self.failed(server, "delete", 3, 4, "--json")
            self.assertEqual(json.loads(output), {"deleted": 1, "failed": 1})
            self.assertEqual(len(errors), 1)

    def test_delete_of_a_job_that_is_held(self):
        server = self.tubed()
        client = self.client(server)
        self.put_states(client)
        self.assertEqual(self.tubectl(server, "delete", "--force", 4, 2), "")
        self.assertEqual(self.states(client, 1, 2, 3, 4), ["ready", None, "buried", None])
        self.assertEqual(client.ask("delete 4"), "NOT_FOUND")
        output, errors = self.failed(server, "delete", "--force", "--json", 4, 3, 1)
        self.assertEqual(json.loads(output), {"deleted": 2, "failed": 1})
        self.assertEqual(errors, ["tubectl: job 4: there is no such job (NOT_FOUND)"])

    def test_delete_of_a_job_that_is_held_needs_a_server_that_can(self):
        for server in (self.without(self.tubed(), b"delete-force"), self.beanstalkd()):
            client = self.client(server)
            self.put_states(client)
            self.assertEqual(self.refused(FAILURE, server, "delete", "--force", 4, 1),
                             "tubectl: delete: the server does not know delete-force\n")
            self.assertEqual(self.states(client, 1, 4), ["ready", "reserved"])

    def test_ids_on_standard_input(self):
        for server, client in self.queues():
            for _ in range(1000):
                client.put(b"x")
            ids = "\n".join(map(str, range(1, 1000))).encode()
            self.tubectl(server, "delete", 1000, "-", stdin=b"  " + ids + b"\n1 1000\t7\n")
            self.assertEqual(client.stats()["current-jobs-ready"], 0)

    def test_ids_that_are_none(self):
        for server, client in self.queues():
            client.put(b"x")
            for text in (b"1 x", b"1 2x", b"1 -2", b"1 18446744073709551616", b"1 " + b"9" * 1000):
                for name in ("delete", "release", "bury", "kick", "peek", "job"):
                    self.refused(BAD_INPUT, server, name, "-", stdin=text)
            for name in ("delete", "release", "bury", "kick", "peek", "job"):
                self.refused(USAGE, server, name, "1", "x")
                self.refused(USAGE, server, name)
            self.assertEqual(self.state(client, 1), ("ready", 0, 0))

    def test_release(self):
        for server, client in self.queues():
            self.put_states(client)
            self.assertEqual(self.tubectl(server, "release", 1, 2, 3), "")
            for job in (1, 2, 3):
                self.assertEqual(self.state(client, job), ("ready", 7, 0))
            told = self.tubectl_json(server, "release", 1, 1, "-p", 9, "-d", 50)
            self.assertEqual(told, {"released": 1, "failed": 0})
            self.assertEqual(self.state(client, 1), ("delayed", 9, 50))

    def test_release_and_bury_of_a_job_that_is_held_or_gone(self):
        for server, client in self.queues():
            self.put_states(client)
            for name in ("release", "bury"):
                _, errors = self.failed(server, name, 4, 99, 2)
                self.assertEqual(errors[0], "tubectl: job 4: another client holds it")
                self.assertRegex(errors[1], "^tubectl: job 99: there is no such job")
                self.assertEqual(len(errors), 2)
                self.assertEqual(self.states(client, 2, 4),
                                 ["ready" if name == "release" else "buried", "reserved"])

    def test_bury(self):
        for server, client in self.queues():
            self.put_states(client)
            self.assertEqual(self.tubectl(server, "bury", 1, 2), "")
            self.assertEqual([self.state(client, job)[:2] for job in (1, 2)], [("buried", 7)] * 2)
            told = self.tubectl_json(server, "bury", "--priority", 3, 1)
            self.assertEqual(told, {"buried": 1, "failed": 0})
            self.assertEqual(self.state(client, 1)[:2], ("buried", 3))

    def test_many_are_released_and_buried(self):
        for server, client in self.queues():
            client.put_many(500)
            ids = b" ".join(b"%d" % job for job in range(1, 501))
            self.tubectl(server, "bury", "-", stdin=ids)
            self.assertEqual(client.stats()["current-jobs-buried"], 500)
            self.tubectl(server, "release", "-", "-d", 1000, stdin=ids)
            self.assertEqual(client.stats()["current-jobs-delayed"], 500)

    def test_a_server_without_memory_for_a_release(self):
        server = ScriptedServer([b"RESERVED 5 1\r\na\r\n", b"OK 7\r\npri: 3\n\r\n", b"BURIED\r\n"])
        self.addCleanup(server.close)
        self.assertIn("job 5: the server had no memory",
                      self.refused(FAILURE, server.address, "release", 5))
        self.assertEqual(server.commands[-1], "release 5 3 0")

    def test_a_job_of_unknown_priority_is_left_alone(self):
        for name in ("release", "bury"):
            server = ScriptedServer([b"RESERVED 5 1\r\na\r\n", b"NOT_FOUND\r\n"])
            self.addCleanup(server.close)
            self.assertIn("job 5: there is no such job",
                          self.refused(FAILURE, server.address, name, 5))
            self.assertEqual(server.commands, ["reserve-job 5", "stats-job 5"])

    def test_a_server_that_does_not_know_the_command(self):
        unknown = b"UNKNOWN_COMMAND\r\n"
        for name in ("delete", "kick", "release", "bury", "peek"):
            server = ScriptedServer([unknown, unknown])
            self.addCleanup(server.close)
            self.assertIn("does not know", self.refused(FAILURE, server.address, name, 5))

    def test_kick_by_id(self):
        for server, client in self.queues():
            self.put_states(client)
            self.assertEqual(self.tubectl(server, "kick", 2), "")
            self.assertEqual(self.tubectl_json(server, "kick", 3), {"kicked": 1, "failed": 0})
            self.assertEqual(self.states(client, 1, 2, 3, 4), ["ready"] * 3 + ["reserved"])
            _, errors = self.failed(server, "kick", 1, 4, 99)
            self.assertEqual(errors, [f"tubectl: job {job}: there is no such job, or it is neither "
                                      "buried nor delayed (NOT_FOUND)" for job in (1, 4, 99)])

    def test_kick_by_tube(self):
        for server, client in self.queues():
            client.ask("use mail")
            for _ in range(5):
                client.put(b"x", delay=1000)
            for job in (1, 2, 3):
                client.reserve(f"reserve-job {job}")
                client.ask(f"bury {job} 0")
            self.assertEqual(self.tubectl(server, "kick", "-t", "mail", 2), "2\n")
            self.assertEqual(self.states(client, 1, 2, 3, 4, 5),
                             ["ready", "ready", "buried", "delayed", "delayed"])
            # Delayed jobs are kicked only if no job is buried.
            told = self.tubectl_json(server, "kick", "--tube", "mail", "--all")
            self.assertEqual(told, {"kicked": 1})
            self.assertEqual(self.tubectl(server, "kick", "-t", "mail", "--all"), "2\n")
            self.assertEqual(self.tubectl(server, "kick", "-t", "mail", "--all"), "0\n")
            self.assertEqual(self.tubectl(server, "kick", "mail", "--all"), "0\n")
            self.assertEqual(self.tubectl(server, "kick", "mail", 3), "0\n")
            self.assertEqual(self.tubectl(server, "kick", "-t", "nothing", 5), "0\n")

    def test_kick_with_a_delay(self):
        server = self.tubed()
        client = self.client(server)
        self.put_states(client)
        self.assertEqual(self.tubectl(server, "kick", "--delay", "10m", 2, 3), "")
        for job in (2, 3):
            self.assertEqual(self.state(client, job), ("delayed", 7, 600))
        told = self.tubectl_json(server, "kick", "-d", 50, 2)
        self.assertEqual(told, {"kicked": 1, "failed": 0})
        self.assertEqual(self.state(client, 2), ("delayed", 7, 50))
        self.failed(server, "kick", "-d", 50, 1, 4)
        self.tubectl(server, "kick", "-d", 0, 2, 3)
        self.assertEqual(self.states(client, 1, 2, 3, 4), ["ready"] * 3 + ["reserved"])

    def test_kick_with_a_delay_needs_a_server_that_can(self):
        for server in (self.without(self.tubed(), b"kick-job:delay"), self.beanstalkd()):
            client = self.client(server)
            self.put_states(client)
            self.assertEqual(self.refused(FAILURE, server, "kick", "-d", 9, 2, 3),
                             "tubectl: kick: the server does not know kick-job with a delay\n")
            self.assertEqual(self.states(client, 2, 3), ["delayed", "buried"])
            self.tubectl(server, "kick", "-d", 0, 2)
            self.assertEqual(self.states(client, 2), ["ready"])

    def test_kick_by_tube_and_state(self):
        server = self.tubed()
        client = self.client(server)
        self.put_states(client)
        kick = ("kick", "default", "--all")
        for old in (self.without(server, b"kick-tube"), self.beanstalkd()):
            self.assertEqual(self.refused(FAILURE, old, *kick, "--state", "delayed"),
                             "tubectl: kick: --state needs kick-tube, which the server does not "
                             "know\n")
        self.assertEqual(self.tubectl(server, *kick, "--state", "delayed"), "1\n")
        self.assertEqual(self.states(client, 2, 3), ["ready", "buried"])
        self.assertEqual(self.tubectl(server, *kick, "--state", "delayed"), "0\n")
        self.assertEqual(self.tubectl(server, *kick, "--state", "buried"), "1\n")
        self.assertEqual(self.states(client, 2, 3), ["ready", "ready"])

    def test_kick_by_tube_creates_no_tube(self):
        server = ScriptedServer([b"OK 16\r\n---\n- kick-tube\n\r\n", b"NOT_FOUND\r\n",
                                 b"OK 16\r\n---\n- kick-tube\n\r\n", b"KICKED 0\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.tubectl(server.address, "kick", "-t", "nothing", "--all"), "0\n")
        self.assertEqual(server.commands, ["capabilities", "stats-tube nothing", "capabilities",
                                           "kick-tube nothing 4294967295"])

    def test_kick_of_many_jobs_in_steps(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use mail")
        client.put_many(25_000, delay=1000)
        job = client.put(b"x")
        client.reserve(f"reserve-job {job}")
        client.ask(f"bury {job} 0")
        # Buried jobs alone, although there are more delayed jobs.
        self.assertEqual(self.tubectl(server, "kick", "mail", "--all"), "1\n")
        self.assertEqual(self.tubectl(server, "kick", "mail", 20_001), "20001\n")
        self.assertEqual(client.stats()["cmd-kick-tube"], 4)
        self.assertEqual(self.tubectl_json(server, "kick", "mail", "--all"), {"kicked": 4_999})
        self.assertEqual(client.stats("stats-tube mail")["current-jobs-delayed"], 0)

    def test_kick_in_a_tube_that_the_server_refuses(self):
        server = self.without(self.tubed("--limits-tubes", "1"), b"kick-tube")
        client = self.client(server)
        client.put(b"a")
        client.reserve()
        client.ask("bury 1 0")
        why = self.refused(FAILURE, server, "kick", "-t", "mail", "--all")
        self.assertIn("use mail: the server has no room (OUT_OF_MEMORY)", why)
        self.assertEqual(self.states(client, 1), ["buried"])

    def test_reprioritize(self):
        server = self.tubed()
        client = self.client(server)
        self.put_states(client)
        self.assertEqual(self.tubectl(server, "reprioritize", 5, 1, 2, 3), "")
        self.assertEqual([self.state(client, job)[:2] for job in (1, 2, 3)],
                         [("ready", 5), ("delayed", 5), ("buried", 5)])
        told = self.tubectl_json(server, "reprioritize", 4294967295, "-", stdin=b"1")
        self.assertEqual(told, {"reprioritized": 1, "failed": 0})
        self.assertEqual(self.state(client, 1), ("ready", 4294967295, 0))
        output, errors = self.failed(server, "reprioritize", 0, 4, 99, 3, "--json")
        self.assertEqual(json.loads(output), {"reprioritized": 1, "failed": 2})
        self.assertEqual(errors, [
            "tubectl: job 4: another client holds it (ALREADY_RESERVED)",
            "tubectl: job 99: there is no such job (NOT_FOUND)"])
        self.assertEqual(self.state(client, 4)[:2], ("reserved", 7))

    def test_reprioritize_needs_a_server_that_can(self):
        for server in (self.without(self.tubed(), b"reprioritize"), self.beanstalkd()):
            client = self.client(server)
            self.put_states(client)
            self.assertEqual(self.refused(FAILURE, server, "reprioritize", 5, 1),
                             "tubectl: reprioritize: the server does not know reprioritize\n")
            self.assertEqual(self.state(client, 1), ("ready", 7, 0))

    def test_mistakes_and_no_server(self):
        nowhere = f"unix:{self.directory}/nobody"
        for name in ("delete", "release", "bury", "kick", "peek", "job"):
            self.refused(UNAVAILABLE, nowhere, name, 1)
        self.refused(UNAVAILABLE, nowhere, "reprioritize", 0, 1)
        self.refused(UNAVAILABLE, nowhere, "kick", "-t", "mail", 1)
        for arguments in (("kick", "-t", "mail"), ("kick", "-t", "mail", 1, 2), ("kick", "--all"),
                          ("kick", "--all", 1), ("kick", "-t", "mail", "--all", 1),
                          ("kick", "-t", "mail", "-"), ("kick", "-t", "mail", 4294967296),
                          ("kick", "-t", "mail", 1, "-d", 5), ("kick", "mail", 1, "-d", 5),
                          ("kick", "1", "--state", "buried"), ("kick", "mail", 1, "--state", "x"),
                          ("reprioritize",), ("reprioritize", 1), ("reprioritize", -1, 1),
                          ("reprioritize", 4294967296, 1), ("reprioritize", "mail", 1),
                          ("delete", "-p", 1, 1), ("bury", "-d", 1, 1), ("release", "-p", "x", 1)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, *arguments)


if __name__ == "__main__":
    unittest.main()
