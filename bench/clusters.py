"""A cluster of tubed on this machine, for durable_puts and failover: tests/daemon/cluster.py, with a
build and a folder that the benchmark chooses."""

import contextlib
import functools
import pathlib

import servers
from servers import harness
from certificates import Authority
from cluster import Cluster

# The defaults of tubed, and no bound; the tests have small segments, a long election timeout, and
# nodes that refuse clients unless they lead.
SETTINGS = {"journal__segment_size": "10MiB", "limits__job_memory": "1048576GiB",
            "cluster__election_timeout": "300ms", "cluster__clients": "forward"}


class Owner(contextlib.ExitStack):
    """The part of a test that Cluster uses."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory
        self.daemons = []

    addCleanup = contextlib.ExitStack.callback


@contextlib.contextmanager
def running(tubed, directory, nodes, pin=(), settings=None, tls=False):
    """A Cluster in which all nodes vote. At the end its processes have ended."""
    harness.PROGRAM = str(tubed)
    with Owner(pathlib.Path(directory)) as owner:
        made = Cluster(owner, nodes, settings=SETTINGS | (settings or {}), command=[*pin, harness.PROGRAM])
        if tls:
            authority = Authority(directory)
            for node in made:
                node.write_tls(authority)
        yield made.start()


class ClusterServer(servers.Server):
    """A cluster in place of one server. Its clients use the leader, or a follower, which passes them to the
    leader. Its processor time is the sum of all nodes; stop() logs the shares of it."""

    def __init__(self, options, nodes, how, name, folder, pinned=False):
        super().__init__(None, name, folder, pinned)
        self._tubed, self._nodes, self._how = options.tubed, nodes, how
        self._cluster = None
        self._at_end = contextlib.ExitStack()

    def start(self):
        self._cluster = self._at_end.enter_context(
            running(self._tubed, self.folder, self._nodes, self._pin, tls=self._how == "TLS"))

    @property
    def address(self):
        leader = self._cluster.leader()
        if self._how != "follower":
            return leader.client_address
        return next(node for node in self._cluster if node is not leader).client_address

    def cpu_seconds(self):
        return sum(node.daemon.cpu_seconds() for node in self._cluster)

    def stop(self, number=None):
        """Ends the nodes by SIGTERM. A node that has ended by itself fails an assertion."""
        if self._cluster and self._nodes > 1:
            leader, all_nodes = self._cluster.leader().daemon.cpu_seconds(), self.cpu_seconds()
            follower = (all_nodes - leader) / (self._nodes - 1)
            servers.log(f"{self.name}: of the processor time, {leader / all_nodes:.0%} the leader's, "
                        f"{follower / all_nodes:.0%} that of each follower, {follower / leader:.2f} of the leader's")
        self._at_end.close()


def cluster(options, nodes, how="leader", journal=True):
    """Like servers.tubed(). `how`: "leader", "follower" for clients of a follower, or "TLS" between the nodes."""
    assert journal
    return functools.partial(ClusterServer, options, nodes, how)
