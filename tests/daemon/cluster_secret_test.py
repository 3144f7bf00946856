"""The secret of a cluster (cluster.secret_file): real nodes with it, a change of it while they run,
nodes without it, and strangers."""

import base64
import hmac
import json
import signal
import socket
import struct
import unittest

import harness
from cluster import OTHER_SECRET as SECOND
from cluster import SECRET as FIRST
from cluster import STEADY, Cluster, ClusterTest, one_error_line
from harness import until

EXIT_CONFIG = 78


FRAMES, FETCH, REQUEST = 1, 2, 3  # purposes of a connection
CHALLENGE, PROOF, WELCOME = 20, 21, 17  # types of frames
NOT_A_MEMBER = 5  # in a welcome


def frame(kind, fields):
    rest = struct.pack("<BB", 1, kind) + fields
    return struct.pack("<II", len(rest) + 4, crc32c(rest)) + rest


def hello(to, nonce=b"", purpose=FRAMES, cluster=7):
    """The frame with which node 9, which knows the latest configuration of all, begins a connection
    to the node with this id."""
    address = b"x@127.0.0.1:1"
    return frame(16, struct.pack("<HIQQQQI", 3, purpose, cluster, 9, to, 1 << 40, len(address)) +
                 address + struct.pack("<IB", 0, 0) + (b"\1" + nonce if nonce else b""))


def read_frame(connection):
    """Returns the type of the next frame, and its bytes after that."""
    with connection.makefile("rb", buffering=0) as reader:
        size, _ = struct.unpack("<II", reader.read(8))
        rest = reader.read(size - 4)
    return rest[1], rest[2:]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def identity_of_cluster(node):
    """Returns what the nodes send each other as the identity of their cluster."""
    newest = max((node.journal / "cluster").glob("state.0*"))
    return int.from_bytes(newest.read_bytes()[24:32], "little")


