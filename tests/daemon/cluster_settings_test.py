"""Settings that should be the same on all nodes: a difference is seen, and a reload heals it."""

import json
import os
import signal
import unittest

import harness
from cluster import SECRET, STEADY, Cluster, ClusterTest
from harness import http_request, until

DIFFERS = [{"name": "limits.job_bytes", "nodes": [["a", "c"], ["b"]]}]


class Settings(ClusterTest):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster(self, settings={"http__api": "full"}, election=STEADY)

    def reload(self, node, **settings):
        node.settings |= settings
        node.write_settings()
        node.daemon.signal(signal.SIGHUP)

    def wait_until_all_see(self, differing):
        for node in self.cluster:
            until(f"{node.name} to see {differing}",
                  lambda node=node: (node.status() or {}).get("settings_differ") == differing)
            self.assertEqual(node.metrics()["tubed_cluster_settings_differ"], len(differing))
            code, text = http_request(node.http, "GET", "/api/v1/cluster")
            self.assertEqual((code, json.loads(text)["settings_differ"]), (200, differing))

    def warnings(self, node):
        _, output, errors = harness.run("cluster", "status", "--admin", f"unix:{node.admin}",
                                        program=os.environ["TUBECTL_PROGRAM"])
        return [line for line in (output + errors).splitlines() if "the setting" in line]

    def test_another_limit_of_a_node_is_seen_and_a_reload_heals_it(self):
        self.cluster["b"].settings["limits__job_bytes"] = 1000
        self.cluster["b"].write_settings()
        self.cluster.start()
        self.wait_until_all_see(DIFFERS)
        for node in self.cluster:
            node.daemon.wait_for_line("limits.job_bytes (a, c / b)")
            # A line for each change, as nodes join.
            lines = [line.split("settings=")[1] for line in
                     node.daemon.lines_with("settings differ between nodes")]
            self.assertEqual(len(lines), len(set(lines)), lines)
            warnings = self.warnings(node)
            self.assertEqual(len(warnings), 1, warnings)
            self.assertIn("the setting limits.job_bytes differs: a and c have one value, b has "
                          "another", warnings[0])
        leader = self.cluster.leader()
        term = leader.status()["term"]
        links = {node.name: len(node.daemon.lines_with(" connected to another node"))
                 for node in self.cluster}
        self.reload(self.cluster["b"], limits__job_bytes=65535)
        self.wait_until_all_see([])
        for node in self.cluster:
            node.daemon.wait_for_line("the nodes have the same settings again")
            self.assertEqual(self.warnings(node), [])
            # The settings were sent while the links stayed.
            self.assertEqual(len(node.daemon.lines_with(" connected to another node")),
                             links[node.name])
        self.assert_same_leader(leader, term)

    def test_a_difference_that_a_reload_makes_is_seen_and_outlasts_a_restart(self):
        self.cluster.start()
        self.wait_until_all_see([])
        follower = self.cluster.followers()[0]
        others = [node.name for node in self.cluster if node is not follower]
        self.reload(follower, limits__tubes=7)
        names = [[follower.name], others] if follower.name < others[0] else [others,
                                                                            [follower.name]]
        differs = [{"name": "limits.tubes", "nodes": names}]
        self.wait_until_all_see(differs)
        follower.stop()
        for node in self.cluster:
            if node is not follower:
                self.assertEqual(node.status()["settings_differ"], differs)
        follower.start()
        self.wait_until_all_see(differs)
        follower.stop()
        del follower.settings["limits__tubes"]
        follower.write_settings()
        follower.start()
        self.wait_until_all_see([])

    def test_with_a_secret_what_each_machine_has_of_its_own_is_not_compared(self):
        for number, node in enumerate(self.cluster):
            node.write_secret(SECRET)
            node.settings |= {"cluster__fetch_rate": 1_000_000 + number,
                              "http__title": f"node {node.name}",
                              "journal__segment_size": 1 << (20 + number)}
            node.write_settings()
        self.cluster.start()
        self.wait_until_all_see([])
        self.reload(self.cluster["c"], timeouts__idle="9s")
        self.wait_until_all_see([{"name": "timeouts.idle", "nodes": [["a", "b"], ["c"]]}])


if __name__ == "__main__":
    unittest.main()
