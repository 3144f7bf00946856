"""Policies of tubes on the real daemon.

The tests cover what survives a restart of a server with a journal, a reload of the [[policy]] tables
of the settings file, the check of such a file, and the metrics. tests/wire has the rules.
"""

import os
import signal
import shutil
import unittest
import urllib.request

from harness import DaemonTest, Elapsed, preloaded, run, until
from journal_restart_test import Journaled, quoted

CONFIG = 78
POLICY_OF_MAIL = """
[[policy]]
tubes = "mail.*"
max-attempts = 2
dead = "mail.dead"
"""


def policy(client, tube):
    """The values of a tube's policy that are not defaults, with their origins."""
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

    def test_marks_and_the_number_of_attempts(self):
        def prepare(client):
            client.ask("tube-policy t max-attempts 2")
            client.ask("tube-policy t dead d")
            once, dead, kicked = put(client, "t"), put(client, "t"), put(client, "t")
            try_once(client, once)
            for _ in range(2):
                try_once(client, dead)
            client.ask("tube-policy t dead bury")
            for _ in range(2):
                try_once(client, kicked)
            client.ask(f"kick-job {kicked}")
            client.ask("tube-policy t dead d")
            buried = put(client, "u", "max:1")
            try_once(client, buried)
            return once, dead, kicked, buried

        def check(client, jobs):
            once, dead, kicked, buried = (client.stats(f"stats-job {job_id}") for job_id in jobs)
            self.assertEqual((quoted(dead["tube"]), quoted(dead["dead-from"]), dead["dead-reason"],
                              dead["state"], dead["reserves"]), ("d", "t", "attempts", "ready", 2))
            self.assertEqual((quoted(buried["dead-from"]), buried["state"], buried["max-attempts"]),
                             ("u", "buried", 1))
            self.assertEqual((once["state"], once["reserves"]), ("ready", 1))
            self.assertEqual((kicked["state"], kicked["reserves"], kicked["kicks"]),
                             ("ready", 2, 1))
            self.assertNotIn("dead-from", kicked)
        self.both_ways(prepare, check)

        # One attempt of `once` is left, two of `kicked`, and none that counts of `dead`.
        _, client = self.serve()
        try_once(client, 1)
        self.assertEqual(quoted(client.stats("stats-job 1")["dead-from"]), "t")
        try_once(client, 3)
        self.assertEqual(quoted(client.stats("stats-job 3")["tube"]), "t")
        try_once(client, 3)
        self.assertEqual(quoted(client.stats("stats-job 3")["tube"]), "d")
        client.ask("tube-policy d max-attempts 2")
        try_once(client, 2)
        self.assertEqual(client.stats("stats-job 2")["state"], "ready")
        try_once(client, 2)
        self.assertEqual(client.stats("stats-job 2")["state"], "buried")

    def test_a_reservation_that_a_kill_ends_is_no_attempt(self):
        daemon, client = self.serve()
        client.ask("tube-policy t max-attempts 2")
        job_id = put(client, "t")
        for _ in range(3):
            client.reserve(f"reserve-job {job_id}")
            daemon, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats(f"stats-job {job_id}")["reserves"], 0)
        for state in ("ready", "buried"):
            try_once(client, job_id)
            self.assertEqual(client.stats(f"stats-job {job_id}")["state"], state)

    def test_a_backoff_goes_on(self):
        def prepare(client):
            client.ask("tube-policy t backoff 10000")
            job_id = put(client, "t")
            with Elapsed() as began:
                try_once(client, job_id)
            return began, job_id, client.stats(f"stats-job {job_id}")["delay"]

        def check(client, prepared):
            began, job_id, delay = prepared
            stats = client.stats(f"stats-job {job_id}")
            self.assertEqual((stats["state"], stats["delay"]), ("delayed", delay))
            self.assertTrue(8800 <= delay <= 11200, delay)
            began.check_left(self, delay, lambda: client.stats(f"stats-job {job_id}")["time-left"])
        self.both_ways(prepare, check)

    def test_jobs_expire_by_their_age_also_while_no_server_runs(self):
        clock = self.directory / "clock"
        clock.mkdir()
        os.mkfifo(clock / "steps")
        self.environment = preloaded("stepped_clock", self.directory) | {
            "TUBED_CLOCK_DIRECTORY": str(clock)}
        daemon, client = self.serve()
        client.ask("tube-policy t ttl 5000")
        jobs = [put(client, "t"), put(client, "u", "ttl:5000"), put(client, "t", "ttl:0"),
                put(client, "t", "ttl:1000000")]
        daemon, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats()["current-jobs-ready"], 4)
        daemon.kill()
        (clock / "offset").write_text("5000", encoding="utf-8")
        _, client = self.serve()
        until("the jobs to expire", lambda: client.stats()["expired-jobs"] == 2)
        self.assertEqual([client.ask(f"kick-job {job_id}") for job_id in jobs],
                         ["NOT_FOUND"] * 4)
        self.assertEqual(client.stats()["current-jobs-ready"], 2)
        self.assertEqual(client.stats(f"stats-job {jobs[2]}")["ttl"], 0)
        self.assertEqual(client.stats(f"stats-job {jobs[3]}")["ttl"], 1_000_000)

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

    def test_the_statistics_of_a_kept_tube_begin_again(self):
        daemon, client = self.serve()
        client.ask("tube-policy t keep 1")
        client.ask(f"delete {put(client, 't')}")
        self.assertEqual(client.stats("stats-tube t")["total-jobs"], 1)
        _, client = self.restart(daemon)
        client.ask(f"delete {put(client, 't')}")
        self.assertEqual(client.stats("stats-tube t")["total-jobs"], 1)


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
        # A client that waits gets the job when the reload allows it.
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
        self.assertIn(POLICY_OF_MAIL, printed)

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
