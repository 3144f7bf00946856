"""The subcommands that show a server, its clients, tubes and jobs: peek, job, tubes, clients,
stats, health; also pause, policy, wait and wait-idle.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/inspect_test.py
"""

import json
import subprocess
import time
import unittest

from job_tests import CapabilityTest, Gate
from programs import (BURIED, DONE, FAILURE, SECONDS, TIMED_OUT, UNAVAILABLE, USAGE,
                      ScriptedServer, until)

JOB_KEYS = ["id", "tube", "state", "pri", "age", "delay", "ttr", "time-left", "file", "reserves",
            "timeouts", "releases", "buries", "kicks"]
TUBE_KEYS = ["name", "ready", "urgent", "reserved", "delayed", "buried", "waiting", "watching",
             "paused"]


class InspectTest(CapabilityTest):
    def queues(self):
        """Yields servers with jobs in the tube mail: 1 is ready, 2 delayed, 3 buried and 4 held by
        the client."""
        for server in self.servers():
            client = self.client(server)
            client.ask("use mail")
            for body, delay in ((b"a", 0), (b"\xff", 1000), (b"c", 0), (b"d", 0)):
                client.put(body, priority=7, delay=delay)
            for job in (3, 4):
                client.reserve(f"reserve-job {job}")
            client.ask("bury 3 2000")
            yield server, client

    def json_lines(self, server, *arguments):
        output = self.tubectl(server, *arguments, "--json")
        return [json.loads(line) for line in output.splitlines()]


