#!/usr/bin/env python3
"""Measures what the commands cost that beanstalkd lacks: server CPU a job, and memory.

  TUBED_PROGRAM=build/release/src/tubed python3 bench/features.py [jobs]

Each row starts a new tubed without a journal and sends pipelined commands on one connection. The
CPU is the user and kernel time of the process, over the jobs that the row names. A row that has a
counterpart among beanstalkd's commands is compared with it, in the same run.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "daemon"))
from harness import Client, Daemon  # noqa: E402  (the path comes first)

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
BATCH = 1000
BODY = b"0123456789abcdef"


class Server:
    def __init__(self):
        self.daemon = Daemon(["--listen", "127.0.0.1:0", "--limits-job-memory", "16GiB",
                              "--limits-output-bytes", "1MiB"])
        self.client = Client(self.daemon.addresses[0])
        self.empty = self.daemon.resident_bytes()

    def end(self):
        self.client.close()
        self.daemon.end()

    def put(self, tag=""):
        """Puts the jobs 1 to JOBS; with a tag, its key has the number of the job."""
        for first in range(1, JOBS + 1, BATCH):
            self.client.pump(b"".join(
                b"put 0 0 600 %d%b\r\n%b\r\n" % (len(BODY), tag.format(i).encode(), BODY)
                for i in range(first, first + BATCH)), BATCH)

    def each(self, command):
        """Sends command(id) for each job."""
        for first in range(1, JOBS + 1, BATCH):
            self.client.pump(b"".join(command(i) for i in range(first, first + BATCH)), BATCH)

    def reserve(self, request, count):
        """Reserves all jobs, `count` with each request."""
        for _ in range(JOBS // BATCH):
            self.client.send(request * (BATCH // count))
            lines = BATCH + (BATCH // count if count > 1 else 0)
            jobs = 0
            for _ in range(lines):
                words = self.client.line().split()
                if words[0] == "RESERVED":
                    self.client.read(int(words[2]) + 2)
                    jobs += 1
            assert jobs == BATCH, jobs

    def batches(self, word):
        """Sends one command for each BATCH of ids."""
        for first in range(1, JOBS + 1, BATCH):
            ids = " ".join(map(str, range(first, first + BATCH)))
            self.client.ask(f"{word} {ids}")


def measured(name, prepare, act, compared=None):
    """Prints the cost of act(server), and its ratio to that of the row `compared`."""
    server = Server()
    prepare(server)
    before = server.daemon.cpu_seconds()
    began = time.monotonic()
    reply = act(server)
    took = time.monotonic() - began
    cpu = server.daemon.cpu_seconds() - before
    memory = (server.daemon.resident_bytes() - server.empty) / JOBS
    ratio = f"{cpu / compared:.2f}" if compared else ""
    note = f"{reply} after {took * 1e3:.1f} ms" if isinstance(reply, str) else ""
    print(f"| {name} | {cpu / JOBS * 1e6:.2f} µs | {ratio} | {memory:.0f} | {note} |", flush=True)
    server.end()
    return cpu


def until_freed(server, command):
    """Sends the command, and waits until the memory of the jobs is free."""
    began = time.monotonic()
    reply = server.client.ask(command)
    took = time.monotonic() - began
    while server.client.stats()["job-memory"] > 0:
        time.sleep(0.01)
    return f"{reply}, answered in {took * 1e3:.2f} ms, all freed"


def main():
    print(f"| {JOBS:,} jobs of {len(BODY)} bytes | server CPU a job | ratio | bytes a job | |")
    print("|---|---:|---:|---:|---|")
    nothing = lambda server: None  # noqa: E731
    put = measured("put", nothing, Server.put)
    measured("put with a unique key", nothing, lambda s: s.put(" idp:user/{:07}"), put)
    measured("the same keys again", lambda s: s.put(" idp:user/{:07}"),
             lambda s: s.put(" idp:user/{:07}"), put)
    reserve = measured("reserve-with-timeout 0", Server.put,
                       lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1))
    measured("reserve-batch 1000", Server.put, lambda s: s.reserve(b"reserve-batch 1000\r\n", 1000),
             reserve)
    delete = measured("delete", Server.put, lambda s: s.each(lambda i: b"delete %d\r\n" % i))
    measured("delete-batch of 1,000 ids", Server.put, lambda s: s.batches("delete-batch"), delete)
    measured("delete, of unique jobs with a cooldown", lambda s: s.put(" idp:user/{:07}:3600"),
             lambda s: s.each(lambda i: b"delete %d\r\n" % i), delete)
    measured("flush-tube", Server.put, lambda s: until_freed(s, "flush-tube default"), delete)
    measured("flush-tube, of unique jobs", lambda s: s.put(" idp:user/{:07}"),
             lambda s: until_freed(s, "flush-tube default"), delete)
    measured("flush-tube default ready", Server.put, lambda s: s.client.ask(
        "flush-tube default ready"), delete)
    measured("move-job", Server.put, lambda s: s.each(lambda i: b"move-job %d t\r\n" % i), delete)
    measured("move-jobs", Server.put, lambda s: s.client.ask("move-jobs default ready t"), delete)
    measured("reprioritize", Server.put, lambda s: s.each(lambda i: b"reprioritize %d 7\r\n" % i),
             delete)


if __name__ == "__main__":
    main()
