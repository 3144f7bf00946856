"""A journal that the program of one architecture has written is read by the program of the other.

$TUBED_PROGRAM and $TUBED_OTHER_PROGRAM are the two programs; packaging/tests/arm64 runs this.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "daemon")]
import harness  # noqa: E402
from harness import DaemonTest  # noqa: E402

PROGRAMS = (harness.PROGRAM, os.environ["TUBED_OTHER_PROGRAM"])


class Journal(DaemonTest):
    def serve(self, program):
        daemon = self.start("-b", str(self.directory), "-f", "0", command=[program])
        return daemon, self.connect(daemon)

    def jobs(self, client, ids):
        """The replies about these jobs, without the values that depend on the moment."""
        found = {}
        for job in ids:
            client.send(b"peek %d\r\nstats-job %d\r\n" % (job, job))
            words, body = client.body()
            text = client.body()[1].decode()
            found[job] = (words[:2], body, re.sub(r"(age|time-left|file): .*", "", text))
        return found

    def fill(self, client, turn):
        """Jobs in every state, with everything that a record may have; returns their ids."""
        first = client.put(b"\x00\xff\r\n", priority=2**32 - 1)
        client.ask("use mail")
        ids = [first, client.put(b"x" * 60_000, delay=1000), client.put(b"", ttr=1)]
        for tags in (b"idp:key%d:100" % turn, b"con:key:2", b"grp:group", b"aft:group", b"ttl:1000"):
            client.send(b"put 5 0 1500ms 1 %s\r\nx\r\n" % tags)
            ids.append(int(client.line().split()[1]))
        self.assertEqual(client.ask("watch mail"), "WATCHING 2")
        self.assertEqual(client.reserve(f"reserve-job {ids[0]}")[0], ids[0])
        self.assertEqual(client.ask(f"bury {ids[0]} 7"), "BURIED")
        self.assertEqual(client.ask("pause-tube mail 1000"), "PAUSED")
        gone = client.put(b"gone")
        self.assertEqual(client.ask(f"delete {gone}"), "DELETED")
        return ids

    def test_both_ways(self):
        ids, seen = [], {}
        for turn, program in enumerate(PROGRAMS * 2):
            daemon, client = self.serve(program)
            self.assertEqual(self.jobs(client, ids), seen)
            if ids:
                self.assertEqual(client.stats("stats-tube mail")["pause"], 1000)
            ids += self.fill(client, turn)
            seen = self.jobs(client, ids)
            daemon.kill()
        self.assertEqual(len(seen), 4 * 8)
        dumps = [subprocess.run([program, "--dump", str(self.directory)], check=True, text=True,
                                capture_output=True, timeout=harness.SECONDS).stdout
                 for program in PROGRAMS]
        self.assertEqual(*dumps)
        for program in PROGRAMS:
            subprocess.run([program, "--check", str(self.directory)], check=True, capture_output=True,
                           timeout=harness.SECONDS)


if __name__ == "__main__":
    unittest.main()
