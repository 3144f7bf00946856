#!/usr/bin/env python3
"""No job stays reserved after its TTR. Connections reserve thousands of jobs with a TTR of one
second and then send nothing; all jobs must become ready. The run prints how long after the last TTR.

  ttr_soak.py --server build/dev/src/tubed
  ttr_soak.py --server /usr/bin/beanstalkd --kind beanstalkd --rounds 5

With tubed, a single stuck job is a failure. With beanstalkd, the run is a comparison: it prints how
many jobs were stuck a second after the last TTR, and exits with 0.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

import harness

TTR_SECONDS = 1
# From the end of the last TTR; beanstalkd may never get to some jobs.
MOST_SECONDS = {"tubed": harness.SECONDS, "beanstalkd": 1}

# beanstalkd cannot pick a free port itself, but takes a listening socket as descriptor 3, like a
# service of systemd: LISTEN_PID is the id of the process that inherits it.
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Beanstalkd:
    def __init__(self, program):
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
            self.addresses = ["%s:%d" % listener.getsockname()]
            self.process = subprocess.Popen(
                [sys.executable, "-c", HAND_OVER, str(listener.fileno()), program],
                pass_fds=(listener.fileno(),), stdin=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait(harness.SECONDS)
        return 0


def soak(address, options):
    """One round; returns how many jobs were late."""
    watcher = harness.Client(address)
    watcher.put_many(options.jobs, ttr=TTR_SECONDS)
    holders = [harness.Client(address) for _ in range(options.connections)]
    timeouts_before = watcher.stats()["job-timeouts"]
    each, more = divmod(options.jobs, options.connections)
    counts = [each + (index < more) for index in range(options.connections)]
    first = time.monotonic()
    for holder, count in zip(holders, counts):
        holder.send(b"reserve\r\n" * count)
    for holder, count in zip(holders, counts):
        for _ in range(count):
            words, _ = holder.body()
            assert words[0] == "RESERVED", words
    last = time.monotonic()
    # The holders send nothing more.
    over = last + TTR_SECONDS
    while True:
        stats = watcher.stats()
        timeouts = stats["job-timeouts"] - timeouts_before
        if timeouts >= options.jobs or time.monotonic() > over + MOST_SECONDS[options.kind]:
            break
    late = stats["current-jobs-reserved"]
    seen = max(time.monotonic() - over, 0)  # a TTR begins before its reply is read
    print(f"{options.jobs} reservations by {options.connections} connections within "
          f"{last - first:.2f} s: {timeouts} timeouts, {late} still reserved, "
          f"{stats['current-jobs-ready']} ready {seen * 1e3:.0f} ms after the last TTR", flush=True)
    if not late:
        assert timeouts == options.jobs, "a job timed out more than once"
        assert stats["current-jobs-ready"] == options.jobs
    for holder in holders:
        holder.close()
    harness.until("the jobs to be given back",
                  lambda: watcher.stats()["current-jobs-ready"] == options.jobs)
    while watcher.stats()["current-jobs-ready"] > 0:  # the next round begins without jobs
        watcher.ask(f"delete {watcher.reserve()[0]}")
    watcher.close()
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=harness.PROGRAM, help="the server's program")
    parser.add_argument("--kind", choices=("tubed", "beanstalkd"), default="tubed")
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    harness.raise_descriptor_limit(options.connections + 100)
    if options.kind == "tubed":
        harness.PROGRAM = os.path.abspath(options.server)
        server = harness.Daemon(["--listen", "127.0.0.1:0"])
    else:
        server = Beanstalkd(options.server)
    late = 0
    try:
        for _ in range(options.rounds):
            late += soak(server.addresses[0], options)
    finally:
        code = server.end()
    total = options.jobs * options.rounds
    print(f"{options.kind}: {late} of {total} jobs were stuck past their TTR")
    return 1 if code != 0 or (late and options.kind == "tubed") else 0


if __name__ == "__main__":
    sys.exit(main())
