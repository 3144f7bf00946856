"""Nodes with numeric addresses that move, under load: they state their addresses to each other, and
`tubectl cluster set-address` makes them lasting. No node is removed, and none fetches the state.

A node moves to another loopback address, 127.0.0.x, while it does not run. Clients keep theirs.
"""

import os
import unittest

from cluster import CALM, SECRET, Cluster, ClusterTest
from harness import SECONDS, held_port, run, until

LEARNED = "a member listens at another address than the cluster has"
DIFFERS = "this node listens at another address than the cluster has"


class Addresses(ClusterTest):
    last_host = 1

    def make_cluster(self, secret=SECRET, settings=None):
        self.cluster = Cluster(self, election=CALM, settings=settings)
        if secret:
            for node in self.cluster:
                node.write_secret(secret)
        return self.cluster.start()

    def move(self, node):
        """Kills the node, and gives it another address."""
        if node.is_running():
            node.kill()
        self.last_host += 1
        holder = held_port(f"127.0.0.{self.last_host}")
        self.addCleanup(holder.close)
        node.listen = node.address = "%s:%d" % holder.getsockname()
        node.write_settings()

    def set_address(self, by, node, *flags):
        return run("cluster", "set-address", "--admin", f"unix:{by.admin}", *flags, node.name,
                   node.address, program=os.environ["TUBECTL_PROGRAM"])

    def check_set(self, by, node):
        code, output, errors = self.set_address(by, node, "--timeout", str(SECONDS))
        self.assertEqual((code, output), (0, f"{node.name} has the address {node.address}\n"),
                         errors)

    def wait_until_reached(self, by, node, learned=True):
        """Waits until `by` is connected to the node at its present address."""
        def is_reached():
            member = by.member(node.name)
            reached_at = member and (member["reached_at"] or member["address"])
            return member and not member["failure"] and reached_at == node.address and \
                (member["reached_at"] is not None) == learned
        until(f"{by.name} to reach {node.name} at {node.address}", is_reached)

    def identities(self):
        return {member["name"]: (member["id"], member["votes"])
                for member in self.cluster.leader().status()["members"]}

    def check_no_fetch(self):
        for daemon in self.cluster.daemons[3:]:
            self.assertEqual(daemon.lines_with("fetching the state"), [])

    def test_nodes_that_move_one_by_one_and_a_restart_of_all_at_once(self):
        cluster = self.make_cluster()
        a, b, c = cluster
        before = self.identities()
        old = b.address
        load = self.start_load(cluster)
        for node in (b, c):
            self.move(node)
            load.next_put()
            node.start()
            cluster.wait_for_voters()
            for other in cluster:
                if other is not node:
                    self.wait_until_reached(other, node)
            node.daemon.wait_for_line(DIFFERS)
        self.assertEqual(a.member("b")["address"], old)
        self.assertEqual(b.member("b")["reached_at"], b.address)
        lines = a.daemon.lines_with(LEARNED)
        self.assertEqual(len(lines), 2, lines)  # each once
        self.assertIn(f"tubectl cluster set-address b {b.address}", lines[0])
        code, output, errors = run("cluster", "status", "--admin", f"unix:{a.admin}",
                                   program=os.environ["TUBECTL_PROGRAM"])
        self.assertEqual(code, 0, errors)
        self.assertIn(f"warning: b is reached at {b.address}, and not at its address: tubectl "
                      f"cluster set-address b {b.address}\n", output)

        # Two of three are not where the configuration says.
        for node in cluster:
            until(f"{node.name} to keep what it has learned",
                  (node.journal / "cluster.addresses").exists)
            node.kill()
        for node in cluster:
            node.start(wait=False)
        cluster.wait_for_voters()
        load.next_put()

        for node in (b, c):
            self.check_set(a, node)
        for node in cluster:
            for other in cluster:
                if other is not node:
                    self.wait_until_reached(node, other, learned=False)
            self.assertIsNone(node.member(node.name)["reached_at"])
            until(f"{node.name} to forget what it has learned",
                  lambda node=node: not (node.journal / "cluster.addresses").exists())
        cluster.wait_for_voters()
        self.assertEqual(self.identities(), before)
        self.stop_load(load)
        self.check_no_fetch()
        cluster.check_replicas()
        cluster.check_journals()

    def test_all_nodes_move_at_once(self):
        cluster = self.make_cluster()
        a, b, c = cluster
        before = self.identities()
        load = self.start_load(cluster)
        for node in cluster:
            self.move(node)
        for node in cluster:
            node.start()
        # No node knows where another is. An operator says it on one node, and the next leader
        # makes it lasting.
        code, _, errors = self.set_address(a, a, "--timeout", "1")
        self.assertIn("after 1 s: no leader is known (503)", errors)
        self.assertEqual(code, 75)
        self.check_set(a, b)
        load.next_put()
        self.check_set(b, a)
        self.check_set(b, c)
        cluster.wait_for_voters()
        for node in cluster:
            for other in cluster:
                if other is not node:
                    self.wait_until_reached(node, other, learned=False)
        self.assertEqual(self.identities(), before)
        self.stop_load(load)
        self.check_no_fetch()
        cluster.check_replicas()
        cluster.check_journals()

    def test_an_address_that_is_set_before_the_move(self):
        """Or set by mistake: the node is reached where it says that it listens."""
        cluster = self.make_cluster(settings={"cluster__clients": "forward"})
        a, b, _ = cluster
        cluster.hand_over(a)
        old, holder = b.address, held_port("127.0.0.100")
        self.addCleanup(holder.close)
        b.address = "%s:%d" % holder.getsockname()
        self.check_set(a, b)
        new, b.address = b.address, old
        self.wait_until_reached(a, b)
        self.assertEqual(a.member("b")["address"], new)
        cluster.wait_for_voters()
        until("b to log it", lambda: b.daemon.lines_with(DIFFERS))
        # A leader that is reached at a learned address gets clients and changes.
        cluster.hand_over(b)
        client = a.connect()
        self.assertGreater(client.put(b"by a"), 0)
        b.address = new
        self.check_set(a, cluster["c"])
        b.listen = new
        b.write_settings()
        b.stop()
        b.start()
        self.wait_until_reached(a, b, learned=False)
        cluster.wait_for_voters()
        cluster.check_journals()

    def test_without_a_proof_nothing_is_learned(self):
        cluster = self.make_cluster(secret=None)
        b = cluster["b"]
        self.move(b)
        leader = cluster.leader()
        b.start()
        b.daemon.wait_for_line(DIFFERS)
        b.daemon.wait_for_line("connected to another node")
        until("a connection to fail", lambda: leader.member("b")["failure"])
        self.check_set(leader, b)
        cluster.wait_for_voters()
        for node in cluster:
            self.assertEqual(node.daemon.lines_with(LEARNED), [])
        for address, reason in ((cluster["a"].address, "is the address of a (409)"),
                                ("10.0.0.300:1", "is no address of a node")):
            b.address = address
            code, _, errors = self.set_address(leader, b)
            self.assertNotEqual(code, 0)
            self.assertIn(reason, errors)
        cluster.check_journals()


if __name__ == "__main__":
    unittest.main()
