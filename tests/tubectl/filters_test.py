"""The filters of tubectl list, clear, kick and move, and how many jobs list does not show.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/filters_test.py
"""

import signal
import unittest

from job_tests import CapabilityTest, JobTest
from programs import DONE, FAILURE, USAGE

FILTER = b"list-jobs:filter"


class FilterTest(JobTest, CapabilityTest):
    def put(self, client, tube, body, tags="", priority=0, delay=0):
        line = f"put-in-tube {tube} {priority} {delay} 60 {len(body)} {tags}".rstrip()
        client.send(line.encode() + b"\r\n" + body + b"\r\n")
        answer = client.line()
        self.assertTrue(answer.startswith("INSERTED "), answer)
        return int(answer.split()[1])

    def put_many(self, client, tube, count, every, body=b"error 7%"):
        """Adds jobs of which every `every`th has this body."""
        for i in range(count):
            self.put(client, tube, body if i % every == 0 else b"fine")

    def ids(self, server, *arguments):
        return [job["id"] for job in self.records(
            self.tubectl(server, "list", "--json", "--count", 10_000, *arguments))]


class ListTest(FilterTest):
    def test_each_filter(self):
        server = self.tubed()
        client = self.client(server)
        self.put(client, "t", b"one error 100%\r\nhere", priority=5)
        self.put(client, "t", b"another", "con:k:2 grp:g", priority=9, delay=1000)
        self.put(client, "t", b"one error", "grp:h")
        client.send(b"reserve-job 3\r\nrelease 3 1 0\r\nreserve-job 3\r\nrelease 3 1 0\r\n")
        for _ in range(2):
            client.body()
            self.assertEqual(client.line(), "RELEASED")
        for arguments, found in ((("--grep", "error"), [1, 3]), (("--grep", "100%\r\nh"), [1]),
                                 (("--grep", "error", "--pri-over", 1), [1]),
                                 (("--pri-below", 6), [1, 3]), (("--failures", 2), [3]),
                                 (("--failures", 3), []), (("--tag", "con:k"), [2]),
                                 (("--tag", "con:k", "--tag", "grp:g"), [2]),
                                 (("--tag", "con:k", "--tag", "grp:h"), []),
                                 (("--state", "delayed", "--newer-than", "1h"), [2]),
                                 (("--older-than", "1h"), []), (("--older-than", 0), [1, 2, 3])):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.ids(server, "t", *arguments), found)
        table = self.tubectl(server, "list", "t", "--tag", "grp:h").splitlines()
        self.assertEqual((len(table), table[0].split()[-3:], table[1].split()[-3:]),
                         (2, ["failures", "dead-from", "tags"], ["2", "-", "grp:h"]))

    def test_a_walk_over_many_pages(self):
        server = self.tubed()
        client = self.client(server)
        self.put_many(client, "t", 2500, 100)
        self.assertEqual(self.ids(server, "t", "--grep", "error"), list(range(1, 2501, 100)))

    def test_it_says_that_there_are_more(self):
        server = self.tubed()
        client = self.client(server)
        self.put_many(client, "t", 300, 2)
        self.put(client, "t", b"later", delay=1000)
        for arguments, count, errors in (
                ((), 100, "100 of 301 jobs; --from 101 shows those that follow"),
                (("--state", "ready"), 100, "100 of 300 jobs; --from 101 shows those that follow"),
                (("--next",), 100, "100 of 300 jobs"),
                (("--grep", "error", "--count", 2), 2,
                 "2 jobs found among 3 of 301; --from 4 shows those that follow"),
                (("--count", 301), 301, None), (("--from", 290), 12, None),
                (("--state", "delayed"), 1, None), (("--grep", "later"), 1, None)):
            with self.subTest(arguments=arguments):
                code, output, told = self.run_tubectl(server, "list", "t", *arguments)
                self.assertEqual((code, len(output.splitlines()), told),
                                 (DONE, count + 1, f"tubectl: {errors}\n" if errors else ""))

    def test_what_is_refused(self):
        server = self.tubed()
        self.client(server).ask("watch t")
        for subcommand in (("list", "t"), ("clear", "--yes", "t"), ("kick", "-t", "t", "--all")):
            name = subcommand[0]
            self.assertEqual(
                self.refused(FAILURE, self.without(server, FILTER), *subcommand, "--grep", "x"),
                f"tubectl: {name}: the server does not know list-jobs with filters\n")
        self.assertIn("does not know list-jobs with filters", self.refused(
            FAILURE, self.without(server, FILTER), "move", "t", "u", "--grep", "x"))
        nowhere = f"unix:{self.directory}/none"
        for arguments in (("--grep", ""), ("--grep", "x" * 201), ("--tag", "grp"),
                          ("--tag", "x:y"), ("--tag", "grp:a grp:b"), ("--failures", 0),
                          ("--pri-over", -1), ("--older-than", "x"), ("--next", "--grep", "x")):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "list", "t", *arguments)
        self.refused(USAGE, nowhere, "kick", 5, "--grep", "x")


