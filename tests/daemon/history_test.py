"""The history of a day: GET /history?span=day, and its file in the journal directory.

A server takes its first sample when it begins to serve and its last at a stop, so no test waits for
one between them.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
import unittest

from harness import PROGRAM, SECONDS, DaemonTest, http_connection
from tls_tests import table


class History(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        self.file = self.journal / "history"

    def serve(self, api="full", journal=True):
        config = self.write_config(table("", {"http.listen": "127.0.0.1:0", "http.api": api}))
        flags = ["-b", str(self.journal)] if journal else []
        return self.start("--config", config, *flags)

    def history(self, daemon, query="?span=day", status=200):
        with contextlib.closing(http_connection(daemon.http_addresses[0])) as connection:
            connection.request("GET", "/api/v1/history" + query)
            answer = connection.getresponse()
            self.assertEqual(answer.status, status)
            answer = json.loads(answer.read())
        if status == 200:
            answer["samples"] = [dict(zip(answer["columns"], row)) for row in answer["samples"]]
        return answer

    def work(self, daemon):
        """Two jobs are put, one of them is deleted."""
        client = self.connect(daemon)
        client.put_many(2)
        job, _ = client.reserve()
        client.ask(f"delete {job}")
        client.close()

    def stop(self, daemon):
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)

    def sums(self, samples):
        return {key: sum(sample[key] for sample in samples)
                for key in ("puts", "reserves", "deletes", "timeouts")}

    def task(self, *flags):
        return subprocess.run([PROGRAM, *flags], capture_output=True, text=True, timeout=SECONDS,
                              check=False)

    def test_a_restart_keeps_it(self):
        begin = int(time.time()) // 60 * 60
        daemon = self.serve()
        self.work(daemon)
        self.stop(daemon)
        self.assertTrue(self.file.exists())
        self.assertFalse((self.journal / "history.new").exists())
        for _ in range(2):
            daemon = self.serve()
            server = self.history(daemon)
            self.assertEqual(self.sums(server["samples"]),
                             {"puts": 2, "reserves": 1, "deletes": 1, "timeouts": 0})
            self.assertEqual(server["samples"][-1]["current-jobs-ready"], 1)
            self.assertGreaterEqual(server["samples"][0]["time"], begin)
            self.assertLessEqual(server["samples"][-1]["time"], time.time())
            self.assertIn("default", server["tubes"])
            tube = self.history(daemon, "?span=day&tube=default")
            self.assertEqual(self.sums(tube["samples"]), self.sums(server["samples"]))
            self.assertEqual(self.history(daemon, "?tube=default")["interval"], 60)
            self.stop(daemon)
            self.assertEqual(daemon.lines_with("the history"), [])
            self.assertEqual(daemon.lines_with("history dropped"), [])

    def test_requests(self):
        daemon = self.serve(journal=False)
        self.assertEqual(self.history(daemon, "")["interval"], 5)
        self.assertEqual(self.history(daemon, "?span=hour")["interval"], 5)
        self.assertEqual(self.history(daemon)["interval"], 60)
        self.history(daemon, "?span=week", status=400)
        self.history(daemon, "?tube=-", status=400)
        self.history(daemon, "?tube=none", status=404)
        client = self.connect(daemon)
        client.ask("use new")
        self.assertEqual(self.sums(self.history(daemon, "?tube=new")["samples"])["puts"], 0)
        self.stop(daemon)
        self.assertEqual(list(self.journal.iterdir()), [])

    def test_without_the_api_there_is_no_file(self):
        daemon = self.serve(api="off")
        self.work(daemon)
        self.stop(daemon)
        self.assertFalse(self.file.exists())

    def test_the_file_is_no_part_of_the_journal(self):
        daemon = self.serve()
        self.work(daemon)
        self.stop(daemon)
        (self.journal / "history.new").write_bytes(b"half")
        copy = self.directory / "copy"
        self.assertEqual(self.task("--check", str(self.journal)).returncode, 0)
        self.assertEqual(self.task("--dump", str(self.journal)).returncode, 0)
        backup = self.task("-b", str(self.journal), "--backup", str(copy))
        self.assertEqual(backup.returncode, 0, backup.stderr)
        self.assertFalse([name for name in os.listdir(copy) if name.startswith("history")])
        daemon = self.serve()
        self.assertEqual(len(self.history(daemon)["tubes"]), 1)
        self.stop(daemon)
        self.assertFalse((self.journal / "history.new").exists())

    def test_a_kill_leaves_the_file_before(self):
        self.stop(self.serve())
        before = self.file.read_bytes()
        daemon = self.serve()
        self.work(daemon)
        daemon.kill()
        self.assertEqual(self.file.read_bytes(), before)
        daemon = self.serve()
        self.assertEqual(self.connect(daemon).stats()["current-jobs-ready"], 1)
        self.assertEqual(daemon.lines_with("history dropped"), [])

    def test_a_file_that_cannot_be_used_is_dropped(self):
        daemon = self.serve()
        self.work(daemon)
        self.stop(daemon)
        good = self.file.read_bytes()
        flipped = bytearray(good)
        flipped[len(good) // 2] ^= 1
        for contents in (bytes(flipped), good[:-1], b"", b"x" * 5_000_000):
            self.file.write_bytes(contents)
            daemon = self.serve()
            self.assertEqual(self.sums(self.history(daemon)["samples"])["puts"], 0)
            self.assertEqual(self.connect(daemon).stats()["current-jobs-ready"], 1)
            self.stop(daemon)
            self.assertEqual(len(daemon.lines_with("history dropped")), 1)
            self.assertEqual(self.file.read_bytes()[:8], b"tubedhis")

    def test_a_file_that_cannot_be_written_changes_nothing_else(self):
        (self.journal / "history.new").mkdir()
        daemon = self.serve()
        self.work(daemon)
        self.stop(daemon)
        self.assertEqual(len(daemon.lines_with("the history is not kept over a restart")), 1)
        self.assertFalse(self.file.exists())
        daemon = self.serve()
        self.assertEqual(self.connect(daemon).stats()["current-jobs-ready"], 1)


if __name__ == "__main__":
    unittest.main()
