"""How long a restart takes, for each kind and state of jobs, and for a mixture of all.

The figures are processor time of the start until the journal is recovered, the best of three starts. The
baseline of each kind is as many plain ready jobs. The mixture has 40 % ready, 20 % delayed and 10 % buried
jobs, 10 % with a unique key, 10 % with a concurrency key, 5 % that wait for a group, and 5 % with all tags.

TUBED_RESTART_JOBS   jobs of each kind (default: 400,000)
TUBED_MIXED_JOBS     jobs of the mixture (default: 5,000,000)
"""

import itertools
import os
import shutil
import threading
import unittest

from figures import figure
from harness import DaemonTest, until

JOBS = int(os.environ.get("TUBED_RESTART_JOBS", "400000"))
MIXED_JOBS = int(os.environ.get("TUBED_MIXED_JOBS", "5000000"))
STARTS = 3
PART = 10_000  # jobs whose replies are read together


def put(tags="", delay=0):
    return f"put 0 {delay} 60 4{tags and f' {tags}'}\r\nbody\r\n".encode()


def ready(job):
    return put(), 1


def delayed(job):
    return put(delay=86_400 + job % 1000), 1


def buried(job):
    return put() + b"reserve-job %d\r\nbury %d 0\r\n" % (job, job), 4


def unique(job):
    return put(f"idp:key-{job}"), 1


def concurrent(job):
    return put(f"con:key-{job % 1000}:2"), 1


def held(job):
    # The first of each hundred is the member of the group that the others wait for.
    group = job // 100
    return put(f"grp:group-{group}" if job % 100 == 0 else f"aft:group-{group}"), 1


def with_all_tags(job):
    return put(f"idp:all-{job} con:all-{job % 1000}:2 grp:all-{job // 100} max:5 ttl:86400"), 1


KINDS = (ready, delayed, buried, unique, concurrent, held, with_all_tags)
MIXTURE = (*[ready] * 8, *[delayed] * 4, *[buried] * 2, *[unique] * 2, *[concurrent] * 2, held, with_all_tags)


def ask(client, commands, lines):
    """Sends many commands at once, and returns the lines of their replies."""
    sender = threading.Thread(target=client.send, args=(commands,))
    sender.start()
    pieces, missing = [], lines
    while missing > 0:
        piece = client.socket.recv(1 << 20)
        if not piece:
            raise AssertionError("the server has closed the connection")
        pieces.append(piece)
        missing -= piece.count(b"\n")
    sender.join()
    return b"".join(pieces).splitlines()


class Restart(DaemonTest):
    def setUp(self):
        super().setUp()
        self.clear()

    def serve(self):
        return self.start("-b", str(self.directory / "journal"), "--limits-job-memory", "64GiB")

    def make(self, kinds, jobs):
        """Puts `jobs` jobs, whose ids begin with 1."""
        daemon = self.serve()
        client = self.connect(daemon)
        numbers, cycle = itertools.count(1), itertools.cycle(kinds)
        for begin in range(0, jobs, PART):
            commands = [next(cycle)(next(numbers)) for _ in range(min(PART, jobs - begin))]
            replies = ask(client, b"".join(text for text, _ in commands), sum(lines for _, lines in commands))
            self.assertLessEqual({line.split()[0] for line in replies},
                                 {b"INSERTED", b"RESERVED", b"BURIED", b"body"})
        client.close()
        self.end(daemon)

    def seconds_of_a_start(self, jobs):
        """The least processor time of a start."""
        times = []
        for _ in range(STARTS):
            daemon = self.serve()
            until("the journal to be recovered", lambda daemon=daemon: daemon.lines_with("recovered"))
            times.append(daemon.cpu_seconds())
            self.assertIn(f"jobs={jobs} ", daemon.lines_with("recovered")[0])
            self.end(daemon)
        return min(times)

    def clear(self):
        shutil.rmtree(self.directory / "journal", ignore_errors=True)
        (self.directory / "journal").mkdir()

    def test_each_kind(self):
        baseline = None
        for kind in KINDS:
            self.make([kind], JOBS)
            seconds = self.seconds_of_a_start(JOBS)
            baseline = baseline or seconds
            figure(f"{JOBS} jobs, {kind.__name__.replace('_', ' ')}: processor time of a job",
                   1e9 * seconds / JOBS, "ns", 1e9 * baseline / JOBS, "a plain ready job")
            self.clear()

    def test_the_mixture(self):
        self.make(MIXTURE, MIXED_JOBS)
        figure(f"{MIXED_JOBS} jobs of the mixture: processor time of a start",
               self.seconds_of_a_start(MIXED_JOBS), "s")

    def test_buried_jobs_that_compaction_has_copied(self):
        baseline = self.seconds_of_a_compacted_start(delayed)
        self.clear()
        figure(f"{JOBS} buried jobs of one tube, compacted: processor time of a start",
               self.seconds_of_a_compacted_start(buried), "s", baseline, "as many delayed jobs, compacted")

    def seconds_of_a_compacted_start(self, kind):
        """Deletes two of three jobs: compaction appends copies of the oldest jobs to the newest."""
        self.make([kind, ready, ready], 3 * JOBS)
        daemon = self.serve()
        client = self.connect(daemon)
        for begin in range(0, 3 * JOBS, 3 * PART):
            ids = [job for job in range(begin + 1, min(begin + 3 * PART, 3 * JOBS) + 1) if job % 3 != 1]
            replies = ask(client, b"".join(b"delete %d\r\n" % job for job in ids), len(ids))
            self.assertEqual(set(replies), {b"DELETED"})
        until("the journal to be compacted",
              lambda: int(client.stats()["binlog-records-migrated"]) > JOBS // 10)
        client.close()
        self.end(daemon)
        return self.seconds_of_a_start(JOBS)


if __name__ == "__main__":
    unittest.main()
