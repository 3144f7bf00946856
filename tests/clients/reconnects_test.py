#!/usr/bin/env python3
"""A client that connects again at once, whenever its connection is closed, and without end: beaneater.
However often it is refused, the server sees few connections of it.

$TUBED_PROGRAM is the daemon.
"""

import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))

from harness import SECONDS, DaemonTest, until, write_tokens  # noqa: E402

# It is one connection to the program, and one call that never returns.
PROGRAM = """
require 'beaneater'
Beaneater.new(ARGV[0]).tubes['x'].put('y')
"""
# How long a refused connection stays open at least, in seconds, and how many are counted.
HELD, TIMES = 0.1, 12
TOKEN = "tbd_token"


class Reconnects(DaemonTest):
    def check(self, address, count):
        """`count` returns the number of connections of the client."""
        begin = time.monotonic()
        client = subprocess.Popen(["ruby", "-e", PROGRAM, address], stdin=subprocess.DEVNULL)
        try:
            until("the connections of the client", lambda: count() >= TIMES or client.poll() is not None)
            connections = count()
            seconds = time.monotonic() - begin
        finally:
            client.kill()
            client.wait(SECONDS)
        self.assertGreaterEqual(connections, TIMES)  # it has not ended by itself
        self.assertLessEqual(connections, seconds / HELD + 1)

    def test_without_a_token(self):
        tokens = write_tokens(self.directory / "tokens", {"one": TOKEN})
        path = self.write_config(f'[auth]\ntokens = "{tokens}"\n'
                                 '[[listen]]\naddress = "127.0.0.1:0"\nauth = "token"\n'
                                 '[[role]]\nname = "r"\nverbs = ["inspect"]\ntokens = ["one"]\n')
        daemon = self.start("--config", path, listen=None)
        own = self.connect(daemon)
        self.assertEqual(own.ask(f"auth {TOKEN}"), "AUTHENTICATED")
        self.check(daemon.addresses[0], lambda: own.stats()["total-connections"] - 1)


if __name__ == "__main__":
    unittest.main()
