"""Faults of a cluster under load: processes that stop for a while, links that are cut, disks that
are full or damaged, and nodes that do not belong to the cluster.

The checker of the load judges every reply. The tests with a full disk need mounts, so the program
restarts itself in a private mount namespace; if that is not allowed, it skips them.
"""

import contextlib
import os
import random
import shutil
import subprocess
import time
import unittest

from cluster import CALM, EXIT_DAMAGED, QUICK, Cluster, ClusterTest, one_error_line
from harness import Client, until
from journal_full_test import PRIVATE, go_private

# The election timeout of tests in which followers are missed for longer and the leader stays.
MISSED = 5.0
SEED = int(os.environ.get("TUBED_FAULT_SEED", str(random.randrange(1 << 32))))


class Fault(ClusterTest):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)
        print(f"{self.id()}: seed {SEED}", flush=True)

    def new_leader(self, cluster, old):
        """Waits until another node than `old` serves."""
        return until("another node to serve", lambda: next(
            (node for node in cluster if node is not old and node.serves()), None))


class Stopped(Fault):
    """SIGSTOP and SIGCONT."""

    def test_a_leader_that_was_stopped_answers_nothing_old(self):
        cluster = Cluster(self, election=CALM).start()
        load = self.start_load(cluster)
        for _ in range(3):
            old = cluster.leader()
            client = cluster.connect()
            job = client.put(b"known to both")
            kept = client.put(b"kept")
            readers = [old.connect() for _ in range(5)]
            for reader in readers:
                self.assertEqual(reader.ask("use default"), "USING default")
            old.freeze()
            # The kernel accepts the requests; the server finds them when it continues.
            for reader, request in zip(readers, (
                    b"peek %d\r\n" % job, b"stats-job %d\r\n" % job, b"delete %d\r\n" % kept,
                    b"put 0 0 9 1\r\nx\r\n", b"reserve-job %d\r\n" % job)):
                reader.send(request)
            self.new_leader(cluster, old)
            load.next_put()
            deleter = cluster.connect()
            self.assertEqual(deleter.ask(f"delete {job}"), "DELETED")
            old.thaw()
            for reader in readers:
                self.assertEqual(reader.rest(), b"")
            self.assertEqual(deleter.ask(f"delete {kept}"), "DELETED")
            cluster.wait_for_voters()
        self.stop_load(load)

    def test_a_short_stop_of_the_leader_answers_nothing_old(self):
        """The old leader continues before, while, or after another leader is elected."""
        cluster = Cluster(self, election=QUICK).start()
        load = self.start_load(cluster)

        def roles():
            return {node.role() for node in cluster}
        for moment in ("before", "while", "after") * 3:
            leader = cluster.leader()
            leader.freeze()
            if moment == "before":
                cluster.exchange(self.dice.randrange(100))
            elif moment == "while":
                until("an election", lambda: roles() & {"candidate", "leader"})
            else:
                self.new_leader(cluster, leader)
            leader.thaw()
            load.next_put()
        self.stop_load(load)

    def test_a_follower_that_was_stopped_catches_up(self):
        cluster = Cluster(self, election=MISSED).start()
        load = self.start_load(cluster)
        leader = cluster.leader()
        term = leader.status()["term"]
        for follower in cluster.followers():
            follower.freeze()
            cluster.wait_until_felt(leader, [follower.name])
            load.next_put()
            follower.thaw()
            cluster.wait_for_voters()
        self.assert_same_leader(leader, term)
        self.assertNotIn("count_ended", self.stop_load(load))

    def test_stopped_followers_stop_the_cluster_and_no_more(self):
        cluster = Cluster(self, election=CALM).start()
        client = cluster.connect()
        job = client.put(b"x")
        leader, followers = cluster.leader(), cluster.followers()
        for follower in followers:
            follower.freeze()
        writer = leader.connect()
        writer.send(b"put 0 0 9 1\r\ny\r\n")
        until("the lease to end", lambda: not leader.status()["lease_ms"])
        with contextlib.suppress(ConnectionError):
            client.send(b"peek %d\r\n" % job)
        # The leader closes its clients without an answer.
        self.assertEqual((client.rest(), writer.rest()), (b"", b""))
        self.assertFalse(leader.serves())
        for follower in followers:
            follower.thaw()
        client = cluster.connect()
        self.assertEqual(client.ask(f"delete {job}"), "DELETED")


