"""Policies of tubes on the real daemon.

The tests cover policies after a restart of a server with a journal, a reload of the [[policy]]
tables of the settings file, the check of such a file, and the metrics. tests/wire has the rules.
"""

import re
import signal
import shutil
import unittest
import urllib.request

from harness import DaemonTest, run, until
from journal_restart_test import Journaled, quoted

CONFIG = 78
POLICY_OF_MAIL = """
[[policy]]
tubes = "mail.*"
max-attempts = 2
dead = "mail.dead"
"""


def policy(client, tube):
    """Returns the values of a tube's policy that are not defaults, with their origins."""
    lines = client.stats(f"tube-policy {tube}")
    return {key: (quoted(value), lines[f"{key}-from"]) for key, value in lines.items()
            if not key.endswith("-from") and lines[f"{key}-from"] != "default"}


def try_once(client, job_id):
    """Reserves the job and releases it."""
    client.reserve(f"reserve-job {job_id}")
    assert client.ask(f"release {job_id} 0 0") == "RELEASED"


def put(client, tube, tags="", delay=0, ttr=100):
    client.send(f"put-in-tube {tube} 0 {delay} {ttr} 1{tags and ' ' + tags}\r\nx\r\n".encode())
    word, job_id = client.line().split()
    assert word == "INSERTED", word
    return int(job_id)


class Survives(Journaled):
    def both_ways(self, prepare, check, *flags):
        """Calls prepare(client) before a restart and check(client, result of prepare) after it, for
        a stop and for a kill."""
        for how in ("stop", "kill"):
            with self.subTest(how=how):
                shutil.rmtree(self.journal)
                self.journal.mkdir()
                daemon, client = self.serve(*flags)
                prepared = prepare(client)
                for _ in range(2):  # the second restart reads the records of the first
                    daemon, client = self.restart(daemon, *flags, how=how)
                    check(client, prepared)
                self.end(daemon)

    def test_policies_that_clients_have_set(self):
        def prepare(client):
            for setting in ("a max-attempts 5", "a backoff 10:20:3", "a ttl 50", "a ttl -",
                            "b keep 0", "c keep 1", "c keep -", "a max-attempts 6"):
                self.assertEqual(client.ask(f"tube-policy {setting}"), "POLICY_SET")

        def check(client, _):
            self.assertEqual(policy(client, "a"), {"max-attempts": (6, "wire"),
                                                   "backoff": ("10:20:3", "wire")})
            self.assertEqual(policy(client, "b"), {"keep": (0, "wire")})
            self.assertEqual(policy(client, "c"), {})
        self.both_ways(prepare, check)

    def test_a_ttl_of_the_file_counts_for_recovered_jobs(self):
        daemon, client = self.serve()
        put(client, "t")
        config = self.write_config('[[policy]]\ntubes = "*"\nttl = 1\nexpired = "bury"\n')
        daemon, client = self.restart(daemon, "--config", config)
        until("the job to expire", lambda: client.stats()["current-jobs-buried"] == 1)
        # The outcome is durable; the policies of the file are not.
        daemon, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats("stats-job 1")["dead-reason"], "expired")
        self.assertEqual(policy(client, "t"), {})

