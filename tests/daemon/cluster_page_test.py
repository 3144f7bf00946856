"""The examples of docs/clustering.md, unchanged: the cluster on one machine, HAProxy and
keepalived.

The machines are network namespaces that this test makes, with the addresses of the page. A bridge
joins them, in the namespace of the test, which HAProxy and the clients share.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import time
import unittest

from cluster import CALM, SECRET, STEADY, Cluster, ClusterTest, Node
from harness import PROGRAM, SECONDS, Client, until
from machines import Machine, command, go_private, join_machines, skip_unless_private

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "clustering.md").read_text(
    encoding="utf-8")
# The bridge's address; the page names no other machine.
CLIENTS_HOST = "10.0.0.4"
# Replaces "sleep 1" in each block of commands for one machine.
STATUS = "tubectl cluster status --admin unix:$PWD/{}/admin"
WAITED_FOR = (
    f"{STATUS.format('a')} | grep 'leader a' && {STATUS.format('b')} && {STATUS.format('c')}",
    f"{STATUS.format('b')} | grep 'leader [bc] ' && "
    "{ tubectl -s 127.0.0.1:11402 peek 1 || tubectl -s 127.0.0.1:11403 peek 1; }",
    f"{STATUS.format('b')} | tee status && grep '^a .* voter ' status && "
    "! grep 'silent for' status")


def section(title):
    """Returns the text of a section of the page, without the title."""
    found = re.search(rf"^(#+) {re.escape(title)}$\n(.*?)(?=^\1 |\Z)", PAGE, re.M | re.S)
    return found[2]


def block(named, contains):
    """Returns the only block of code of a section that contains a text."""
    found, = [code for code in re.findall(r"^```\w*\n(.*?)^```$", section(named), re.M | re.S)
              if contains in code]
    return found


class NodeOfMachine(Node):
    def __init__(self, cluster, name):
        super().__init__(cluster, name)
        self.host = f"10.0.0.{1 + len(cluster.nodes)}"
        self.machine = Machine(name, self.host)
        cluster.test.addCleanup(self.machine.close)
        self.client_address = "0.0.0.0:11300"
        self.listen = self.address = f"{self.host}:11302"

    def start(self, wait=True, **options):
        return super().start(wait, command=self.machine.inside(PROGRAM), **options)


class ClusterOfMachines(Cluster):
    def new_node(self, name, **settings):
        node = NodeOfMachine(self, name)
        node.settings = settings | {"http__listen": "0.0.0.0:11380"}
        node.write_secret(SECRET)
        self.nodes[name] = node
        return node


class Balanced(ClusterTest):
    """Clients that know only one address."""

    ADDRESS = None
    CHECK_FAILED = None  # the text of the balancer's log line
    failed_before = 0  # failed checks before the last connection

    def setUp(self):
        super().setUp()
        join_machines(self, CLIENTS_HOST)
        self.cluster = ClusterOfMachines(self, election=CALM).start()
        self.ids = []

    def run_in_background(self, *words):
        output = (self.directory / f"{len(list(self.directory.iterdir()))}.log").open("w+")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

        def end():
            if process.poll() is None:
                process.terminate()
            code = process.wait(SECONDS)
            output.seek(0)
            text = output.read()
            output.close()
            self.assertIn(code, (0, -15, 143), text)
        self.addCleanup(end)
        return process

    def put(self):
        """Puts a job through the single address, with as many attempts as needed; returns the
        client."""
        seconds = 2

        def try_put():
            nonlocal seconds
            self.failed_before = self.failed_checks()
            with contextlib.suppress(OSError):
                client = Client(self.ADDRESS)
                self.addCleanup(client.close)
                client.socket.settimeout(seconds)
                client.send(b"put 0 0 60 1\r\nx\r\n")
                try:
                    client.input = client.socket.recv(100)
                except TimeoutError:
                    # If the address leaves the node before the answer, no answer arrives.
                    seconds *= 2
                if found := re.fullmatch(rb"INSERTED (\d+)\r\n", client.input):
                    client.input = b""
                    client.socket.settimeout(SECONDS)
                    self.ids.append(int(found[1]))
                    return client
                client.close()
            return None
        return until("a put", try_put)

    def failed_checks(self):
        return sum(len(re.findall(self.CHECK_FAILED, path.read_text(encoding="utf-8")))
                   for path in self.directory.glob("*.log"))

    def stay(self, client, action):
        """Calls action(client). The connection stays open, unless a check of the balancer fails
        because the machine is slow; another is used then. Returns the client."""
        while True:
            try:
                action(client)
                return client
            except (OSError, AssertionError):
                until("a check that has failed",
                      lambda: self.failed_checks() > self.failed_before)
                client = self.put()

    def lose(self, how, leader, client):
        """Causes a fault of the leader: the next connection is to another node, and the previous
        connection ends at the latest when the client sends something. Returns the next client."""
        how()
        next_client = self.put()
        self.assertIsNot(self.cluster.leader(), leader)
        with contextlib.suppress(OSError):
            client.send(b"use default\r\n")
        self.assertEqual(client.rest(), b"")
        client.close()
        return next_client

    def peek(self, client, job):
        client.send(b"peek %d\r\n" % job)
        self.assertEqual(client.body()[1], b"x")

    def run_through_the_faults(self):
        client = self.put()
        for _ in range(3):
            client = self.stay(client, lambda client: self.ids.append(client.put()))

        leader = self.cluster.leader()
        client = self.lose(leader.kill, leader, client)
        leader.start()
        self.cluster.wait_for_voters()

        client = self.lose(self.cluster.transfer, self.cluster.leader(), client)
        self.cluster.wait_for_voters()

        leader = self.cluster.leader()
        client = self.lose(leader.stop, leader, client)
        leader.start()
        self.cluster.wait_for_voters()

        leader = self.cluster.leader()
        client = self.lose(leader.machine.pull_the_plug, leader, client)
        leader.machine.plug_in()
        self.cluster.wait_for_voters()
        client.close()

        client = self.put()
        for job in list(self.ids):
            client = self.stay(client, lambda client, job=job: self.peek(client, job))
        client.close()


class HaProxy(Balanced):
    ADDRESS = f"{CLIENTS_HOST}:11300"
    CHECK_FAILED = r"Server tubed/\w is DOWN"

    def test_the_example(self):
        file = self.directory / "haproxy.cfg"
        file.write_text(block("HAProxy", "option httpchk"), encoding="utf-8")
        command("haproxy", "-c", "-q", "-f", file)
        self.run_in_background("haproxy", "-db", "-f", file)
        self.run_through_the_faults()


class Keepalived(Balanced):
    ADDRESS = "10.0.0.10:11300"
    CHECK_FAILED = r"VRRP_Script\(leader\) (?:failed|timed)"

    def test_the_example(self):
        file = self.directory / "keepalived.conf"
        file.write_text(block("keepalived", "vrrp_instance"), encoding="utf-8")
        file.chmod(0o644)
        for node in self.cluster:
            pids = [self.directory / f"{node.name}-{kind}.pid" for kind in ("main", "vrrp")]
            self.run_in_background(*node.machine.inside(
                "keepalived", "--dont-fork", "--log-console", "--vrrp", "-f", file,
                "--pid", pids[0], "--vrrp_pid", pids[1]))
        self.run_through_the_faults()


class OneMachine(ClusterTest):
    def test_the_commands(self):
        command("ip", "link", "set", "lo", "up")
        tools = self.directory / "bin"
        tools.mkdir()
        # Keeps the leader even on a busy machine.
        (tools / "tubed").write_text(
            f'#!/bin/sh\nexec {PROGRAM} --cluster-election-timeout {STEADY:.0f}s "$@"\n')
        (tools / "tubed").chmod(0o755)
        (tools / "tubectl").symlink_to(os.environ["TUBECTL_PROGRAM"])
        blocks = re.findall(r"^```sh\n(.*?)^```$", section("A cluster on one machine"), re.M | re.S)
        self.assertEqual(len(blocks), 3)
        for number, condition in enumerate(WAITED_FOR):
            self.assertEqual(blocks[number].count("sleep 1\n"), 1)
            wait = f"until {{ {condition}; }} > waited 2>&1; do sleep 0.1; done\n"
            blocks[number] = blocks[number].replace("sleep 1\n", wait)
        script = "echo == next\n".join(blocks)
        try:
            done = subprocess.run(["bash", "-uo", "pipefail", "-c", script], cwd=self.directory,
                                  env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                                  check=False)
        except subprocess.TimeoutExpired as error:
            files = [self.directory / "cluster" / name
                     for name in ("waited", "a/log", "b/log", "c/log")]
            texts = [f"{file}:\n{file.read_text()}" for file in files if file.exists()]
            self.fail("\n".join([f"the commands do not end:\n{error.output}", *texts]))
        # On a busy machine a node may be silent for a while at any time. The blocks wait for its
        # end.
        output = re.sub(r"^warning: \w+ has been silent for .*\n", "", done.stdout, flags=re.M)
        made, killed, again = output.split("== next\n")
        page = next(code for code in re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S)
                    if code.startswith("cluster "))
        self.assertEqual(self.shape(made), self.shape(page))
        self.assertRegex(killed, r"leader [bc]  term \d+ ")
        # The leader's answer, and that of the node which passes the command to it.
        self.assertEqual(killed.count("to: ada"), 2, killed)
        self.assertRegex(again, r"\na +127\.0\.0\.1:11501 +voter ")
        self.assertEqual(done.returncode, 0)

    def shape(self, text):
        """The report of `cluster status` at the end of an output, without the varying parts."""
        text = text[text.rindex("cluster "):]
        text = re.sub(r"cluster [0-9a-f]{16}", "cluster ID", text)
        text = re.sub(r"(term|committed|lease) [\d.]+( m?s)?", r"\1 N", text)
        return re.sub(r" +[\d.]+( m?s)?|  +", " ", text)


def setUpModule():
    skip_unless_private()


if __name__ == "__main__":
    go_private("--net")
    unittest.main()
