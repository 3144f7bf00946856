#!/usr/bin/env python3
"""Runs the recipe of docs/tls.md: its certificates, both configurations of stunnel, and tubed.
Loads each of its examples of settings.

  tls_page_test.py --server build/dev/src/tubed

The test replaces only the directories and the addresses of the page: all addresses are unix sockets
in the test's own directory, and no port is needed. A client with a certificate puts and reserves a
job; a client without one, and a client that expects another host, are refused.
"""

import argparse
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

from run_client import check
from harness import SECONDS, Client, Process, connects, until  # in tests/daemon, see run_client

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tls.md"


def block(text, pattern):
    found = re.search(rf"{pattern}(.*?)^```$", text, re.M | re.S)
    check(f"the page has a block {pattern!r}", found)
    return found[1]


def replaced(text, *pairs):
    for old, new in pairs:
        check(f"the page names {old}", old in text)
        text = text.replace(old, new)
    return text


def conversation(path, sent):
    """Returns all bytes received until the other side closes; no bytes if it refuses."""
    until(f"{path.name} to listen", lambda: connects(path))
    with contextlib.closing(Client(f"unix:{path}")) as client, contextlib.suppress(ConnectionError):
        client.send(sent)
        return client.rest()
    return b""


class Recipe:
    def __init__(self, directory, server):
        self.directory = directory
        text = PAGE.read_text(encoding="utf-8")
        self.certificates = "set -e\n" + block(text, r"^```sh\n(?=ec=)")
        self.server = replaced(
            block(text, r"^<!-- server -->\n```ini\n"), ("/etc/stunnel/tubed/", f"{directory}/"),
            (":::11343", f"{directory}/tls"), ("/run/tubed/tubed.sock", f"{directory}/tubed"))
        self.client = replaced(
            block(text, r"^<!-- client -->\n```ini\n"), ("/etc/stunnel/tubed/", f"{directory}/"),
            ("queue.example.org:11343", f"{directory}/tls"),
            ("127.0.0.1:11300", f"{directory}/client"))
        self.settings = re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S)
        self.running = []
        self.tubed = server

    def make_certificates(self):
        done = subprocess.run(["bash", "-c", self.certificates], cwd=self.directory, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS)
        check(f"the certificates are made: {done.stdout[-60:]!r}", done.returncode == 0)

    def load_settings(self):
        """Loads the examples without the files that they name: the others need the tokens of the
        example that sets them."""
        check("the page has examples of settings", len(self.settings) > 3)
        for example in self.settings:
            file = self.directory / "tubed.toml"
            tokens = "" if "[auth]\n" in example else 'auth.tokens = "/etc/tubed/tokens"\n'
            file.write_text(tokens + example, encoding="utf-8")
            done = subprocess.run([self.tubed, "--config", file, "--print-config"], text=True,
                                  check=False, stdout=subprocess.DEVNULL, timeout=SECONDS,
                                  stderr=subprocess.PIPE)
            check(f"the example {example.splitlines()[0]} loads: {done.stderr!r}",
                  done.returncode == 0)

    def start(self, *command):
        self.running.append(Process(command, cwd=self.directory))

    def wait_for(self, name):
        until(f"{name} to listen", lambda: connects(self.directory / name))

    def stunnel(self, name, settings):
        (self.directory / f"{name}.conf").write_text(settings, encoding="utf-8")
        self.start("stunnel", f"{name}.conf")

    def run(self):
        self.make_certificates()
        self.load_settings()
        self.start(self.tubed, "-l", f"unix:{self.directory}/tubed")
        self.wait_for("tubed")
        self.stunnel("server", self.server)
        self.wait_for("tls")
        self.stunnel("client", self.client)
        received = conversation(self.directory / "client",
                                b"put 0 0 60 5\r\nhello\r\nreserve\r\ndelete 1\r\nquit\r\n")
        check("a client puts, reserves and deletes a job through both",
              received == b"INSERTED 1\r\nRESERVED 1 5\r\nhello\r\nDELETED\r\n")
        stranger = replaced(re.sub(r"^(cert|key) = .*\n", "", self.client, flags=re.M),
                            (f"{self.directory}/client", f"{self.directory}/stranger"))
        self.stunnel("stranger", stranger)
        check("a client without a certificate is refused",
              conversation(self.directory / "stranger", b"stats\r\n") == b"")
        other_host = replaced(self.client, ("queue.example.org", "other.example.org"),
                              (f"accept = {self.directory}/client",
                               f"accept = {self.directory}/other_host"))
        self.stunnel("other_host", other_host)
        check("a client that expects another host refuses this host",
              conversation(self.directory / "other_host", b"stats\r\n") == b"")
        received = conversation(self.directory / "client", b"list-tube-used\r\nquit\r\n")
        check("the first client is served as before", received == b"USING default\r\n")

    def end(self):
        for process in reversed(self.running):
            process.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tubed-tls-") as directory:
        recipe = Recipe(pathlib.Path(directory), str(options.server.resolve()))
        try:
            recipe.run()
        except (AssertionError, OSError) as error:
            print(f"tls_page_test: {error}", file=sys.stderr)
            return 1
        finally:
            recipe.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
