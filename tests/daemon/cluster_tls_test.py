"""TLS between the nodes of a cluster (cluster.tls): real nodes with it, new certificates while they
run, TLS that is turned on in a running cluster, and strangers."""

import signal
import socket
import ssl
import unittest

import harness
from certificates import Authority, days_from_now
from cluster import CALM, SECRET, STEADY, Cluster, ClusterTest, one_error_line
from harness import until

EXIT_CONFIG = 78


class Tls(ClusterTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.directory, "nodes")

    def cluster_with(self, tls=True, nodes=3, election=STEADY, **settings):
        cluster = Cluster(self, nodes=nodes, election=election, settings=settings)
        for node in cluster:
            node.write_secret(SECRET)
            if tls:
                node.write_tls(self.authority)
        return cluster

    def reload(self, node):
        """Sends SIGHUP; returns the line of the log that follows."""
        def lines():
            return [line for line in node.daemon.lines_with("reloaded")
                    if " reloaded" in line or "not reloaded" in line]
        before = len(lines())
        node.daemon.signal(signal.SIGHUP)
        until("a reload", lambda: len(lines()) > before)
        return lines()[-1]

    def test_a_cluster_whose_certificates_are_replaced(self):
        cluster = self.cluster_with(cluster__clients="forward").start()
        leader = cluster.leader()
        term = leader.status()["term"]
        follower = cluster.followers()[0]
        until("it to follow", lambda: follower.role() == "follower")
        client = follower.connect()
        client.put(b"x" * 60000)
        expiry = leader.metrics()["tubed_tls_certificate_expiry_seconds"]
        for node in cluster:
            node.write_tls(self.authority)
            self.assertIn("changed=cluster.tls.certificate", self.reload(node))
            client.put(b"more")  # a majority has it
        self.assertIn("changed=nothing", self.reload(leader))
        self.assertGreaterEqual(leader.metrics()["tubed_tls_certificate_expiry_seconds"], expiry)
        self.assert_same_leader(leader, term)
        # New connections use the new certificates: a node that starts again is a follower.
        client.close()
        follower.stop()
        follower.start()
        cluster.wait_for_voters("abc")
        self.assertEqual(len(cluster.check_replicas()), 4)

    def test_the_leader_is_killed(self):
        cluster = self.cluster_with(election=CALM).start()
        load = self.start_load(cluster)
        leader = cluster.leader()
        leader.kill()
        load.next_put()
        leader.start()
        cluster.wait_for_voters("abc")
        self.stop_load(load)

    def test_tls_is_turned_on_in_a_running_cluster(self):
        """And its authority replaced, and turned off. Nothing that was acknowledged is lost."""
        cluster = self.cluster_with(tls=False, election=CALM).start()
        load = self.start_load(cluster)
        for node in cluster:
            node.write_tls(self.authority)
            self.assertIn("cluster.tls.certificate", self.reload(node))
        load.next_put()
        other = Authority(self.directory, "others")
        both = self.directory / "both.pem"
        both.write_bytes(self.authority.ca.read_bytes() + other.ca.read_bytes())
        for authority, ca in ((self.authority, both), (other, both), (other, None)):
            for node in cluster:
                node.write_tls(authority, ca)
                self.assertIn("cluster.tls.", self.reload(node))
            load.next_put()
        for node in cluster:
            for kind in ("certificate", "key", "ca"):
                del node.settings[f"cluster__tls.{kind}"]
            node.write_settings()
            self.reload(node)
        cluster.wait_for_voters("abc")
        self.stop_load(load)

    def test_a_node_without_tls(self):
        cluster = self.cluster_with(nodes=1).start()
        node = cluster.new_node("b")
        node.write_secret(SECRET)
        node.start()
        cluster.add(node)
        cluster["a"].daemon.wait_for_line("this node has cluster.tls, and it may have none")
        node.daemon.wait_for_line("it has cluster.tls, and this node has none")
        self.assertEqual(node.role(), "waiting")
        node.write_tls(self.authority)
        self.assertIn("cluster.tls.certificate", self.reload(node))
        cluster.wait_for_voters("ab")

    def test_strangers_are_answered_nothing(self):
        cluster = self.cluster_with(nodes=1).start()
        node = cluster["a"]
        host, port = node.listen.rsplit(":", 1)
        other = Authority(self.directory, "others")
        for stranger in (other.issue("b", names=("DNS:b",), client=True), None):
            context = ssl.create_default_context(cafile=self.authority.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            if stranger:
                context.load_cert_chain(stranger.certificate, stranger.key)
            with socket.create_connection((host, int(port)), harness.SECONDS) as plain:
                with self.assertRaises(OSError):
                    with context.wrap_socket(plain, server_hostname="a") as connection:
                        connection.sendall(bytes(100))
                        if connection.recv(1) == b"":
                            raise ConnectionError
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection((host, int(port)), harness.SECONDS) as plain:
            with self.assertRaises(OSError):
                context.wrap_socket(plain, server_hostname="a")
        with socket.create_connection((host, int(port)), harness.SECONDS) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                self.assertEqual(plain.recv(100), b"")
            except ConnectionResetError:
                pass
        for reason in ("certificate verify failed", "did not return a certificate",
                       "it has no cluster.tls, and this node has it"):
            node.daemon.wait_for_line(reason)
        self.assertEqual(node.status()["role"], "leader")

    def test_files_that_cannot_be_used(self):
        cluster = self.cluster_with(nodes=1).start()
        node = cluster["a"]
        other = self.authority.issue("b", names=("DNS:b",))
        expired = self.authority.sign("a", "subjectAltName=DNS:a\n", "ec", days_from_now(-9),
                                      days_from_now(-1))
        for files, reason in (
                ({"certificate": "/none"}, "/none: cannot read"),
                ({"key": str(other.key)}, "not the key of"),
                ({"certificate": str(other.certificate), "key": str(other.key)},
                 "it has no alternative name DNS:a, which cluster.name requires"),
                ({"ca": str(node.directory / "key.pem")}, "no certificate in PEM"),
                ({"ca": ""}, "cluster.tls.certificate is set without cluster.tls.ca")):
            node.write_settings(**{f"cluster__tls.{kind}": path for kind, path in files.items()})
            line = self.reload(node)
            self.assertIn("not reloaded", line)
            code, _, errors = node.task("--check-config")
            self.assertEqual(code, EXIT_CONFIG)
            self.assertIn(reason, one_error_line(errors))
        node.write_settings()
        key = node.directory / "key.pem"
        key.chmod(0o644)
        self.assertIn("others may use this secret", self.reload(node))
        code, _, errors = node.task("--check-config")
        self.assertEqual(code, EXIT_CONFIG)
        self.assertIn("others may use this secret", one_error_line(errors))
        key.chmod(0o600)
        self.assertEqual(node.task("--check-config")[::2], (0, ""))
        node.write_settings(**{"cluster__tls.certificate": str(expired.certificate),
                               "cluster__tls.key": str(expired.key)})
        code, _, errors = node.task("--check-config")
        self.assertEqual(code, 0)
        self.assertIn("expired on", errors)
        self.assertEqual(node.status()["role"], "leader")

    def test_addresses_that_others_can_reach(self):
        """The address does not exist here: the settings are checked only."""
        node = Cluster(self, nodes=1, election=STEADY)["a"]
        node.write_tls(self.authority)
        for address in ("192.0.2.1:11302", "8.8.8.8:11302"):
            node.write_settings(cluster__listen=address, cluster__address=address)
            self.assertEqual(node.task("--check-config")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
