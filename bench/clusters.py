"""A cluster of tubed on this machine, for durable_puts and failover: tests/daemon/cluster.py, with a
build and a folder that the benchmark chooses."""

import contextlib
import functools
import pathlib

import servers
from servers import harness
from cluster import Cluster

# The defaults of tubed, and no bound; the tests have small segments, and a long election timeout.
SETTINGS = {"journal__segment_size": "10MiB", "limits__job_memory": "1048576GiB",
            "cluster__election_timeout": "300ms"}


class Owner(contextlib.ExitStack):
    """The part of a test that Cluster uses."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory
        self.daemons = []

    addCleanup = contextlib.ExitStack.callback


@contextlib.contextmanager
def running(tubed, directory, nodes, pin=(), settings=None):
    """A Cluster in which all nodes vote. At the end its processes have ended."""
    harness.PROGRAM = str(tubed)
    with Owner(pathlib.Path(directory)) as owner:
        yield Cluster(owner, nodes, settings=SETTINGS | (settings or {}),
                      command=[*pin, harness.PROGRAM]).start()


class ClusterServer(servers.Server):
    """A cluster in place of one server. Its clients use the leader, and its processor time is the sum
    of all nodes."""

    def __init__(self, command, name, folder, pinned=False):
        super().__init__(command, name, folder, pinned)
        self._cluster = None
        self._at_end = contextlib.ExitStack()

    def start(self):
        tubed, nodes = self._command(self.journal)
        self._cluster = self._at_end.enter_context(running(tubed, self.folder, nodes, self._pin))

    @property
    def address(self):
        return self._cluster.leader().client_address

    def cpu_seconds(self):
        return sum(node.daemon.cpu_seconds() for node in self._cluster)

    def stop(self, number=None):
        """Ends the nodes by SIGTERM. A node that has ended by itself fails an assertion."""
        self._at_end.close()


def cluster(options, nodes, journal=True):
    """Like servers.tubed()."""
    assert journal
    return functools.partial(ClusterServer, lambda _: (options.tubed, nodes))
