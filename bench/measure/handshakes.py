"""How long clients wait while thousands of slow TLS handshakes are opened.

The baseline is the same server before the handshakes. Health checks by HTTPS are measured during slow handshakes
of the same listener. Time in which the server or the measure has no processor does not count in the former.
"""

import time
import unittest

import tls_handshakes_test
import tls_http_test
from figures import Stopwatch, figure, figures_of

COMMANDS = 200


class Commands(tls_handshakes_test.SlowHandshakesTest):
    def reply_seconds(self, daemon, client):
        watch = Stopwatch(daemon)
        client.ask("list-tube-used")
        return watch.lap()

    def test_the_delay_of_slow_handshakes(self):
        count = tls_handshakes_test.SLOW
        daemon = self.serve(settings="timeouts.handshake = \"1m\"\n"
                                     f"limits.handshakes = {tls_handshakes_test.PENDING}\n")
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        alone = [self.reply_seconds(daemon, client) for _ in range(COMMANDS)]
        times = []
        begin = time.monotonic()
        for number, _ in enumerate(self.open_slow(daemon, count)):
            if number % 10 == 0:
                times.append(self.reply_seconds(daemon, client))
        figure(f"{count} slow handshakes were opened in", time.monotonic() - begin, "s")
        figures_of("a command meanwhile", times, alone, "without handshakes")
        begin = time.monotonic()
        self.connect_tls(daemon).ask("list-tube-used")
        figure("another client connects in", 1e3 * (time.monotonic() - begin), "ms")


class HealthChecks(tls_http_test.TlsHttpTest):
    def seconds(self, daemon):
        begin = time.monotonic()
        self.fetch(daemon)
        return time.monotonic() - begin

    def test_the_delay_of_slow_handshakes(self):
        daemon = self.serve_http(settings="timeouts.handshake = \"1m\"\n")
        alone = [self.seconds(daemon) for _ in range(20)]
        slow = [self.connect_http(daemon) for _ in range(200)]
        for one in slow:
            one.sendall(b"\x16")
        figures_of(f"a health check beside {len(slow)} slow handshakes",
                   [self.seconds(daemon) for _ in range(20)], alone, "without handshakes")


if __name__ == "__main__":
    unittest.main()