class Reload(DaemonTest):
    def reload(self, daemon, text, count, line=" info reloaded"):
        self.write_config(text)
        daemon.signal(signal.SIGHUP)
        return daemon.wait_for_line(line, count)

    def test_the_policies_of_the_file_change(self):
        daemon = self.start("--config", self.write_config(POLICY_OF_MAIL))
        client = self.connect(daemon)
        in_force = {"max-attempts": (2, "file"), "dead": ("mail.dead", "file")}
        self.assertEqual(policy(client, "mail.a"), in_force)
        self.assertEqual(policy(client, "other"), {})
        client.ask("tube-policy mail.a max-attempts 3")
        self.assertEqual(policy(client, "mail.a"), in_force | {"max-attempts": (3, "wire")})
        client.ask("tube-policy mail.a max-attempts -")
        self.assertEqual(policy(client, "mail.a"), in_force)

        line = self.reload(daemon, '[[policy]]\ntubes = "*"\nmax-reserved = 1\n', 1)
        self.assertIn("changed=policy", line)
        self.assertEqual(policy(client, "mail.a"), {"max-reserved": (1, "file")})
        first, second = put(client, "t"), put(client, "t")
        client.ask("watch t")
        self.assertEqual(client.reserve()[0], first)
        client.send(b"reserve\r\n")
        # A waiting client gets the job when the reload allows it.
        line = self.reload(daemon, "", 2)
        self.assertIn("changed=policy", line)
        self.assertEqual(client.body()[0], ["RESERVED", str(second), "1"])
        # Nothing has changed.
        self.assertNotIn("policy", self.reload(daemon, "# none\n", 3))

    def test_a_bad_policy_changes_nothing(self):
        daemon = self.start("--config", self.write_config(POLICY_OF_MAIL))
        client = self.connect(daemon)
        line = self.reload(daemon, POLICY_OF_MAIL + "ttl = 5s\n", 1, "not reloaded")
        line = self.reload(daemon, POLICY_OF_MAIL + 'rate = "5"\n', 2, "not reloaded")
        self.assertIn("tubed.toml:6: policy.rate", line)
        self.assertEqual(policy(client, "mail.a"), {"max-attempts": (2, "file"),
                                                    "dead": ("mail.dead", "file")})


class Check(DaemonTest):
    def test_a_good_file(self):
        config = self.write_config(POLICY_OF_MAIL)
        self.assertEqual(run("--config", config, "--check-config"), (0, "", ""))
        code, printed, errors = run("--config", config, "--print-config")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(POLICY_OF_MAIL, re.sub(r"  # .*", "", printed))

    def test_a_bad_file(self):
        for line, fault in (("max-jobs = -1", "policy.max-jobs: \"-1\" is not: integer"),
                            ("max-atempts = 1", "policy.max-atempts: unknown key; did you mean "
                                                "policy.max-attempts?"),
                            ('tubes = "mail.*"', "not TOML")):
            with self.subTest(line=line):
                config = self.write_config(POLICY_OF_MAIL + line + "\n")
                for flags in (("--check-config",), ()):
                    code, out, errors = run("--config", config, *flags)
                    self.assertEqual((code, out), (CONFIG, ""))
                    self.assertIn(f"tubed: {config}:6: {fault}", errors)


class Metrics(DaemonTest):
    def test_what_policies_did_is_counted(self):
        daemon = self.start("--http-listen", "127.0.0.1:0")
        client = self.connect(daemon)
        for setting in ("t max-attempts 1", "t max-jobs 2", "t rate 1/1000"):
            self.assertEqual(client.ask(f"tube-policy {setting}"), "POLICY_SET")
        job_id = put(client, "t")
        put(client, "t", "ttl:1")
        client.send(b"put-in-tube t 0 0 1 1\r\nx\r\n")
        self.assertEqual(client.line(), "OUT_OF_MEMORY")
        try_once(client, job_id)
        until("the job to expire", lambda: client.stats()["expired-jobs"] == 1)
        self.assertEqual(client.stats()["dead-jobs"], 1)
        self.assertEqual(client.stats()["cmd-tube-policy"], 3)
        with urllib.request.urlopen(f"http://{daemon.http_addresses[0]}/metrics") as reply:
            page = reply.read().decode().splitlines()
        for line in ("tubed_dead_jobs_total 1", "tubed_expired_jobs_total 1",
                     'tubed_tube_dead_jobs_total{tube="t"} 1',
                     'tubed_tube_expired_jobs_total{tube="t"} 1',
                     'tubed_tube_rate_limited_total{tube="t"} 1',
                     'tubed_refused_puts_total{reason="tube_full"} 1',
                     'tubed_refused_tubes_total{command="tube-policy"} 0'):
            self.assertIn(line, page)


if __name__ == "__main__":
    unittest.main()
