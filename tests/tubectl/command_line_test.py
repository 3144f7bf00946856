"""The command line of tubectl: help, suggestions for mistyped words, ranges and units, and tubes.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/command_line_test.py
"""

import re
import unittest

from job_tests import CapabilityTest
from programs import DONE, FAILURE, UNAVAILABLE, USAGE, ScriptedServer, subcommands

NOWHERE = "127.0.0.1:1"
SECONDS_RANGE = "a time in whole seconds from 0 to 4294967295, as 90, 90s, 5m, 2h or 1d"
TIMES_RANGE = "a time in seconds from 0 to 4294967295, as 90, 90s, 500ms, 5m, 2h or 1d"


def ageless(text):
    """An export without the ages of its jobs, which increase."""
    return re.sub(r'"age":\d+', '"age":0', text)


class CommandLine(CapabilityTest):
    def said(self, *arguments):
        """Returns the line of a mistake, without its beginning and line end."""
        line = self.refused(USAGE, NOWHERE, *arguments)
        return line.removeprefix("tubectl: ").removesuffix("\n")

    def test_what_was_probably_meant(self):
        for words, said in (
                (("putt",), "there is no subcommand putt (did you mean put?); try tubectl --help"),
                (("wait-idel",), "there is no subcommand wait-idel (did you mean wait-idle?); "
                                 "try tubectl --help"),
                (("hlp",), "there is no subcommand hlp (did you mean help?); try tubectl --help"),
                (("nonsense",), "there is no subcommand nonsense; try tubectl --help"),
                (("put", "--dleay=3", "x"),
                 "there is no option --dleay (did you mean --delay?); try tubectl put --help"),
                (("stats", "--nonsense"), "there is no option --nonsense; try tubectl stats --help"),
                (("work", "--retrise", "3", "--", "true"),
                 "there is no option --retrise (did you mean --retries?); try tubectl work --help"),
                ((), "a subcommand is missing; try tubectl --help")):
            self.assertEqual(self.said(*words), said)

    def test_an_option_of_the_command_that_work_runs(self):
        for words, said in (
                (("-t", "w", "wc", "-c"), "there is no option -c; for an option of wc, write -- "
                                          "before it: -- wc -c"),
                (("wc", "--retrise", "3"),
                 "there is no option --retrise (did you mean --retries?); for an option of wc, write "
                 "-- before it: -- wc --retrise"),
                (("-x", "wc", "-c"), "there is no option -x")):
            self.assertEqual(self.said("work", *words), f"{said}; try tubectl work --help")

    def test_a_tube_where_an_id_is_meant(self):
        for words in (("delete", "mail"), ("job", "mail"), ("bury", "3", "mail"),
                      ("reprioritize", "0", "mail")):
            self.assertEqual(self.said(*words),
                             'ID: "mail" is not a job\'s id; the jobs of a tube: tubectl list mail; '
                             f"try tubectl {words[0]} --help")
        self.assertEqual(self.said("peek", "mail"), '"mail" is not a job\'s id; the next job of a '
                                                    "tube: tubectl peek --ready mail")
        self.assertEqual(self.said("kick", "3", "mail"), '"mail" is not a job\'s id; a tube is the '
                                                         "first word: tubectl kick mail N")
        self.assertEqual(self.said("job", "a b"),
                         'ID: "a b" is not a job\'s id; try tubectl job --help')

    def test_an_id_where_a_tube_is_meant(self):
        server = self.tubed()
        said = "tubectl: there is no tube 3; the job with this id: tubectl job 3\n"
        for words in (("stats", 3), ("pause", 3, 5), ("tubes", "--interval", 0, 3),
                      ("clear", "--yes", 3), ("move", 3, "mail")):
            self.assertEqual(self.refused(FAILURE, server, *words), said)
        self.assertEqual(self.refused(FAILURE, server, "stats", "none"),
                         "tubectl: there is no tube none\n")

    def test_the_help_fits_into_80_columns(self):
        for name in ("", *subcommands()):
            text = self.tubectl(NOWHERE, *name.split(), "--help")
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, f"{name}: {line}")
            self.assertNotRegex(text, r"\b([A-Z]{2,}) \1\b")
        for name, lines in (("kick", ["[OPTIONS] ID...", "[OPTIONS] TUBE N | TUBE --all"]),
                            ("work", ["[OPTIONS] -- COMMAND [ARGUMENT...]"]),
                            ("clear", ["[OPTIONS] TUBE..."]), ("put", ["[OPTIONS] [BODY]"])):
            usage = self.tubectl(NOWHERE, name, "--help").split("\n\n")[1]
            self.assertEqual(usage.splitlines(),
                             [("       " if i else "Usage: ") + f"tubectl {name} {line}"
                              for i, line in enumerate(lines)])

    def test_help_and_version(self):
        version = self.tubectl(NOWHERE, "--version")
        self.assertRegex(version, r"^tubectl \d+\.\d+\.\d+\n$")
        for word in ("version", "-v", "-V"):
            self.assertEqual(self.tubectl(NOWHERE, word), version)
        self.assertEqual(self.tubectl(NOWHERE, "help"), self.tubectl(NOWHERE, "--help"))
        self.assertEqual(self.tubectl(NOWHERE, "help", "put"),
                         self.tubectl(NOWHERE, "put", "--help"))
        self.assertIn("no subcommand putt (did you mean put?)", self.said("help", "putt"))

    def test_a_mistake_before_the_subcommand(self):
        for words, said in (
                (("--nonsense",), "there is no option --nonsense; try tubectl --help"),
                (("--vresion",), "there is no option --vresion (did you mean --version?); "
                                 "try tubectl --help"),
                (("--json", "put", "x"), "there is no option --json; try tubectl put --help"),
                (("-s",), "--server: 1 required ADDRESS missing; try tubectl --help"),
                (("--max-reply", "stats"), '--max-reply: "stats" is not a size in bytes from 0 to '
                                           "2147483648, as 65535, 64KiB or 1GiB; try tubectl --help"),
                (("-s", "x"), "a subcommand is missing; try tubectl --help"),
                (("--tls=maybe", "stats"),
                 '--tls: "maybe" is not true or false; try tubectl stats --help'),
                (("--", "put", "--nonsense"),
                 "there is no option --nonsense; try tubectl put --help")):
            self.assertEqual(self.said(*words), said)
        for words in (("--help", "put"), ("put", "--help", "--nonsense"), ("put", "-p", "x", "-h")):
            self.assertEqual(self.tubectl(NOWHERE, *words), self.tubectl(NOWHERE, "help", "put"))

    def test_a_wrong_environment_is_a_mistake_where_it_is_used(self):
        wrong = {"TUBED_SERVER": "127.0.0.1:x", "TUBED_ADMIN": "127.0.0.1:1"}
        server = self.tubed()
        for words in (("--help",), ("put", "--help"), ("cluster", "--help"),
                      ("tubes", "--names", "-s", server), ("-s", server, "tubes", "--names")):
            code, _, errors = self.run_tubectl(NOWHERE, *words, environment=wrong)
            self.assertEqual((code, errors), (DONE, ""), words)
        for words, option in ((("stats",), "--server"), (("wait-cluster",), "--admin")):
            code, _, errors = self.run_tubectl(NOWHERE, *words, environment=wrong)
            self.assertEqual(code, USAGE)
            self.assertTrue(errors.startswith(f"tubectl: {option}: "), errors)

    def test_an_address_before_the_subcommand(self):
        server = self.tubed()
        for words in (("-s", server), (f"-s{server}",), ("--server", server),
                      (f"--server={server}",), ("--max-reply", "1MiB", "-s", server)):
            self.assertEqual(self.tubectl(NOWHERE, *words, "tubes", "--names"), "default\n")
        self.assertEqual(self.tubectl(NOWHERE, "-s", server, "help", "put"),
                         self.tubectl(NOWHERE, "put", "--help"))
        self.assertIn("not a port", self.said("-s", "127.0.0.1:x", "stats"))

    def test_arguments_that_are_too_many_keep_their_order(self):
        self.assertEqual(self.said("put", "a", "b", "c", "d"),
                         "there are arguments too many: b c d; try tubectl put --help")
        self.assertEqual(self.said("drain", "now"),
                         "there is an argument too many: now; try tubectl drain --help")

    def test_what_is_missing_has_the_name_of_the_help(self):
        for words, name in ((("job",), "ID"), (("clear",), "TUBE"), (("move", "a"), "TO"),
                            (("bench",), "WORKLOAD"), (("work",), "COMMAND"), (("pause",), "TUBE")):
            self.assertEqual(self.said(*words), f"{name} is missing; try tubectl {words[0]} --help")

    def test_numbers_that_are_out_of_range(self):
        for words, said in (
                (("move", "a", "b", "--count", "0"), '--count: "0" is not a whole number from 1 on'),
                (("put", "-p", "4294967296", "x"),
                 '--priority: "4294967296" is not a whole number from 0 to 4294967295'),
                (("put", "-d", "4294967296", "x"), f'--delay: "4294967296" is not {TIMES_RANGE}'),
                (("put", "-d", "4294967295001ms", "x"),
                 f'--delay: "4294967295001ms" is not {TIMES_RANGE}'),
                (("put", "--ttr", "1.5", "x"), f'--ttr: "1.5" is not {TIMES_RANGE}'),
                (("put", "--ttl", "1.5", "x"), f'--ttl: "1.5" is not {SECONDS_RANGE}'),
                (("pause", "mail", "5y"), f'TIME: "5y" is not {TIMES_RANGE}'),
                (("work", "-j", "0", "--", "true"),
                 '--parallel: "0" is not a whole number from 1 to 1000'),
                (("top", "--interval", "50ms"), '--interval: "50ms" is not a time in seconds from '
                                                "0.1 to 3600, as 90, 0.5, 50ms, 5m or 2h"),
                (("wait-idle", "--timeout", "1e9"), '--timeout: "1e9" is not a time in seconds from '
                                                    "0 to 10000000, as 90, 0.5, 50ms, 5m or 2h"),
                (("bench", "put", "--body", "2GiB"), '--body: "2GiB" is not a size in bytes from 0 '
                                                     "to 1073741824, as 65535, 64KiB or 1GiB"),
                (("import", "--skip", "99999999999999999999"),
                 '--skip: "99999999999999999999" is not a whole number from 0 on')):
            with self.subTest(words=words):
                self.assertEqual(self.said(*words), f"{said}; try tubectl {words[0]} --help")

    def test_times_with_units(self):
        server = self.tubed()
        client = self.client(server)
        for text, seconds in (("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86400),
                              ("4294967295s", 4294967295)):
            job = self.tubectl(server, "put", "--delay", text, "--ttr", text, "x").strip()
            stats = client.stats(f"stats-job {job}")
            self.assertEqual((stats["delay"], stats["ttr"]), (seconds, seconds))
        self.tubectl(server, "pause", "default", "10m")
        self.assertEqual(client.stats("stats-tube default")["pause"], 600)
        self.assertEqual(self.tubectl(server, "clear", "--yes", "--older-than", "1d", "default"),
                         "default: deleted no jobs\n")
        for text in ("10ms", "0.01s", "0.01"):
            self.tubectl(server, "tubes", "--interval", text)

    def test_times_in_milliseconds(self):
        server = self.tubed()
        client = self.client(server)
        self.tubectl(server, "put", "--delay", "500ms", "--ttr", "1500ms", "x")
        stats = client.stats("stats-job 1")
        self.assertEqual((stats["delay"], stats["ttr"]), (1, 2))  # rounded up
        self.tubectl(server, "put", "--delay", "90500ms", "x")
        self.tubectl(server, "kick", "--delay", "600250ms", 2)
        self.assertEqual(client.stats("stats-job 2")["delay"], 601)
        self.tubectl(server, "release", "--delay", "700250ms", 2)
        self.assertEqual(client.stats("stats-job 2")["delay"], 701)
        self.tubectl(server, "kick", 2)
        self.tubectl(server, "reserve", "--timeout", 5, "--release", "--delay", "800250ms")
        jobs = [client.stats(f"stats-job {job}") for job in (1, 2)]
        self.assertIn(801, [job["delay"] for job in jobs])
        self.tubectl(server, "pause", "default", "900250ms")
        self.assertEqual(client.stats("stats-tube default")["pause"], 901)

    def test_times_in_milliseconds_are_sent_to_a_server_that_takes_them(self):
        capabilities = b"OK 14\r\n---\n- time:ms\n\r\n"
        reserved = b"RESERVED 5 1\r\na\r\n"
        stats = b"OK 7\r\npri: 3\n\r\n"
        old = "tubectl: {}: the server does not know times in milliseconds\n"
        for words, answers, commands in (
                (("put", "-d", "1ms", "--ttr", "1500ms", "-t", "t", "x"),
                 (b"USING t\r\n", b"INSERTED 1\r\n"), ("use t", "put 1024 1ms 1500ms 1")),
                (("put", "-d", "250ms", "x"), (b"INSERTED 1\r\n",), ("put 1024 250ms 60 1",)),
                (("pause", "t", "300ms"), (b"PAUSED\r\n",), ("pause-tube t 300ms",)),
                (("release", 5, "-d", "1001ms"), (reserved, stats, b"RELEASED\r\n"),
                 ("reserve-job 5", "stats-job 5", "release 5 3 1001ms")),
                (("reserve", "--release", "-p", 3, "-d", "250ms"), (reserved, b"RELEASED\r\n"),
                 ("reserve", "release 5 3 250ms"))):
            with self.subTest(words=words):
                server = ScriptedServer([capabilities, *answers])
                self.addCleanup(server.close)
                self.tubectl(server.address, *words)
                self.assertEqual(server.commands, ["capabilities", *commands])
                # Without the capability no command is sent.
                server = ScriptedServer([b"UNKNOWN_COMMAND\r\n"])
                self.addCleanup(server.close)
                self.assertEqual(self.refused(FAILURE, server.address, *words),
                                 old.format(words[0]))
                self.assertEqual(server.commands, ["capabilities"])
        without = self.without(self.tubed(), b"time:ms")
        for server in (without, self.beanstalkd()):
            self.assertEqual(self.refused(FAILURE, server, "kick", "-d", "250ms", 5),
                             old.format("kick"))
            self.assertEqual(self.refused(FAILURE, server, "put", "--lines", "-d", "5ms",
                                          stdin=b"put 0 0 9 1\n"), old.format("put"))
            self.assertEqual(self.client(server).stats()["total-jobs"], 0)

    def test_whole_seconds_are_sent_as_before(self):
        for text, sent in (("0ms", 0), ("1000ms", 1), ("60000ms", 60), ("4294967295000ms", 2**32-1),
                           ("0", 0), ("2m", 120)):
            server = ScriptedServer([b"INSERTED 1\r\n"])
            self.addCleanup(server.close)
            self.tubectl(server.address, "put", "-d", text, "--ttr", text, "x")
            self.assertEqual(server.commands, [f"put 1024 {sent} {sent} 1"])

    def test_a_tube_is_an_option_or_a_word(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("watch mail")
            client.ask("use mail")
            client.put(b"hello")
            for subcommand in (("tubes", "--interval", 0), ("stats",), ("wait-idle", "--held"),
                               ("export",), ("peek", "--ready")):
                with self.subTest(subcommand=subcommand):
                    said = ageless(self.tubectl(server, *subcommand, "mail"))
                    for option in (("-t", "mail"), ("--tube=mail",)):
                        same = ageless(self.tubectl(server, *subcommand, *option))
                        if subcommand[0] != "stats":  # the server counts these connections
                            self.assertEqual(same, said)
            for arguments in (("mail", "1m"), ("-t", "mail", "1m"), ("--end", "-t", "mail")):
                self.tubectl(server, "pause", *arguments)
            self.assertEqual(self.tubectl(server, "reserve", "--timeout", 0, "--bury", "mail"),
                             "hello")
            self.assertEqual(self.tubectl(server, "kick", "mail", 1), "1\n")
            self.assertEqual(self.tubectl(server, "clear", "--yes", "-t", "mail"),
                             "mail: deleted 1 ready\n")

    def test_a_reply_that_is_too_large(self):
        """The reply is refused before any of it is stored."""
        for size, limit, arguments in ((256 * 2**20 + 1, 256 * 2**20, ()), (11, 10, ("10",))):
            server = ScriptedServer([b"OK %d\r\n" % size])
            self.addCleanup(server.close)
            options = [word for limit_text in arguments for word in ("--max-reply", limit_text)]
            self.assertEqual(self.refused(UNAVAILABLE, server.address, "stats", *options),
                             f"tubectl: the server announces a reply of {size} bytes; --max-reply "
                             f"is {limit}\n")
        server = self.tubed()
        self.assertEqual(self.tubectl(server, "put", "x" * 2000), "1\n")
        self.assertIn("a reply of 2000 bytes",
                      self.refused(UNAVAILABLE, server, "peek", 1, "--max-reply", "1KiB"))
        self.assertEqual(self.run_tubectl(server, "peek", 1, "--max-reply", "2KiB")[0], DONE)
        self.assertIn("NOT_FOUND", self.refused(FAILURE, server, "peek", 2, "--max-reply", "0"))


if __name__ == "__main__":
    unittest.main()
