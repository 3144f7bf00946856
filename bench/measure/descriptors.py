"""No descriptors: the processor time of a server that cannot accept, and the latency of a job."""

import time
import unittest

import descriptors_test
from figures import figure
from harness import Client, passed, until


class Descriptors(descriptors_test.Descriptors):
    """Only the measures of this file: the base has the daemon and exhaust()."""

    def job(self, producer, consumer):
        begin = time.monotonic()
        job = producer.put()
        consumer.ask(f"reserve-job {job}")
        consumer.read(3)
        consumer.ask(f"delete {job}")
        return time.monotonic() - begin

    def test_measure(self):
        producer, consumer = self.connect(self.daemon), self.connect(self.daemon)
        idle = max(self.job(producer, consumer) for _ in range(1000))
        producer.close()
        consumer.close()
        accepted = self.exhaust()
        begin = time.monotonic()
        for _ in range(50):
            client = self.connect(self.daemon)
            client.rest()
            client.close()
        figure("refusal of a client", (time.monotonic() - begin) / 50 * 1e3, "ms")
        before, begin = self.daemon.cpu_seconds(), time.monotonic()
        until("a second to pass", passed(begin + 1))
        figure("processor time in a second without clients", self.daemon.cpu_seconds() - before, "s")
        longest, begin = 0.0, time.monotonic()
        while time.monotonic() < begin + 1:
            longest = max(longest, self.job(*accepted[:2]))
            Client(self.daemon.addresses[0]).close()
        figure("longest job beside clients that are refused", longest * 1e3, "ms", idle * 1e3,
               "before")


for name in vars(descriptors_test.Descriptors):
    if name.startswith("test_"):
        setattr(Descriptors, name, None)

if __name__ == "__main__":
    unittest.main()
