#!/usr/bin/env python3
"""The console of a cluster of three nodes in headless Chromium: runs cluster.mjs.

  TUBED_NPM_DIR=build/dev/tests/console/npm python3 tests/console/cluster_test.py

The script changes the cluster by requests to `control`, whose argument is the name of a node:

  POST /kill?a        kills the process with SIGKILL
  POST /start?a       starts it
  POST /transfer?a    makes it the leader
  POST /new?d         starts a node without a state
  POST /add?d         makes it a member
  POST /remove?d      removes it
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "daemon"), str(HERE)]
from cluster import EXIT_REMOVED, Cluster, ClusterTest  # noqa: E402
from harness import parse_address, until  # noqa: E402
from run_console import control_server  # noqa: E402

NPM = pathlib.Path(os.environ.get("TUBED_NPM_DIR", "")).resolve()


class ClusterWithConsole(Cluster):
    def new_node(self, name, **settings):
        http = self.held_address()
        node = super().new_node(name, http__listen=http, http__api="full", **settings)
        node.url = f"http://{http}/"
        return node


class Console(ClusterTest):
    def test_the_console(self):
        cluster = ClusterWithConsole(self).start()
        cluster.hand_over(cluster["a"])
        # The browser may use only the addresses that are known when it starts.
        new = cluster.new_node("d")

        def remove(name):
            cluster.remove(name)
            cluster[name].wait_for_exit(EXIT_REMOVED)

        control = control_server({
            "/kill": lambda name: cluster[name].kill(),
            "/start": lambda name: cluster[name].start(),
            "/transfer": lambda name: cluster.hand_over(cluster[name]),
            "/new": lambda name: cluster[name].start(),
            "/add": lambda name: cluster.add(cluster[name]),
            "/remove": remove})
        self.addCleanup(control.server_close)
        self.addCleanup(control.shutdown)
        host, port = parse_address(cluster["a"].client_address)[1]
        variables = {
            "npm": str(NPM), "directory": str(self.directory),
            "failures": str(NPM.parent / "failures"),
            "control": f"http://127.0.0.1:{control.server_address[1]}",
            "queue": {"host": host, "port": port}, "tokens": {}, "title": "", "facts": {},
            "urls": {"full": cluster["a"].url, **{node.name: node.url for node in (*cluster, new)}}}
        until("the API", lambda: cluster["a"].serves())
        done = subprocess.run(["node", HERE / "cluster.mjs"], check=False,
                              stdin=subprocess.DEVNULL,
                              env=os.environ | {"TUBED_CONSOLE": json.dumps(variables)})
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
