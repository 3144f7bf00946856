"""flush-tube on the real daemon, across a restart. That other clients are served while the jobs are
removed is tested by slices_test.py."""

import unittest

from harness import DaemonTest, until


class Flush(DaemonTest):
    def journal(self):
        directory = self.directory / "journal"
        directory.mkdir()
        return str(directory)

    def test_unique_keys_survive_a_restart(self):
        journal = self.journal()
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        tags = {"live": "idp:live", "cooling": "idp:cooling:1000", "flushed": "idp:flushed:1000"}
        for key, tag in tags.items():
            tube = "flushed" if key == "flushed" else "work"
            client.send(b"put-in-tube %s 0 0 60 1 %s\r\nx\r\n" % (tube.encode(), tag.encode()))
            client.line()
        for job in (2, 3):
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        self.assertEqual(client.ask("flush-tube flushed"), "FLUSHED 0")
        daemon.expected_code = -9
        daemon.kill()
        client = self.connect(self.start("-b", journal))

        def put(key, tube):
            client.send(b"put-in-tube %s 0 0 60 1 %s\r\ny\r\n" % (tube, tags[key].encode()))
            return client.line()
        self.assertEqual(put("live", b"work"), "INSERTED 1 READY")
        self.assertEqual(put("cooling", b"work"), "INSERTED 2 DELETED")
        self.assertEqual(put("flushed", b"flushed").count(" "), 1)

    def put(self, client, tube, tags):
        client.send(b"put-in-tube %s 0 0 60 1 %s\r\nx\r\n" % (tube.encode(), tags.encode()))
        return int(client.line().split()[1])

    def test_keys_and_groups_survive_a_restart(self):
        journal = self.journal()
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        first, second = (self.put(client, "keyed", "con:k") for _ in range(2))
        member = self.put(client, "members", "grp:g")
        held = self.put(client, "waits", "aft:g")
        daemon.expected_code = -9
        daemon.kill()
        client = self.connect(self.start("-b", journal))
        client.ask("watch keyed")
        self.assertEqual(client.reserve()[0], first)
        self.assertEqual(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
        self.assertEqual(client.ask(f"reserve-job {second}"), "NOT_FOUND")
        self.assertEqual(client.stats()["current-jobs-held"], 1)
        self.assertEqual(client.ask(f"delete {member}"), "DELETED")
        client.ask("watch waits")
        self.assertEqual(client.reserve()[0], held)

    def test_truncated_jobs_are_gone_after_a_restart(self):
        journal = self.journal()
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        truncated = self.put(client, "t", "con:k grp:g")
        held = self.put(client, "waits", "aft:g")
        client.ask("watch t")
        self.assertEqual(client.reserve()[0], truncated)
        self.assertEqual(client.ask("truncate t"), "TRUNCATED 0")
        client.ask("use waits")
        self.assertEqual(client.ask("peek-ready"), f"FOUND {held} 1")
        self.assertEqual(client.line(), "x")
        daemon.expected_code = -9
        daemon.kill()
        client = self.connect(self.start("-b", journal))
        self.assertEqual(client.ask(f"delete {truncated}"), "NOT_FOUND")
        self.assertEqual(client.ask("stats-tube t"), "NOT_FOUND")
        another = self.put(client, "t", "con:k")
        client.ask("watch t")
        client.ask("watch waits")
        self.assertEqual({client.reserve()[0], client.reserve()[0]}, {held, another})

    def test_what_a_crash_has_left_is_removed_after_the_restart(self):
        journal = self.journal()
        jobs = 50_000
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        client.ask("use work")
        client.put_many(jobs)
        self.assertEqual(client.ask("flush-tube work"), f"FLUSHED {jobs}")
        daemon.expected_code = -9
        daemon.kill()
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        self.assertEqual(client.ask("stats-tube work"), "NOT_FOUND")
        self.assertEqual(client.ask(f"peek {jobs}"), "NOT_FOUND")
        self.assertEqual(client.stats()["current-jobs-ready"], 0)
        until("the flushed jobs to be removed",
              lambda: client.stats()["job-memory"] == 0)
        self.assertEqual(client.put(), jobs + 1)
        self.end(daemon)
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        self.assertEqual(client.stats()["current-jobs-ready"], 1)


if __name__ == "__main__":
    unittest.main()
