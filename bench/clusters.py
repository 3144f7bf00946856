"""A cluster of tubed on this machine, for durable_puts and failover: that of the daemon's tests
(tests/daemon/cluster.py), with a build and a folder that the benchmark chooses."""

import contextlib
import pathlib
import sys

import servers

sys.path.append(str(servers.ROOT / "tests" / "daemon"))
# pylint: disable=wrong-import-position
import harness  # noqa: E402  (the path comes first)
from cluster import Cluster  # noqa: E402

# The defaults of tubed, and no bound; the tests have small segments, and a long election timeout.
SETTINGS = {"journal__segment_size": "10MiB", "limits__job_memory": "1048576GiB",
            "cluster__election_timeout": "300ms"}


class Owner:
    """The part of a test that Cluster uses: a directory, and a list of actions for its end."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = []
        self._at_end = contextlib.ExitStack()

    def addCleanup(self, action, *arguments):  # pylint: disable=invalid-name
        self._at_end.callback(action, *arguments)

    def end(self):
        self._at_end.close()


@contextlib.contextmanager
def running(tubed, directory, nodes, pinned=False, settings=None):
    """A Cluster in which all nodes vote. At the end its processes have ended."""
    harness.PROGRAM = str(tubed)
    pin = {"command": ["taskset", "--cpu-list", "0", harness.PROGRAM]} if pinned else {}
    owner = Owner(pathlib.Path(directory))
    try:
        yield Cluster(owner, nodes, settings=SETTINGS | (settings or {}), **pin).start()
    finally:
        owner.end()


class ClusterServer(servers.Server):
    """A cluster in place of one server. Its clients use the leader, and its processor time is that
    of all nodes."""

    def __init__(self, name, command, folder, pinned=False):
        super().__init__(name, command, folder, pinned)
        self._cluster = None
        self._at_end = contextlib.ExitStack()

    def start(self):
        tubed, nodes = self._command(self.journal)
        self._cluster = self._at_end.enter_context(
            running(tubed, self.folder, nodes, self._pinned))

    def bench_address(self):
        return ["-s", self._cluster.leader().client_address]

    def cpu_seconds(self):
        return sum(servers.cpu_seconds_of(node.daemon.pid) for node in self._cluster)

    def stop(self, number=None):
        """Ends the nodes by SIGTERM. A node that has ended by itself fails an assertion."""
        self._at_end.close()


def cluster(options, nodes, journal=True):
    """A server as those of servers.py."""
    assert journal

    def command(_folder):
        return options.tubed, nodes
    command.kind = ClusterServer
    return command
