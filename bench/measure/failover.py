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

    def longest_put(self, client):
        """The longest time, in milliseconds, from a reply to the next."""
        longest, last = 0.0, time.monotonic()
        for _ in range(PUTS):
            client.put()
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        return longest * 1000

    def test_faults_of_a_follower(self):
        with clusters.running(PROGRAM, self.directory, 3) as cluster:
            client = cluster.connect()
            quiet = self.longest_put(client)
            follower = cluster.followers()[0]
            for what, fault, mend in (("killed", follower.kill, follower.start),
                                      ("stopped", follower.freeze, follower.thaw)):
                fault()
                figure(f"the longest put of {PUTS} after a follower was {what}",
                       self.longest_put(client), "ms", quiet, "without a fault")
                mend()
                cluster.wait_for_voters()


if __name__ == "__main__":
    unittest.main()
