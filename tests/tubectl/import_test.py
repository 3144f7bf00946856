"""tubectl import, on tubed and on beanstalkd, and from each server to the other.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/import_test.py
"""

import json
import resource
import signal
import subprocess
import threading
import unittest

from job_tests import BODIES, LEAST_LINE, LONG, STATES, Left, ServerWithout, TransferTest
from programs import (BAD_INPUT, DONE, FAILURE, IO, SECONDS, UNAVAILABLE, USAGE,
                      ScriptedServer, until)

from harness import SANITIZED  # noqa: E402


def line(**keys):
    return json.dumps(keys).encode() + b"\n"


class ImportTest(TransferTest):
    def imported(self, server, text, *arguments):
        return self.tubectl(server, "import", *arguments, stdin=text)

    def test_what_a_line_may_leave_out(self):
        for server in self.servers():
            self.assertEqual(self.imported(server, b'{"body":"x"}\n\n  \n{"body_base64":"/w=="}'),
                             "imported 2 ready\n")
            self.assertEqual(self.jobs(server, 3),
                             {"default": [("ready", 1024, 60, 0, b"x"),
                                          ("ready", 1024, 60, 0, b"\xff")]})

    def test_each_state(self):
        for server in self.servers():
            text = b"".join(line(state=state, tube="t", priority=3, ttr=9, body=state,
                                 delay=LONG if state == "delayed" else 0)
                            for state in (*STATES, "reserved"))
            self.assertEqual(self.imported(server, text), "imported 2 ready, 1 delayed, 1 buried\n")
            jobs = self.jobs(server, 5)["t"]
            self.assertEqual([job[0] for job in jobs], ["ready", "delayed", "buried", "ready"])
            self.assertEqual({job[1:3] for job in jobs}, {(3, 9)})
            self.assertEqual(jobs[1][3], Left(LONG))

    def test_tags(self):
        """From one tubed to another, to servers that know no tags or not all, and with a key that
        is taken."""
        server = self.tubed()
        self.tubectl(server, "put", "-t", "t", "--unique", "k:300", "a")
        self.tubectl(server, "put", "-t", "t", "b")
        exported = self.tubectl(server, "export").encode()
        self.assertEqual([record.get("tags") for record in self.records(exported.decode())],
                         ["idp:k:300", None])
        other = self.tubed()
        self.assertEqual(self.imported(other, exported), "imported 2 ready\n")
        self.assertEqual(self.tubectl_json(other, "put", "-t", "t", "--unique", "k", "c"),
                         {"id": 1, "exists": "ready"})
        self.assertEqual(self.refused(FAILURE, other, "import", stdin=exported),
                         "tubectl: line 1: job 1 has its unique key (INSERTED 1 READY); before it 0 "
                         "jobs were imported\n")
        self.assertEqual(self.counts(other, "t"), (2, 0, 0, 0))
        old = self.beanstalkd()
        self.assertEqual(self.run_tubectl(old, "import", stdin=exported),
                         (DONE, "imported 2 ready\n", "tubectl: tags that the server does not know "
                                                      "were left out: idp of 1 job\n"))
        self.assertEqual([job[4] for job in self.jobs(old, 2)["t"]], [b"a", b"b"])
        text = line(body="x", tags="idp:") + line(body="y")
        self.assertEqual(self.refused(BAD_INPUT, server, "import", stdin=text),
                         "tubectl: line 1: its \"tags\" are not those of a put; before it 0 jobs "
                         "were imported (--skip 1 passes over it)\n")

    def test_tags_of_which_the_server_knows_some(self):
        server = self.tubed()
        client = self.client(server)
        tags = ("max:3:dead ttl:300", "max:4", "idp:k max:0 ttl:0", "ttl:60")
        for i, one in enumerate(tags):
            delay = LONG if i == 1 else 0
            client.send(f"put 0 {delay} 60 1 {one}\r\nx\r\n".encode())
            client.line()
        self.tubectl(server, "reserve", "--bury", "--timeout", 0)
        exported = self.tubectl(server, "export").encode()
        self.assertEqual([record["tags"] for record in self.records(exported.decode())],
                         list(tags))

        def listed(address):
            return [record.get("tags") for record in self.records(
                self.tubectl(address, "list", "default", "--json"))]
        other = self.tubed()
        self.assertEqual(self.imported(other, exported), "imported 2 ready, 1 delayed, 1 buried\n")
        self.assertEqual(listed(other), list(tags))
        self.assertEqual(self.records(self.tubectl(other, "export"))[0]["state"], "buried")
        proxy = ServerWithout(self.tubed(), b"put:max")
        self.addCleanup(proxy.close)
        self.assertEqual(self.run_tubectl(proxy.address, "import", "--json", stdin=exported),
                         (DONE, '{"imported":{"ready":2,"delayed":1,"buried":1},'
                                '"lost-tags":{"max":3}}\n',
                          "tubectl: tags that the server does not know were left out: max of 3 "
                          "jobs\n"))
        self.assertEqual(listed(proxy.server), ["ttl:300", None, "idp:k ttl:0", "ttl:60"])
        # Only imported jobs count.
        text = (line(body="a", tags="ttl:5 max:1") + line(body="b", tags="idp:k ttl:5")
                + line(body="c", tags="ttl:5"))
        proxy = ServerWithout(other, b"put:ttl")
        self.addCleanup(proxy.close)
        code, _, errors = self.run_tubectl(proxy.address, "import", stdin=text)
        self.assertEqual((code, errors.splitlines()[0]),
                         (FAILURE, "tubectl: tags that the server does not know were left out: ttl "
                                   "of 1 job"))
        self.assertRegex(errors, "line 2: job 3 has its unique key .*; before it 1 job was")

    def test_jobs_that_wait_for_a_group(self):
        """Jobs are held again, even if a member was put after them."""
        server = self.tubed()
        client = self.client(server)
        for tags in ("grp:g", "aft:g", "grp:g con:k", "aft:g grp:h", "aft:h", "grp:g", "grp:g",
                     "aft:none"):
            client.send(f"put 0 0 60 {len(tags)} {tags}\r\n{tags}\r\n".encode())
            client.line()
        client.ask("delete 1")
        client.ask(f"put 0 {LONG} 60 0 aft:g\r\n")
        client.send(b"reserve-job 6\r\nbury 6 0\r\n")
        client.body()
        self.assertEqual(client.line(), "BURIED")
        self.assertEqual(client.stats()["current-jobs-held"], 3)
        exported = self.tubectl(server, "export")
        records = self.records(exported)
        self.assertEqual([(record["id"], record["state"], record.get("tags"))
                          for record in records],
                         [(3, "ready", "grp:g con:k"), (6, "buried", "grp:g"),
                          (7, "ready", "grp:g"), (8, "ready", None), (9, "delayed", "aft:g"),
                          (2, "delayed", "aft:g"), (4, "delayed", "grp:h aft:g"),
                          (5, "delayed", "aft:h")])
        self.assertEqual([record["delay"] for record in records[-3:]], [1, 1, 1])
        other = self.tubed()
        self.assertEqual(self.imported(other, exported.encode()),
                         "imported 3 ready, 4 delayed, 1 buried\n")
        client = self.client(other)
        until("the delays of a second", lambda: client.stats()["current-jobs-held"] == 3)
        self.assertEqual(self.counts(other, "default"), (3, 4, 1, 0))
        stats = client.stats("stats-group g")
        self.assertEqual((stats["ready"], stats["buried"], stats["waiting-jobs"]), (2, 1, 2))
        # The jobs are released as on the first server.
        for job in (1, 2, 3):
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        self.assertEqual(client.ask("stats-group g"), "NOT_FOUND")
        self.assertEqual(self.counts(other, "default"), (3, 2, 0, 0))
        self.assertEqual(client.ask("delete 7"), "DELETED")
        until("the chain", lambda: client.stats()["current-jobs-held"] == 0)
        self.assertEqual(self.counts(other, "default"), (3, 1, 0, 0))

    def test_a_line_by_hand_that_waits_for_a_group(self):
        server = self.tubed()
        text = line(body="early", tags="aft:g") + line(body="m", tags="grp:g") + line(
            body="late", tags="aft:g")
        self.assertEqual(self.imported(server, text), "imported 3 ready\n")
        self.assertEqual([(job[0], job[4]) for job in self.jobs(server, 3)["default"]],
                         [("ready", b"early"), ("ready", b"m"), ("delayed", b"late")])

    def test_export_with_remove_does_not_end_the_wait_of_a_job(self):
        server = self.tubed()
        for options in (("--group", "g"), ("--after", "g")):
            self.tubectl(server, "put", "-t", "t", *options, "x")
        self.assertEqual(self.refused(FAILURE, server, "export", "--remove"),
                         "tubectl: export: t has 1 job waiting for a group, which --remove would "
                         "make ready; name other states with --state, or export without --remove\n")
        self.assertEqual(self.counts(server, "t"), (1, 1, 0, 0))
        exported = self.tubectl(server, "export", "-t", "t", "--state", "ready", "--remove")
        self.assertEqual([record["id"] for record in self.records(exported)], [1])
        self.assertEqual(self.counts(server, "t"), (1, 0, 0, 0))

    def test_a_paused_tube_with_held_jobs_is_exported_and_cleared(self):
        """Replaces export --remove."""
        server, other = self.tubed(), self.tubed()
        client = self.client(server)
        for i in range(300):
            tag = "aft:g" if i % 100 else "grp:g"
            client.send(f"put-in-tube t 0 0 60 1 {tag}\r\nx\r\n".encode())
            client.line()
        self.tubectl(server, "pause", "t", LONG)
        exported = self.tubectl(server, "export", "-t", "t")
        self.assertEqual(self.tubectl(server, "clear", "--yes", "t"),
                         "t: deleted 3 ready, 297 delayed\n")
        self.assertEqual(self.imported(other, exported.encode()),
                         "imported 3 ready, 297 delayed\n")
        client = self.client(other)
        until("all to be held", lambda: client.stats()["current-jobs-held"] == 297)

    def test_buried_jobs_with_a_concurrency_key(self):
        server = self.tubed()
        text = b"".join(line(body=str(i), state="buried", tags=tags, tube="t") for i, tags in
                        enumerate(("con:k", "con:k grp:g", "aft:g", "con:k:5 aft:g grp:g")))
        self.assertEqual(self.imported(server, text), "imported 4 buried\n")
        self.assertEqual(self.counts(server, "t"), (0, 0, 4, 0))
        # While a client holds the key, nothing is lost and the line is named.
        worker = self.client(server)
        worker.ask("kick-job 1")
        worker.reserve("reserve-job 1")
        text = line(body="a") + line(body="b", state="buried", tags="con:k") + line(body="c")
        self.assertEqual(self.refused(FAILURE, server, "import", stdin=text),
                         "tubectl: line 2: it cannot be reserved to be buried: its concurrency key "
                         "or the policy of its tube has no room (NOT_FOUND); before it 1 job was "
                         "imported (continue with --skip 1)\n")
        self.assertEqual(self.counts(server, "default"), (1, 0, 0, 0))
        worker.ask("delete 1")
        self.assertEqual(self.imported(server, text, "--skip", 1), "imported 1 ready, 1 buried\n")
        # A job that was buried is not held after a kick, whatever its group.
        worker.ask("kick-job 3")
        self.assertEqual(self.counts(server, "t"), (1, 0, 2, 0))
        self.tubectl(server, "put", "-t", "p", "x")
        worker.ask("tube-policy p max-reserved 1")
        worker.reserve("reserve-job 10")
        self.assertIn("line 1: it cannot be reserved to be buried",
                      self.refused(FAILURE, server, "import",
                                   stdin=line(body="x", state="buried", tube="p")))

    def test_a_file_a_tube_of_its_own_and_skipped_lines(self):
        for server in self.servers():
            path = self.directory / "jobs.jsonl"
            path.write_bytes(b"no line at all\n" + line(body="a", tube="x") + line(body="b"))
            self.assertEqual(self.tubectl_json(server, "import", "-t", "own", "--skip", 1, path),
                             {"imported": {"ready": 2, "delayed": 0, "buried": 0}})
            self.assertEqual([job[4] for job in self.jobs(server, 3)["own"]], [b"a", b"b"])

    def test_a_bad_line(self):
        for server in self.servers():
            text = line(body="1") + line(body="2") + b"{oops\n" + line(body="4")
            self.assertEqual(self.refused(BAD_INPUT, server, "import", stdin=text),
                             "tubectl: line 3: it is no JSON object; before it 2 jobs were imported "
                             "(continue with --skip 2)\n")
            self.assertEqual([job[4] for job in self.jobs(server, 9)["default"]], [b"1", b"2"])
            code, output, _ = self.run_tubectl(server, "import", "--json", stdin=text)
            self.assertEqual((code, json.loads(output)),
                             (BAD_INPUT, {"imported": {"ready": 2, "delayed": 0, "buried": 0},
                                          "failed-line": 3}))

    def test_a_bad_first_line(self):
        """No line was imported, so --skip 1 skips the malformed line."""
        for server in self.servers():
            text = b"{oops\n" + line(body="2")
            self.assertEqual(self.refused(BAD_INPUT, server, "import", stdin=text),
                             "tubectl: line 1: it is no JSON object; before it 0 jobs were imported "
                             "(--skip 1 passes over it)\n")
            self.assertEqual(self.imported(server, text, "--skip", 1), "imported 1 ready\n")

    def test_a_job_that_is_too_big(self):
        for server in self.servers():
            text = line(body="1") + line(body="x" * 65536) + line(body="3")
            errors = self.refused(FAILURE, server, "import", stdin=text)
            self.assertIn("line 2: the job is larger than the server takes", errors)
            huge = line(body="1") + line(body="x" * 1_000_000) + line(body="3")
            errors = self.refused(FAILURE, server, "import", stdin=huge)
            self.assertIn("line 2: the job is larger than the server takes", errors)
            self.assertEqual({job[4] for job in self.jobs(server, 9)["default"]}, {b"1"})

    def test_a_large_line_can_be_passed_over(self):
        for server in self.servers():
            text = line(body="1") + line(body="x" * 1_000_000) + line(body="3")
            self.assertEqual(self.imported(server, text, "--skip", 2), "imported 1 ready\n")
            self.assertEqual([job[4] for job in self.jobs(server, 3)["default"]], [b"3"])

    def test_a_use_that_is_refused(self):
        stats = b"---\nmax-job-size: 65535\n"
        server = ScriptedServer([b"OK %d\r\n%s\r\n" % (len(stats), stats), b"WATCHING 2\r\n",
                                 b"OUT_OF_MEMORY\r\n", b"INSERTED 7\r\n", b"DELETED\r\n"])
        self.addCleanup(server.close)
        self.assertIn("line 1: the server has no room (OUT_OF_MEMORY); before it 0 jobs",
                      self.refused(FAILURE, server.address, "import",
                                   stdin=line(tube="t", body="x")))
        self.assertEqual(server.commands[2:], ["use t", "put 1024 0 60 1", "delete 7"])

    def test_the_rest_is_kept(self):
        for server in self.servers():
            path = self.directory / "rest.jsonl"
            for bad in (b"{oops\n", line(body="x" * 1_000_000)):
                behind = b"".join(line(body=str(i)) for i in range(100_000))
                errors = self.run_tubectl(server, "import", "--rest", path,
                                          stdin=line(body="1") + bad + behind)[2]
                self.assertIn(f"this line and all later lines are in {path}", errors)
                self.assertEqual(path.read_bytes(), bad + behind)
                self.assertIn("File exists", self.refused(IO, server, "import", "--rest", path))
                path.unlink()
            self.imported(server, line(body="1"), "--rest", path)
            self.assertFalse(path.exists())

    def test_what_the_server_refuses_comes_later(self):
        # Three tubes: default and two more. The server refuses the fourth, and the lines after it
        # wait.
        server = self.tubed("--limits-tubes", "3")
        text = b"".join(line(body=tube, tube=tube, state=state)
                        for tube in ("a", "b", "c", "a") for state in ("ready", "buried"))
        rest = self.directory / "rest.jsonl"
        self.assertEqual(self.refused(FAILURE, server, "import", "--rest", rest, stdin=text),
                         "tubectl: line 5: the server has no room (OUT_OF_MEMORY); before it 4 jobs "
                         f"were imported (this line and all later lines are in {rest})\n")
        self.assertEqual(sorted(self.jobs(server, 20)), ["a", "b"])
        self.assertEqual(sum(self.counts(server, "a")), 2)
        roomy = self.tubed()
        self.tubectl(roomy, "import", rest)
        self.assertEqual({tube: len(jobs) for tube, jobs in self.jobs(roomy, 20).items()},
                         {"c": 2, "a": 2})

    def test_a_server_that_drains(self):
        daemon = self.start()
        self.drain(daemon)
        errors = self.refused(FAILURE, daemon.addresses[0], "import", stdin=line(body="x") * 1000)
        self.assertEqual(errors, "tubectl: line 1: the server is draining: it takes no jobs "
                                 "(DRAINING); before it 0 jobs were imported\n")

    def test_a_server_without_room(self):
        server = self.tubed("--limits-job-memory", "1MiB")
        path = self.directory / "large.jsonl"
        path.write_bytes(line(body="x" * 60_000) * 100)
        errors = self.refused(FAILURE, server, "import", path)
        done = self.client(server).stats()["current-jobs-ready"]
        self.assertIn(f"line {done + 1}: the server has no room (OUT_OF_MEMORY); before it {done} "
                      f"jobs were imported (continue with --skip {done})", errors)

    def test_a_server_that_goes_away(self):
        daemon = self.start()
        rest = self.directory / "rest.jsonl"
        process = self.popen(daemon.addresses[0], "import", "--rest", rest, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        client = self.connect(daemon)
        process.stdin.write(line(body="first"))
        process.stdin.flush()
        until("the first job", lambda: client.stats()["current-jobs-ready"] == 1)
        daemon.kill()
        output, errors = process.communicate(line(body="second") + line(body="third"), SECONDS)
        self.assertEqual((process.returncode, output), (UNAVAILABLE, b""))
        self.assertIn(b"line 2: ", errors)
        self.assertEqual([record["body"] for record in
                          self.records(rest.read_text(encoding="utf-8"))], ["second", "third"])

    def test_lines_are_put_as_they_come(self):
        for server in self.servers():
            process = self.popen(server, "import", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            client = self.client(server)
            for i in range(1, 4):
                process.stdin.write(line(body=str(i)))
                process.stdin.flush()
                until("the job", lambda client=client, i=i:
                      client.stats()["current-jobs-ready"] == i)
            # A signal loses nothing that is in the pipe.
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(line(body="4"), SECONDS)
            self.assertEqual((process.returncode, output), (DONE, b"imported 4 ready\n"))

    def test_a_signal_ends_it_between_two_batches(self):
        for server in self.servers():
            path = self.directory / "many.jsonl"
            path.write_bytes(line(body="x") * 20_000)
            code, _, errors = self.signalled(server, signal.SIGTERM, b"put ", "import", path)
            done = self.client(server).stats()["current-jobs-ready"]
            self.assertGreater(done, 0)
            self.assertLess(done, 1000)
            self.assertEqual((code, errors),
                             (FAILURE, f"tubectl: line {done + 1}: interrupted; before it {done} "
                                       f"jobs were imported (continue with --skip {done})\n"))

    @unittest.skipIf(SANITIZED, "a sanitizer takes terabytes of addresses")
    def test_memory_is_bounded(self):
        for server in self.servers():
            most = 32 << 20
            process = self.popen(
                server, "import", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            text = line(body="x" * 65_000) * 16
            for _ in range(50):
                process.stdin.write(text)
            output, _ = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, output), (DONE, b"imported 800 ready\n"))

    def test_what_it_does_not_understand(self):
        for arguments in (("-t", "a b"), ("--skip", "-1"), ("--skip", "x"), ("a", "b")):
            self.refused(USAGE, "127.0.0.1:1", "import", *arguments)
        self.refused(UNAVAILABLE, f"unix:{self.directory}/none", "import")
        for server in self.servers():
            self.assertIn("No such file", self.refused(IO, server, "import",
                                                       self.directory / "none"))
            self.assertIn("cannot read", self.run_tubectl(server, "import", self.directory)[2])

    def test_the_examples(self):
        for server in self.servers():
            (self.directory / "jobs.jsonl").write_bytes(line(body="1") + line(body="2", tube="mail"))
            self.client(server).ask("watch mail")
            self.assert_examples_run(server, "import")
            self.assertEqual(self.counts(server, "again"), (1, 0, 0, 0))
            self.assertEqual(self.counts(server, "post"), (1, 0, 0, 0))


class FailingTargetTest(TransferTest):
    """No job is lost: each is on the source, in the rest file, or on the target."""

    def pipe(self, source, target, rest):
        """Runs export --remove | import --rest. Returns the exit code and the messages of
        import."""
        writer = self.popen(source, "export", "--remove", stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
        reader = self.popen(target, "import", "--rest", rest, stdin=writer.stdout,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        writer.stdout.close()
        errors = reader.communicate(timeout=SECONDS)[1]
        writer.wait(SECONDS)
        return reader.returncode, errors

    def assert_all_in(self, rest, total):
        bodies = [int(record["body"]) for record in
                  self.records(rest.read_text(encoding="utf-8"))]
        self.assertEqual(sorted(bodies), list(range(total)))

    def filled(self, server, total):
        client = self.client(server)
        for i in range(total):
            client.put(b"%d" % i)
        return client

    def test_no_server(self):
        for source in self.servers():
            total = 1000
            client = self.filled(source, total)
            rest = self.directory / "rest.jsonl"
            code, errors = self.pipe(source, f"unix:{self.directory}/none", rest)
            self.assertEqual(code, UNAVAILABLE)
            self.assertIn(f"(what was to be imported is in {rest})\n", errors)
            self.assertEqual(client.stats()["current-jobs-ready"], 0)
            self.assert_all_in(rest, total)
            # Without input nothing is saved.
            rest.unlink()
            self.assertNotIn("rest", self.pipe(source, f"unix:{self.directory}/none", rest)[1])
            self.assertFalse(rest.exists())

    def test_a_server_that_closes(self):
        for source in self.servers():
            self.filled(source, 1000)
            rest = self.directory / "rest.jsonl"
            target = ScriptedServer([])
            try:
                code, errors = self.pipe(source, target.address, rest)
            finally:
                target.close()
            self.assertEqual(code, UNAVAILABLE)
            self.assertIn(f"(this line and all later lines are in {rest})\n", errors)
            self.assert_all_in(rest, 1000)
            rest.unlink()

    def test_a_server_that_refuses(self):
        for source in self.servers():
            self.filled(source, 1000)
            rest = self.directory / "rest.jsonl"
            daemon = self.start()
            self.drain(daemon)
            self.assertEqual(self.pipe(source, daemon.addresses[0], rest)[0], FAILURE)
            self.assert_all_in(rest, 1000)
            rest.unlink()

    def test_skipped_lines_are_no_rest(self):
        rest = self.directory / "rest.jsonl"
        text = line(body="x" * 1_000_000) + line(body="2") + line(body="3")
        self.refused(UNAVAILABLE, f"unix:{self.directory}/none", "import", "--skip", 1, "--rest",
                     rest, stdin=text)
        self.assertEqual(rest.read_bytes(), line(body="2") + line(body="3"))

    def test_a_rest_file_that_is_there(self):
        # The rest cannot be saved: only the contents of the pipe are lost, and the old file is
        # unchanged.
        for source in self.servers():
            client = self.filled(source, 2000)
            rest = self.directory / "rest.jsonl"
            rest.write_text("old\n", encoding="utf-8")
            self.assertEqual(self.pipe(source, source, rest)[0], IO)
            self.assertEqual(rest.read_text(encoding="utf-8"), "old\n")
            until("what was reserved to be back",
                  lambda client=client: client.stats()["current-jobs-reserved"] == 0)
            self.assertGreaterEqual(client.stats()["current-jobs-ready"],
                                    2000 - 64 * 1024 / LEAST_LINE)


class MigrationTest(TransferTest):
    def pipe(self, source, target, *arguments):
        """Runs export --remove | import. Returns the output of import."""
        writer = self.popen(source, "export", "--remove", *arguments, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
        reader = self.popen(target, "import", "--json", stdin=writer.stdout,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        writer.stdout.close()
        output, errors = reader.communicate(timeout=SECONDS)
        self.assertEqual((reader.returncode, errors), (DONE, b""))
        with writer:
            # A worker may have reserved a job at the start.
            self.assertRegex(writer.stderr.read(), rb"^(tubectl: left out: 1 job .*\n)?$")
        self.assertEqual(writer.returncode, DONE)
        return json.loads(output)["imported"]

    def test_there_and_back(self):
        tubed, beanstalkd = self.tubed(), self.beanstalkd()
        newest = self.fill_with_all(beanstalkd)
        before = self.jobs(beanstalkd, newest)
        each = len(BODIES)
        for source, target in ((beanstalkd, tubed), (tubed, beanstalkd)):
            self.assertEqual(self.pipe(source, target),
                             {"ready": each, "delayed": each, "buried": each})
            self.assertEqual(self.jobs(source, 4 * newest), {})
            self.assert_same_jobs(before, self.jobs(target, 8 * newest))

    def test_jobs_of_the_largest_size(self):
        size = 5_000_000
        tubed, beanstalkd = self.tubed("-z", str(size)), self.beanstalkd("-z", str(size))
        client = self.client(beanstalkd)
        for i, state in enumerate(STATES):
            self.put_in(client, "large", state, bytes([i, 255]) * (size // 2))
        before = self.jobs(beanstalkd, 3)
        self.pipe(beanstalkd, tubed)
        self.assert_same_jobs(before, self.jobs(tubed, 9))

    def test_workers_get_them_in_the_same_order(self):
        tubed, beanstalkd = self.tubed(), self.beanstalkd()
        client = self.client(beanstalkd)
        for i in range(1000):
            client.put(b"%d" % i, priority=i * 7 % 5)
        self.pipe(beanstalkd, tubed)
        worker = self.client(tubed)
        order = [int(worker.reserve()[1]) for _ in range(1000)]
        self.assertEqual(order, sorted(range(1000), key=lambda i: (i * 7 % 5, i)))

    def test_under_load_no_job_is_lost_or_done_twice(self):
        for source, target in ((self.beanstalkd(), self.tubed()), (self.tubed(), self.beanstalkd())):
            self.fill(source, "work", ready=2000, delayed=300, buried=300)
            stop = threading.Event()
            seen = []

            def consume(server, stop=stop, seen=seen):
                worker = self.client(server)
                worker.ask("watch work")
                while True:
                    over = stop.is_set()
                    worker.send(b"reserve-with-timeout 0\r\n")
                    words = worker.line().split()
                    if words[0] == "RESERVED":
                        body = worker.read(int(words[2]) + 2)[:-2]
                        if worker.ask(f"delete {words[1]}") == "DELETED":
                            seen.append(body)
                    elif over:
                        return

            put = []

            def produce(stop=stop, put=put, target=target):
                client = self.client(target)
                client.ask("use work")
                while not stop.is_set():
                    body = b"new %d" % len(put)
                    client.put(body)
                    put.append(body)
            threads = [threading.Thread(target=consume, args=(source,)),
                       threading.Thread(target=consume, args=(target,)),
                       threading.Thread(target=produce)]
            for thread in threads:
                thread.start()
            try:
                self.pipe(source, target)
            finally:
                stop.set()
                for thread in threads:
                    thread.join(SECONDS)
            self.assertEqual(sum(self.counts(source, "work")), 0)
            self.assertEqual(sorted(seen), sorted([b"ready %d" % i for i in range(2000)] + put))
            self.assertEqual(self.counts(target, "work"), (0, 300, 300, 0))


if __name__ == "__main__":
    unittest.main()
