"""How long a client of the queue waits while many clients use the HTTP API.

The baseline is the same server before the load begins. Time in which the server or the measure is ready to
run and has no processor does not count.
"""

import time
import unittest

from api_test import LoadTest
from figures import Stopwatch, figure, figures_of

EXCHANGES = 1000


class Api(LoadTest):
    def times(self, daemon):
        """The times of puts and deletes, one after the other."""
        client = self.connect(daemon)
        client.ask("use probe")
        watch = Stopwatch(daemon)
        times = []
        for _ in range(EXCHANGES):
            watch.lap()
            job = client.put(b"probe")
            times.append(watch.lap())
            client.ask(f"delete {job}")
            times.append(watch.lap())
        return times

    def health_seconds(self, daemon):
        begin = time.monotonic()
        self.assert_healthy(daemon)
        return time.monotonic() - begin

    def test_the_delay_of_the_api(self):
        daemon = self.serve_tubes()
        alone, health_alone = self.times(daemon), [self.health_seconds(daemon) for _ in range(20)]
        with self.load(daemon):
            begin, requests = time.monotonic(), self.requests.value
            busy = self.times(daemon)
            rate = (self.requests.value - requests) / (time.monotonic() - begin)
            health = [self.health_seconds(daemon) for _ in range(20)]
        figure(f"requests of {self.CLIENTS} clients of the API", rate, "per s")
        figures_of("a command of the queue meanwhile", busy, alone, "without load")
        figures_of("a health check meanwhile", health, health_alone, "without load")


if __name__ == "__main__":
    unittest.main()