class ActTest(FilterTest):
    def test_clear(self):
        server = self.tubed()
        client = self.client(server)
        self.put_many(client, "t", 2500, 2)
        self.put(client, "t", b"error of a member", "grp:g")
        self.put(client, "t", b"error that waits", "aft:g")
        self.put(client, "t", b"fine, and waits", "aft:g")
        self.put(client, "t", b"error later", delay=1000)
        self.put_in(client, "t", "buried", b"error")
        self.put_in(client, "t", "reserved", b"error")
        self.put(client, "other", b"error")
        self.assertEqual(self.tubectl(server, "clear", "--yes", "t", "--grep", "error"),
                         "t: deleted 1251 ready, 2 delayed, 1 buried; 1 job left to workers\n")
        # The group has ended, so the job that waited for it is ready.
        self.assertEqual(self.counts(server, "t"), (1251, 0, 0, 1))
        self.assertEqual(self.counts(server, "other"), (1, 0, 0, 0))

    def test_clear_leaves_newer_ids(self):
        server = self.tubed()
        client = self.client(server)
        for _ in range(4):
            self.put(client, "t", b"error")
        self.assertEqual(
            self.tubectl(server, "clear", "--yes", "t", "--newer-than", "1h", "--older-than", 0,
                         "--to", 3, "--grep", "error"), "t: deleted 3 ready\n")

    def test_kick(self):
        server = self.tubed()
        client = self.client(server)
        for i in range(30):
            self.put_in(client, "t", "buried", b"error" if i % 3 == 0 else b"fine")
        self.put(client, "t", b"error", delay=1000)
        kick = ("kick", "-t", "t", "--grep", "error")
        self.assertEqual(self.tubectl(server, *kick, 4), "4\n")
        self.assertEqual(self.tubectl(server, *kick, "--all", "--json"), '{"kicked":6}\n')
        self.assertEqual(self.counts(server, "t"), (10, 1, 20, 0))
        self.assertEqual(self.tubectl(server, *kick, "--all"), "0\n")  # the others are buried
        self.assertEqual(self.tubectl(server, *kick, "--all", "--state", "delayed"), "1\n")
        self.assertEqual(self.counts(server, "t"), (11, 0, 20, 0))

    def test_move(self):
        server = self.tubed()
        client = self.client(server)
        self.put_many(client, "t", 2500, 5)
        self.put(client, "t", b"error later", delay=1000)
        self.put(client, "t", b"member", "grp:g")
        self.put(client, "t", b"error that waits", "aft:g")
        self.put_in(client, "t", "buried", b"error")
        move = ("move", "t", "u", "--grep", "error")
        self.assertEqual(self.tubectl(server, *move, "--count", 3), "moved 3 ready from t to u\n")
        self.assertEqual(self.tubectl(server, *move),
                         "moved 497 ready, 2 delayed, 1 buried from t to u\n")
        self.assertEqual(self.counts(server, "t"), (2001, 0, 0, 0))
        self.assertEqual(self.counts(server, "u"), (500, 2, 1, 0))

    def test_a_signal_ends_it_between_two_pages(self):
        for arguments, mark, word in ((("clear", "--yes", "t"), b"delete ", 2),
                                      (("move", "t", "u"), b"move-job ", 1),
                                      (("kick", "-t", "t", "--all"), b"kick-job ", 0)):
            with self.subTest(arguments=arguments):
                server = self.tubed()
                client = self.client(server)
                delay = 1000 if "kick" in arguments else 0
                for _ in range(2500):
                    self.put(client, "t", b"error", delay=delay)
                code, output, errors = self.signalled(server, signal.SIGINT, mark, *arguments,
                                                      "--grep", "error")
                self.assertEqual(code, FAILURE)
                self.assertRegex(errors, "^tubectl: interrupted: the other jobs are [a-z ;]+\n$")
                done = int(output.split()[word])
                self.assertGreater(done, 0)
                self.assertLessEqual(done, 1000)
                ready, delayed = self.counts(server, "t")[:2]
                self.assertEqual((ready, delayed),
                                 (done, 2500 - done) if delay else (2500 - done, 0))


if __name__ == "__main__":
    unittest.main()
