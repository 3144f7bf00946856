"""`tubectl put`: one job, and a job for each line.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/produce_test.py
"""

import json
import os
import re
import signal
import subprocess
import unittest

from job_tests import JobTest
from programs import (DONE, FAILURE, IO, SANITIZED, SECONDS, UNAVAILABLE, USAGE,
                      TUBECTL, ScriptedServer, until)

LARGEST = 65535  # the default limit of both servers
ODD_BYTES = b"\0\xff\r\n\r\n \n"


class Put(JobTest):
    def job(self, server, job, tube="default"):
        """Returns the body and the statistics of the job."""
        client = self.client(server)
        client.send(b"peek %d\r\n" % job)
        _, body = client.body()
        stats = client.stats(f"stats-job {job}")
        self.assertEqual(str(stats["tube"]).strip('"'), tube)
        return body, stats

    def bodies(self, server, count, tube="default"):
        """Returns the bodies of all jobs, and checks their number."""
        client = self.client(server)
        client.ask(f"watch {tube}")
        bodies = [client.reserve("reserve-with-timeout 0")[1] for _ in range(count)]
        self.assertEqual(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
        return bodies

    def test_an_argument(self):
        for server in self.servers():
            self.assertEqual(self.tubectl(server, "put", "hello"), "1\n")
            body, stats = self.job(server, 1)
            self.assertEqual((body, stats["pri"], stats["delay"], stats["ttr"], stats["state"]),
                             (b"hello", 1024, 0, 60, "ready"))

    def test_an_argument_that_is_empty_and_one_that_begins_with_a_dash(self):
        for server in self.servers():
            self.assertEqual(self.tubectl(server, "put", ""), "1\n")
            self.assertEqual(self.tubectl(server, "put", "--", "-x y"), "2\n")
            self.assertEqual([self.job(server, job)[0] for job in (1, 2)], [b"", b"-x y"])

    def test_tube_priority_delay_and_ttr(self):
        for server in self.servers():
            told = self.tubectl_json(server, "put", "-t", "mail", "-p", 7, "-d", 90, "--ttr", 33,
                                     "x")
            self.assertEqual(told, {"id": 1})
            _, stats = self.job(server, 1, tube="mail")
            self.assertEqual((stats["pri"], stats["delay"], stats["ttr"], stats["state"]),
                             (7, 90, 33, "delayed"))
            self.tubectl(server, "put", "--tube", "mail", "--priority", 8, "--delay", 91, "x")
            _, stats = self.job(server, 2, tube="mail")
            self.assertEqual((stats["pri"], stats["delay"]), (8, 91))

    def test_a_unique_job(self):
        server = self.tubed()
        unique = ("put", "-t", "mail", "-p", 7, "--unique", "user/42:60")
        self.assertEqual(self.tubectl(server, *unique, "x"), "1\n")
        _, stats = self.job(server, 1, tube="mail")
        self.assertEqual((stats["idempotency-key"], stats["idempotency-ttl"]), ("user/42", 60))
        self.assertEqual(self.run_tubectl(server, *unique, "y"),
                         (DONE, "1\n", "tubectl: job 1 has the key, and is ready: no job was added\n"))
        self.assertEqual(self.tubectl_json(server, *unique, "y"), {"id": 1, "exists": "ready"})
        self.assertEqual(self.client(server).ask("delete 1"), "DELETED")
        self.assertEqual(self.tubectl_json(server, *unique, "y"), {"id": 1, "exists": "deleted"})
        self.assertEqual(self.tubectl_json(server, "put", "--unique", "user/42:60", "y"), {"id": 2})

    def test_unique_jobs_that_cannot_be(self):
        server = self.tubed()
        for key in ("-k", "k:", "k:x", "k:1:2", "a b", "k" * 201):
            self.assertEqual(
                self.refused(USAGE, server, "put", f"--unique={key}", "x"),
                "tubectl: --unique takes a key, or a key, a colon and seconds\n")
        self.refused(USAGE, server, "put", "--unique", "k", "--lines")
        # A server without tags would run the body as a command.
        old = self.beanstalkd()
        self.tubectl(old, "put", "x")
        self.assertEqual(self.refused(FAILURE, old, "put", "--unique", "k", "delete 1"),
                         "tubectl: put: the server does not know --unique\n")
        self.assertEqual(self.bodies(old, 1), [b"x"])

    def test_limits_of_a_job(self):
        """max and ttl, for one job and for each line."""
        server = self.tubed()
        self.tubectl(server, "put", "--max", "3:dead", "--ttl", "5m", "--unique", "k", "x")
        self.tubectl(server, "put", "--max", "4", "x")
        self.assertEqual(self.tubectl(server, "put", "-l", "--ttl", 60, "--max=0:bury",
                                      stdin=b"a\nb\n"), "2\n")
        self.assertEqual([self.tubectl_json(server, "list", "default", "--from", job, "--count", 1)
                          .get("tags") for job in (1, 2, 3, 4)],
                         ["idp:k max:3:dead ttl:300", "max:4", "max:0:bury ttl:60",
                          "max:0:bury ttl:60"])
        client = self.client(server)
        self.tubectl(server, "put", "-t", "t", "--max", "1:dead", "x")
        client.ask("watch t")
        client.ask("ignore default")
        job, _ = client.reserve()
        self.assertEqual(client.ask(f"release {job} 0 0"), "RELEASED")
        self.assertEqual(client.stats(f"stats-job {job}")["dead-reason"], "attempts")

    def test_tags_that_are_malformed(self):
        limits = ("tubectl: --max takes a number, or a number, a colon and bury, delete or a tube's "
                  "name\n")
        for option, values, said in (
                ("--max", ("x", "3:", "3:-t", "3:a:b", "4294967296", "3 ttl:5"), limits),
                ("--group", ("-g", "a b", "a:b", "g" * 201),
                 "tubectl: --group takes a name, with the letters of a tube's name\n"),
                ("--after", ("-g", "a:1"),
                 "tubectl: --after takes the name of a group, with the letters of a tube's name\n"),
                ("--concurrency", (":1", "k:", "k:0", "k:x", "k:1:2", "k:4294967296"),
                 "tubectl: --concurrency takes a key, or a key, a colon and a number from 1 on\n"),
                ("--unique", ("k ttl:5",),
                 "tubectl: --unique takes a key, or a key, a colon and seconds\n")):
            for value in values:
                with self.subTest(option=option, value=value):
                    self.assertEqual(self.refused(USAGE, "127.0.0.1:1", "put",
                                                  f"{option}={value}", "x"), said)

    def test_groups_and_concurrency_keys(self):
        """Jobs are reserved as their groups and keys allow, for one job and for each line."""
        server = self.tubed()
        worker = self.client(server)

        def reserved():
            worker.send(b"reserve-with-timeout 0\r\n")
            words = worker.line().split()
            return worker.read(int(words[2]) + 2)[:-2] if words[0] == "RESERVED" else None
        self.tubectl(server, "put", "--group", "g", "--concurrency", "k:2", "a")
        self.assertEqual(self.tubectl(server, "put", "-l", "--group=g", "--concurrency=k:2",
                                      stdin=b"b\nc\n"), "2\n")
        self.tubectl(server, "put", "--after", "g", "-p", 0, "next")
        stats = worker.stats("stats-group g")
        self.assertEqual((stats["ready"], stats["waiting-jobs"]), (3, 1))
        self.assertEqual([reserved() for _ in range(3)], [b"a", b"b", None])
        self.assertEqual(worker.ask("delete 1"), "DELETED")
        self.assertEqual([reserved() for _ in range(2)], [b"c", None])
        for job in (2, 3):
            self.assertEqual(worker.ask(f"delete {job}"), "DELETED")
        self.assertEqual([reserved() for _ in range(2)], [b"next", None])
        # A key without a number allows one job.
        self.tubectl(server, "put", "-l", "--concurrency", "one", stdin=b"d\ne\n")
        self.assertEqual([reserved() for _ in range(2)], [b"d", None])
        # A chain: each job waits for the previous job.
        worker.ask("delete 5")
        worker.ask("delete 6")
        for i in range(3):
            self.tubectl(server, "put", "--group", f"g{i + 1}", "--after", f"g{i}", f"link {i}")
        self.assertEqual(self.client(server).stats()["current-jobs-held"], 2)
        for i in range(3):
            self.assertEqual([reserved() for _ in range(2)], [f"link {i}".encode(), None])
            worker.ask(f"delete {7 + i}")

    def test_tags_are_sent_to_a_server_that_knows_them(self):
        options = ("--max=3", "--ttl=60", "--group=g", "--after=h", "--concurrency=k:2")
        names = ("idp", "max", "ttl", "grp", "aft", "con")
        tags = "max:3 ttl:60 grp:g aft:h con:k:2"

        def capabilities(known):
            block = "---\n" + "".join(f"- put:{name}\n" for name in known)
            return f"OK {len(block)}\r\n{block}\r\n".encode()
        server = ScriptedServer([capabilities(names), b"USING t\r\n", b"INSERTED 1\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.tubectl(server.address, "put", "-t", "t", *options, "x"), "1\n")
        self.assertEqual(server.commands,
                         ["capabilities", "use t", f"put 1024 0 60 1 {tags}"])
        server = ScriptedServer([capabilities(names), b"OK 0\r\n\r\n", b"INSERTED 1\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.tubectl(server.address, "put", "-l", *options, stdin=b"x\n"), "1\n")
        self.assertEqual(server.commands, ["capabilities", "stats", f"put 1024 0 60 1 {tags}"])
        # Without a capability no job is put.
        for known, unknown in ((names[:3], "--group, --after, --concurrency"),
                               (("idp", "grp", "aft", "con"), "--max, --ttl"),
                               ((), ", ".join(option.partition("=")[0] for option in options))):
            for what in ("x", "--lines"):
                server = ScriptedServer([capabilities(known)])
                self.addCleanup(server.close)
                self.assertEqual(self.refused(FAILURE, server.address, "put", *options, what,
                                              stdin=b"x\n"),
                                 f"tubectl: put: the server does not know {unknown}\n")
                self.assertEqual(server.commands, ["capabilities"])

    def test_standard_input_and_a_file_are_one_job_with_all_bytes(self):
        for server in self.servers():
            path = self.directory / "body"
            path.write_bytes(ODD_BYTES)
            self.assertEqual(self.tubectl(server, "put", stdin=ODD_BYTES), "1\n")
            self.assertEqual(self.tubectl(server, "put", "-", stdin=b"x" * LARGEST), "2\n")
            self.assertEqual(self.tubectl(server, "put", "--file", path), "3\n")
            self.assertEqual(self.run_tubectl(server, "put", stdin=b""),
                             (DONE, "4\n", "tubectl: standard input is empty: the job has no body\n"))
            self.assertEqual([self.job(server, job)[0] for job in (1, 2, 3, 4)],
                             [ODD_BYTES, b"x" * LARGEST, ODD_BYTES, b""])

    def test_a_file_that_is_empty(self):
        path = self.directory / "nothing"
        path.touch()
        server = self.tubed()
        self.assertEqual(self.run_tubectl(server, "put", "--file", path),
                         (DONE, "1\n", f"tubectl: {path} is empty: the job has no body\n"))
        self.assertEqual(self.tubectl(server, "put", "--lines", "--file", path), "0\n")

    def test_each_line_is_a_job(self):
        for server in self.servers():
            lines = b"one\n\ntwo\r\nth\0ree"
            self.assertEqual(self.tubectl(server, "put", "--lines", stdin=lines), "4\n")
            path = self.directory / "lines"
            path.write_bytes(b"five\nsix\n")
            told = self.tubectl_json(server, "put", "-l", "-t", "mail", "--file", path)
            self.assertEqual(told, {"inserted": 2})
            self.assertEqual(self.tubectl_json(server, "put", "-l", stdin=b""), {"inserted": 0})
            self.assertEqual(self.bodies(server, 6, tube="mail"),
                             [b"one", b"", b"two\r", b"th\0ree", b"five", b"six"])

    def test_ids_of_lines(self):
        for server in self.servers():
            self.assertEqual(self.tubectl(server, "put", "--lines", "--ids", stdin=b"a\nb\n"),
                             "1\n2\n")
            told = self.tubectl(server, "put", "--lines", "--ids", "--json", stdin=b"a\nb\n")
            self.assertEqual([json.loads(line) for line in told.splitlines()],
                             [{"id": 3}, {"id": 4}])

    def test_many_lines_arrive_in_order(self):
        count = 5_000 if SANITIZED else 50_000
        for server in self.servers():
            lines = b"".join(b"%d\n" % i for i in range(count))
            self.assertEqual(self.tubectl(server, "put", "--lines", stdin=lines), f"{count}\n")
            self.assertEqual(self.client(server).stats()["current-jobs-ready"], count)
            last = f"{count}"
            self.assertEqual(self.tubectl(server, "peek", last), str(count - 1))

    def test_a_line_is_put_before_the_next_one_comes(self):
        for server in self.servers():
            process = self.popen(server, "put", "--lines", stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
            with process:
                client = self.client(server)
                for body in (b"first", b"second"):
                    process.stdin.write(body + b"\n")
                    process.stdin.flush()
                    self.assertEqual(client.reserve("reserve-with-timeout 20")[1], body)
                output, _ = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, output), (DONE, b"2\n"))

    def test_much_input_needs_little_memory(self):
        for server in self.servers():
            process = self.popen(server, "put", "--lines", "-t", "mail", stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
            line = b"x" * 999 + b"\n"
            with process:
                for _ in range(300):
                    process.stdin.write(line * 100)
                process.stdin.flush()
                with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                    peak = next(row for row in status if row.startswith("VmHWM"))
                process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, DONE)
            if not SANITIZED:
                self.assertLess(int(peak.split()[1]), 20_000)  # kB; the input has 30 MB

    def test_a_job_that_is_too_big(self):
        for server in self.servers():
            large = "x" * (LARGEST + 1)
            self.assertIn("JOB_TOO_BIG", self.refused(FAILURE, server, "put", large))
            why = self.refused(FAILURE, server, "put", stdin=large.encode())
            self.assertIn(f"larger than the {LARGEST} bytes", why)
            lines = b"a\nb\n" + large.encode() + b"\nd\n"
            why = self.refused(FAILURE, server, "put", "--lines", stdin=lines)
            self.assertRegex(why, f"line 3: .* {LARGEST} bytes .*; 2 jobs were inserted before\n")
            # A line without a line end counts the same.
            self.refused(FAILURE, server, "put", "--lines", stdin=large.encode())
            self.assertEqual(self.bodies(server, 2), [b"a", b"b"])

    def test_a_server_that_drains(self):
        for server in self.servers():
            os.kill(self.client(server).stats()["pid"], signal.SIGUSR1)
            until("draining", lambda: self.client(server).stats()["draining"] == "true")
            self.assertIn("DRAINING", self.refused(FAILURE, server, "put", "x"))
            why = self.refused(FAILURE, server, "put", "--lines", stdin=b"a\nb\n")
            self.assertRegex(why, r"line 1: the server is draining.*; "
                                  r"0 jobs were inserted before\n")

    def test_a_server_without_memory(self):
        server = self.tubed("--limits-job-memory", "1MiB")
        lines = (b"x" * 60_000 + b"\n") * 30
        why = self.refused(FAILURE, server, "put", "--lines", stdin=lines)
        self.assertRegex(why, r"line 1\d: the server has no room \(OUT_OF_MEMORY\); 1\d jobs were")
        self.assertIn("OUT_OF_MEMORY", self.refused(FAILURE, server, "put", "x" * 60_000))

    def test_a_tube_that_the_server_refuses(self):
        server = self.tubed("--limits-tubes", "1")
        for arguments in (("hello",), (), ("--lines",)):
            why = self.refused(FAILURE, server, "put", "-t", "mail", *arguments, stdin=b"a\nb\n")
            self.assertIn("use mail: the server has no room (OUT_OF_MEMORY)", why)
        self.assertEqual(self.client(server).stats()["total-jobs"], 0)
        self.assertEqual(self.tubectl(server, "put", "-t", "default", "hello"), "1\n")

    def test_a_server_that_does_not_tell_its_largest_job(self):
        for arguments in ((), ("--lines",)):
            server = ScriptedServer([b"OUT_OF_MEMORY\r\n"])
            self.addCleanup(server.close)
            why = self.refused(FAILURE, server.address, "put", *arguments, stdin=b"a\n")
            self.assertIn("put: the server has no room", why)
            self.assertEqual(server.commands, ["stats"])

    def test_all_that_was_on_its_way_behind_a_line_that_is_refused(self):
        server = self.tubed("--limits-job-memory", "4MiB", "--limits-job-bytes", "8MiB")
        lines = [b"a\n"] * 100_000
        lines[299] = b"x" * (5 << 20) + b"\n"
        why = self.refused(FAILURE, server, "put", "--lines", stdin=b"".join(lines))
        told = re.search(r"line 300: .*OUT_OF_MEMORY\); 299 jobs were inserted before"
                         r"(?:, and (\d+) after it)?", why)
        self.assertIsNotNone(told, why)
        behind = int(told[1] or 0)
        self.assertEqual(self.client(server).stats()["current-jobs-ready"], 299 + behind)
        self.assertLessEqual(behind, 512)

    def test_what_was_on_its_way_behind_a_line_that_is_refused(self):
        stats = b"OK 22\r\n---\nmax-job-size: 100\n\r\n"
        server = ScriptedServer([stats, b"INSERTED 1\r\n", b"BURIED 2\r\n", b"INSERTED 3\r\n"])
        self.addCleanup(server.close)
        why = self.refused(FAILURE, server.address, "put", "--lines", stdin=b"a\nb\nc\n")
        self.assertRegex(why, r"line 2: .* has buried it \(BURIED 2\); 1 job was inserted "
                              "before, and 1 after it")

    def test_one_job_that_was_buried(self):
        server = ScriptedServer([b"BURIED 9\r\n"])
        self.addCleanup(server.close)
        self.assertIn("(BURIED 9)", self.refused(FAILURE, server.address, "put", "x"))

    def test_a_server_that_goes_away(self):
        stats = b"OK 22\r\n---\nmax-job-size: 100\n\r\n"
        server = ScriptedServer([stats, b"INSERTED 1\r\n", None])
        self.addCleanup(server.close)
        why = self.refused(UNAVAILABLE, server.address, "put", "--lines", stdin=b"a\nb\nc\n")
        self.assertIn("; 1 job was inserted before; continue with tail -n +2, unless line", why)

    def test_a_signal_says_where_to_go_on(self):
        for server in self.servers():
            client = self.client(server)
            for number, json_option, output in ((signal.SIGINT, (), b"2\n"),
                                                (signal.SIGTERM, ("--json",), b'{"inserted":2}\n')):
                process = self.popen(server, "put", "--lines", *json_option, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                before = client.stats()["total-jobs"]
                # The begun line is no job.
                process.stdin.write(b"a\nb\nbegun")
                process.stdin.flush()
                until("two jobs", lambda client=client, before=before:
                      client.stats()["total-jobs"] == before + 2)
                process.send_signal(number)
                # The input stays open: the signal alone ends it.
                process.wait(SECONDS)
                self.assertEqual((process.returncode, process.stdout.read(), process.stderr.read()),
                                 (FAILURE, output, b"tubectl: interrupted: 2 jobs were inserted; "
                                                   b"continue with tail -n +3\n"))
                for stream in (process.stdin, process.stdout, process.stderr):
                    stream.close()
                self.assertEqual(client.stats()["total-jobs"], before + 2)

    def test_a_signal_that_the_shell_ignores(self):
        server = self.tubed()
        client = self.client(server)
        process = subprocess.Popen(["bash", "-c", 'trap "" INT; exec "$0" put --lines', TUBECTL],
                                   env={"TUBED_SERVER": server, "PATH": "/usr/bin:/bin"},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with process:
            for jobs in (1, 2):
                process.stdin.write(b"a\n")
                process.stdin.flush()
                until("the job", lambda jobs=jobs: client.stats()["total-jobs"] == jobs)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, output), (DONE, b"2\n"))

    def test_a_signal_in_the_middle_of_a_file(self):
        for server in self.servers():
            path = self.directory / "many"
            path.write_bytes(b"".join(b"%d\n" % i for i in range(20_000)))
            code, output, errors = self.signalled(server, signal.SIGINT, b"put ", "put", "--lines",
                                                  "--file", path)
            done = int(output)
            self.assertEqual((code, errors),
                             (FAILURE, f"tubectl: interrupted: {done} jobs were inserted; continue with "
                                       f"tail -n +{done + 1}\n"))
            self.assertLess(done, 20_000)
            rest = subprocess.run(["tail", "-n", f"+{done + 1}", path], check=True,
                                  capture_output=True).stdout
            self.assertEqual(self.tubectl(server, "put", "--lines", stdin=rest),
                             f"{20_000 - done}\n")
            self.assertEqual(self.client(server).stats()["total-jobs"], 20_000)
            self.assertEqual(self.tubectl(server, "peek", 20_000), "19999")

    def test_no_server(self):
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in (("put", "x"), ("put",), ("put", "--lines")):
            self.refused(UNAVAILABLE, nowhere, *arguments)

    def test_input_that_cannot_be_read(self):
        for server in self.servers():
            self.assertIn("No such file", self.refused(IO, server, "put", "-f", "/nonexistent"))
            for lines in ((), ("--lines",)):
                why = self.refused(IO, server, "put", *lines, "--file", self.directory)
                self.assertIn("Is a directory", why)

    def test_output_that_cannot_be_written(self):
        for server in self.servers():
            with open("/dev/full", "wb") as full:
                process = self.popen(server, "put", "x", stdout=full, stderr=subprocess.PIPE)
                _, errors = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, IO, errors)

    def test_mistakes_in_the_command_line(self):
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in (("--ids", "x"), ("--lines", "x"), ("--file", "f", "x"), ("x", "y"),
                          ("-t", "a b", "x"), ("-p", "4294967296", "x"), ("-d", "-1", "x"),
                          ("--ttr", "a", "x"), ("--nonsense",)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "put", *arguments)


if __name__ == "__main__":
    unittest.main()