class Links(Fault):
    def start_cluster(self, **options):
        cluster = Cluster(self, proxied=True, **options).start()
        return cluster, cluster.net, self.start_load(cluster)

    def test_a_leader_that_is_cut_off_answers_nothing(self):
        cluster, net, load = self.start_cluster(election=CALM)
        for reset in (False, True):
            old = cluster.leader()
            client = cluster.connect()
            job = client.put(b"x")
            net.partition([old.name], [node.name for node in cluster if node is not old])
            self.new_leader(cluster, old)
            load.next_put()
            self.assertFalse(old.serves())
            deleter = cluster.connect()
            self.assertEqual(deleter.ask(f"delete {job}"), "DELETED")
            with contextlib.suppress(ConnectionError):
                client.send(b"peek %d\r\n" % job)
            self.assertEqual(client.rest(), b"")
            net.heal(reset)
            cluster.wait_for_voters()
        self.stop_load(load)

    def test_a_follower_that_is_cut_off_changes_nothing(self):
        cluster, net, load = self.start_cluster(election=MISSED)
        leader = cluster.leader()
        term = leader.status()["term"]
        for reset, follower in zip((False, True), cluster.followers()):
            net.partition([follower.name], [node.name for node in cluster if node is not follower])
            cluster.wait_until_felt(leader, [follower.name])
            load.next_put()
            net.heal(reset)
            cluster.wait_for_voters()
        self.assert_same_leader(leader, term)
        self.assertNotIn("count_ended", self.stop_load(load))

    def test_cuts_of_one_direction(self):
        """The cluster keeps working without any single direction, and without all directions to or
        from the leader."""
        cluster, net, load = self.start_cluster(election=QUICK)
        names = cluster.names()
        single = [(one, other) for one in names for other in names if one != other]
        self.dice.shuffle(single)
        cuts = [[link] for link in single[:3]]
        leader = cluster.leader().name
        others = [name for name in names if name != leader]
        cuts += [[(leader, other) for other in others], [(other, leader) for other in others]]
        for links in cuts:
            leader = cluster.leader()
            for link in links:
                net.cut(*link)
            # A cut between followers has no effect to wait for.
            cluster.wait_until_felt(leader, [name for link in links if leader.name in link
                                             for name in link if name != leader.name])
            load.next_put()
            net.heal(reset=self.dice.random() < 0.5)
            cluster.wait_for_voters()
        self.stop_load(load)

    def test_links_that_flap(self):
        cluster, net, load = self.start_cluster(election=QUICK)
        names = cluster.names()
        for _ in range(30):
            one, other = self.dice.sample(names, 2)
            fault = self.dice.randrange(5)
            if fault == 0:
                net.cut(one, other)
            elif fault == 1:
                net.cut_both(one, other)
            elif fault == 2:
                net.reset(one, other)
            elif fault == 3:
                net.partition([one], [name for name in names if name != one])
            else:
                net.heal(reset=self.dice.random() < 0.3)
            cluster.exchange(self.dice.randrange(5, 60))
        net.heal()
        load.next_put()
        cluster.wait_for_voters()
        self.stop_load(load)

    def test_a_slow_network(self):
        """An entry takes a third of the election timeout, and no leader is replaced."""
        cluster, net, load = self.start_cluster(election=MISSED)
        leader = cluster.leader()
        term = leader.status()["term"]
        each_way = cluster.election / 6
        net.delay_all(each_way)
        client = leader.connect()
        for _ in range(5):
            began = time.monotonic()
            client.put()
            self.assertGreater(time.monotonic() - began, 1.8 * each_way)
        self.assert_same_leader(leader, term)
        net.heal()
        cluster.wait_for_voters()
        self.stop_load(load)


