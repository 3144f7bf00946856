"""Rolling upgrades of a cluster, from an earlier version to this one, under load.

tests/upgrade/run builds the earlier version and runs this file. No acknowledged job is lost, no job
has two holders or exists twice. Until the level has risen, each node can go back to the earlier
version. How long no put was acknowledged in each step is printed, and decides nothing.

TUBED_EARLIER_PROGRAM is the earlier tubed. TUBED_UPGRADES is the number of rolling upgrades.
"""

import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))

import harness  # noqa: E402
from cluster import EXIT_DAMAGED, QUICK, STEADY, Cluster, ClusterTest, Node  # noqa: E402
from harness import Client, held_port, until  # noqa: E402

NEW = harness.PROGRAM
EARLIER = str(pathlib.Path(os.environ["TUBED_EARLIER_PROGRAM"]).resolve())
TUBECTL = str(pathlib.Path(os.environ["TUBECTL_PROGRAM"]).resolve())
UPGRADES = int(os.environ.get("TUBED_UPGRADES", "1"))
LEVELS = pathlib.Path(__file__).resolve().parents[2] / "src/cluster/levels.h"
NEW_LEVEL = int(re.search(r"kFeatureLevel = (\d+);", LEVELS.read_text(encoding="utf-8"))[1])
LEVEL_OF_CLIENTS = 4
RISEN = "the feature level of the cluster has risen"


class Figures:
    """How long no node served, and how long no put was acknowledged, by the kind of step."""

    def __init__(self):
        self.rows = {}

    def add(self, kind, unserved, unanswered):
        row = self.rows.setdefault(kind, ([], []))
        for column, seconds in zip(row, (unserved, unanswered)):
            column.append(seconds * 1000)

    def show(self):
        for kind, row in self.rows.items():
            no_node, no_put = (f"median {statistics.median(column):.0f} ms, "
                               f"maximum {max(column):.0f} ms" for column in row)
            print(f"{kind} ({len(row[0])}): no node served {no_node}; no put acknowledged {no_put}",
                  flush=True)


class Watch:
    """Asks the nodes again and again whether they serve, in a thread, within a `with` block.
    `longest`: for how many seconds at most none did, including the time of two queries."""

    def __init__(self, cluster):
        self.cluster, self.longest, self.done = cluster, 0.0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        served, last = time.monotonic(), None
        while not self.done:
            begin = time.monotonic()
            # First the node that served last: another may be starting, and answer late.
            nodes = sorted(self.cluster, key=lambda node, last=last: node is not last)
            serving = next((node for node in nodes if node.serves()), None)
            if serving:
                self.longest = max(self.longest, time.monotonic() - served)
                served, last = begin, serving

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join()


