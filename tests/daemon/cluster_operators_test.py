"""A cluster as operators see it: stats, metrics, checks and the HTTP API of each node."""

import json
import os
import pathlib
import re
import time
import unittest

from cluster import CALM, STEADY, Cluster, ClusterTest
from harness import SANITIZED, DaemonTest, as_dict, http_request, until

API = "/api/v1"
# The operations that a node answers even if it does not serve clients.
OF_EVERY_NODE = ("access", "cluster", "history", "server", "settings")


class OfOperators(ClusterTest):
    ELECTION = STEADY

    def setUp(self):
        super().setUp()
        self.cluster = Cluster(
            self, settings={"http__api": "full", "cluster__clients": "forward"},
            election=self.ELECTION).start()
        self.leader = self.cluster.leader()
        self.follower = self.cluster.followers()[0]

    def get(self, node, path):
        """Sends a GET to the node's HTTP listener. Returns (status, text)."""
        return http_request(node.http, "GET", path)

    def get_json(self, node, path):
        status, text = self.get(node, API + path)
        return status, json.loads(text)


class Operators(OfOperators):
    def test_checks(self):
        self.assertEqual(self.get(self.leader, "/leader"), (200, "leader\n"))
        self.assertEqual(self.get(self.leader, "/readyz"), (200, "ready\n"))
        for node in self.cluster.followers():
            self.assertEqual(self.get(node, "/leader"), (503, "not the leader\n"))
            self.assertEqual(self.get(node, "/readyz"), (200, "ready\n"))
            self.assertEqual(self.get(node, "/healthz"), (200, "ok\n"))
        waiting = self.cluster.new_node("w")
        waiting.start()
        self.assertEqual(self.get(waiting, "/leader"), (503, "waits to be added\n"))
        self.assertEqual(self.get(waiting, "/readyz"), (503, "waits to be added\n"))
        status, problem = self.get_json(waiting, "/tubes")
        self.assertEqual((status, problem["type"]), (503, "urn:tubed:problem:not-the-leader"))
        self.assertNotIn("leader", problem)

    def test_the_lines_of_stats_come_last(self):
        client = self.leader.connect()
        client.send(b"stats\r\n")
        text = client.body()[1]
        keys = re.findall(r"^([\w-]+): ", text.decode(), re.MULTILINE)
        self.assertEqual(keys[-8:], [f"cluster-{key}" for key in (
            "name", "role", "leader", "term", "commit-index", "applied-index", "held-over",
            "nodes")])
        stats = as_dict(text)
        self.assertEqual(stats["cluster-role"], "leader")
        nodes = dict(re.findall(r"(\w+):(\w+):\d+:\d+", stats["cluster-nodes"]))
        self.assertEqual(nodes, {node.name: "leader" if node is self.leader else "voter"
                                 for node in self.cluster})

    def test_each_node_shows_its_own_state(self):
        self.assertEqual(self.leader.connect().ask("put 0 0 60 1\r\nx"), "INSERTED 1")
        self.cluster.wait_until_applied()
        for node in self.cluster:
            leads = node is self.leader
            for path in OF_EVERY_NODE:
                with self.subTest(node=node.name, path=path):
                    self.assertEqual(self.get_json(node, f"/{path}")[0], 200)
            stats = self.get_json(node, "/server")[1]
            self.assertEqual(stats["cluster-role"], "leader" if leads else "follower")
            self.assertEqual(stats["cluster-leader"], self.leader.name)
            self.assertEqual(stats["current-jobs-ready"], 1)
            state = self.get_json(node, "/cluster")[1]
            self.assertEqual((state["name"], state["serves"], state["leader"]),
                             (node.name, leads, self.leader.name))
            self.assertEqual(state.keys(), node.status().keys())
            for member in state["members"]:
                self.assertEqual(member["match"] is not None, leads, member)

    def test_each_leader_of_a_term_is_logged_and_counted_once(self):
        # After each added node, the leader has checked its members again.
        for node in self.cluster:
            lines = [re.search(r"\b(leading|following) leader=(\w+) term=(\d+)", line)
                     for line in node.daemon.lines_with(" leader=")]
            found = [line.groups() for line in lines if line]
            self.assertEqual(len(found), len(set(found)), found)
            won = node.metrics()["tubed_cluster_elections_won_total"]
            if node is self.leader:
                self.assertGreaterEqual(won, 1)
            until("each election that was won to be logged",
                  lambda node=node, won=won: len(node.daemon.lines_with("leading leader=")) >= won)

    def test_commands_run_on_the_leader_only(self):
        status, problem = self.get_json(self.follower, "/tubes")
        self.assertEqual(status, 503)
        self.assertEqual(problem["type"], "urn:tubed:problem:not-the-leader")
        self.assertIn(f"The leader is {self.leader.name}.", problem["detail"])
        self.assertEqual(problem["leader"], self.leader.name)
        self.assertEqual(self.get_json(self.leader, "/tubes")[0], 200)

    def test_metrics(self):
        def info(node):
            return next(name for name in node.metrics() if name.startswith("tubed_cluster_info{"))

        clusters = {re.search(r'cluster="(\w{16})"', info(node))[1] for node in self.cluster}
        self.assertEqual(len(clusters), 1)
        for node in self.cluster:
            metrics = node.metrics()
            leads = node is self.leader
            role = "leader" if leads else "follower"
            self.assertEqual(metrics[f'tubed_cluster_role{{role="{role}"}}'], 1)
            self.assertEqual(metrics["tubed_cluster_serves"], leads)
            self.assertEqual(metrics['tubed_cluster_members{kind="voter"}'], 3)
            peers = {name for name in metrics if "node_silence" in name}
            self.assertEqual(peers, {f'tubed_cluster_node_silence_seconds{{node="{peer.name}"}}'
                                     for peer in self.cluster if leads and peer is not node})


