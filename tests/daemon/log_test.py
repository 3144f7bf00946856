"""The formats and levels of the log, and the data of clients, which is never logged."""

import json
import os
import re
import signal
import subprocess
import unittest

from harness import PROGRAM, SECONDS, DaemonTest, until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Logs(DaemonTest):
    def provoke(self, daemon):
        """Makes the daemon log events of many kinds and ends it; returns its lines."""
        clients = [self.connect(daemon) for _ in range(3)]
        for client in clients:
            client.ask("list-tube-used")
        self.assertEqual(self.connect(daemon).rest(), b"OUT_OF_MEMORY\r\n")
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            daemon.signal(number)
        daemon.wait_for_line("reloaded")
        for client in clients:
            client.close()
        self.assertEqual(daemon.end(), 0)
        return daemon.lines

    def start_logging(self, *flags, **options):
        return self.start("--log-level", "debug", "--limits-connections", "3", "-c", *flags,
                          **options)

    def check_prefixes(self, lines):
        priorities = {re.match(r"<(\d)>\S", line)[1] for line in lines}
        self.assertEqual(priorities, {"4", "6", "7"})
        for line in lines:
            self.assertNotRegex(line, TIME)

    def test_text(self):
        lines = self.provoke(self.start_logging())
        for line in lines:
            self.assertRegex(line, rf'^{TIME} (warning|info|debug) [a-z-].*$')
        events = [line for line in lines if " info listening address=127.0.0.1:" in line]
        self.assertEqual(len(events), 1)

    def test_json(self):
        lines = self.provoke(self.start_logging("--log-format", "json"))
        events = [json.loads(line) for line in lines]
        for event in events:
            self.assertRegex(event["time"], rf"^{TIME}$")
            self.assertIn(event["level"], ("warning", "info", "debug"))
        names = [event["event"] for event in events]
        for name in ("listening", "connected", "closed", "connection refused", "draining",
                     "not draining", "reloaded", "stopping", "stopped"):
            self.assertIn(name, names)
        refused = events[names.index("connection refused")]
        self.assertEqual(refused["limits.connections"], 3)

    def test_a_server_without_a_journal(self):
        for flags, kept in (((), False), (("-b", str(self.directory)), True)):
            daemon = self.start(*flags)
            self.connect(daemon).put()
            self.assertEqual(daemon.end(), 0)
            self.assertEqual(len(daemon.lines_with(" info memory only ")), 0 if kept else 1)
            self.assertEqual(len(daemon.lines_with(" warning jobs are lost jobs=1 ")),
                             0 if kept else 1)

    def test_json_of_a_bad_file_name(self):
        config = self.directory / 'a "quoted"\n\ttubed.toml'
        config.write_text("[limits]\n", encoding="utf-8")
        daemon = self.start("--log-format", "json", "--config", str(config))
        config.write_bytes(b"[limits]\njob_bytes = \"\xff\x01\"\n")
        daemon.signal(signal.SIGHUP)
        line = daemon.wait_for_line("not reloaded")
        self.assertIn("tubed.toml", json.loads(line)["reason"])

    def test_journald(self):
        self.check_prefixes(self.provoke(self.start_logging("--log-format", "journald")))

    def test_automatic_on_the_journal(self):
        daemon = self.start_logging(environment={"JOURNAL_STREAM": "STDERR"})
        self.check_prefixes(self.provoke(daemon))

    def test_a_failed_start_is_an_error_in_the_journal(self):
        for flags, expected in ((("-b", str(self.directory / "none")), 73), (("--none",), 64),
                                (("-z", "none"), 78)):
            code, lines = self.start_refused(*flags)
            self.assertEqual(code, expected, lines)
            self.assertRegex(lines[-1], "^<3>tubed: .*none")

    def start_refused(self, *flags):
        """Starts a daemon that exits before it serves, with the journal of systemd on its stderr.
        Returns (exit code, lines)."""
        read_end, write_end = os.pipe()
        status = os.fstat(write_end)
        done = subprocess.run(
            [PROGRAM, "--listen", "127.0.0.1:0", *flags], stdin=subprocess.DEVNULL,
            stderr=write_end, timeout=SECONDS, check=False,
            env=os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        os.close(write_end)
        with os.fdopen(read_end, encoding="utf-8") as stream:
            return done.returncode, stream.read().splitlines()

    def test_automatic_on_something_else(self):
        daemon = self.start_logging(environment={"JOURNAL_STREAM": "1:1"})
        for line in self.provoke(daemon):
            self.assertRegex(line, rf"^{TIME} ")

    def test_text_on_the_journal_by_flag(self):
        daemon = self.start_logging("--log-format", "text",
                                    environment={"JOURNAL_STREAM": "STDERR"})
        for line in self.provoke(daemon):
            self.assertRegex(line, rf"^{TIME} ")

    def test_levels(self):
        for level, expected in (("error", set()), ("warning", {"warning"}),
                                ("info", {"warning", "info"})):
            # At some levels the daemon does not log its address, so the test chooses it.
            path = self.directory / "socket"
            daemon = self.start("--log-level", level, "-c", listen=f"unix:{path}", listeners=0)
            daemon.addresses = [f"unix:{path}"]
            until("the daemon to listen", path.exists)
            until("the daemon to serve", lambda: self.serves(daemon))
            self.assertEqual(daemon.end(), 0)
            self.assertEqual({line.split()[1] for line in daemon.lines}, expected)

    def serves(self, daemon):
        try:
            return self.connect(daemon).ask("list-tube-used") == "USING default"
        except ConnectionRefusedError:
            return False

    def test_no_body_and_no_command_is_ever_logged(self):
        secret = b"correct-horse-battery-staple"
        daemon = self.start("--log-level", "debug", "-z", "100")
        client = self.connect(daemon)
        for _ in range(3):
            client.put(secret)
        job, _ = client.reserve()
        client.ask(f"bury {job} 0")
        client.ask(f"kick-job {job}")
        client.send(b"put 0 0 10 28\r\n" + secret + b"no end\r\n")
        self.assertEqual(client.line(), "EXPECTED_CRLF")
        client.send(b"put 0 0 10 101\r\n" + (secret * 4)[:101] + b"\r\n")
        self.assertEqual(client.line(), "JOB_TOO_BIG")
        client.send(b"put 0 0 junk 28\r\n" + secret + b"\r\n")
        self.assertEqual(client.line(), "BAD_FORMAT")
        self.assertEqual(client.ask(secret.decode()), "UNKNOWN_COMMAND")
        self.assertEqual(client.ask(f"use {secret.decode()}"), f"USING {secret.decode()}")
        daemon.signal(signal.SIGUSR1)
        daemon.wait_for_line("draining")
        client.send(b"put 0 0 10 28\r\n" + secret + b"\r\n")
        self.assertEqual(client.line(), "DRAINING")
        client.send(b"put 0 0 10 28\r\n" + secret[:10])
        client.reset()
        self.assertEqual(daemon.end(), 0)
        self.assertGreater(len(daemon.lines), 4)
        for line in daemon.lines:
            self.assertNotIn("horse", line)


if __name__ == "__main__":
    unittest.main()
