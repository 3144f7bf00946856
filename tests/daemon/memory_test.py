"""The memory used by jobs is small, bounded, and returned to the system."""

import unittest

from harness import DaemonTest

MIB = 1 << 20
BATCH = 500


def put(client, count, size):
    """Puts jobs; returns their ids."""
    last = 0
    for begin in range(0, count, BATCH):  # limits the buffered replies
        last = int(client.put_many(min(BATCH, count - begin), size=size).split()[1])
    return range(last - count + 1, last + 1)


def delete(client, ids):
    for begin in range(0, len(ids), BATCH):
        some = ids[begin:begin + BATCH]
        client.pump(b"".join(b"delete %d\r\n" % each for each in some), len(some))


class Memory(DaemonTest):
    def test_the_memory_of_deleted_jobs_is_returned(self):
        daemon = self.start()
        client = self.connect(daemon)
        delete(client, put(client, 1000, 16))
        begun = daemon.resident_bytes()
        ids = put(client, 200_000, 16)
        self.assertLess((daemon.resident_bytes() - begun) / len(ids), 131)
        delete(client, ids)
        self.assertLess(daemon.resident_bytes(), 1.2 * begun)

    def test_remaining_jobs_of_many_sizes_do_not_retain_the_memory_of_deleted_jobs(self):
        limit = 8 * MIB
        daemon = self.start("--limits-job-memory", str(limit))
        client = self.connect(daemon)
        begun = daemon.resident_bytes()
        for size in [*range(1000, 100, -100), *range(96, 8, -8)]:
            room = limit - client.stats()["job-memory"]
            ids = put(client, room // (size + 256), size)
            delete(client, [each for number, each in enumerate(ids) if number % 100])
        # Twice the limit, because malloc would retain some memory of deleted jobs as well.
        self.assertLess(daemon.resident_bytes() - begun, 2 * limit + 4 * MIB)

    def test_a_tube_with_a_long_name_takes_what_the_manual_says(self):
        daemon = self.start()
        client = self.connect(daemon)
        begun = daemon.resident_bytes()
        tubes = 20_000
        for begin in range(0, tubes, BATCH):
            names = [b"%0200d" % each for each in range(begin, begin + BATCH)]
            client.pump(b"".join(b"use %s\r\nput 0 0 10 1\r\na\r\n" % name for name in names),
                        2 * BATCH)
        # A job, the tube and its name, which is stored once; and 1,000 tubes with metrics.
        each = 131 + 430 + 208
        self.assertLess(daemon.resident_bytes() - begun, tubes * each + 2 * MIB)


if __name__ == "__main__":
    unittest.main()
