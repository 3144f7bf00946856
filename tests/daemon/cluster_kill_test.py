"""kill -9 of the nodes of a cluster, under load.

No acknowledged job is lost, no deleted job comes back, no job has two holders, and no job exists
twice unless its put was sent twice. After each kill the load continues: a put sent after the kill
is acknowledged. bench/measure/failover.py measures how long that takes.

TUBED_KILLS is the number of kills of the leader; the other tests kill in proportion to it.
"""

import os
import random
import unittest

from cluster import QUICK, Cluster, ClusterTest, summary
from harness import SANITIZED

KILLS = int(os.environ.get("TUBED_KILLS", "5" if SANITIZED else "30"))
SEED = int(os.environ.get("TUBED_KILL_SEED", str(random.randrange(1 << 32))))


class Kill(ClusterTest):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)
        print(f"{self.id()}: seed {SEED}", flush=True)

    def start_load(self, cluster, **options):
        load = cluster.load(**options)
        load.next_put()
        return load

    def stop_load(self, load):
        report = load.stop()
        print(summary(report), flush=True)
        self.assert_clean(report)
        return report

    def pause(self, load):
        """Lets kills come at any moment of the load."""
        load.more_puts(self.dice.randrange(300))

    def test_kills_of_the_leader(self):
        cluster = Cluster(self, election=QUICK).start()
        load = self.start_load(cluster)
        for _ in range(KILLS):
            self.pause(load)
            leader = cluster.leader()
            leader.kill()
            load.next_put()
            leader.start(wait=False)
            cluster.wait_for_voters()
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_kills_of_followers(self):
        cluster = Cluster(self).start()
        load = self.start_load(cluster)
        leader = cluster.leader()
        term = leader.status()["term"]
        for _ in range(max(3, KILLS // 5)):
            self.pause(load)
            follower = self.dice.choice(cluster.followers())
            follower.kill()
            load.next_put()
            self.pause(load)
            follower.start(wait=False)
            cluster.wait_for_voters()
        report = self.stop_load(load)
        # The leader is not affected.
        self.assert_same_leader(leader, term)
        self.assertNotIn("count_ended", report)
        cluster.check_replicas()
        cluster.check_journals()

    def test_kills_of_all_nodes_at_once(self):
        cluster = Cluster(self, election=QUICK).start()
        load = self.start_load(cluster)
        for _ in range(max(2, KILLS // 10)):
            self.pause(load)
            nodes = list(cluster)
            self.dice.shuffle(nodes)
            for node in nodes:
                node.daemon.process.kill()
            for node in nodes:
                node.kill()
            self.dice.shuffle(nodes)
            for node in nodes:
                node.start(wait=False)
            load.next_put()
            cluster.wait_for_voters()
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_kills_of_any_nodes(self):
        """Including a majority, a starting node, and a new leader."""
        cluster = Cluster(self, election=QUICK).start()
        load = self.start_load(cluster)
        for _ in range(max(5, KILLS // 2)):
            for node in cluster:
                if node.is_running() and self.dice.random() < 0.4:
                    node.kill()
            cluster.exchange(self.dice.randrange(200))
            for node in cluster:
                if not node.is_running():
                    node.start(wait=False)
        load.next_put()
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_five_nodes_survive_two(self):
        cluster = Cluster(self, nodes=5, election=QUICK).start()
        load = self.start_load(cluster, clients=20)
        for _ in range(max(1, KILLS // 10)):
            self.pause(load)
            leader, other = cluster.leader(), self.dice.choice(cluster.followers())
            other.kill()
            leader.kill()
            load.next_put()
            for node in (leader, other):
                node.start(wait=False)
            cluster.wait_for_voters()
        self.stop_load(load)


if __name__ == "__main__":
    unittest.main()