class FullDisk(Fault):
    MEGABYTES = 300  # the raft log preallocates its files

    def start_cluster(self):
        if not os.environ.get(PRIVATE):
            self.skipTest("mounting is not allowed here")
        cluster = Cluster(self, settings={"limits__job_memory": 1 << 30})
        for node in cluster:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.MEGABYTES}m", "tubed-test",
                            node.journal], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", node.journal], check=True)
        self.addCleanup(cluster.end)  # before the umounts
        return cluster.start()

    def occupy(self, node):
        """Uses all space of the node's disk."""
        with open(node.journal / "another", "ab") as file:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        os.write(file.fileno(), bytes(size))

    def release(self, node):
        (node.journal / "another").unlink()

    def put_many(self, client, count):
        """Puts jobs of 20 kB, all of which must be inserted; returns the ids."""
        body = b"x" * 20_000
        ids = []
        for _ in range(count // 10):
            client.send((b"put 0 0 100 %d\r\n%s\r\n" % (len(body), body)) * 10)
            ids += [client.line() for _ in range(10)]
        self.assertEqual({line.split()[0] for line in ids}, {"INSERTED"})
        return [int(line.split()[1]) for line in ids]

    def fill(self, client):
        """Puts jobs until a put is refused; returns the ids."""
        body = b"x" * 20_000
        ids = []
        for _ in range(100_000):
            client.send(b"put 0 0 100 %d\r\n%s\r\n" % (len(body), body))
            words = client.line().split()
            if words == ["OUT_OF_MEMORY"]:
                return ids
            ids.append(int(words[1]))
        raise AssertionError("no put was refused")

    def test_the_disk_of_a_follower_is_full(self):
        cluster = self.start_cluster()
        leader = cluster.leader()
        term = leader.status()["term"]
        follower = cluster.followers()[0]
        self.occupy(follower)
        client = cluster.connect()
        ids = self.put_many(client, 5000)  # 100 MB
        self.assert_same_leader(leader, term)
        self.release(follower)
        cluster.wait_for_voters()
        follower.daemon.wait_for_line("no room")
        for job in ids[:100]:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")

    def test_the_disk_of_the_leader_is_full(self):
        cluster = self.start_cluster()
        leader = cluster.leader()
        self.occupy(leader)
        client = cluster.connect()
        ids = []
        while leader.serves():
            try:
                ids += self.put_many(client, 100)
            except (AssertionError, OSError):
                break
        other = self.new_leader(cluster, leader)
        client = cluster.connect()
        self.put_many(client, 100)
        for job in ids[:100]:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        self.release(leader)
        cluster.wait_for_voters()
        self.assertTrue(other.serves())

    def test_the_disks_of_a_majority_are_full(self):
        cluster = self.start_cluster()
        client = cluster.connect()
        ids = self.put_many(client, 100)
        full = cluster.followers()
        for node in full:
            self.occupy(node)
        ids += self.fill(client)
        for job in ids[:50]:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        for node in full:
            self.release(node)
        until("a put to be accepted", lambda: client.ask("put 0 0 100 1\r\nx") != "OUT_OF_MEMORY")
        cluster.wait_for_voters()
        for job in ids[50:100]:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")

    def test_all_disks_are_full(self):
        cluster = self.start_cluster()
        ids = self.put_many(cluster.connect(), 100)
        for node in cluster:
            self.occupy(node)

        # Leadership may move while a leader does not know yet that all disks are full.
        rest, asked = ids[:50], set()

        def deleted():
            with contextlib.suppress(AssertionError, OSError):
                client = cluster.connect()
                self.fill(client)
                while rest:
                    again, _ = rest[-1] in asked, asked.add(rest[-1])
                    reply = client.ask(f"delete {rest[-1]}")
                    self.assertIn(reply, ("DELETED", "NOT_FOUND") if again else ("DELETED",))
                    rest.pop()
                return client
            return None
        client = until("a leader that stays to refuse puts and to delete jobs", deleted)
        for node in cluster:
            self.release(node)
        until("a put to be accepted", lambda: client.ask("put 0 0 100 1\r\nx") != "OUT_OF_MEMORY")


class Damage(Fault):
    """Flipped bits on the disk of a node that is down."""

    def setUp(self):
        super().setUp()
        self.cluster = Cluster(self).start()
        load = self.start_load(self.cluster, clients=10)
        load.more_puts(500)
        self.stop_load(load)
        self.node = self.cluster.followers()[0]
        self.cluster.wait_until_applied()
        self.node.stop()  # syncs the journal and seals the raft log

    def flip(self, path, offset):
        data = bytearray(path.read_bytes())
        data[offset] ^= 1 << self.dice.randrange(8)
        path.write_bytes(data)

    def assert_refused(self, path):
        code, _, errors = self.node.task()
        self.assertEqual(code, EXIT_DAMAGED, errors)
        self.assertIn(path.name, one_error_line(errors))
        client = self.cluster.connect()  # the other nodes continue
        self.assertTrue(client.ask("put 0 0 9 1\r\nx").startswith("INSERTED"))

    def test_a_bit_of_the_raft_log(self):
        path = sorted((self.node.journal / "cluster").glob("raft.*[0-9]"))[0]
        self.flip(path, 64 + self.dice.randrange(2000))
        self.assert_refused(path)

    def test_a_bit_of_the_journal(self):
        path = sorted(self.node.journal.glob("journal.*[0-9]"))[0]
        self.flip(path, 64 + self.dice.randrange(2000))
        self.assert_refused(path)

    def test_a_bit_of_the_state(self):
        path = sorted((self.node.journal / "cluster").glob("state.*[0-9]"))[-1]
        self.flip(path, self.dice.randrange(path.stat().st_size))
        self.assert_refused(path)

    def test_the_raft_log_is_gone(self):
        for path in (self.node.journal / "cluster").glob("raft.*"):
            path.unlink()
        code, _, errors = self.node.task()
        self.assertEqual(code, EXIT_DAMAGED, errors)
        one_error_line(errors)


class Strangers(Fault):
    def test_a_node_of_another_cluster(self):
        """A node of another cluster listens where this cluster expects a member."""
        cluster = Cluster(self).start()
        load = self.start_load(cluster, clients=10)
        leader = cluster.leader()
        term = leader.status()["term"]
        follower = cluster.followers()[0]
        follower.stop()
        kept = follower.journal.rename(follower.directory / "kept")
        follower.journal.mkdir()
        follower.bootstrap()
        follower.start()
        until("the stranger to lead its own cluster", lambda: follower.role() == "leader")
        follower.daemon.wait_for_line("another node was not accepted")
        load.next_put()
        self.assert_same_leader(leader, term)
        self.assertNotEqual(leader.status()["cluster"], follower.status()["cluster"])
        self.assertEqual(leader.status()["committed"] > 0, True)
        follower.stop()
        shutil.rmtree(follower.journal)
        kept.rename(follower.journal)
        follower.start()
        cluster.wait_for_voters()
        self.assert_same_leader(leader, term)
        self.stop_load(load)

    def test_two_nodes_of_one_name(self):
        cluster = Cluster(self).start()
        other = cluster.new_node("d")
        code, answer = cluster.leader().ask("POST", "/cluster/add",
                                            {"name": "b", "address": other.address})
        self.assertEqual(code, 409, answer)
        self.assertIn("b", answer["error"])
        code, answer = cluster.leader().ask("POST", "/cluster/add",
                                            {"name": "d", "address": cluster["b"].address})
        self.assertEqual(code, 409, answer)
        self.assertEqual(len(cluster.leader().status()["members"]), 3)

    def test_a_node_with_the_name_of_another_is_not_taken(self):
        """The cluster adds d, but a node named x answers at the address."""
        cluster = Cluster(self).start()
        other = cluster.new_node("d", cluster__name="x")
        other.start()
        cluster.add(other)
        other.daemon.wait_for_line("another node was not accepted")
        self.assertEqual(other.role(), "waiting")
        cluster.remove("d")
        cluster.wait_for_voters(["a", "b", "c"])

    def test_bytes_that_are_no_frames(self):
        cluster = Cluster(self).start()
        load = self.start_load(cluster, clients=10)
        leader = cluster.leader()
        term = leader.status()["term"]
        for node in cluster:
            for data in (b"", b"x", self.dice.randbytes(1000), b"\xff" * 100,
                         b"GET / HTTP/1.1\r\n\r\n", bytes(1000)):
                with contextlib.suppress(OSError):
                    stranger = Client(node.listen)
                    stranger.send(data)
                    stranger.half_close()
                    self.assertEqual(stranger.rest(), b"")
                    stranger.close()
        self.assert_same_leader(leader, term)
        self.assertNotIn("count_ended", self.stop_load(load))


if __name__ == "__main__":
    if not os.environ.get(PRIVATE):
        go_private()
    unittest.main()