class Jobs(InspectTest):
    def test_peek_by_id(self):
        for server, _ in self.queues():
            self.assertEqual(self.tubectl(server, "peek", 4), "d")
            self.assertEqual(self.tubectl(server, "peek", 3, 1), "c\na\n")
            first, second = self.json_lines(server, "peek", 2, 3)
            self.assertEqual(list(first), [*JOB_KEYS, "body_base64"])
            self.assertEqual((first["id"], first["state"], first["delay"], first["body_base64"]),
                             (2, "delayed", 1000, "/w=="))
            self.assertEqual((second["id"], second["state"], second["pri"], second["body"]),
                             (3, "buried", 2000, "c"))

    def test_peek_by_state(self):
        for server, _ in self.queues():
            for state, job, body in (("ready", 1, "a"), ("delayed", 2, "\udcff"),
                                     ("buried", 3, "c")):
                self.assertEqual(self.tubectl(server, "peek", f"--{state}", "-t", "mail"), body)
                told = self.tubectl_json(server, "peek", f"--{state}", "--tube", "mail")
                self.assertEqual((told["id"], told["state"], told["tube"]), (job, state, "mail"))
                self.assertIn(f"there is no {state} job in default",
                              self.refused(FAILURE, server, "peek", f"--{state}"))

    def test_peek_at_a_job_that_a_client_holds(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use mail")
        for body in (b"a", b"b", b"c"):
            client.put(body)
        self.assertIn("there is no reserved job in mail",
                      self.refused(FAILURE, server, "peek", "--reserved", "mail"))
        for job in (2, 1):
            client.reserve(f"reserve-job {job}")
        self.assertEqual(self.tubectl(server, "peek", "--reserved", "mail"), "b")
        told = self.tubectl_json(server, "peek", "--reserved", "-t", "mail")
        self.assertEqual((told["id"], told["state"], told["body"]), (2, "reserved", "b"))
        for old in (self.without(server, b"peek-reserved"), self.beanstalkd()):
            self.assertEqual(self.refused(FAILURE, old, "peek", "--reserved"),
                             "tubectl: peek: the server does not know peek-reserved\n")

    def test_peek_in_a_tube_that_the_server_refuses(self):
        server = self.tubed("--limits-tubes", "1")
        self.client(server).put(b"a")
        why = self.refused(FAILURE, server, "peek", "--ready", "-t", "mail")
        self.assertIn("use mail: the server has no room (OUT_OF_MEMORY)", why)

    def test_job(self):
        for server, _ in self.queues():
            told = self.tubectl_json(server, "job", 4)
            self.assertEqual(list(told), JOB_KEYS)
            self.assertEqual((told["state"], told["reserves"], told["ttr"]), ("reserved", 1, 100))
            self.assertLessEqual(told["time-left"], 100)
            lines = self.tubectl(server, "job", 4).splitlines()
            self.assertEqual(lines[:4], ["id         4", "tube       mail", "state      reserved",
                                         "priority   7"])
            self.assertEqual(len(lines), len(JOB_KEYS) - 1)  # without the file

    def test_job_with_its_body(self):
        for server, _ in self.queues():
            told = self.json_lines(server, "job", 4, 1, "--body")
            self.assertEqual([job["body"] for job in told], ["d", "a"])
            blocks = self.tubectl(server, "job", 4, 1, "--body").split("\n\n")
            self.assertEqual((len(blocks), blocks[1], blocks[3]), (4, "d", "a\n"))

    def test_jobs_that_are_not_there(self):
        for server, _ in self.queues():
            for name, shown in (("peek", "a\n"), ("job", "id         1\n")):
                code, output, errors = self.run_tubectl(server, name, 98, 1, 99)
                self.assertEqual((code, output[:len(shown)]), (FAILURE, shown))
                self.assertRegex(errors, r"^tubectl: job 98: there is no such job.*\n"
                                         r"tubectl: job 99: .*\n$")
                self.refused(FAILURE, server, name, 99, "--json")

    def test_a_terminal_is_shown_no_control_characters(self):
        body = b"\x1b]0;title\x07\xc2\x9b31m\xff\x7f\r\n\tt\xc3\xa4b"
        shown = rb"\x1b]0;title\x07\xc2\x9b31m\xff\x7f\r" + b"\r\n\tt\xc3\xa4b\r\n"
        for server in self.servers():
            client = self.client(server)
            job = client.put(body)
            for arguments in (("peek", job), ("peek", "--ready"), ("peek", job, job),
                              ("reserve", "--release")):
                self.assertEqual(self.on_terminal(server, *arguments), shown, arguments)
                raw = self.on_terminal(server, *arguments, "--raw")
                self.assertEqual(raw.rstrip(b"\r\n"), body.replace(b"\n", b"\r\n"), arguments)
            self.assertTrue(self.on_terminal(server, "job", job, "--body").endswith(
                b"\r\n\r\n" + shown))
            self.assertIn(b"\x1b]", self.on_terminal(server, "job", job, "--body", "--raw"))
            # JSON escapes them anyway; a file or pipe gets each byte.
            self.assertNotRegex(self.on_terminal(server, "peek", job, "--json"),
                                rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\xff]")
            self.assertEqual(self.tubectl(server, "peek", job).encode(errors="surrogateescape"),
                             body)

    def test_a_body_ends_its_line_on_a_terminal(self):
        for server in self.servers():
            client = self.client(server)
            for body in (b"", b"a", b"a\n"):
                job = client.put(body)
                self.assertEqual(self.on_terminal(server, "peek", job),
                                 (body.rstrip() + b"\n").replace(b"\n", b"\r\n"))

    def test_a_terminal_is_shown_no_control_characters_in_names(self):
        stats = b"---\nname: \x1b[31m\xc2\x9b\n"
        for answers, arguments in (([b"OK %d\r\n%s\r\n" % (len(stats), stats)], ("stats",)),
                                   ([b"OK 10\r\n---\n- \x1bc\x9ba\r\n"], ("tubes", "--names"))):
            server = ScriptedServer(answers)
            self.addCleanup(server.close)
            self.assertRegex(self.on_terminal(server.address, *arguments), rb"^[ -~\r\n]+$")

    def test_a_job_that_is_not_there_is_no_other_clients(self):
        for server, _ in self.queues():
            for name in ("peek", "job"):
                self.assertEqual(self.refused(FAILURE, server, name, 99),
                                 "tubectl: job 99: there is no such job (NOT_FOUND)\n")

    def test_many_jobs(self):
        for server, client in self.queues():
            client.put_many(2000)
            ids = b"\n".join(b"%d" % job for job in range(5, 2005))
            output = self.tubectl(server, "peek", "-", "--json", stdin=ids)
            self.assertEqual([json.loads(line)["id"] for line in output.splitlines()],
                             list(range(5, 2005)))

    def test_mistakes(self):
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in (("--ready", 1), ("--ready", "--buried"), ("-t", "mail", 1),
                          ("-t", "mail"), ("--ready", "-t", "")):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "peek", *arguments)
        self.refused(UNAVAILABLE, nowhere, "peek", "--ready")
        self.refused(USAGE, nowhere, "job", "--ready")


