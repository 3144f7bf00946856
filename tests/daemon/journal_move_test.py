#!/usr/bin/env python3
"""The move from beanstalkd's package to tubed's, as docs/installing.md prints it, while clients
retry.

The commands of the page run in a temporary directory, in order: beanstalkd and tubed listen on the
same unix socket in turn, and clients put and work all the time.
packaging/tests/payload/beanstalkd.py runs the same commands on a machine with systemd.
"""

import pathlib
import re
import subprocess
import unittest

from harness import DaemonTest
from moving import RetryingClients

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "installing.md"

# Installs tubed first, and removes the journal of its first start.
LOSING = """\
systemctl disable --now beanstalkd.socket beanstalkd.service
apt-get install ../tubed_2.0.0-1_amd64.deb
systemctl stop 'tubed*.socket' tubed.service
rm /var/lib/tubed/journal.*
cp -p /var/lib/beanstalkd/binlog.* /var/lib/tubed/
systemctl start tubed
journalctl -u tubed -g imported
"""


def commands_of_the_page():
    return re.search(r"<!-- run: move -->\n```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"),
                     re.M | re.S)[1]


class Move(DaemonTest):
    def setUp(self):
        super().setUp()
        self.socket = self.directory / "socket"
        self.address = f"unix:{self.socket}"
        self.old = self.directory / "beanstalkd"
        self.new = self.directory / "tubed"
        self.tubed = None
        self.old.mkdir()
        self.beanstalkd = self.start_beanstalkd("-b", str(self.old), path=self.socket)

    # --- the commands of the page

    def start_tubed(self):
        """Makes a missing directory, as the unit does (StateDirectory=), and starts tubed."""
        self.new.mkdir(exist_ok=True)
        self.tubed = self.start("-b", str(self.new), "-f", "0", listen=self.address)

    def play(self, text, clients):
        for line in text.splitlines():
            match line.split():
                case ["systemctl", "disable", "--now", "beanstalkd.socket", "beanstalkd.service"]:
                    self.beanstalkd.end()
                    self.socket.unlink()  # as systemd does
                    clients.meet_a_refusal()
                case ["apt-get", "install", package] if package.startswith("../tubed_"):
                    self.start_tubed()
                    # More puts than the worker finishes.
                    clients.more(len(clients.acknowledged))
                case ["systemctl", "start", "tubed"]:
                    self.start_tubed()
                case ["systemctl", "stop", "'tubed*.socket'", "tubed.service"]:
                    self.end(self.tubed)
                case ["journalctl", "--sync"]:
                    pass
                case ["journalctl", "-u", "tubed", "-g", pattern]:
                    self.tubed.wait_for_line(pattern)
                case ["mkdir" | "cp" | "rm", *_]:
                    for packaged, path in (("/var/lib/beanstalkd", self.old), ("/var/lib/tubed", self.new)):
                        line = line.replace(packaged, str(path))
                    subprocess.run(["sh", "-c", line], check=True)
                case _:
                    self.fail(f"the test does not know what this does: {line}")

    def missing_after(self, text):
        clients = RetryingClients(self.address)
        clients.more(1000)
        self.play(text, clients)
        clients.more(100)
        return clients, clients.missing()

    # --- the tests

    def test_the_commands_of_the_page_lose_no_job(self):
        clients, missing = self.missing_after(commands_of_the_page())
        self.assertEqual(missing, set())
        self.assertGreater(len(clients.finished), 0)
        self.assertEqual(len(self.tubed.lines_with("imported files=")), 1)

    def test_the_check_finds_a_loss(self):
        """Puts that were acknowledged between the first start and the removal of its journal are
        lost."""
        _, missing = self.missing_after(LOSING)
        self.assertGreater(len(missing), 0)


if __name__ == "__main__":
    unittest.main()
