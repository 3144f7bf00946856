"""tubectl clear, on tubed and on beanstalkd.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/clear_test.py
"""

import os
import pty
import signal
import subprocess
import threading
import unittest

from job_tests import LONG, STATES, CapabilityTest, JobTest
from programs import (DONE, FAILURE, SECONDS, TUBECTL, UNAVAILABLE, USAGE, ScriptedServer,
                      until, within)


class ClearTest(JobTest, CapabilityTest):
    def clear(self, server, *arguments):
        return self.tubectl(server, "clear", "--yes", *arguments)

    def on_terminal(self, server, answer, *arguments, meanwhile=lambda: None):
        """Runs clear on a terminal, calls `meanwhile` and then types `answer`. Returns (exit code,
        output)."""
        child, terminal = pty.fork()
        if child == 0:
            try:
                os.environ["TUBED_SERVER"] = server
                os.execv(TUBECTL, [TUBECTL, "clear", *arguments])
            finally:
                os._exit(127)
        shown = bytearray()

        def converse():
            try:
                while b"[y/N]" not in shown:
                    shown.extend(os.read(terminal, 4096))
                meanwhile()
                os.write(terminal, answer)
                while True:
                    shown.extend(os.read(terminal, 4096))
            except OSError:  # the process has ended
                return True
        within("its question and its end", converse)
        os.close(terminal)
        code = os.waitstatus_to_exitcode(within("its end", lambda: os.waitpid(child, 0))[1])
        return code, shown.decode()

    def test_all_three_states_and_nothing_else(self):
        for server in self.servers():
            self.fill(server, "work", ready=5, delayed=4, buried=3)
            self.fill(server, "other", ready=5, delayed=4, buried=3)
            worker = self.client(server)
            held = self.put_in(worker, "work", "reserved")
            self.assertEqual(self.clear(server, "work"),
                             "work: deleted 5 ready, 4 delayed, 3 buried; 1 job left to workers\n")
            self.assertEqual(self.counts(server, "work"), (0, 0, 0, 1))
            self.assertEqual(self.counts(server, "other"), (5, 4, 3, 0))
            self.assertEqual(worker.ask(f"delete {held}"), "DELETED")

    def test_only_the_states_that_are_named(self):
        for server in self.servers():
            self.fill(server, "work", ready=3, delayed=3, buried=3)
            self.clear(server, "work", "--state", "delayed")
            self.assertEqual(self.counts(server, "work"), (3, 0, 3, 0))
            self.clear(server, "--state", "ready", "--state", "buried", "work")
            self.assertEqual(self.counts(server, "work"), (0, 0, 0, 0))

    def test_jobs_that_wait_for_a_group(self):
        """Held jobs are deleted as delayed jobs, and never become ready in between."""
        server = self.tubed()
        client = self.client(server)
        for tube, tags in (("a", "grp:g"), ("a", "aft:g grp:h"), ("b", "aft:h"), ("a", "aft:g"),
                           ("b", "aft:g")):
            client.send(f"put-in-tube {tube} 0 0 60 1 {tags}\r\nx\r\n".encode())
            self.assertTrue(client.line().startswith("INSERTED"))
        worker = self.client(server)
        worker.ask("watch b")
        worker.send(b"reserve\r\n")
        self.assertEqual(self.clear(server, "--state", "delayed", "a"), "a: deleted 2 delayed\n")
        # The group h has ended, but g has not.
        self.assertEqual(worker.line(), "RESERVED 3 1")
        self.assertEqual(worker.read(3), b"x\r\n")
        worker.send(b"reserve\r\n")
        self.assertEqual(self.clear(server, "a", "b"),
                         "a: deleted 1 ready\nb: deleted 1 delayed; 1 job left to workers\n")
        self.assertEqual(client.stats()["current-waiting"], 1)

    def test_several_tubes_as_json(self):
        for server in self.servers():
            self.fill(server, "a", ready=2)
            self.fill(server, "b", buried=1)
            self.assertEqual(
                self.records(self.clear(server, "a", "b", "--json")),
                [{"tube": "a", "deleted": {"ready": 2, "delayed": 0, "buried": 0},
                  "left-reserved": 0},
                 {"tube": "b", "deleted": {"ready": 0, "delayed": 0, "buried": 1},
                  "left-reserved": 0}])

    def test_a_tube_that_is_not_there(self):
        for server in self.servers():
            self.fill(server, "a", ready=2)
            code, output, errors = self.run_tubectl(server, "clear", "--yes", "nowhere", "a")
            self.assertEqual((code, output, errors),
                             (FAILURE, "a: deleted 2 ready\n",
                              "tubectl: there is no tube nowhere\n"))

    def test_a_signal_ends_it_between_two_batches(self):
        for server in self.servers():
            total = 30_000
            client = self.client(server)
            client.ask("use work")
            client.put_many(total)
            by_itself = client.ask("capabilities").startswith("OK")
            client = self.client(server)
            mark = b"flush-tube " if by_itself else b"delete "
            code, output, errors = self.signalled(server, signal.SIGINT, mark, "clear", "--yes",
                                                  "work")
            self.assertEqual((code, errors),
                             (FAILURE, "tubectl: interrupted: the other jobs are there; the same "
                                       "command goes on\n"))
            deleted = int(output.split()[2])
            self.assertEqual(client.stats()["current-jobs-ready"], total - deleted)
            self.assertGreater(deleted, 0)
            self.assertLess(deleted, 10_001)
            self.assertEqual(self.clear(server, "work"),
                             f"work: deleted {total - deleted} ready\n")

    def test_a_signal_ends_a_deletion_by_ids(self):
        for server in self.servers():
            total = 20_000
            client = self.client(server)
            client.put_many(total)
            code, output, errors = self.signalled(server, signal.SIGINT, b"delete ", "delete",
                                                  "--json", *range(1, total + 1))
            deleted = self.records(output)[0]["deleted"]
            self.assertEqual((code, errors),
                             (FAILURE, f"tubectl: interrupted after {deleted} of {total} jobs; the "
                                       f"next is {deleted + 1}\n"))
            self.assertLess(deleted, total)
            self.assertEqual(client.stats()["current-jobs-ready"], total - deleted)
            client.send(b"peek %d\r\n" % (deleted + 1))
            self.assertEqual(client.body()[0][0], "FOUND")

    def test_the_question_names_the_tubes(self):
        server = self.tubed()
        tubes = ["a", "b", "c", "d", "e"]
        for tube in tubes:
            self.fill(server, tube, ready=1)
        for count, named in ((1, "tube a"), (2, "tubes a and b"), (3, "tubes a, b and c"),
                             (5, "tubes a, b, c and 2 more")):
            code, shown = self.on_terminal(server, b"n\n", *tubes[:count])
            self.assertEqual(code, FAILURE)
            self.assertIn(f"Delete {count} ready jobs of {named} on {server}? [y/N]", shown)

    def test_an_empty_tube_needs_no_question(self):
        for server in self.servers():
            self.client(server).ask("watch idle")
            self.assertEqual(self.tubectl(server, "clear", "idle"), "idle: deleted no jobs\n")

    def test_ready_jobs_of_a_paused_tube(self):
        for server in self.servers():
            self.fill(server, "work", ready=300)
            self.fill(server, "other", ready=2)
            client = self.client(server)
            self.assertEqual(client.ask(f"pause-tube work {LONG}"), "PAUSED")
            self.assertEqual(self.clear(server, "work"), "work: deleted 300 ready\n")
            self.assertEqual(self.counts(server, "other"), (2, 0, 0, 0))

    def test_rare_jobs_among_many_others(self):
        for server in self.servers():
            client = self.client(server)
            for i in range(400):
                self.put_in(client, "rare" if i % 97 == 0 else "usual", STATES[i * 3 // 400])
            before = self.counts(server, "usual")
            self.clear(server, "rare")
            self.assertEqual(self.counts(server, "rare"), (0, 0, 0, 0))
            self.assertEqual(self.counts(server, "usual"), before)

    def test_many_delayed_and_buried_ones(self):
        for server in self.servers():
            self.fill(server, "work", delayed=1500, buried=1500)
            self.assertEqual(self.clear(server, "work"),
                             "work: deleted 1500 delayed, 1500 buried\n")

    def test_only_old_ones(self):
        for server in self.servers():
            self.fill(server, "work", ready=3, delayed=2, buried=1)
            self.fill(server, "other", ready=3)
            self.assertEqual(self.clear(server, "work", "--older-than", 1000),
                             "work: deleted no jobs\n")
            client = self.client(server)
            newest = client.put(b"")
            client.ask(f"delete {newest}")
            # stats-job shows the age in whole seconds; the oldest job reaches it first.
            until("the jobs to grow older",
                  lambda client=client, newest=newest:
                  client.stats(f"stats-job {newest - 4}")["age"] >= 1)
            young = self.put_in(client, "work", "buried")
            self.assertEqual(self.clear(server, "work", "--older-than", 1),
                             "work: deleted 3 ready, 2 delayed, 1 buried\n")
            self.assertEqual(client.stats(f"stats-job {young}")["state"], "buried")
            self.assertEqual(self.counts(server, "other"), (3, 0, 0, 0))

    def test_it_ends_while_others_put(self):
        for server in self.servers():
            self.fill(server, "work", ready=1000)
            client = self.client(server)
            client.ask("use work")
            stop = threading.Event()
            put = []

            def produce(client=client, stop=stop, put=put):
                while not stop.is_set():
                    put.append(client.put())
            producer = threading.Thread(target=produce)
            producer.start()
            try:
                told = self.records(self.clear(server, "work", "--json"))[0]
            finally:
                stop.set()
                producer.join(SECONDS)
            deleted = told["deleted"]["ready"]
            self.assertGreaterEqual(deleted, 1000)
            self.assertEqual(self.counts(server, "work")[0], 1000 + len(put) - deleted)

    def test_what_workers_take_meanwhile_is_theirs(self):
        for server in self.servers():
            self.fill(server, "work", ready=2000)
            worker = self.client(server)
            worker.ask("watch work")
            done = []

            def consume(worker=worker, done=done):
                while True:
                    worker.send(b"reserve-with-timeout 0\r\n")
                    words = worker.line().split()
                    if words[0] != "RESERVED":
                        return
                    worker.read(int(words[2]) + 2)
                    done.append(worker.ask(f"delete {words[1]}"))
            thread = threading.Thread(target=consume)
            thread.start()
            told = self.records(self.clear(server, "work", "--json"))[0]
            thread.join(SECONDS)
            self.assertEqual(set(done) - {"DELETED"}, set())
            self.assertEqual(told["deleted"]["ready"] + len(done), 2000)

    def test_it_asks_on_a_terminal(self):
        for server in self.servers():
            self.fill(server, "work", ready=2, buried=1)
            code, shown = self.on_terminal(server, b"n\n", "work")
            self.assertEqual(code, FAILURE)
            self.assertIn(f"Delete 2 ready, 1 buried jobs of tube work on {server}? [y/N]", shown)
            self.assertIn("nothing was deleted", shown)
            self.assertEqual(self.counts(server, "work"), (2, 0, 1, 0))
            code, shown = self.on_terminal(server, b"y\n", "--state", "ready", "work")
            self.assertEqual(code, DONE)
            self.assertIn(f"Delete 2 ready jobs of tube work on {server}? [y/N]", shown)
            self.assertEqual(self.counts(server, "work"), (0, 0, 1, 0))

    def test_jobs_that_are_put_after_the_question_stay(self):
        for server in self.servers():
            for state in (None, *STATES):
                tube = f"work-{state}"
                self.fill(server, tube, ready=3, delayed=2, buried=1)
                code, shown = self.on_terminal(
                    server, b"y\n", *(("--state", state) if state else ()), tube,
                    meanwhile=lambda server=server, tube=tube:
                    self.fill(server, tube, ready=30, delayed=20, buried=10))
                self.assertEqual(code, DONE, shown)
                self.assertEqual(
                    self.counts(server, tube)[:3],
                    tuple(count * (10 if state in (None, each) else 11)
                          for each, count in zip(STATES, (3, 2, 1))))

    def test_jobs_that_wait_for_a_group_since_the_question_stay(self):
        server = self.tubed()
        client = self.client(server)

        def put(count):
            for _ in range(count):
                client.send(b"put-in-tube work 0 0 60 1 aft:g\r\nx\r\n")
                self.assertTrue(client.line().startswith("INSERTED"))
        client.send(b"put-in-tube other 0 0 60 1 grp:g\r\nx\r\n")
        self.assertTrue(client.line().startswith("INSERTED"))
        put(2)
        code, shown = self.on_terminal(server, b"y\n", "work", meanwhile=lambda: put(5))
        self.assertEqual(code, DONE, shown)
        self.assertIn(f"Delete 2 delayed jobs of tube work on {server}? [y/N]", shown)
        self.assertIn("work: deleted 2 delayed\r\n", shown)
        self.assertEqual(self.counts(server, "work"), (0, 5, 0, 0))

    def test_old_jobs_that_come_after_the_question_stay(self):
        server = self.tubed()
        for address in (server, self.without(server, b"list-jobs:filter")):
            self.fill(server, "other", ready=30)
            ids = self.fill(server, "work", ready=3, buried=1)
            client = self.client(server)
            until("the jobs to grow older", lambda client=client, ids=ids: client.stats(
                f"stats-job {max(ids['ready'] + ids['buried'])}")["age"] >= 1)
            code, shown = self.on_terminal(
                address, b"y\n", "--older-than", "1", "work",
                meanwhile=lambda client=client: self.assertEqual(
                    client.ask("move-jobs other ready work 20"), "MOVED 20"))
            self.assertEqual(code, DONE, shown)
            self.assertIn("work: deleted 3 ready, 1 buried\r\n", shown)
            self.assertEqual(self.counts(server, "work"), (20, 0, 0, 0))
            self.tubectl(server, "clear", "--yes", "work", "other")

    def test_without_a_terminal_it_deletes_nothing(self):
        for server in self.servers():
            self.fill(server, "work", ready=2)
            process = self.popen(server, "clear", "work", stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True)
            output, errors = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, output, errors),
                             (USAGE, b"",
                              b"tubectl: there is no terminal to ask on; --yes deletes unasked\n"))
            self.assertEqual(self.counts(server, "work"), (2, 0, 0, 0))

    def test_what_it_does_not_understand(self):
        for arguments in ((), ("-bad",), ("a b",), ("work", "--state", "reserved"),
                          ("work", "--older-than", "-1"), ("work", "--older-than", "x"),
                          ("work", "--to", "5"), ("work", "--older-than", "1", "--to", "0")):
            self.refused(USAGE, "127.0.0.1:1", "clear", "--yes", *arguments)

    def test_without_a_server(self):
        self.refused(UNAVAILABLE, f"unix:{self.directory}/none", "clear", "--yes", "work")

    def test_the_examples(self):
        for server in self.servers():
            for tube in ("work", "mail"):
                self.fill(server, tube, ready=1, delayed=1, buried=1)
            self.assert_examples_run(server, "clear")
            self.assertEqual(self.counts(server, "work"), (0, 0, 0, 0))
            self.assertEqual(self.counts(server, "mail"), (1, 1, 0, 0))

    def test_draining_the_old_ones_are_found_with_filters_only(self):
        daemon = self.start()
        address = daemon.addresses[0]
        self.fill(address, "work", ready=2)
        self.drain(daemon)
        self.assertEqual(self.clear(address, "work", "--older-than", 1000),
                         "work: deleted no jobs\n")
        old = self.without(address, b"list-jobs:filter")
        self.assertEqual(
            self.refused(FAILURE, old, "clear", "--yes", "--older-than", 1, "work"),
            "tubectl: cannot learn the newest id: the server is draining: it takes no jobs "
            "(DRAINING); with --to ID it need not be learnt\n")
        self.assertEqual(self.clear(old, "work", "--older-than", 1000, "--to", 100),
                         "work: deleted no jobs\n")
        self.assertEqual(self.clear(address, "work"), "work: deleted 2 ready\n")

    def test_old_ones_of_several_tubes_are_found_in_one_scan(self):
        for server in self.servers():
            tubes = [f"t{i}" for i in range(5)]
            ids = {tube: self.fill(server, tube, ready=1, buried=1) for tube in tubes}
            client = self.client(server)
            until("the jobs to grow older",
                  lambda client=client: client.stats(f"stats-job {ids['t4']['buried'][0]}")["age"])
            young = self.put_in(client, "t1", "buried")
            before = client.stats()["cmd-stats-job"]
            self.assertEqual(self.clear(server, *tubes[:4], "--older-than", 1).splitlines(),
                             [f"{tube}: deleted 1 ready, 1 buried" for tube in tubes[:4]])
            self.assertLess(client.stats()["cmd-stats-job"] - before, 2 * young)
            self.assertEqual(self.counts(server, "t1"), (0, 0, 1, 0))
            self.assertEqual(self.counts(server, "t4"), (1, 0, 1, 0))
            self.clear(server, "t4", "--older-than", 1, "--to", ids["t4"]["ready"][0])
            self.assertEqual(self.counts(server, "t4"), (0, 0, 1, 0))

    def test_a_tube_that_the_server_refuses(self):
        stats = b"---\nname: work\ncurrent-jobs-ready: 2\n"
        server = ScriptedServer([b"OK 4\r\n---\n\r\n", b"OK %d\r\n%s\r\n" % (len(stats), stats),
                                 b"UNKNOWN_COMMAND\r\n",
                                 b"OUT_OF_MEMORY\r\n", b"OK 4\r\n---\n\r\n", b"NOT_FOUND\r\n"])
        try:
            self.assertEqual(self.run_tubectl(server.address, "clear", "--yes", "work"),
                             (FAILURE, "work: deleted no jobs\n",
                              "tubectl: clear: the server has no room (OUT_OF_MEMORY)\n"))
        finally:
            server.close()
        self.assertEqual(server.commands[3:], ["list-tubes-watched", "stats", "stats-tube work"])


if __name__ == "__main__":
    unittest.main()
