"""A cluster answers commands as a single server does: the transcripts of tests/wire, and random
commands compared with beanstalkd.

Each transcript plays on a cluster of its own (cluster_as_server.py), of one node and of three.
Without TUBED_FULL, half of the transcripts play on one node and fewer on three. TUBED_WIRE_RUN
names the player of transcripts.
"""

import os
import pathlib
import re
import subprocess
import unittest

from cluster import Cluster, ClusterTest
from differential_test import play
from harness import PROGRAM, SANITIZED

HERE = pathlib.Path(__file__).resolve().parent
TRANSCRIPTS = HERE.parent / "wire"
PLAYER = os.environ.get("TUBED_WIRE_RUN", "build/dev/tests/wire/wire_run")
FULL = bool(os.environ.get("TUBED_FULL"))
# The lines that a cluster answers differently by design: the line, its replacement, and the reason.
DIFFERENT = (
    (r"^(\w+<\| (?:file|binlog-[a-z-]+): )0$", r"\1{int}",
     "A node has a journal, and the transcripts are of servers without one."),
    (r"^(\w+<\| uptime: )0$", r"\1{int}",
     "The time in which the cluster is made may reach a second."),
)


class Transcripts(ClusterTest):
    def play(self, nodes, transcripts):
        played = self.directory / f"on-{nodes}"
        played.mkdir()
        for path in transcripts:
            text = path.read_text(encoding="latin-1")
            for line, pattern, _ in DIFFERENT:
                text = re.sub(line, pattern, text, flags=re.MULTILINE)
            (played / path.name).write_text(text, encoding="latin-1")
        done = subprocess.run(
            [PLAYER, "--server", "tubed", "--binary", HERE / "cluster_as_server.py", "--jobs", "3",
             played],
            env=os.environ | {"TUBED_CLUSTER_NODES": str(nodes), "TUBED_PROGRAM": PROGRAM},
            capture_output=True, check=False, text=True)
        print(f"\n{nodes} nodes: {done.stdout.splitlines()[-2:]}")
        return done

    def test_a_cluster_of_one_node(self):
        transcripts = sorted(TRANSCRIPTS.glob("*.wire"))
        done = self.play(1, transcripts if FULL else transcripts[1::2])
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])

    def test_a_cluster_of_three_nodes(self):
        transcripts = sorted(TRANSCRIPTS.glob("*.wire"))
        done = self.play(3, transcripts if FULL else transcripts[::12 if SANITIZED else 4])
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])


class Differential(ClusterTest):
    EXCHANGES = 1500

    def compare(self, nodes, seeds):
        for seed in seeds:
            original = self.start_beanstalkd()
            cluster = Cluster(self, nodes=nodes).start()
            difference = play(seed, self.EXCHANGES,
                              [original.addresses[0], cluster.leader().client_address])
            self.assertIsNone(difference, "\n" + str(difference))
            cluster.end()

    def test_one_node(self):
        self.compare(1, range(1, 3))

    def test_three_nodes(self):
        self.compare(3, range(3, 5))


if __name__ == "__main__":
    unittest.main()
