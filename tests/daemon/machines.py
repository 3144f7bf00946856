"""Machines for the tests of clusters: network namespaces that a bridge joins.

The bridge is in the namespace of the test. A test module calls go_private() before its tests, and
skip_unless_private() in setUpModule().
"""

import os
import shutil
import subprocess
import sys
import unittest

from harness import SECONDS, until

PRIVATE = "TUBED_PRIVATE_NETWORK"


def command(*words):
    subprocess.run(words, check=True, timeout=SECONDS)


class Machine:
    """A network namespace, kept by a process `sleep`."""

    def __init__(self, name, host):
        self.link = f"to-{name}"
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net",
                                        "sleep", "infinity"])
        mine = os.readlink("/proc/self/ns/net")
        until("a namespace", lambda: os.readlink(f"/proc/{self.keeper.pid}/ns/net") != mine)
        command("ip", "link", "add", self.link, "master", "bridge", "up", "type", "veth",
                "peer", "name", "eth0", "netns", str(self.keeper.pid))
        command(*self.inside("ip", "address", "add", f"{host}/24", "dev", "eth0"))
        for name in ("lo", "eth0"):
            command(*self.inside("ip", "link", "set", name, "up"))

    def inside(self, *words):
        """Returns a command that runs on the machine."""
        return ["nsenter", "--target", str(self.keeper.pid), "--net", *words]

    def pull_the_plug(self):
        command("ip", "link", "set", self.link, "down")

    def plug_in(self):
        command("ip", "link", "set", self.link, "up")

    def close(self):
        # The kernel would delete it too late for the next test.
        command("ip", "link", "delete", self.link)
        self.keeper.kill()
        self.keeper.wait()


def make_bridge(host):
    """Makes the bridge, with an address for the test. It ends with the namespace."""
    command("ip", "link", "set", "lo", "up")
    command("ip", "link", "add", "bridge", "up", "type", "bridge")
    command("ip", "address", "add", f"{host}/24", "dev", "bridge")


def join_machines(test, host):
    """Makes the bridge for one test."""
    make_bridge(host)
    test.addCleanup(command, "ip", "link", "delete", "bridge")


def go_private(*kinds):
    """Restarts this program in namespaces of its own, if that is allowed. `kinds`: the options of
    unshare(1); --net is one of them."""
    if os.environ.get(PRIVATE):
        return
    for unshare in (["unshare", *kinds], ["unshare", "--map-root-user", *kinds]):
        probe = [*unshare, "ip", "link", "add", "bridge", "type", "bridge"]
        if shutil.which("ip") and subprocess.run(probe, capture_output=True,
                                                 check=False).returncode == 0:
            os.environ[PRIVATE] = "1"
            os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def skip_unless_private():
    if not os.environ.get(PRIVATE):
        raise unittest.SkipTest("no network namespaces here")
