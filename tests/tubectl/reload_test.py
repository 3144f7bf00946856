"""`tubectl reload` on the real daemon.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/reload_test.py
"""

import json
import unittest

from programs import DONE, FAILURE, UNAVAILABLE, ScriptedServer, TubectlTest


class Reload(TubectlTest):
    def setUp(self):
        super().setUp()
        self.config = self.write_config("[limits]\njob_bytes = 100\n")
        self.server = self.start("--config", self.config).addresses[0]

    def scripted(self, answer):
        server = ScriptedServer([answer])
        self.addCleanup(server.close)
        return server.address

    def test_changes_are_printed(self):
        self.assertEqual(self.tubectl(self.server, "reload"), "reloaded: nothing has changed\n")
        self.write_config('[limits]\njob_bytes = 200\n[log]\nlevel = "debug"\n[tcp]\nbacklog = 9\n')
        self.assertEqual(self.tubectl(self.server, "reload"),
                         "reloaded: limits.job_bytes, log.level\nneeds a restart: tcp.backlog\n")
        self.assertEqual(self.tubectl(self.server, "reload"),
                         "reloaded: nothing has changed\nneeds a restart: tcp.backlog\n")

    def test_json(self):
        self.write_config("[limits]\njob_bytes = 200\ntubes = 9\n")
        self.assertEqual(json.loads(self.tubectl(self.server, "reload", "--json")),
                         {"changed": ["limits.job_bytes", "limits.tubes"], "needs-restart": []})
        self.assertEqual(json.loads(self.tubectl(self.server, "reload", "--json")),
                         {"changed": [], "needs-restart": []})

    def test_a_mistake(self):
        self.write_config("[limits]\njob_bytes = 0\n")
        for flags in ((), ("--json",)):
            told = self.refused(FAILURE, self.server, "reload", *flags)
            self.assertIn("not reloaded, nothing has changed: ", told)
            self.assertIn(f"{self.config}:2: limits.job_bytes: 0 is below the minimum of 1", told)

    def test_servers_that_cannot(self):
        self.assertIn("systemctl reload tubed",
                      self.refused(FAILURE, self.scripted(b"UNKNOWN_COMMAND\r\n"), "reload"))
        self.assertIn("(DENIED)", self.refused(FAILURE, self.scripted(b"DENIED\r\n"), "reload"))
        self.refused(UNAVAILABLE, self.scripted(None), "reload")


if __name__ == "__main__":
    unittest.main()