class Listed(InspectTest):
    def test_jobs_by_state_and_from_an_id(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use mail")
        client.put_many(2500)
        self.tubectl(server, "put", "-t", "mail", "--unique", "k:300", "-p", 7, "x")
        jobs = self.json_lines(server, "list", "mail", "--count", 5000)
        self.assertEqual([job["id"] for job in jobs], list(range(1, 2502)))
        last = jobs[-1]
        last.pop("age")
        self.assertEqual(last, {"tube": "mail", "id": 2501, "state": "ready", "pri": 7,
                                "delay": 0, "ttr": 60, "time-left": 0, "reserves": 0,
                                "timeouts": 0, "releases": 0, "buries": 0, "kicks": 0,
                                "bytes": 1, "tags": "idp:k:300"})
        self.assertEqual([job["id"] for job in self.json_lines(
            server, "list", "-t", "mail", "--from", 2400, "--count", 3)], [2400, 2401, 2402])
        self.tubectl(server, "put", "-t", "tagged", "--max", "3:dead", "--ttl", 60, "--unique", "k",
                     "x")
        self.assertEqual(self.json_lines(server, "list", "tagged")[0]["tags"],
                         "idp:k max:3:dead ttl:60")
        table = self.tubectl(server, "list", "tagged").splitlines()
        self.assertEqual(table[1].split()[-3:], ["idp:k", "max:3:dead", "ttl:60"])
        self.assertEqual(self.json_lines(server, "list", "mail", "--state", "buried"), [])
        self.assertEqual(len(self.json_lines(server, "list", "mail")), 100)
        self.assertEqual(self.json_lines(server, "list", "absent"), [])

    def test_the_jobs_that_come_next(self):
        server = self.tubed()
        client = self.client(server)
        for priority in (5, 1, 3):
            client.send(b"put %d 0 60 1\r\nx\r\n" % priority)
            client.line()
        lines = [line.split() for line in self.tubectl(server, "list", "default",
                                                       "--next").splitlines()]
        self.assertEqual(lines[0][:4], ["id", "state", "pri", "age"])
        self.assertEqual([line[0] for line in lines[1:]], ["2", "3", "1"])

    def test_jobs_that_wait_for_a_group(self):
        server = self.tubed()
        self.tubectl(server, "put", "--group", "g", "--concurrency", "k:2", "member")
        self.tubectl(server, "put", "--after", "g", "held")
        self.tubectl(server, "put", "--delay", 1000, "delayed")

        def listed(state):
            return [(job["id"], job["state"], job.get("tags"))
                    for job in self.json_lines(server, "list", "default", "--state", state)]
        self.assertEqual(listed("held"), [(2, "held", "aft:g")])
        self.assertEqual(listed("delayed"), [(3, "delayed", None)])
        self.assertEqual(listed("ready"), [(1, "ready", "con:k:2 grp:g")])
        table = self.tubectl(server, "list", "default", "--state", "held").splitlines()
        self.assertEqual((len(table), table[1].split()[:2], table[1].split()[-1]),
                         (2, ["2", "held"], "aft:g"))
        jobs = self.json_lines(server, "job", 1, 2, 3)
        self.assertEqual([job.get("tags") for job in jobs], ["grp:g con:k:2", "aft:g", None])
        self.assertEqual(list(jobs[1]), [*JOB_KEYS, "after-group", "tags"])
        self.assertEqual(self.tubectl(server, "job", 2).splitlines()[-1], "tags       aft:g")
        self.assertEqual(list(self.json_lines(server, "peek", 2)[0]), [*JOB_KEYS, "after-group", "tags", "body"])
        top = self.tubectl(server, "top", "--once")
        self.assertIn("delayed 2  held 1  buried 0", top)

    def test_what_cannot_be_listed(self):
        self.assertEqual(self.refused(FAILURE, self.beanstalkd(), "list", "mail"),
                         "tubectl: list: the server does not know list-jobs\n")
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in ((), ("a", "b"), ("a", "--next", "--from", 1), ("a", "--state", "x"),
                          ("a", "--state", "ready", "--next"), ("a", "--count", 0)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "list", *arguments)


class Clients(InspectTest):
    KEYS = ["id", "address", "role", "used", "waiting", "held", "idle", "watched"]

    def test_the_clients(self):
        server = self.tubed()
        client = self.client(server)
        client.ask("use 7")
        client.ask("watch mail")
        client.ask("ignore default")
        lines = [line.split() for line in self.tubectl(server, "clients").splitlines()]
        self.assertEqual(lines[0], self.KEYS)
        self.assertEqual([line[2:6] + line[7:] for line in lines[1:]],
                         [["-", "7", "0", "0", "mail"], ["-", "default", "0", "0", "default"]])
        told, own = self.json_lines(server, "clients")
        self.assertEqual(list(told), self.KEYS)
        self.assertEqual((told["used"], told["waiting"], told["held"], told["watched"]),
                         ("7", 0, 0, "mail"))
        self.assertIs(type(own["id"]), int)

    def test_pages(self):
        def page(after, columns, *lines):
            items = "".join(f"- {item}\n" for item in (f"next {after}", columns, *lines))
            return b"OK %d\r\n---\n%s\r\n" % (len(items) + 4, items.encode())
        columns = "id role later"
        server = ScriptedServer([page(4096, columns, "3 9 8"), page(8192, columns),
                                 page(0, columns, "9000 - x"), b"OK 4\r\n---\n\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.json_lines(server.address, "clients"),
                         [{"id": 3, "role": "9", "later": 8},
                          {"id": 9000, "role": "-", "later": "x"}])
        self.assertEqual(server.commands, [f"list-clients {start} 1000" for start in
                                           (0, 4096, 8192)])
        self.assertEqual(self.refused(UNAVAILABLE, server.address, "clients"),
                         "tubectl: clients: the reply has no columns\n")

    def test_a_server_without_it(self):
        self.assertEqual(self.refused(FAILURE, self.beanstalkd(), "clients"),
                         "tubectl: clients: the server does not know list-clients\n")


class Tubes(InspectTest):
    def test_the_table(self):
        for server, client in self.queues():
            client.ask("pause-tube mail 1000")
            lines = self.tubectl(server, "tubes", "--interval", 0).splitlines()
            self.assertEqual([line.split() for line in lines],
                             # The client and tubectl watch default.
                             [TUBE_KEYS, ["default", *"00000020"],
                              ["mail", *"1111100", lines[2].split()[-1]]])
            self.assertIn(int(lines[2].split()[-1]), range(900, 1001))
            self.assertEqual(len({len(line) for line in lines}), 1)

    def test_json(self):
        for server, _ in self.queues():
            default, mail = self.json_lines(server, "tubes", "--interval", 0)
            self.assertEqual(list(mail), [*TUBE_KEYS, "total-jobs"])
            self.assertEqual((default["name"], default["total-jobs"]), ("default", 0))
            self.assertEqual([mail[key] for key in TUBE_KEYS],
                             ["mail", 1, 1, 1, 1, 1, 0, 0, 0])
            self.assertEqual(mail["total-jobs"], 4)

    def test_jobs_that_wait_for_a_group(self):
        server = self.tubed()
        self.tubectl(server, "put", "-t", "a", "--group", "g", "member")
        self.tubectl(server, "put", "-t", "a", "--delay", 1000, "delayed")
        rows = self.tubectl(server, "tubes", "--interval", 0)
        self.assertNotIn("held", rows)
        for _ in range(2):
            self.tubectl(server, "put", "-t", "b", "--after", "g", "held")
        lines = self.tubectl(server, "tubes", "--interval", 0).splitlines()
        self.assertEqual([line.split() for line in lines],
                         [[*TUBE_KEYS, "held"], ["a", *"100100000"], ["b", *"000200002"],
                          ["default", *"000000100"]])
        titles = self.tubectl(server, "tubes", "--interval", 0.01).splitlines()[0].split()
        self.assertEqual(titles, [*TUBE_KEYS, "puts/s", "deletes/s", "held"])
        told = self.json_lines(server, "tubes", "--interval", 0, "--sort", "held")
        self.assertEqual([(row["name"], row["held"]) for row in told],
                         [("b", 2), ("a", 0), ("default", 0)])
        self.assertEqual(list(told[0]), [*TUBE_KEYS, "total-jobs", "held"])
        # Only the shown tubes count.
        self.assertNotIn("held", self.tubectl(server, "tubes", "a", "--interval", 0))
        top = self.tubectl(server, "top", "--once", "--interval", "0.1", "--sort", "held")
        self.assertRegex(top, r"DELAYED .HELD BURIED")
        self.assertRegex(top, r"\n +b +0 +0 +2 +2 +0 ")

    def test_rates(self):
        for server, client in self.queues():
            gate = Gate(server, b"stats-tubes")
            self.addCleanup(gate.close)

            def second_look(client=client):
                client.put_many(100)
                for job in range(5, 55):
                    client.ask(f"delete {job}")

            def first_look(gate=gate, second_look=second_look):
                gate.reached = second_look
            gate.reached = first_look
            output = self.tubectl(gate.address, "tubes", "--interval", 0.5, "--json")
            default, mail = map(json.loads, output.splitlines())
            self.assertEqual((default["puts-per-second"], default["deletes-per-second"]), (0, 0))
            # Between two queries at least half a second apart.
            self.assertLessEqual(mail["puts-per-second"], 200)
            self.assertGreater(mail["puts-per-second"], 0)
            self.assertAlmostEqual(mail["puts-per-second"], 2 * mail["deletes-per-second"])
            titles = self.tubectl(server, "tubes", "--interval", 0.01).splitlines()[0].split()
            self.assertEqual(titles, [*TUBE_KEYS, "puts/s", "deletes/s"])

    def test_sort(self):
        for server, client in self.queues():
            client.ask("use images")
            client.put_many(3)
            client.ask("pause-tube images 1000")

            def names(*key, server=server):
                return [told["name"] for told in
                        self.json_lines(server, "tubes", "--interval", 0, *key)]
            self.assertEqual(names(), ["default", "images", "mail"])
            self.assertEqual(names("--sort", "name"), ["default", "images", "mail"])
            for key, order in (("ready", ["images", "mail", "default"]),
                               ("urgent", ["images", "mail", "default"]),
                               ("buried", ["mail", "default", "images"]),
                               ("reserved", ["mail", "default", "images"]),
                               ("delayed", ["mail", "default", "images"]),
                               ("watching", ["default", "images", "mail"]),
                               ("waiting", ["default", "images", "mail"]),
                               ("puts", ["default", "images", "mail"]),
                               ("deletes", ["default", "images", "mail"]),
                               ("paused", ["images", "default", "mail"])):
                self.assertEqual(names("--sort", key), order, key)

    def test_some_tubes_and_tubes_that_are_not_there(self):
        for server, _ in self.queues():
            told = self.json_lines(server, "tubes", "mail", "--interval", 0)
            self.assertEqual([tube["name"] for tube in told], ["mail"])
            code, output, errors = self.run_tubectl(server, "tubes", "none", "mail", "nothing",
                                                    "--interval", "0")
            self.assertEqual((code, len(output.splitlines())), (FAILURE, 2))
            self.assertEqual(errors, "tubectl: there is no tube none\n"
                                     "tubectl: there is no tube nothing\n")
            code, output, _ = self.run_tubectl(server, "tubes", "none", "--interval", "0")
            self.assertEqual((code, output), (FAILURE, ""))

    def test_names(self):
        for server, _ in self.queues():
            self.assertEqual(self.tubectl(server, "tubes", "--names"), "default\nmail\n")
            self.assertEqual(self.json_lines(server, "tubes", "--names"),
                             [{"name": "default"}, {"name": "mail"}])

    def test_colours_only_on_a_terminal(self):
        def on_terminal(server, environment):
            return self.on_terminal(server, "tubes", "--interval", 0,
                                    environment=environment).decode()
        for server, client in self.queues():
            client.ask("pause-tube mail 1000")
            painted = on_terminal(server, {"TERM": "xterm", "NO_COLOR": ""})
            self.assertIn("\x1b[31m1\x1b[0m", painted)  # one buried job, in red
            self.assertRegex(painted, "\x1b\\[33m(1000|99\\d)\x1b\\[0m")
            self.assertNotIn("\x1b", on_terminal(server, {"TERM": "xterm", "NO_COLOR": "1"}))
            self.assertNotIn("\x1b", self.tubectl(server, "tubes", "--interval", 0))

    def test_mistakes_and_no_server(self):
        nowhere = f"unix:{self.directory}/nobody"
        self.refused(UNAVAILABLE, nowhere, "tubes")
        self.refused(UNAVAILABLE, nowhere, "tubes", "--names")
        stats, full = b"OK 8\r\n---\na: 1\r\n", b"OUT_OF_MEMORY\r\n"
        for answers, tubes in (([full], ()), ([stats, full], ()), ([stats, full], ("mail",))):
            server = ScriptedServer(answers)
            self.addCleanup(server.close)
            why = self.refused(UNAVAILABLE, server.address, "tubes", *tubes, "--interval", 0)
            self.assertIn("the server has no room", why)
        for arguments in (("--interval", -1), ("--sort", "age"), ("--names", "mail"), ("a b",)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "tubes", *arguments)


class StatsAndPause(InspectTest):
    def test_stats(self):
        for server, client in self.queues():
            shown = client.stats()
            told = self.tubectl_json(server, "stats")
            self.assertEqual(list(told), list(shown))
            for key in ("pid", "current-jobs-ready", "cmd-put", "total-jobs"):
                self.assertEqual(told[key], shown[key])
            self.assertIs(told["draining"], False)
            self.assertIsInstance(told["rusage-utime"], float)
            for key in ("id", "version", "hostname", "platform"):
                self.assertIsInstance(told[key], str)
            lines = self.tubectl(server, "stats").splitlines()
            self.assertEqual([line.split()[0] for line in lines], list(told))
            self.assertEqual({len(line) - len(line.split(maxsplit=1)[1]) for line in lines},
                             {len(max(told, key=len)) + 2})
            self.assertIn(["total-jobs", "4"], [line.split() for line in lines])

    def test_stats_of_a_tube(self):
        for server, client in self.queues():
            client.ask("use 123")
            client.put()
            told = self.tubectl_json(server, "stats", "-t", "123")
            self.assertEqual((told["name"], told["current-jobs-ready"]), ("123", 1))
            first = self.tubectl(server, "stats", "--tube", "mail").splitlines()[0]
            self.assertEqual(first.split(), ["name", "mail"])
            self.assertIn("there is no tube none",
                          self.refused(FAILURE, server, "stats", "-t", "none"))
            self.refused(FAILURE, server, "stats", "-t", "none", "--json")
            self.refused(USAGE, server, "stats", "-t", "-")

    def test_stats_of_a_group(self):
        server = self.tubed()
        self.tubectl(server, "put", "--group", "g", "member")
        self.tubectl(server, "put", "--group", "g", "--delay", 1000, "member")
        self.tubectl(server, "put", "--after", "g", "held")
        told = {"name": "g", "ready": 1, "reserved": 0, "delayed": 1, "buried": 0,
                "waiting-jobs": 1}
        self.assertEqual(self.tubectl_json(server, "stats", "--group", "g"), told)
        lines = self.tubectl(server, "stats", "--group", "g").splitlines()
        self.assertEqual([line.split() for line in lines],
                         [[key, str(value)] for key, value in told.items()])
        self.assertEqual(self.refused(FAILURE, server, "stats", "--group", "none"),
                         "tubectl: group none has no members, and no job waits for it\n")
        for old in (self.without(server, b"stats-group"), self.beanstalkd()):
            self.assertEqual(self.refused(FAILURE, old, "stats", "--group", "g"),
                             "tubectl: stats: the server does not know stats-group\n")
        for words in (("--group", "a b"), ("--group", ""), ("--group", "g", "-t", "mail"),
                      ("--group", "g", "mail")):
            self.refused(USAGE, server, "stats", *words)

    def test_pause(self):
        for server, client in self.queues():
            def left(client=client):
                return client.stats("stats-tube mail")["pause-time-left"]
            self.assertEqual(self.tubectl(server, "pause", "mail", 1000), "")
            self.assertIn(left(), range(900, 1001))
            self.assertEqual(self.tubectl_json(server, "pause", "mail", "--end"),
                             {"tube": "mail", "pause": 0})
            self.assertEqual(left(), 0)
            self.assertEqual(self.tubectl_json(server, "pause", "mail", 1000),
                             {"tube": "mail", "pause": 1000})
            self.tubectl(server, "pause", "mail", 0)
            self.assertEqual(left(), 0)
            why = self.refused(FAILURE, server, "pause", "none", 5)
            self.assertIn("there is no tube none", why)
            for arguments in ((), ("mail",), ("mail", "x"), ("mail", 5, "--end"), ("mail", -1),
                              ("mail", 4294967296), ("a b", 5)):
                self.refused(USAGE, server, "pause", *arguments)

    def test_no_server(self):
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in (("stats",), ("pause", "mail", 5), ("policy", "mail"), ("wait-idle",)):
            self.refused(UNAVAILABLE, nowhere, *arguments)


class Policies(InspectTest):
    def policy(self, server, tube):
        """Returns the value and the origin of each key."""
        lines = self.json_lines(server, "policy", tube)
        self.assertEqual({line["tube"] for line in lines}, {tube})
        return {line["key"]: (line["value"], line["origin"]) for line in lines}

    def test_each_key_with_its_value_and_origin(self):
        server = self.tubed()
        for words in (("max-attempts", 5), ("rate", "10/60"), ("dead", "1.0")):
            self.assertEqual(self.tubectl(server, "policy", "mail", *words), "")
        policy = self.policy(server, "mail")
        self.assertEqual(len(policy), 13)
        keys = ("ttl", "max-attempts", "rate", "dead", "expired")
        self.assertEqual([policy[key] for key in keys],
                         [(0, "default"), (5, "wire"), ("10/60", "wire"), ("1.0", "wire"),
                          ("delete", "default")])
        table = self.tubectl(server, "policy", "-t", "mail").splitlines()
        self.assertEqual(table[0].split(), ["key", "value", "origin"])
        self.assertEqual(len(table), 1 + len(policy))
        self.assertIn(["dead", "1.0", "wire"], [line.split() for line in table])
        self.tubectl(server, "policy", "mail", "dead", "-")
        self.tubectl(server, "policy", "-t", "mail", "max-attempts", "-")
        policy = self.policy(server, "mail")
        self.assertEqual([policy["dead"], policy["max-attempts"]],
                         [("bury", "default"), (0, "default")])
        # The policy is in force.
        client = self.client(server)
        self.tubectl(server, "policy", "mail", "max-jobs", 1)
        self.tubectl(server, "put", "-t", "mail", "x")
        self.assertIn("OUT_OF_MEMORY", self.refused(FAILURE, server, "put", "-t", "mail", "x"))
        self.assertEqual(client.stats()["total-jobs"], 1)

    def test_what_cannot_be_set(self):
        server = self.tubed("--limits-policies", "1")
        for words, said in (
                (("max-attempt", 5),
                 "there is no key max-attempt (did you mean max-attempts?)"),
                (("nonsense", 5), "there is no key nonsense"),
                (("ttl", "soon"), '"soon" is no value of ttl')):
            self.assertEqual(self.refused(FAILURE, server, "policy", "mail", *words),
                             f"tubectl: policy: {said}\n")
        self.tubectl(server, "policy", "mail", "ttl", 5)
        self.assertIn("limits.policies",
                      self.refused(FAILURE, server, "policy", "mail", "dead", "x"))
        for arguments in ((), ("mail", "ttl"), ("mail", "ttl", "5", "6"), ("a b",),
                          ("mail", "ttl", "5\r\nput"), ("mail", "t t", "5"), ("mail", "ttl", ""),
                          ("mail", "ttl", "5", "--json")):
            self.refused(USAGE, server, "policy", *arguments)
        old = self.beanstalkd()
        for words in ((), ("ttl", 5)):
            self.assertEqual(self.refused(FAILURE, old, "policy", "mail", *words),
                             "tubectl: policy: the server does not know tube-policy\n")


class Wait(InspectTest):
    def test_the_end_of_a_job(self):
        server = self.tubed()
        client = self.client(server)
        for timeout in ((), ("--timeout", "1h")):
            for end, code, said in ((b"delete %d", DONE, ""),
                                    (b"bury %d 0", BURIED, "tubectl: job {} is buried\n")):
                job = client.put()
                client.reserve(f"reserve-job {job}")
                process = self.popen(server, "wait", *timeout, job, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
                until("the client to wait", lambda job=job: client.stats()["cmd-wait"] == job)
                client.ask((end % job).decode())
                output, errors = process.communicate(timeout=SECONDS)
                self.assertEqual((process.returncode, output, errors),
                                 (code, "", said.format(job)))

    def test_an_end_that_does_not_come_or_came_before(self):
        server = self.tubed()
        client = self.client(server)
        job = client.put()
        for seconds in (0, 1):
            begin = time.monotonic()
            self.assertEqual(self.refused(TIMED_OUT, server, "wait", "--timeout", seconds, job),
                             f"tubectl: job {job} has not ended\n")
            self.assertGreaterEqual(time.monotonic() - begin, seconds)
        code, output, _ = self.run_tubectl(server, "wait", "--timeout", 0, "--json", job)
        self.assertEqual((code, json.loads(output)), (TIMED_OUT, {"id": job, "ended": None}))
        other, waits = client.put(), client.stats()["cmd-wait"]
        process = self.popen(server, "wait", "--json", other, stdout=subprocess.PIPE)
        until("the client to wait", lambda: client.stats()["cmd-wait"] > waits)
        client.ask(f"delete {other}")
        output, _ = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, json.loads(output)),
                         (DONE, {"id": other, "ended": "deleted"}))
        client.reserve()
        client.ask(f"bury {job} 0")
        self.assertEqual(self.refused(BURIED, server, "wait", "--timeout", 0, job),
                         f"tubectl: job {job} is buried\n")
        code, output, _ = self.run_tubectl(server, "wait", "--timeout", 0, "--json", job)
        self.assertEqual((code, json.loads(output)), (BURIED, {"id": job, "ended": "buried"}))
        client.ask(f"delete {job}")
        self.assertEqual(self.refused(FAILURE, server, "wait", job),
                         f"tubectl: job {job}: there is no such job (NOT_FOUND)\n")
        for arguments in ((), ("x",), (0,), ("-",), (1, 2), (1, "--timeout", "x")):
            self.refused(USAGE, server, "wait", *arguments)
        self.assertEqual(self.refused(FAILURE, self.beanstalkd(), "wait", 1),
                         "tubectl: wait: the server does not know wait\n")
        self.refused(UNAVAILABLE, f"unix:{self.directory}/nobody", "wait", 1)


# A slow machine answers late.
HEALTH = ("health", "--timeout", SECONDS)


class Health(InspectTest):
    def test_a_server_that_answers(self):
        for server in self.servers():
            self.assertEqual(self.tubectl(server, *HEALTH), "healthy\n")
        server = self.tubed()
        self.tubectl(server, "drain")
        self.assertEqual(self.tubectl(server, *HEALTH), "healthy, draining\n")
        self.assertEqual(self.tubectl_json(server, *HEALTH),
                         {"healthy": True, "draining": True, "journal-full": False})

    def test_a_server_whose_journal_is_full(self):
        stats = b"---\njournal-full: true\ndraining: false\n"
        server = ScriptedServer([b"OK %d\r\n%s\r\n" % (len(stats), stats)])
        self.addCleanup(server.close)
        code, output, errors = self.run_tubectl(server.address, *HEALTH, "--json")
        self.assertEqual((code, json.loads(output), errors),
                         (FAILURE, {"healthy": False, "draining": False, "journal-full": True},
                          "tubectl: health: the journal has no space, so puts are refused\n"))

    def test_a_server_that_does_not(self):
        self.refused(UNAVAILABLE, f"unix:{self.directory}/nobody", "health")
        server = ScriptedServer([b"OUT_OF_MEMORY\r\n"])
        self.addCleanup(server.close)
        self.assertIn("health: the server has no room", self.refused(FAILURE, server.address, *HEALTH))

    def test_a_full_journal(self):
        directory = self.directory / "journal"
        directory.mkdir()
        server = self.tubed("-b", str(directory), "--journal-max-bytes", "256KiB", "-s", "64KiB",
                            "-z", "1000", "--journal-sync", "never")
        client = self.client(server)
        self.assertEqual(self.tubectl(server, *HEALTH), "healthy\n")
        jobs = []

        def put():
            words = client.ask("put 0 0 60 900\r\n" + "x" * 900).split()
            if words[0] == "INSERTED":
                jobs.append(words[1])
            return words[0]
        until("a put to be refused", lambda: put() == "OUT_OF_MEMORY")
        self.assertEqual(self.refused(FAILURE, server, *HEALTH),
                         "tubectl: health: the journal has no space, so puts are refused\n")
        self.assertIs(self.tubectl_json(server, "stats")["journal-full"], True)
        for job in jobs:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        until("a put to be accepted", lambda: put() == "INSERTED")
        self.assertEqual(self.tubectl(server, *HEALTH), "healthy\n")


class WaitIdle(InspectTest):
    def test_idle_at_once(self):
        for server in self.servers():
            client = self.client(server)
            client.put(delay=1000)
            job = client.put()
            client.reserve(f"reserve-job {job}")
            client.ask(f"bury {job} 0")
            self.assertEqual(self.tubectl(server, "wait-idle"), "")
            self.tubectl(server, "wait-idle", "default", "nothing")
            client.put()
            self.tubectl(server, "wait-idle", "--held", "--timeout", 0)
            client.reserve()
            client.ask("delete 3")
            self.assertIn("0 ready, 0 reserved, 1 delayed",
                          self.refused(TIMED_OUT, server, "wait-idle", "--all", "--timeout", 0))
            self.assertEqual(self.tubectl_json(server, "wait-idle"),
                             {"idle": True, "current-jobs-ready": 0, "current-jobs-reserved": 0})
            code, output, _ = self.run_tubectl(server, "wait-idle", "--all", "--timeout", 0, "--json")
            self.assertEqual((code, json.loads(output)),
                             (TIMED_OUT, {"idle": False, "current-jobs-ready": 0,
                                          "current-jobs-reserved": 0, "current-jobs-delayed": 1}))

    def test_a_server_that_does_not_tell_is_not_idle(self):
        for tubes in ((), ("mail",)):
            server = ScriptedServer([b"OUT_OF_MEMORY\r\n"])
            self.addCleanup(server.close)
            self.assertIn("wait-idle: the server has no room",
                          self.refused(FAILURE, server.address, "wait-idle", *tubes))

    def test_a_server_with_too_many_connections_is_not_idle(self):
        server = self.tubed("--limits-connections", "1")
        client = self.client(server)
        client.put()
        for tubes in ((), ("default",)):
            code, _, errors = self.run_tubectl(server, "wait-idle", *tubes)
            # tubectl reads the refusal, unless the connection is closed first.
            self.assertIn(code, (FAILURE, UNAVAILABLE), errors)

    def test_what_is_left(self):
        for server, _ in self.queues():
            self.assertIn("after 0 s there are left: 1 ready, 1 reserved\n",
                          self.refused(TIMED_OUT, server, "wait-idle", "--timeout", 0))
            # On a slow machine the time limit is reached before the first answer.
            self.assertRegex(self.refused(TIMED_OUT, server, "wait-idle", "--held", "--timeout", 0.2),
                             "after 0.2 s (there are left: 1 reserved|the server has not answered)")
            self.refused(TIMED_OUT, server, "wait-idle", "default", "mail", "--timeout", 0)
            self.tubectl(server, "wait-idle", "default")

    def test_it_waits(self):
        for server, client in self.queues():
            process = self.popen(server, "wait-idle", "mail")
            looked = client.stats()["cmd-stats-tube"]
            until("two looks", lambda: client.stats()["cmd-stats-tube"] >= looked + 2)
            self.assertIsNone(process.poll())
            client.ask("delete 1")
            looked = client.stats()["cmd-stats-tube"]
            until("one more look", lambda: client.stats()["cmd-stats-tube"] > looked + 1)
            self.assertIsNone(process.poll())
            client.ask("delete 4")
            self.assertEqual(process.wait(SECONDS), DONE)

    def test_the_time_out_ends_it(self):
        for server, _ in self.queues():
            begin = time.monotonic()
            self.refused(TIMED_OUT, server, "wait-idle", "--timeout", 0.3)
            self.assertGreaterEqual(time.monotonic() - begin, 0.3)

    def test_mistakes(self):
        nowhere = f"unix:{self.directory}/nobody"
        for arguments in (("--held", "--all"), ("--timeout", -1), ("--timeout", "x"), ("a b",)):
            with self.subTest(arguments=arguments):
                self.refused(USAGE, nowhere, "wait-idle", *arguments)


if __name__ == "__main__":
    unittest.main()
