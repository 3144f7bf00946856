"""tubectl move, on tubed and on beanstalkd.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/move_test.py
"""

import signal
import threading
import unittest

from job_tests import LONG, JobTest, OldServer, ServerWithout
from programs import DONE, FAILURE, SECONDS, UNAVAILABLE, USAGE, ScriptedServer, until


class MoveTest(JobTest):
    def move(self, server, *arguments):
        return self.tubectl(server, "move", *arguments)

    def test_a_job_keeps_what_it_is(self):
        for server in self.servers():
            client = self.client(server)
            binary = bytes(range(256)) * 10
            self.put_in(client, "from", "ready", b"", priority=0, ttr=20)
            self.put_in(client, "from", "ready", binary, priority=4294967295, ttr=77)
            self.put_in(client, "from", "delayed", b"\r\n", priority=7, ttr=4294967295)
            self.put_in(client, "from", "buried", b"x" * 65535, priority=8, ttr=1)
            newest = self.put_in(client, "other", "buried")
            before = self.jobs(server, newest)
            self.assertEqual(self.move(server, "from", "to"),
                             "moved 2 ready, 1 delayed, 1 buried from from to to\n")
            after = self.jobs(server, 4 * newest)
            self.assertNotIn("from", after)
            self.assertEqual(after["other"], before["other"])
            self.assertEqual(before["from"], after["to"])

    def test_ready_ones_keep_their_order(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("use from")
            for i in range(1000):
                client.put(b"%d" % i, priority=i * 7 % 5)
            self.move(server, "from", "to")
            client.ask("watch to")
            order = [int(client.reserve()[1]) for _ in range(1000)]
            self.assertEqual(order, sorted(range(1000), key=lambda i: (i * 7 % 5, i)))

    def test_states_and_count(self):
        for server in self.servers():
            self.fill(server, "from", ready=5, delayed=5, buried=5)
            self.move(server, "from", "to", "--state", "buried", "--count", 3)
            self.assertEqual(self.counts(server, "from"), (5, 5, 2, 0))
            self.assertEqual(self.counts(server, "to"), (0, 0, 3, 0))
            self.move(server, "from", "to", "--state", "ready", "--state", "delayed", "--count", 7)
            self.assertEqual(self.counts(server, "from"), (0, 3, 2, 0))
            self.assertEqual(self.counts(server, "to"), (5, 2, 3, 0))

    def test_as_json_and_what_workers_have(self):
        for server in self.servers():
            self.fill(server, "from", ready=2, delayed=1)
            worker = self.client(server)
            self.put_in(worker, "from", "reserved")
            self.assertEqual(self.tubectl_json(server, "move", "from", "to"),
                             {"from": "from", "to": "to",
                              "moved": {"ready": 2, "delayed": 1, "buried": 0},
                              "left-reserved": 1})
            self.assertEqual(self.move(server, "from", "to"),
                             "moved no jobs from from to to; 1 job left to workers\n")

    def test_out_of_and_into_a_paused_tube(self):
        for server in self.servers():
            self.fill(server, "from", ready=300)
            client = self.client(server)
            client.ask("watch to")
            for tube in ("from", "to"):
                self.assertEqual(client.ask(f"pause-tube {tube} {LONG}"), "PAUSED")
            self.assertEqual(self.move(server, "from", "to"), "moved 300 ready from from to to\n")
            self.assertEqual(self.counts(server, "to"), (300, 0, 0, 0))

    def put_with_tags(self, server, tube, *tags):
        client = self.client(server)
        for each in tags:
            client.send(f"put-in-tube {tube} 0 0 60 1 {each}\r\nx\r\n".encode())
            self.assertTrue(client.line().startswith("INSERTED"))
        return client

    def test_jobs_that_wait_for_a_group_wait_in_the_other_tube(self):
        server = self.tubed()
        client = self.put_with_tags(server, "from", "grp:g", "aft:g", "aft:g grp:h", "aft:h",
                                    "aft:self grp:self")
        client.ask("use from")
        client.put(b"x", 0, LONG)
        before = {job: client.stats(f"stats-job {job}") for job in range(1, 7)}
        self.assertEqual(self.move(server, "from", "to"),
                         "moved 1 ready, 5 delayed from from to to\n")
        for job, stats in before.items():
            after = client.stats(f"stats-job {job}")
            self.assertEqual(after["tube"].strip('"'), "to")
            for key in ("state", "pri", "ttr", "delay", "after-group", "group"):
                self.assertEqual(after.get(key), stats.get(key))
        self.assertEqual(client.stats("stats-tube to")["current-jobs-held"], 4)
        # The jobs are in the same groups as before.
        self.assertEqual(client.ask("delete 1"), "DELETED")
        self.assertEqual(self.counts(server, "to"), (2, 3, 0, 0))
        self.assertEqual(client.ask("delete 3"), "DELETED")
        self.assertEqual(self.counts(server, "to"), (2, 2, 0, 0))

    def test_the_count_and_the_states_are_those_of_held_jobs_too(self):
        server = self.tubed()
        client = self.put_with_tags(server, "from", "grp:g", *["aft:g"] * 2500)
        self.fill(server, "from", delayed=3, buried=1)
        self.assertEqual(self.move(server, "from", "to", "--state", "ready", "--state", "buried"),
                         "moved 1 ready, 1 buried from from to to\n")
        self.assertEqual(self.move(server, "from", "to", "--state", "delayed", "--count", 5),
                         "moved 5 delayed from from to to\n")
        self.assertEqual(client.stats("stats-tube to")["current-jobs-held"], 2)
        self.assertEqual(self.move(server, "from", "to"), "moved 2498 delayed from from to to\n")
        self.assertEqual(client.stats("stats-tube to")["current-jobs-held"], 2500)
        # A bound of the tube ends the move, and the other jobs stay held.
        self.tubectl(server, "policy", "small", "max-jobs", 10)
        code, output, errors = self.run_tubectl(server, "move", "to", "small", "--state", "delayed",
                                                "--count", 100)
        self.assertEqual((code, output), (FAILURE, "moved 10 delayed from to to small\n"))
        self.assertIn("OUT_OF_MEMORY", errors)
        self.assertEqual(client.stats()["current-jobs-held"], 2500)

    def test_a_server_that_cannot_move_held_jobs(self):
        server = self.tubed()
        self.put_with_tags(server, "from", "grp:g", "aft:g")
        proxy = ServerWithout(server, b"list-jobs")
        self.addCleanup(proxy.close)
        self.assertEqual(self.run_tubectl(proxy.address, "move", "from", "to"),
                         (DONE, "moved 1 ready from from to to\n",
                          "tubectl: left out: 1 job waiting for a group\n"))
        self.assertEqual(self.counts(server, "from"), (0, 1, 0, 0))

    def test_large_jobs(self):
        for flags in (("-z", "3000000"),):
            for server in (self.tubed(*flags), self.beanstalkd(*flags)):
                client = self.client(server)
                for i in range(10):
                    self.put_in(client, "from", ("ready", "delayed", "buried")[i % 3],
                                b"%d" % i * 3_000_000)
                self.assertEqual(self.move(server, "from", "to"),
                                 "moved 4 ready, 3 delayed, 3 buried from from to to\n")
                jobs = self.jobs(server, 20)["to"]
                self.assertEqual(sorted(job[4][:1] for job in jobs), [b"%d" % i for i in range(10)])
                self.assertEqual({len(job[4]) for job in jobs}, {3_000_000})

    def test_what_is_refused_stays_as_it_is(self):
        daemon = self.start()
        server = daemon.addresses[0]
        self.fill(server, "from", ready=3, delayed=3, buried=3)
        newest = 9
        before = self.jobs(server, newest)["from"]
        self.client(server).ask("watch to")
        self.drain(daemon)
        # A server that moves jobs itself needs no put; an old server refuses the copies.
        proxy = OldServer(server)
        self.addCleanup(proxy.close)
        for states in ((), ("--state", "delayed"), ("--state", "buried")):
            code, output, errors = self.run_tubectl(proxy.address, "move", "from", "to", *states)
            self.assertEqual((code, output), (FAILURE, "moved no jobs from from to to\n"))
            self.assertEqual(errors, "tubectl: move: the server is draining: it takes no jobs "
                                     "(DRAINING)\n")
            # Reserved jobs become ready when the connection ends.
            until("the jobs to be back", lambda: self.counts(server, "from") == (3, 3, 3, 0))
        after = self.jobs(server, 100)["from"]
        self.assertEqual(before, after)
        self.assertEqual({self.client(server).stats(f"stats-job {job}")["releases"]
                          for job in range(1, newest + 1)}, {0})
        self.assertEqual(self.move(server, "from", "to"),
                         "moved 3 ready, 3 delayed, 3 buried from from to to\n")
        self.assertEqual(self.jobs(server, newest)["to"], before)

    def test_a_tube_that_cannot_be_made(self):
        server = self.tubed("--limits-tubes", "2")
        self.fill(server, "from", ready=3, buried=1)
        self.assertIn("OUT_OF_MEMORY", self.run_tubectl(server, "move", "from", "to")[2])
        until("the jobs to be back", lambda: self.counts(server, "from") == (3, 0, 1, 0))
        self.assertEqual(self.counts(server, "default"), (0, 0, 0, 0))

    def test_a_tube_that_the_server_refuses(self):
        stats = b"---\nname: from\ncurrent-jobs-buried: 1\n"
        server = ScriptedServer([b"OK 4\r\n---\n\r\n", b"OK %d\r\n%s\r\n" % (len(stats), stats),
                                 b"UNKNOWN_COMMAND\r\n", b"OUT_OF_MEMORY\r\n"])
        try:
            code, output, errors = self.run_tubectl(server.address, "move", "from", "to")
        finally:
            server.close()
        self.assertEqual((code, output, errors),
                         (FAILURE, "moved no jobs from from to to\n",
                          "tubectl: move: the server has no room (OUT_OF_MEMORY)\n"))
        self.assertEqual(server.commands[-1], "use from")

    def test_no_room_for_more(self):
        server = self.tubed("--limits-job-memory", "1MiB")
        client = self.client(server)
        client.ask("use from")
        put = 0
        while True:
            client.send(b"put 0 0 60 60000\r\n" + b"x" * 60000 + b"\r\n")
            if not client.line().startswith("INSERTED"):
                break
            put += 1
        proxy = OldServer(server)
        self.addCleanup(proxy.close)
        code, _, errors = self.run_tubectl(proxy.address, "move", "from", "to")
        self.assertEqual(code, FAILURE)
        self.assertIn("OUT_OF_MEMORY", errors)
        until("all to be there", lambda: sum(self.counts(server, tube)[0]
                                             for tube in ("from", "to")) == put)
        self.move(server, "from", "to")
        self.assertEqual(self.counts(server, "to")[0], put)

    def test_no_job_is_lost_or_done_twice_beside_workers(self):
        for server in self.servers():
            self.fill(server, "from", ready=2000)
            stop = threading.Event()
            seen = []

            def consume(tube, server=server, stop=stop, seen=seen):
                worker = self.client(server)
                worker.ask(f"watch {tube}")
                while True:
                    over = stop.is_set()
                    worker.send(b"reserve-with-timeout 0\r\n")
                    words = worker.line().split()
                    if words[0] != "RESERVED":
                        if over:
                            return
                        continue
                    body = worker.read(int(words[2]) + 2)[:-2]
                    if worker.ask(f"delete {words[1]}") == "DELETED":
                        seen.append(body)
            workers = [threading.Thread(target=consume, args=(tube,)) for tube in ("from", "to")]
            for worker in workers:
                worker.start()
            try:
                self.move(server, "from", "to")
            finally:
                stop.set()
                for worker in workers:
                    worker.join(SECONDS)
            self.assertEqual(sorted(seen), sorted(b"ready %d" % i for i in range(2000)))

    def test_a_signal_ends_it_between_two_batches(self):
        for server in self.servers():
            total = 20_000
            client = self.client(server)
            client.ask("use from")
            client.put_many(total)
            by_itself = client.ask("capabilities").startswith("OK")
            client = self.client(server)
            mark = b"move-jobs " if by_itself else b"delete "
            code, output, errors = self.signalled(server, signal.SIGTERM, mark, "move", "from",
                                                  "to")
            self.assertEqual((code, errors),
                             (FAILURE, "tubectl: interrupted: the other jobs are where they were\n"))
            moved = int(output.split()[1])
            self.assertGreater(moved, 0)
            # Only the batch in progress.
            self.assertLess(moved, 10_001 if by_itself else 1000)
            self.assertEqual(self.counts(server, "from")[0], total - moved)
            self.assertEqual(self.counts(server, "to")[0], moved)

    def test_what_cannot_be_done(self):
        for server in self.servers():
            self.assertEqual(self.refused(FAILURE, server, "move", "from", "to"),
                             "tubectl: there is no tube from\n")
            self.assertEqual(self.refused(USAGE, server, "move", "a", "a"),
                             "tubectl: FROM and TO are the same tube; try tubectl move --help\n")
            for arguments in ((), ("a",), ("a", "-b"), ("a", "b", "c"), ("a", "b", "--count", "0"),
                              ("a", "b", "--state", "reserved")):
                self.refused(USAGE, server, "move", *arguments)
        self.refused(UNAVAILABLE, f"unix:{self.directory}/none", "move", "a", "b")

    def test_the_examples(self):
        for server in self.servers():
            self.fill(server, "mail", ready=1, buried=1)
            keeper = self.client(server)
            keeper.ask("watch mail")  # keeps the job for the second run
            self.assert_examples_run(server, "move")
            self.assertEqual(self.counts(server, "mail-slow"), (1, 0, 1, 0))


if __name__ == "__main__":
    unittest.main()
