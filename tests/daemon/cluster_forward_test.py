"""Clients of nodes that do not lead (cluster.clients): passed to the leader, or refused."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import unittest

from cluster import CALM, STEADY, Cluster, ClusterTest
from harness import as_dict, until

SECRET = f"tbc_{'a' * 42}A\n"


class Forward(ClusterTest):
    def cluster_of(self, election=STEADY, settings=None, secret=True, listen=""):
        """Starts three nodes; `listen`: more lines of the listener of clients."""
        cluster = Cluster(self, election=election,
                          settings={"cluster__clients": "forward"} | (settings or {}))
        for node in cluster:
            path = node.directory / "secret"
            path.touch(mode=0o600)
            path.write_text(SECRET, encoding="ascii")
            if secret:
                node.settings["cluster__secret_file"] = str(path)
            node.write_settings()
            with node.config.open("a", encoding="utf-8") as config:
                config.write(listen)
        return cluster.start()

    def stats(self, client):
        client.send(b"stats\r\n")
        return as_dict(client.body()[1])

    def follower(self, cluster):
        """Returns a follower that knows the leader."""
        follower = cluster.followers()[0]
        until("it to follow", lambda: follower.role() == "follower")
        return follower

    def test_each_node_serves_clients(self):
        for secret in (True, False):
            cluster = self.cluster_of(secret=secret)
            leader = cluster.leader()
            clients = [node.connect() for node in cluster]
            for client in clients:
                # All have the queue of the leader.
                self.assertEqual(int(self.stats(client)["pid"]), leader.daemon.pid)
            jobs = [client.put(b"body of %d" % number) for number, client in enumerate(clients)]
            self.assertEqual(jobs, sorted(set(jobs)))
            for client in clients:
                client.send(b"reserve\r\n")
                words, _ = client.body()
                self.assertEqual(client.ask(f"delete {words[1]}"), "DELETED")
            # A job goes from a client of one node to a client of another, which waits for it.
            clients[1].send(b"reserve\r\n")
            until("a client to wait", lambda: self.stats(clients[0])["current-waiting"] == 1)
            job = clients[2].put(b"awaited")
            self.assertEqual(clients[1].body(), (["RESERVED", str(job), "7"], b"awaited"))

    def test_the_leader_knows_the_address_of_a_client(self):
        cluster = self.cluster_of()
        client = self.follower(cluster).connect()
        client.send(b"list-clients\r\n")
        host, port = client.socket.getsockname()
        self.assertIn(f"{host}:{port}".encode(), client.body()[1])

    def test_many_bytes_in_both_directions(self):
        cluster = self.cluster_of()
        client = self.follower(cluster).connect()
        bodies = [bytes([65 + number % 26]) * (65535 - number) for number in range(300)]
        commands = b"".join(b"put 0 0 60 %d\r\n%s\r\n" % (len(body), body) for body in bodies)
        sender = threading.Thread(target=client.send, args=(commands,))
        sender.start()
        jobs = [client.line().split()[1] for _ in bodies]
        sender.join()
        # The replies are not read while they are requested: the leader waits for the reader.
        client.send(b"".join(b"peek %s\r\n" % job.encode() for job in jobs))
        for body in bodies:
            self.assertEqual(client.body()[1], body)

    def test_the_end_of_input(self):
        cluster = self.cluster_of()
        client = self.follower(cluster).connect()
        client.send(b"put 0 0 60 1\r\nx\r\n" * 500 + b"use foo\r\n")
        client.socket.shutdown(socket.SHUT_WR)
        replies = client.rest().split(b"\r\n")
        self.assertEqual(len(replies), 502)
        self.assertEqual(replies[-2:], [b"USING foo", b""])

    def test_a_change_of_the_leader(self):
        cluster = self.cluster_of()
        first = cluster.leader()
        follower = self.follower(cluster)
        client, worker = follower.connect(), follower.connect()
        client.put(b"kept")
        worker.send(b"watch none\r\nignore default\r\nreserve\r\n")
        until("the worker to wait", lambda: self.stats(client)["current-waiting"] == 1)
        cluster.hand_over(next(node for node in cluster.followers() if node is not follower))
        # Both connections end as those of the former leader do, after whole replies.
        self.assertEqual(client.rest(), b"")
        self.assertEqual(worker.rest(), b"WATCHING 2\r\nWATCHING 1\r\n")
        for node in (follower, first):
            fresh = until(f"{node.name} to serve clients", lambda node=node: self.attempt(node))
            fresh.send(b"peek-ready\r\n")
            self.assertEqual(fresh.body()[1], b"kept")

    def attempt(self, node):
        """Returns a client of the node that was answered, or None."""
        client = node.connect()
        with contextlib.suppress(OSError, AssertionError):  # closed
            if client.ask("use default") == "USING default":
                return client
        return None

    def test_a_client_waits_for_the_next_leader(self):
        cluster = self.cluster_of(election=CALM, settings={"cluster__leader_wait": "1m"})
        leader, follower = cluster.leader(), self.follower(cluster)
        leader.kill()
        # Served by another node, or by this one, which was elected meanwhile. On a slow machine, the
        # first may wait for more than the longest cluster.leader_wait.
        client = until("the next leader to serve a client", lambda: self.attempt(follower))
        client.put(b"x")

    def test_no_leader(self):
        cluster = self.cluster_of(election=CALM, settings={"cluster__leader_wait": "1s"})
        follower = self.follower(cluster)
        for node in cluster:
            if node is not follower:
                node.kill()
        until("the lease to end", lambda: follower.role() != "leader")
        client = follower.connect()
        client.send(b"stats\r\n")
        self.assertEqual(client.rest(), b"")
        follower.daemon.wait_for_line("clients have waited in vain for a leader")

    def test_a_follower_stops(self):
        cluster = self.cluster_of()
        follower = self.follower(cluster)
        client, worker = follower.connect(), follower.connect()
        self.stats(client)
        worker.send(b"reserve\r\n")
        until("the worker to wait", lambda: self.stats(client)["current-waiting"] == 1)
        follower.daemon.signal(signal.SIGTERM)
        self.assertEqual(client.rest(), b"")
        self.assertEqual(worker.rest(), b"TIMED_OUT\r\n")  # as at the end of its input
        self.assertEqual(follower.daemon.wait(), 0)
        # The job of a client that was passed on is ready again.
        self.assertEqual(self.stats(cluster.connect())["current-waiting"], 0)

    def test_roles_are_those_of_the_leader(self):
        role = 'role = "producer"\n[[role]]\nname = "producer"\nverbs = ["produce"]\n'
        cluster = self.cluster_of(listen=role)
        for node in cluster:
            client = node.connect()
            client.put(b"x")
            self.assertEqual(client.ask("reserve-with-timeout 0"), "DENIED")

    def test_limits(self):
        cluster = self.cluster_of(settings={"limits__connections": 2})
        follower = self.follower(cluster)
        clients = [follower.connect(), follower.connect()]
        for client in clients:
            self.stats(client)
        third = follower.connect()
        self.assertEqual(third.rest(), b"OUT_OF_MEMORY\r\n")
        # The leader has both connections, too.
        self.assertEqual(cluster.leader().connect().rest(), b"OUT_OF_MEMORY\r\n")

    def test_a_secret_that_is_removed(self):
        """Connections for clients were proved with it, too: they end, and are made again."""
        for on_leader in (True, False):
            cluster = self.cluster_of()
            leader, follower = cluster.leader(), self.follower(cluster)
            direct, forwarded = leader.connect(), follower.connect()
            self.stats(forwarded)
            self.assertEqual(forwarded.put(b"kept") > 0, True)
            changed = leader if on_leader else follower
            path = changed.directory / "secret"
            path.write_text(SECRET.replace("a", "b"), encoding="ascii")
            changed.daemon.signal(signal.SIGHUP)
            self.assertEqual(forwarded.rest(), b"")
            if not on_leader:  # a leader without its nodes does not answer
                self.stats(direct)

    def test_refuse(self):
        cluster = self.cluster_of(settings={"cluster__clients": "refuse"})
        for node in cluster.followers():
            self.assertEqual(node.connect().rest(), b"")
        # tubectl tries each address until a node serves it.
        leader = cluster.leader()
        addresses = [node.client_address for node in (*cluster.followers(), leader)]
        shown = subprocess.run(
            [os.environ["TUBECTL_PROGRAM"], "-s", ",".join(addresses), "stats", "--json"],
            stdout=subprocess.PIPE, check=True)
        self.assertEqual(json.loads(shown.stdout)["pid"], leader.daemon.pid)


if __name__ == "__main__":
    unittest.main(verbosity=2)