class Refusing(ClusterTest):
    def test_a_follower_keeps_a_client_that_connects_again_at_once_waiting(self):
        cluster = Cluster(self).start()
        follower = cluster.followers()[0]
        times, held = 5, 0.1
        begin = time.monotonic()
        for _ in range(times):
            client = follower.connect()
            client.send(b"list-tubes-watched\r\n")
            self.assertEqual(client.rest(), b"")
            client.close()
        self.assertGreaterEqual(time.monotonic() - begin, times * held)


class LostLeader(OfOperators):
    ELECTION = CALM

    def test_a_leader_that_died_is_silent_to_the_next(self):
        dead = self.leader
        began = time.monotonic()
        dead.kill()
        leader = self.cluster.leader()
        name = f'tubed_cluster_node_silence_seconds{{node="{dead.name}"}}'
        before = leader.metrics()[name]
        until("the silence to grow", lambda: leader.metrics()[name] >= before + 0.5)
        silence = leader.metrics()[name]
        self.assertLess(silence, time.monotonic() - began + self.ELECTION)
        member = next(each for each in self.get_json(leader, "/cluster")[1]["members"]
                      if each["name"] == dead.name)
        self.assertGreaterEqual(member["silent_ms"], 500)


class Lag(OfOperators):
    ELECTION = CALM

    def test_a_follower_that_stands_still_lags_more_and_more(self):
        leader, slow = self.leader, self.cluster.followers()[0]
        name = f'tubed_cluster_node_lag_seconds{{node="{slow.name}"}}'
        until("no lag", lambda: leader.metrics().get(name) == 0)
        slow.freeze()
        leader.connect().put()
        before = leader.metrics()[name]
        until("the lag to grow", lambda: leader.metrics()[name] >= before + 0.5)
        members = {each["name"]: each for each in self.get_json(leader, "/cluster")[1]["members"]}
        self.assertGreaterEqual(members[slow.name]["lag_ms"], 500)
        self.assertNotIn(f'tubed_cluster_node_lag_seconds{{node="{leader.name}"}}',
                         leader.metrics())
        slow.thaw()
        until("no lag", lambda: leader.metrics().get(name) == 0)
        follower = self.get_json(slow, "/cluster")[1]["members"]
        self.assertEqual({each["lag_ms"] for each in follower}, {None})


class WithoutCluster(DaemonTest):
    def test_there_is_nothing_of_it(self):
        daemon = self.start("-b", str(self.directory))
        client = self.connect(daemon)
        client.put()
        self.assertFalse([key for key in client.stats() if key.startswith("cluster")])
        process = pathlib.Path(f"/proc/{daemon.pid}")
        descriptors = [os.readlink(each) for each in (process / "fd").iterdir()]
        sockets = [each for each in descriptors if each.startswith("socket:")]
        self.assertEqual(len(sockets), 2, descriptors)  # the listener and the client
        if not SANITIZED:
            # libuv's pool has four threads once it is used.
            self.assertIn(len(list((process / "task").iterdir())), (1, 5))
        self.assertEqual({re.sub(r"\d+", "N", each.name) for each in self.directory.iterdir()},
                         {"lock", "journal.N"})


if __name__ == "__main__":
    unittest.main()
