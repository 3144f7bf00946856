#!/usr/bin/env python3
"""Makes tests/upgrade/golden: the files of a node as the earlier version writes them.

  tests/upgrade/run --goldens

The node is the only voter of its cluster, and has a standby that does not exist, so its level never
rises. It was killed, and a power cut took the end of its journal: the last jobs are in its raft log
only. tests/cluster/earlier_files_test.cc and tests/daemon/cluster_earlier_test.py read the files.

  NAME, cluster/NAME    the files, without the zeros at their ends
  files.txt             their lengths and names
  jobs.json             the jobs, as the earlier version has shown them
"""

import json
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))

from cluster import STEADY, Cluster, ClusterTest  # noqa: E402
from harness import as_dict, until  # noqa: E402

EARLIER = str(pathlib.Path(os.environ["TUBED_EARLIER_PROGRAM"]).resolve())
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
DECADES = 1 << 30  # seconds
STANDBY = {"name": "b", "address": "127.0.0.1:1"}
LEFT_OUT = ("lock",)


def put_first(client):
    """Jobs that are in the journal and in the raft log."""
    client.put(b"ready", priority=7, ttr=DECADES)
    client.put(b"delayed", delay=DECADES)
    client.put(b"\x00\r\n\xff", ttr=1)
    client.ask("use mail")
    client.put(b"to be buried", priority=5)
    client.put(b"to be deleted", priority=20)
    client.put(b"to be released", priority=9)
    client.put(b"", priority=20)
    client.ask("watch mail")
    client.ask("ignore default")
    client.send(b"reserve\r\n")
    words, _ = client.body()
    client.ask(f"bury {words[1]} 11")
    client.ask("delete 5")
    client.send(b"reserve-job 6\r\n")
    client.body()
    client.ask(f"release 6 10 {DECADES}")
    client.ask(f"pause-tube mail {DECADES}")


def put_last(client):
    """Jobs that are only in the raft log."""
    client.ask("use later")
    client.put(b"only in the raft log", priority=3)
    client.put(bytes(range(256)), delay=DECADES)
    client.ask("kick-job 4")
    client.ask("delete 1")


def shown_jobs(node, client):
    jobs = node.read_jobs(client)
    for job_id, job in jobs.items():
        client.send(b"stats-job %d\r\n" % job_id)
        job["state"] = as_dict(client.body()[1])["state"]
        job["body"] = job["body"].hex()
    return jobs


class Goldens(ClusterTest):
    def test_make(self):
        cluster = Cluster(self, nodes=1, election=STEADY)
        node = cluster["a"]
        node.program = EARLIER
        node.write_settings(journal__segment_size=4096, limits__job_bytes=512)
        node.bootstrap()
        node.start()
        client = cluster.connect()
        cluster.change("/cluster/add", STANDBY)
        put_first(client)
        copy = self.directory / "copy"
        until("the journal to have what was done last", lambda: " paused " in self.dump(node))
        shutil.copytree(node.journal, copy)
        put_last(client)
        jobs = shown_jobs(node, client)
        node.kill()
        shutil.rmtree(copy / "cluster")
        shutil.copytree(node.journal / "cluster", copy / "cluster")
        self.store(copy, jobs)

    @staticmethod
    def dump(node):
        return node.task("--dump", str(node.journal))[1]

    @staticmethod
    def store(source, jobs):
        shutil.rmtree(GOLDEN, ignore_errors=True)
        sizes = []
        for path in sorted(source.rglob("*")):
            name = str(path.relative_to(source))
            if path.is_dir() or path.name in LEFT_OUT:
                continue
            contents = path.read_bytes()
            sizes.append(f"{len(contents)} {name}\n")
            target = GOLDEN / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(contents.rstrip(b"\0"))
        (GOLDEN / "files.txt").write_text("".join(sizes), encoding="ascii")
        text = json.dumps(jobs, indent=1, sort_keys=True)
        (GOLDEN / "jobs.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    unittest.main()
