"""tubectl export, on tubed and on beanstalkd.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/export_test.py
"""

import base64
import fcntl
import os
import signal
import subprocess
import unittest

from job_tests import LEAST_LINE, CapabilityTest, TransferTest, left_of
from programs import DONE, FAILURE, IO, SECONDS, UNAVAILABLE, USAGE, ScriptedServer, until, within

KEYS = ["id", "tube", "state", "priority", "delay", "ttr", "age", "reserves", "timeouts",
        "releases", "buries", "kicks"]


class ExportTest(TransferTest, CapabilityTest):
    def test_every_job_once_by_id_and_untouched(self):
        for server in self.servers():
            newest = self.fill_with_all(server)
            before = self.jobs(server, newest)
            records = self.export(server)
            self.assertEqual(self.jobs(server, newest), before)
            self.assertEqual([record["id"] for record in records], list(range(1, newest + 1)))
            by_tube = {}
            for record in records:
                self.assertEqual(list(record)[:-1], KEYS)
                body = (record["body"].encode() if "body" in record
                        else base64.b64decode(record["body_base64"]))
                by_tube.setdefault(record["tube"], []).append(
                    (record["state"], record["priority"], record["ttr"],
                     left_of(record["state"], record["delay"]), body))
            self.assert_same_jobs(before, by_tube)
            self.assertNotIn(b"tubectl-export", self.client(server).ask("list-tubes").encode())

    def test_counters(self):
        for server in self.servers():
            client = self.client(server)
            job = client.put(b"x")
            for _ in range(2):
                client.reserve()
                client.ask(f"release {job} 5 0")
            client.reserve()
            client.ask(f"bury {job} 6")
            client.ask(f"kick-job {job}")
            record = self.export(server)[0]
            self.assertEqual([record[key] for key in ("state", "priority", "reserves", "timeouts",
                                                      "releases", "buries", "kicks")],
                             ["ready", 6, 3, 0, 2, 1, 1])

    def test_only_what_is_asked_for(self):
        for server in self.servers():
            ids = {tube: self.fill(server, tube, ready=2, delayed=2, buried=2)
                   for tube in ("a", "b", "c")}

            def exported(*arguments, server=server):
                return [record["id"] for record in self.export(server, *arguments)]
            self.assertEqual(exported("-t", "b"), sum(ids["b"].values(), []))
            self.assertEqual(exported("b"), sum(ids["b"].values(), []))
            self.assertEqual(exported("-t", "a", "--tube", "c"),
                             sum(ids["a"].values(), []) + sum(ids["c"].values(), []))
            self.assertEqual(exported("--state", "buried", "--state", "ready", "-t", "b"),
                             ids["b"]["ready"] + ids["b"]["buried"])
            self.assertEqual(exported("--from", 4, "--to", 9), list(range(4, 10)))
            self.assertEqual(exported("--from", 4, "--to", 4, "--json"), [4])
            self.assertEqual(exported("--from", 1000), [])
            self.assertEqual(exported("--to", 10_000), list(range(1, 19)))

    def test_more_ids_than_a_slice(self):
        for server in self.servers():
            client = self.client(server)
            client.put_many(9000)
            client.pump(b"".join(b"delete %d\r\n" % job for job in range(2, 9000)), 8998)
            self.assertEqual([record["id"] for record in self.export(server)], [1, 9000])

    def test_reserved_ones_are_left_out_and_counted(self):
        for server in self.servers():
            worker = self.client(server)
            held = self.put_in(worker, "work", "reserved")
            free = self.put_in(worker, "work", "ready")
            code, output, errors = self.run_tubectl(server, "export")
            self.assertEqual([record["id"] for record in self.records(output)], [free])
            self.assertEqual((code, errors),
                             (DONE, "tubectl: left out: 1 job that workers have reserved\n"))
            records = self.export(server, "--reserved")
            self.assertEqual([(record["id"], record["state"], record["delay"])
                              for record in records], [(held, "reserved", 0), (free, "ready", 0)])

    def test_a_tube_that_is_not_there(self):
        for server in self.servers():
            self.fill(server, "work", ready=2)
            for how in ((), ("--remove",)):
                code, output, errors = self.run_tubectl(server, "export", *how, "-t", "wrok", "-t",
                                                        "work")
                self.assertEqual((code, len(self.records(output)), errors),
                                 (FAILURE, 2, "tubectl: there is no tube wrok\n"))

    def test_a_refusal_is_told_as_one(self):
        stats = b"---\nname: work\ncurrent-jobs-ready: 2\n"
        server = ScriptedServer([b"OK 4\r\n---\n\r\n", b"OK %d\r\n%s\r\n" % (len(stats), stats),
                                 b"OK 11\r\n---\n- work\n\r\n", b"OUT_OF_MEMORY\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.refused(FAILURE, server.address, "export", "--remove", "-t", "work"),
                         "tubectl: export: the server has no room (OUT_OF_MEMORY)\n")
        self.assertEqual(server.commands[-1], "use work")

    def test_what_a_file_had_stays_until_there_is_more(self):
        daemon = self.start()
        self.drain(daemon)
        path = self.directory / "jobs.jsonl"
        path.write_text("old\n", encoding="utf-8")
        self.refused(FAILURE, self.without(daemon.addresses[0], b"list-jobs"), "export", "-o", path)
        self.assertEqual(path.read_text(encoding="utf-8"), "old\n")
        self.tubectl(daemon.addresses[0], "export", "--to", 5, "-o", path)
        self.assertEqual(path.read_text(encoding="utf-8"), "")

    def test_into_a_file(self):
        for server in self.servers():
            self.fill(server, "work", ready=3)
            path = self.directory / "jobs.jsonl"
            path.write_text("old\n" * 1000, encoding="utf-8")
            self.assertEqual(self.tubectl(server, "export", "-o", path), "")
            self.assertEqual(len(self.records(path.read_text(encoding="utf-8"))), 3)
            # --remove needs a new file, because it deletes the jobs.
            self.assertIn("File exists", self.refused(IO, server, "export", "--remove", "-o", path))
            self.assertIn("No such file", self.refused(IO, server, "export", "-o",
                                                       self.directory / "none" / "jobs"))
            self.assertEqual(self.counts(server, "work"), (3, 0, 0, 0))

    def test_a_full_disk(self):
        for server in self.servers():
            self.fill(server, "work", ready=2, delayed=2, buried=2)
            for arguments in ((), ("--remove",)):
                with open("/dev/full", "wb") as full:
                    process = self.popen(server, "export", *arguments, stdout=full,
                                         stderr=subprocess.PIPE, text=True)
                    errors = process.communicate(timeout=SECONDS)[1]
                self.assertEqual((process.returncode, errors),
                                 (IO, "tubectl: cannot write standard output: "
                                      "No space left on device\n"))
            until("the jobs to be back",
                  lambda server=server: self.counts(server, "work") == (2, 2, 2, 0))

    def test_a_reader_that_goes_away(self):
        for server in self.servers():
            client = self.client(server)
            client.put_many(5000)
            process = self.popen(server, "export", "--remove", stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, bufsize=0)
            within("ten bytes", lambda process=process: process.stdout.read(10))
            # Only the jobs in the pipe are deleted.
            lines = (10 + fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)) / LEAST_LINE
            process.stdout.close()
            self.assertEqual(within("its end", process.stderr.read), b"")
            process.stderr.close()
            self.assertEqual(process.wait(SECONDS), -signal.SIGPIPE)
            until("what was reserved to be back",
                  lambda client=client: client.stats()["current-jobs-reserved"] == 0)
            self.assertGreaterEqual(client.stats()["current-jobs-ready"], 5000 - lines)

    def test_draining_a_server_without_lists_wants_the_newest_id(self):
        daemon = self.start()
        server = daemon.addresses[0]
        old = self.without(server, b"list-jobs")
        self.fill(server, "work", ready=3)
        self.drain(daemon)
        code, output, errors = self.run_tubectl(old, "export")
        self.assertEqual((code, output), (FAILURE, ""))
        self.assertIn("draining", errors)
        self.assertIn("--to ID", errors)
        self.assertEqual(len(self.export(old, "--to", 100)), 3)
        self.assertEqual(len(self.export(server)), 3)
        self.assertEqual(len(self.export(server, "--remove")), 3)

    def test_jobs_among_many_ids_are_found_by_lists(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use work")
        client.put_many(3000)
        for job in range(1, 3001):
            if job % 1000 != 0:
                client.ask(f"delete {job}")
        self.put_in(client, "other", "buried")
        expected = [1000, 2000, 3000, 3001]
        before = client.stats()
        self.assertEqual([job["id"] for job in self.export(server)], expected)
        after = client.stats()
        # It asks for the jobs, not for every id, and puts none.
        self.assertEqual(after["cmd-stats-job"] - before["cmd-stats-job"], 4)
        self.assertEqual(after["cmd-put"], before["cmd-put"])
        for arguments, found in ((("--from", 2000), expected[1:]), (("--to", 2999), expected[:2]),
                                 (("--from", 1001, "--to", 3000), expected[1:3]),
                                 (("-t", "other"), expected[3:])):
            self.assertEqual([job["id"] for job in self.export(server, *arguments)], found)
        self.assertEqual([job["id"] for job in self.export(self.without(server, b"list-jobs"))],
                         expected)

    def test_what_it_does_not_understand(self):
        for arguments in (("-t", "a b"), ("--state", "reserved"), ("--from", "0"), ("--to", "x"),
                          ("--from", "-1"), ("--remove", "--from", "1"), ("--remove", "--to", "1"),
                          ("--remove", "--reserved"), ("a b",)):
            self.refused(USAGE, "127.0.0.1:1", "export", *arguments)
        self.refused(UNAVAILABLE, f"unix:{self.directory}/none", "export")

    def test_the_examples(self):
        for server in self.servers():
            self.fill(server, "mail", ready=1, buried=1)
            client = self.client(server)
            client.ask("watch mail")
            self.assert_examples_run(server, "export")
            self.assertEqual(self.counts(server, "post"), (1, 0, 1, 0))
            for name in ("jobs.jsonl", "buried.jsonl", "mail.jsonl"):
                os.unlink(self.directory / name)


class RemoveTest(TransferTest):
    def test_what_is_written_is_gone(self):
        for server in self.servers():
            newest = self.fill_with_all(server)
            worker = self.client(server)
            held = self.put_in(worker, "work", "reserved")
            code, output, errors = self.run_tubectl(server, "export", "--remove")
            self.assertEqual((code, errors),
                             (DONE, "tubectl: left out: 1 job that workers have reserved\n"))
            records = self.records(output)
            self.assertEqual(sorted(record["id"] for record in records),
                             list(range(1, newest + 1)))
            self.assertEqual({record["reserves"] for record in records
                              if record["state"] != "buried"}, {0})
            self.assertEqual(self.jobs(server, newest), {})
            self.assertEqual(worker.ask(f"delete {held}"), "DELETED")

    def test_only_what_is_asked_for(self):
        for server in self.servers():
            self.fill(server, "a", ready=2, delayed=2, buried=2)
            self.fill(server, "b", ready=2, delayed=2, buried=2)
            records = self.export(server, "--remove", "-t", "b", "--state", "delayed")
            self.assertEqual([record["state"] for record in records], ["delayed"] * 2)
            self.assertEqual(self.counts(server, "a"), (2, 2, 2, 0))
            self.assertEqual(self.counts(server, "b"), (2, 0, 2, 0))

    def test_into_a_new_file(self):
        for server in self.servers():
            self.fill(server, "work", ready=700, delayed=700, buried=700)
            path = self.directory / "removed.jsonl"
            self.tubectl(server, "export", "--remove", "-o", path)
            self.assertEqual(len(self.records(path.read_text(encoding="utf-8"))), 2100)
            self.assertEqual(self.counts(server, "work"), (0, 0, 0, 0))
            path.unlink()

    def test_what_ran_out_of_time_is_its_workers(self):
        piece = 64 * 1024
        server = self.tubed()
        client = self.client(server)
        client.put_many(528, ttr=10, size=1000)  # the first batch has 16 jobs, the second the rest
        process = self.popen(server, "export", "--remove", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        # export fills the pipe, and waits until the TTR of the rest has expired.
        until("the second batch", lambda: client.stats()["current-jobs-reserved"] > 400)
        done = set()

        def work():
            until("no job to be reserved", lambda: client.stats()["current-jobs-reserved"] == 0)
            while True:
                client.send(b"reserve-with-timeout 0\r\n")
                words = client.line().split()
                if words[0] != "RESERVED":
                    return
                client.read(int(words[2]) + 2)
                self.assertEqual(client.ask(f"delete {words[1]}"), "DELETED")
                done.add(int(words[1]))
        work()
        self.assertGreater(len(done), 0)
        output, errors = process.communicate(timeout=SECONDS)
        work()
        written = {record["id"] for record in self.records(output)}
        self.assertEqual(process.returncode, DONE)
        self.assertEqual(written | done, set(range(1, 529)))
        self.assertGreater(len(done), 300)
        twice = len(written & done)
        self.assertLessEqual(twice, piece // 1000 + 1)
        self.assertIn(b"left out: %d jobs whose time ran out" % (528 - len(written)), errors)
        self.assertEqual(b"may be done twice: %d job" % twice in errors, twice > 0)

    def test_a_signal_ends_it_between_two_batches(self):
        for server in self.servers():
            total = 20_000
            client = self.client(server)
            client.put_many(total)
            code, output, errors = self.signalled(server, signal.SIGINT, b"delete ", "export",
                                                  "--remove")
            written = [record["id"] for record in self.records(output)]
            self.assertEqual((code, errors),
                             (FAILURE, "tubectl: interrupted: what was not written is still "
                                       "there\n"))
            self.assertGreater(len(written), 0)
            self.assertLess(len(written), 1000)  # only the batch in progress
            self.assertEqual(len(set(written)), len(written))
            self.assertEqual(client.stats()["current-jobs-ready"], total - len(written))

    def test_a_signal_ends_an_export_that_only_reads(self):
        for server in self.servers():
            total = 20_000
            client = self.client(server)
            client.put_many(total)
            code, output, errors = self.signalled(server, signal.SIGINT, b"peek ", "export")
            written = [record["id"] for record in self.records(output)]
            last = written[-1]
            self.assertEqual((code, errors),
                             (FAILURE, f"tubectl: interrupted: the jobs up to id {last} are written; "
                                       f"continue with --from {last + 1}, to another file\n"))
            rest = [record["id"] for record in self.records(
                self.tubectl(server, "export", "--from", last + 1))]
            self.assertEqual(written + rest, list(range(1, total + 1)))


if __name__ == "__main__":
    unittest.main()
