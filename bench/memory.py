#!/usr/bin/env python3
"""Compares the memory of the process tubed with the memory that it counts for jobs.

  TUBED_PROGRAM=build/dev/src/tubed python3 bench/memory.py [MiB of limits.job_memory, at least 16]

Each case starts a new tubed without a journal, fills it with jobs up to the limit, and prints the
counted, the resident and the largest resident memory. The last cases are the worst known cases: the
remaining jobs are spread over memory that all other jobs have left.
"""

import sys

from servers import Client, Daemon

MIB = 1 << 20
LEAST_MIB = 16
LIMIT = int(sys.argv[1]) * MIB if len(sys.argv) > 1 else 64 * MIB
BATCH = 1000


class Filled:
    def __init__(self):
        self.daemon = Daemon(["--listen", "127.0.0.1:0", "--limits-job-memory", str(LIMIT)])
        self.client = Client(self.daemon.addresses[0])
        self.begun = self.daemon.resident_bytes()
        self.most = 0

    def job_memory(self):
        return self.client.stats()["job-memory"]

    def fill(self, size, delay=100_000):
        """Puts jobs of that size until the limit; returns their ids. A delayed job, like a job that
        was reserved once, takes all the memory that is counted for it."""
        before = self.job_memory()
        first = self.client.put(b"x" * size, delay=delay)
        each = self.job_memory() - before
        count = (LIMIT - self.job_memory()) // each
        in_one_piece = max(1, min(20_000, 8 * MIB // (size + 30)))
        for done in range(0, count, in_one_piece):
            self.client.put_many(min(in_one_piece, count - done), delay, size=size)
        self.most = max(self.most, self.daemon.resident_bytes())
        return range(first, first + count + 1)

    def keep(self, ids, every):
        """Deletes all but each `every`th."""
        deleted = [each for number, each in enumerate(ids) if number % every]
        for begin in range(0, len(deleted), BATCH):
            some = deleted[begin:begin + BATCH]
            self.client.pump(b"".join(b"delete %d\r\n" % each for each in some), len(some))

    def report(self, name):
        resident = self.daemon.resident_bytes()
        print(f"{name:48} {self.job_memory() / MIB:7.0f} {resident / MIB:9.0f} "
              f"{max(self.most, resident) / MIB:9.0f} {max(self.most, resident) / LIMIT:12.2f}",
              flush=True)
        self.client.close()
        self.daemon.end()


def main():
    if LIMIT < LEAST_MIB * MIB:
        sys.exit(f"memory.py: the cases need at least {LEAST_MIB} MiB")
    print(f"limits.job_memory = {LIMIT // MIB} MiB")
    print(f"{'MiB':48} {'counted':>7} {'resident':>9} {'most':>9} {'most / limit':>12}")
    for delay in (0, 100_000):
        for size in (16, 100, 1000, 60_000):
            filled = Filled()
            filled.fill(size, delay)
            filled.report(f"{'delayed' if delay else 'fresh'} jobs of {size} bytes")

    filled = Filled()
    for size in range(8, 64, 8):
        filled.keep(filled.fill(size), 200)
    filled.report("small jobs, of each size 1 in 200 stays")

    filled = Filled()
    for size in [*range(2000, 200, -300), *range(96, 8, -16)]:
        filled.keep(filled.fill(size), 100)
    filled.fill(16)
    filled.report("ever smaller jobs, of each size 1 in 100 stays")

    for every in (2, 4, 8):
        filled = Filled()
        size = 100
        while size * every < 8000:
            filled.keep(filled.fill(size), every)
            size = size * every + 100 if every > 2 else size * 3 // 2
        filled.fill(size)
        filled.report(f"ever larger jobs, of each size 1 in {every} stays")


if __name__ == "__main__":
    main()
