"""How long a client of a cluster waits when the leader changes, and when a follower fails."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import clusters
from figures import figure
from servers import ROOT

PROGRAM = pathlib.Path(os.environ["TUBED_PROGRAM"]).resolve()
ROUNDS = 10
PUTS = 1000  # in which a fault of a follower shows


class Failover(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-measure-", dir=".")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_changes_of_the_leader(self):
        done = subprocess.run(
            [ROOT / "bench/failover", "--json", "--any-file-system", "--rounds", str(ROUNDS),
             "--tubed", PROGRAM, "--directory", self.directory],
            check=True, stdout=subprocess.PIPE)
        found = json.loads(done.stdout)
        for event, row in found["events"].items():
            for key in ("median", "most"):
                figure(f"from a {event} of the leader to the next put, {key}",
                       row[f"until_put_{key}_ms"] or float("nan"), "ms",
                       found["election_timeout_ms"], "the election timeout")
            figure(f"a {event} of the leader that failed", row["failed"], f"of {row['events']}")

    def longest_put(self, cluster):
        """The longest time, in milliseconds, from a reply to the next."""
        client = cluster.connect()
        longest, last, done = 0.0, time.monotonic(), 0
        while done < PUTS:
            try:
                client.put()
            except (AssertionError, OSError):  # the leader has changed, on a slow machine
                client = cluster.connect()
                continue
            done += 1
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        return longest * 1000

    def test_faults_of_a_follower(self):
        with clusters.running(PROGRAM, self.directory, 3) as cluster:
            quiet = self.longest_put(cluster)
            for what, fault, mend in (("killed", "kill", "start"), ("stopped", "freeze", "thaw")):
                follower = cluster.followers()[0]
                getattr(follower, fault)()
                figure(f"the longest put of {PUTS} after a follower was {what}",
                       self.longest_put(cluster), "ms", quiet, "without a fault")
                getattr(follower, mend)()
                cluster.wait_for_voters()


if __name__ == "__main__":
    unittest.main()
