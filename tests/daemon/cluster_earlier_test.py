"""A node starts on the files of an earlier version (tests/upgrade/golden), and has its jobs.

tests/upgrade/goldens.py describes the files, and makes them.
"""

import json
import os
import pathlib
import unittest

from cluster import STEADY, Cluster, ClusterTest
from harness import as_dict, run

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "upgrade/golden"


class Earlier(ClusterTest):
    def restored(self, node):
        """Copies the files to the node's directory, with the zeros at their ends."""
        for line in (GOLDEN / "files.txt").read_text(encoding="ascii").splitlines():
            size, name = line.split(" ", 1)
            path = node.journal / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes((GOLDEN / name).read_bytes())
            os.truncate(path, int(size))

    def test_the_jobs_of_an_earlier_version(self):
        cluster = Cluster(self, nodes=1, election=STEADY)
        node = cluster["a"]
        self.restored(node)
        code, output, errors = run("--check", str(node.journal))
        self.assertEqual(code, 0, errors)
        self.assertIn("raft log:", output)
        node.start()
        client = cluster.connect()
        jobs = node.read_jobs(client)
        for job_id, job in jobs.items():
            client.send(b"stats-job %d\r\n" % job_id)
            job["state"] = as_dict(client.body()[1])["state"]
            job["body"] = job["body"].hex()
        expected = json.loads((GOLDEN / "jobs.json").read_text(encoding="ascii"))
        self.assertEqual({str(job_id): job for job_id, job in jobs.items()}, expected)
        # The level stays, because a member has not answered. Ids continue.
        self.assertEqual(node.status()["feature_level"], 1)
        self.assertEqual(client.put(b"next"), max(map(int, expected)) + 1)
        client.close()
        node.stop()
        code, _, errors = run("--check", str(node.journal))
        self.assertEqual(code, 0, errors)


if __name__ == "__main__":
    unittest.main()
