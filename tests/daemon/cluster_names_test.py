"""A cluster whose nodes know each other by names, as the pods of a StatefulSet do.

Each pod is a network namespace with an address that changes with each start. Its name is in
/etc/hosts, which is a file of this test in a mount namespace: the file is rewritten whenever a pod
moves, and no operator acts.
"""

import contextlib
import pathlib
import unittest

from cluster import CALM, SECRET, Cluster, ClusterTest, Node
from harness import PROGRAM, Client
from machines import Machine, command, go_private, join_machines, skip_unless_private

TEST_HOST = "10.0.0.254"
HOSTS = pathlib.Path("/etc/hosts")


class Pod(Node):
    def __init__(self, cluster, name):
        super().__init__(cluster, name)
        self.host_name = f"{name}.tubed"
        self.machine = self.host = None  # see StatefulSet.schedule()
        self.client_address = f"unix:{self.directory}/clients"
        self.listen = "0.0.0.0:11302"
        self.address = f"{self.host_name}:11302"

    def leave(self):
        """Ends the namespace, and with it the address."""
        if self.machine:
            self.machine.close()
        self.machine = None

    def move(self, host):
        self.leave()
        self.host = host
        self.machine = Machine(self.name, host)

    def start(self, wait=True, **options):
        return super().start(wait, command=self.machine.inside(PROGRAM), **options)


class StatefulSet(Cluster):
    last_host = 0

    def __init__(self, test, **options):
        self.nodes = {}
        test.addCleanup(self.leave)  # after the end of the nodes
        super().__init__(test, **options)

    def leave(self):
        for pod in self:
            pod.leave()

    def new_node(self, name, **settings):
        pod = Pod(self, name)
        # The nodes of this test do not encrypt, and listen on all addresses of their pods.
        pod.settings = settings | {"cluster__insecure": "yes"}
        pod.write_secret(SECRET)
        self.nodes[name] = pod
        self.schedule(pod)
        return pod

    def schedule(self, *pods):
        """Moves pods that do not run to new addresses."""
        for pod in pods:
            self.last_host += 1
            pod.move(f"10.0.0.{self.last_host}")
        self.write_hosts()

    def exchange_hosts(self, one, other):
        """Each of two pods that do not run gets the address of the other."""
        hosts = one.host, other.host
        one.leave()
        other.leave()
        other.move(hosts[0])
        one.move(hosts[1])
        self.write_hosts()

    def write_hosts(self):
        """In place: a file that is mounted cannot be replaced. A node that reads half of it dials
        again."""
        HOSTS.write_text("127.0.0.1 localhost\n" + "".join(
            f"{pod.host} {pod.host_name}\n" for pod in self), encoding="ascii")


class Names(ClusterTest):
    def setUp(self):
        super().setUp()
        join_machines(self, TEST_HOST)
        hosts = self.directory / "hosts"
        hosts.touch()
        command("mount", "--bind", hosts, HOSTS)
        self.addCleanup(command, "umount", HOSTS)
        self.cluster = StatefulSet(self, election=CALM).start()
        self.jobs = {}

    def put(self):
        """Puts a job with a reply, by a node that serves at that moment."""
        body = f"job {len(self.jobs)}".encode()
        while True:
            with contextlib.suppress(OSError, AssertionError):
                with contextlib.closing(Client(self.cluster.leader().client_address)) as client:
                    client.send(b"put 0 0 60 %d\r\n%s\r\n" % (len(body), body))
                    line = client.line()
                    if line.startswith("INSERTED "):
                        self.jobs[int(line.split()[1])] = body
                        return

    def check(self):
        """The cluster is whole, takes a job, and has all jobs on each node."""
        self.cluster.wait_for_voters()
        self.put()
        found = self.cluster.check_replicas()
        for job, body in self.jobs.items():
            self.assertEqual(found[job]["body"], body)

    def test_pods_that_come_back_with_other_addresses(self):
        status = self.cluster.leader().status()
        self.assertEqual({member["address"] for member in status["members"]},
                         {"a.tubed:11302", "b.tubed:11302", "c.tubed:11302"})
        self.check()
        for number, pod in enumerate(self.cluster):
            if number == 1:
                pod.kill()
            else:
                pod.stop()
            self.cluster.schedule(pod)
            pod.start()
            self.check()
        # All at once.
        for pod in self.cluster:
            pod.kill()
        self.cluster.schedule(*self.cluster)
        for pod in self.cluster:
            pod.start()
        self.check()
        # Two of them find each other's former address.
        a, b = self.cluster["a"], self.cluster["b"]
        for pod in (a, b):
            pod.kill()
        self.cluster.exchange_hosts(a, b)
        for pod in (a, b):
            pod.start()
        self.check()


def setUpModule():
    skip_unless_private()


if __name__ == "__main__":
    go_private("--net", "--mount")
    unittest.main()
