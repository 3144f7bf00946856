"""The cost of a page of metrics for the server, and how much it delays clients of the queue.

The baseline is the delay during a page of another daemon: both load the machine alike, but only the
former loads the loop of the daemon.
"""

import time
import unittest

from figures import figure, figures_of
from metrics_test import CONNECTIONS, TUBES, HttpTest

PAGES = 10


class Scrape(HttpTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.serve("--http-max-tubes", str(TUBES))
        self.client = self.make_tubes(self.daemon)

    def test_the_cost_of_a_page(self):
        costs = []
        for _ in range(PAGES):
            begin = self.daemon.cpu_seconds()
            _, page = self.fetch(self.daemon)
            costs.append(self.daemon.cpu_seconds() - begin)
        figures_of(f"CPU time of a page of {TUBES} tubes, {len(page)} bytes", costs)

    def test_the_delay_of_a_page(self):
        other = self.serve("--http-max-tubes", str(TUBES))
        self.make_tubes(other)
        times, baseline = [], []
        for _ in range(PAGES):
            baseline += self.times_beside_a_page_of(other)
            times += self.times_beside_a_page_of(self.daemon)
        figures_of(f"{len(times)} commands while a page is read", times, baseline,
                   "a page of another daemon")

    def times_beside_a_page_of(self, daemon):
        page = self.http(daemon)
        page.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        page.socket.setblocking(False)
        times = []
        while True:
            try:
                if not page.socket.recv(1 << 18):
                    break
            except BlockingIOError:
                pass
            begin = time.perf_counter()
            self.client.ask("list-tube-used")
            times.append(time.perf_counter() - begin)
        page.close()
        return times

    def test_the_cost_of_slow_readers(self):
        """Idle readers take all connections; other clients were served before."""
        idle = self.serve()
        slow = [self.http(self.daemon, receive_buffer=4096) for _ in range(CONNECTIONS)]
        for client in slow:
            client.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            client.read(100)
        crowd = [self.http(self.daemon) for _ in range(100)]
        for client in crowd:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        for client in crowd:
            client.rest()
        begin, cpu, idle_cpu = time.monotonic(), self.daemon.cpu_seconds(), idle.cpu_seconds()
        time.sleep(2)
        seconds = time.monotonic() - begin
        figure(f"processor while {len(slow)} readers read nothing",
               100 * (self.daemon.cpu_seconds() - cpu) / seconds, "%",
               100 * (idle.cpu_seconds() - idle_cpu) / seconds, "an idle server")


if __name__ == "__main__":
    unittest.main()