class Upgrade(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.figures = Figures()
        cls.addClassCleanup(cls.figures.show)

    def earlier_cluster(self, election=QUICK):
        """A cluster of three nodes of the earlier version, which serves."""
        cluster = Cluster(self, election=election)
        for node in cluster:
            node.program = EARLIER
            for program in (EARLIER, NEW):  # both know the settings
                code, _, errors = harness.run("--config", str(node.config), "--check-config",
                                              program=program)
                self.assertEqual(code, 0, (program, errors))
        return cluster.start()

    def replace(self, cluster, load, node, program, end=Node.stop):
        """Ends a node and starts it with this program, and waits until the cluster is whole.
        Returns for how long no node served, and for how long no put was acknowledged. Other nodes
        hold a client that they refuse for up to 250 ms, so the second may be longer."""
        began = time.monotonic()
        with Watch(cluster) as watch:
            end(node)
            if end is Node.kill:
                load.next_put()
            node.program = program
            node.start()
            cluster.wait_for_voters()
            load.next_put()
        return watch.longest, load.longest_pause(began)

    def levels(self, cluster):
        return [(node.status() or {}).get("feature_level") for node in cluster]

    def upgrade_check(self, node):
        """Returns what tubectl cluster upgrade-check says: (exit code, stdout, stderr)."""
        done = subprocess.run(
            [TUBECTL, "cluster", "upgrade-check", "--admin", f"unix:{node.admin}"],
            capture_output=True, text=True, check=False, timeout=harness.SECONDS)
        return done.returncode, done.stdout, done.stderr

    def wait_until_allowed(self, cluster):
        """Waits until the leader says that a node may be restarted."""
        until("upgrade-check to allow a restart",
              lambda: self.upgrade_check(cluster.leader())[0] == 0)

    def replace_all(self, cluster, load):
        """Upgrades each node, the leader last. After each but the last, goes back and forth."""
        leader = cluster.leader()
        first_level = leader.status()["feature_level"]
        for node in cluster.followers():
            for what, program in (("upgrade", NEW), ("downgrade", EARLIER), ("upgrade", NEW)):
                self.wait_until_allowed(cluster)
                self.figures.add(f"{what} of a node that does not lead",
                                 *self.replace(cluster, load, node, program))
                self.assertEqual(self.levels(cluster), [first_level] * 3)
        # The leader may have changed, on a slow machine.
        last = next(node for node in cluster if node.program == EARLIER)
        self.wait_until_allowed(cluster)
        kind = f"upgrade of the last node{', the leader' if last.serves() else ''}"
        self.figures.add(kind, *self.replace(cluster, load, last, NEW))
        return first_level

    def wait_for_level(self, cluster, first_level):
        until(f"the level to rise to {NEW_LEVEL}",
              lambda: self.levels(cluster) == [NEW_LEVEL] * 3)
        for node in cluster:
            for level in range(first_level + 1, NEW_LEVEL + 1):
                text = f"level={level} allows="
                until(f"node {node.name} to log {text}", lambda node=node, text=text: any(
                    text in line for line in node.daemon.lines_with(RISEN)))

    def refuse_earlier(self, cluster, load, node):
        """The earlier version does not start on the directory of an upgraded node, and harms
        nothing."""
        node.stop()
        node.program = EARLIER
        node.start(wait=False)
        code = node.daemon.wait()
        lines = node.daemon.lines
        self.assertEqual(code, EXIT_DAMAGED, lines)
        node.daemon.expected_code = code
        print(f"the earlier version ends with code {code}: {lines[-1]}", flush=True)
        self.assertRegex("\n".join(lines), r"feature level|has format version")
        load.next_put()
        node.program = NEW
        node.start()
        cluster.wait_for_voters()

    def test_a_rolling_upgrade(self):
        for _ in range(UPGRADES):
            cluster = self.earlier_cluster()
            load = self.start_load(cluster)
            first_level = self.replace_all(cluster, load)
            self.wait_for_level(cluster, first_level)
            code, output, errors = self.upgrade_check(cluster.leader())
            self.assertEqual((code, errors), (0, ""), output)
            self.assertIn("no member knows a higher level\n", output)
            self.refuse_earlier(cluster, load, cluster.followers()[0])
            # To compare.
            self.figures.add("restart of the leader, all nodes of this version",
                             *self.replace(cluster, load, cluster.leader(), NEW))
            self.stop_load(load)
            cluster.check_replicas()
            cluster.check_journals()

    def test_a_node_is_killed_between_two_versions(self):
        """Nodes of both versions, and kills in place of orderly stops."""
        cluster = self.earlier_cluster()
        load = self.start_load(cluster)
        first_level = cluster.leader().status()["feature_level"]
        for program in (NEW, EARLIER, NEW):
            for node in list(cluster)[:2]:
                what = "the leader" if node.serves() else "a node that does not lead"
                self.figures.add(f"kill of {what}",
                                 *self.replace(cluster, load, node, program, Node.kill))
            self.assertEqual(self.levels(cluster), [first_level] * 3)
        last = list(cluster)[2]
        last.kill()
        last.program = NEW
        last.start()
        load.next_put()
        self.wait_for_level(cluster, first_level)
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def start_all_with_new_program(self, cluster):
        for node in cluster:
            node.program = NEW
            node.start(wait=False)
        cluster.leader()
        cluster.wait_for_voters()

    def test_all_nodes_are_stopped_and_upgraded(self):
        """The journals, raft logs and states of the earlier version are read, with all jobs."""
        cluster = self.earlier_cluster()
        first_level = cluster.leader().status()["feature_level"]
        load = self.start_load(cluster)
        load.more_puts(500)
        self.stop_load(load)
        before = cluster.check_replicas()
        self.assertGreater(len(before), 0)
        cluster.end()
        self.start_all_with_new_program(cluster)
        self.assertEqual(cluster.check_replicas(), before)
        self.wait_for_level(cluster, first_level)
        cluster.check_journals()

    def test_all_nodes_are_killed_and_upgraded(self):
        """With load: entries that are not committed, and journals that are not synced."""
        cluster = self.earlier_cluster()
        load = self.start_load(cluster)
        first_level = cluster.leader().status()["feature_level"]
        load.more_puts(500)
        for node in cluster:
            node.daemon.process.kill()
        for node in cluster:
            node.kill()
        self.start_all_with_new_program(cluster)
        load.next_put()
        self.wait_for_level(cluster, first_level)
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_another_address_while_versions_differ(self):
        """A leader of this version changes the address of a node of the earlier version, whose
        nodes take such a change at their level. A leader of the earlier version refuses it."""
        cluster = self.earlier_cluster(election=STEADY)
        new, moved = cluster.followers()
        load = self.start_load(cluster)
        self.replace(cluster, load, new, NEW)
        holder = held_port("127.0.0.2")
        self.addCleanup(holder.close)
        address = "%s:%d" % holder.getsockname()

        def set_address():
            done = subprocess.run(
                [TUBECTL, "cluster", "set-address", "--admin", f"unix:{new.admin}", "--timeout",
                 "300", moved.name, address], capture_output=True, text=True, check=False, timeout=harness.SECONDS)
            return done.returncode, done.stdout + done.stderr

        code, output = set_address()
        self.assertEqual(code, 1, output)
        self.assertIn("the leader has an earlier version, which does not know this change", output)
        cluster.hand_over(new)
        level = new.status()["feature_level"]
        moved.stop()
        moved.listen = moved.address = address
        moved.write_settings()
        self.assertEqual(set_address(), (0, f"{moved.name} has the address {address}\n"))
        moved.start()
        cluster.wait_for_voters()
        for node in cluster:
            until(f"{node.name} to know the address",
                  lambda node=node: (node.member(moved.name) or {}).get("address") == address)
        self.assertEqual(self.levels(cluster), [level] * 3)
        # A leader of the earlier version reaches the node at its new address.
        cluster.hand_over(next(node for node in cluster if node not in (new, moved)))
        cluster.wait_for_voters()
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_clients_of_a_node_that_does_not_lead(self):
        """They are refused while the leader has a version that passes on no clients. Later, they
        are passed on."""
        cluster = self.earlier_cluster(election=STEADY)
        leader = cluster.leader()
        first_level = leader.status()["feature_level"]
        if first_level >= LEVEL_OF_CLIENTS:
            self.skipTest("the earlier version passes clients on")
        for node in (*cluster.followers(), leader):
            if node is leader:
                until("a node to follow", lambda: cluster.followers()[0].role() == "follower")
                self.assertEqual(self.bytes_for_client(cluster.followers()[0]), b"")
                self.assertEqual(cluster.leader(), leader)
            node.settings["cluster__clients"] = "forward"
            node.write_settings()
            node.stop()
            node.program = NEW
            node.start()
            cluster.wait_for_voters()
        self.wait_for_level(cluster, first_level)
        with contextlib.closing(cluster.leader().connect()) as client:
            job = client.put(b"for all")
        for node in cluster:
            client = until(f"{node.name} to serve a client", lambda node=node: self.served(node))
            client.send(b"peek %d\r\n" % job)
            self.assertEqual(client.body()[1], b"for all")

    @staticmethod
    def bytes_for_client(node):
        """Returns what a client of the node reads until its connection ends."""
        with contextlib.closing(Client(node.client_address)) as client:
            with contextlib.suppress(ConnectionError):
                client.send(b"list-tubes\r\n")
                return client.rest()
        return b""

    @staticmethod
    def served(node):
        """Returns a client of the node if it is served, or None."""
        client = node.connect()
        with contextlib.suppress(OSError, AssertionError):
            if client.ask("use default") == "USING default":
                return client
        return None


if __name__ == "__main__":
    unittest.main(verbosity=2)