class Secret(ClusterTest):
    def cluster_with(self, secret, nodes=3):
        cluster = Cluster(self, nodes=nodes, election=STEADY)
        for node in cluster:
            node.write_secret(secret)
        return cluster

    def reload(self, node):
        before = len(node.daemon.lines_with(" reloaded"))
        node.daemon.signal(signal.SIGHUP)
        until("a reload", lambda: len(node.daemon.lines_with(" reloaded")) > before)
        return node.daemon.lines_with(" reloaded")[-1]

    def test_a_cluster_with_a_secret_that_changes(self):
        cluster = self.cluster_with(FIRST).start()
        client = cluster.connect()
        client.put(b"first")
        leader = cluster.leader()
        term = leader.status()["term"]
        for secret in (FIRST + SECOND, SECOND + FIRST, SECOND):
            for node in cluster:
                node.write_secret(secret)
                self.assertIn("changed=cluster.secret_file", self.reload(node))
            client.put(b"more")  # a majority has it
        self.assertIn("changed=nothing", self.reload(leader))
        self.assert_same_leader(leader, term)
        cluster.wait_for_voters("abc")
        client.close()
        self.assertEqual(len(cluster.check_replicas()), 4)

    def test_a_node_with_another_secret_or_none(self):
        cluster = self.cluster_with(FIRST, nodes=1).start()
        first = cluster["a"]
        for name, secret, reason in (
                ("b", SECOND, "its proof is wrong: it has another secret"),
                ("c", "", "it has a cluster.secret_file, and this node has none")):
            node = cluster.new_node(name)
            if secret:
                node.write_secret(secret)
            node.start()
            cluster.add(node)
            node.daemon.wait_for_line(reason)
            first.daemon.wait_for_line("not connected to another node")
            self.assertEqual(node.role(), "waiting")
            # With the secret it is accepted.
            node.write_secret(FIRST)
            self.assertIn("changed=cluster.secret_file", self.reload(node))
            cluster.wait_for_voters("abc"[:"abc".index(name) + 1])
            # A slow machine may also lose connections, for other reasons.
            self.assertEqual(len([line for line in node.daemon.lines_with(reason)
                                  if "connection of another node refused" in line]), 1)

    def test_a_node_with_the_secret_that_is_no_member(self):
        """It is sent no state, and its requests are not executed."""
        cluster = self.cluster_with(FIRST, nodes=1).start()
        node = cluster["a"]
        ids = {"id": int(node.status()["id"], 16), "cluster": identity_of_cluster(node)}
        key = base64.urlsafe_b64decode(FIRST.strip()[4:] + "=")
        for purpose, to in ((FETCH, ids["id"]), (REQUEST, ids["id"]), (REQUEST, 0)):
            host, port = node.listen.rsplit(":", 1)
            with socket.create_connection((host, int(port)), harness.SECONDS) as caller:
                begin = hello(to, bytes(32), purpose, ids["cluster"])
                caller.sendall(begin)
                kind, challenge = read_frame(caller)
                self.assertEqual(kind, CHALLENGE)
                text = b"tubed 1: proof of the caller\n" + challenge + begin
                caller.sendall(frame(PROOF, hmac.digest(key, text, "sha256")))
                self.assertEqual(read_frame(caller)[0], PROOF)
                kind, welcome = read_frame(caller)
                self.assertEqual((kind, welcome[2:6]), (WELCOME, struct.pack("<I", NOT_A_MEMBER)))
                self.assertEqual(caller.recv(100), b"")
        self.assertEqual(len(node.status()["members"]), 1)

    def test_the_identity_of_the_cluster_is_shown_nowhere(self):
        cluster = self.cluster_with(FIRST, nodes=2).start()
        identities = {identity_of_cluster(node) for node in cluster}
        self.assertEqual(len(identities), 1)
        identity = f"{identities.pop():016x}"
        for node in cluster:
            texts = [*node.daemon.lines, *node.metrics(), json.dumps(node.status()),
                     node.task("--check", str(node.journal))[1]]
            self.assertIn(node.status()["cluster"], "".join(texts))
            self.assertNotIn(identity, "".join(texts))

    def test_strangers_are_answered_nothing(self):
        cluster = self.cluster_with(FIRST, nodes=1).start()
        node = cluster["a"]
        identity = int(node.status()["id"], 16)
        for frames, answer in (((hello(identity),), b""), ((hello(0),), b""),
                               ((b"GET / HTTP/1.1\r\n\r\n",), b""),
                               ((hello(identity, bytes(32)), bytes(42)), b"challenge")):
            host, port = node.listen.rsplit(":", 1)
            with socket.create_connection((host, int(port)), harness.SECONDS) as stranger:
                got = b""
                for number, frame in enumerate(frames):
                    stranger.sendall(frame)
                    if answer and number == 0:
                        while len(got) < 42:
                            got += stranger.recv(42 - len(got))
                        self.assertEqual(got[9], 20)
                self.assertEqual(stranger.recv(100), b"")
        node.daemon.wait_for_line("connection of another node refused")
        self.assertEqual(node.status()["role"], "leader")

    def test_a_node_without_a_secret_that_others_can_reach(self):
        """The address does not exist here: the settings are refused before it is opened."""
        cluster = Cluster(self, nodes=1, election=STEADY)
        node = cluster["a"]
        node.write_settings(cluster__listen="192.0.2.1:11302", cluster__address="192.0.2.1:11302")
        for flags in (["--check-config"], [], ["--cluster-bootstrap"]):
            code, _, errors = node.task(*flags)
            self.assertEqual(code, EXIT_CONFIG)
            self.assertIn("cluster.listen: other machines can connect to 192.0.2.1:11302, and "
                          "without a secret", one_error_line(errors))
            self.assertIn("make a secret with tubectl cluster secret", errors)
        node.write_settings(cluster__listen="10.0.0.1:11302", cluster__address="10.0.0.1:11302",
                            cluster__secret_file="/none")
        code, _, errors = node.task("--check-config")
        self.assertEqual(code, EXIT_CONFIG)
        self.assertIn("/none", one_error_line(errors))

    def test_a_file_that_cannot_be_used(self):
        cluster = self.cluster_with(FIRST, nodes=1).start()
        node = cluster["a"]
        path = node.directory / "secret"
        for text, mode, reason in (("x\n", 0o600, ":1: not a secret"),
                                   (FIRST, 0o640, "others may use this secret")):
            path.write_text(text, encoding="ascii")
            path.chmod(mode)
            node.daemon.signal(signal.SIGHUP)
            until(f"a reload that is refused: {reason}", lambda reason=reason: any(
                reason in line for line in node.daemon.lines_with("not reloaded")))
            code, _, errors = node.task("--check-config")
            self.assertEqual(code, EXIT_CONFIG)
            self.assertIn(reason, one_error_line(errors))
        node.stop()
        code, _, errors = node.task()
        self.assertEqual(code, EXIT_CONFIG)
        self.assertIn(reason, one_error_line(errors))


if __name__ == "__main__":
    unittest.main(verbosity=2)
