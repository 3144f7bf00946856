#!/usr/bin/env python3
"""The real clients of this folder against clusters of one and of three nodes.

$TUBED_PROGRAM is the daemon, and $TUBED_NPM_DIR the folder of the packages from npm.
"""

import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "daemon")]

import run_client  # noqa: E402
from cluster import Cluster, ClusterTest  # noqa: E402


class Clients(ClusterTest):
    def check(self, script, npm_dir=None):
        for nodes in (1, 3):
            with self.subTest(nodes=nodes):
                cluster = Cluster(self, nodes=nodes).start()
                address = cluster.leader().client_address.rsplit(":", 1)
                code = run_client.run_client(HERE / script, address, npm_dir)
                self.assertEqual(code, 0)

    def test_beaneater(self):
        self.check("beaneater.rb")

    def test_pheanstalk(self):
        self.check("pheanstalk.php")

    def test_jackd(self):
        npm_dir = pathlib.Path(os.environ["TUBED_NPM_DIR"]).resolve()
        run_client.install_from_npm(npm_dir)
        self.check("jackd.mjs", npm_dir)


if __name__ == "__main__":
    unittest.main()
