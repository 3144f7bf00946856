"""`tubectl reload`, and commands of a role with tubes, on the real daemon.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/reload_test.py
"""

import json
import unittest

from programs import DONE, FAILURE, UNAVAILABLE, ScriptedServer, TubectlTest


class Restricted(TubectlTest):
    def test_a_role_with_tubes_asks_for_no_other(self):
        path = self.directory / "mailer.sock"
        config = self.write_config(f'[[listen]]\naddress = "127.0.0.1:0"\n[[listen]]\n'
                                   f'address = "unix:{path}"\nrole = "mailer"\n[[role]]\n'
                                   f'name = "mailer"\nverbs = ["inspect"]\ntubes = ["mail*"]\n')
        daemon = self.start("--config", config, listen=None, listeners=2)
        for tube in ("mail", "mail.eu", "orders"):
            self.tubectl(daemon.addresses[0], "put", "-t", tube, "x")
        for command in (("tubes", "--interval", "0", "--json"), ("tubes", "--json")):
            lines = self.tubectl(f"unix:{path}", *command).splitlines()
            self.assertEqual([json.loads(line)["name"] for line in lines], ["mail", "mail.eu"])
        self.assertRegex(self.tubectl(f"unix:{path}", "top", "--once"), r"\n +mail\.eu ")
        # All that was denied before is logged before this.
        self.run_tubectl(f"unix:{path}", "stats", "orders")
        daemon.wait_for_line("denied")
        self.assertEqual(len(daemon.lines_with("denied")), 1, daemon.lines)


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
