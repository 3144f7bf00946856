"""A cluster of tubed processes for the daemon's tests: on loopback, in temporary directories.

`Cluster` writes the settings of its nodes, bootstraps the first, adds the others through the admin
socket of a node, and can kill, stop, freeze and start each. The cluster holds the ports of its
nodes (held_port()): no other process gets a port before its node starts or while the node is down.
With `proxied`, the nodes reach each other through the proxies of cluster_net.py. `ClusterTest` is
the base class of the tests.

Only the bound of harness.py, against hangs, applies to waits. The election timeout is the only time
that a slow machine could exceed. It is long unless a test waits for elections, and such a test also
passes if leadership moves more often.
"""

import contextlib
import http.client
import json
import os
import pathlib
import tempfile

import harness
from certificates import days_from_now
from cluster_load import Load
from cluster_net import Net
from harness import (SANITIZED, Client, Daemon, DaemonTest, as_dict, held_port, http_request,
                     until)

NAMES = "abcdefg"
# Election timeouts, in seconds. STEADY is the largest that a node accepts: no leader is replaced
# because the machine or a disk is slow. With CALM a leader is replaced soon after a fault, and
# hardly ever without one. With QUICK elections are frequent; tests bear that if they have only the
# clients of Load.
STEADY = 10.0
CALM = 3.0
QUICK = 1.5 if SANITIZED else 0.8
EXIT_DAMAGED = 73
EXIT_NOT_STORED = 74
EXIT_REMOVED = 80
EXIT_SUPERSEDED = 81
# Secrets of a cluster, as tubectl cluster secret prints them.
SECRET, OTHER_SECRET = (f"tbc_{letter * 42}A\n" for letter in "ab")
# The keys of stats-job that do not depend on time. A job that is delayed or held over becomes ready
# by itself.
COMPARED = ("tube", "pri", "delay", "ttr", "releases", "buries", "kicks")


class Node:
    """A node, running or not."""

    def __init__(self, cluster, name, directory=None):
        self.cluster, self.name = cluster, name
        self.directory = directory or cluster.directory / name
        self.directory.mkdir(exist_ok=True)
        self.journal = self.directory / "journal"
        self.journal.mkdir(exist_ok=True)
        self.admin, self.http = self.directory / "admin", self.directory / "http"
        self.client_address, self.listen = cluster.held_address(), cluster.held_address()
        self.address = self.listen
        if cluster.net:
            self.address = cluster.net.add(name, harness.parse_address(self.listen)[1])
        self.config = self.directory / "tubed.toml"
        self.daemon = None
        self.program = harness.PROGRAM
        self.settings = {}
        self.options = {}  # of its processes
        self.frozen = False

    def write_settings(self, cluster_mode=True, **more):
        """Writes the settings file. `more`: settings as section__key, which override the settings
        of the test's cluster."""
        values = {
            "journal__directory": str(self.journal), "journal__segment_size": 1 << 20,
            "http__listen": f"unix:{self.http}"}
        if cluster_mode:
            values |= {
                "cluster__name": self.name, "cluster__listen": self.listen,
                "cluster__address": self.address, "cluster__admin": f"unix:{self.admin}",
                "cluster__election_timeout": f"{int(self.cluster.election * 1000)}ms",
                # The checks of Load know who holds a job by the ends of the clients' connections.
                # The leader notices the end of a connection that is passed on before the client.
                "cluster__clients": "refuse"}
            values |= self.cluster.settings
        values |= self.settings | more
        sections = {}
        for key, value in values.items():
            section, name = key.split("__", 1)
            sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
        text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n\n"
                       for section, lines in sections.items())
        self.config.write_text(text + f'[[listen]]\naddress = "{self.client_address}"\n',
                               encoding="utf-8")

    def write_secret(self, secret):
        """Writes the file of the secret, and names it in the settings file."""
        path = self.directory / "secret"
        path.touch(mode=0o600)
        path.write_text(secret, encoding="ascii")
        self.settings["cluster__secret_file"] = str(path)
        self.write_settings()

    def write_tls(self, authority, ca=None):
        """Writes a new certificate of the node, its key and the authorities (`ca`, otherwise those
        of `authority`), and names the files in the settings file."""
        extensions = f"basicConstraints=CA:FALSE\nsubjectAltName=DNS:{self.name}\n"
        issued = authority.sign(self.name, extensions, "ec", days_from_now(-1), days_from_now(10))
        for kind, source in (("certificate", issued.certificate), ("key", issued.key),
                             ("ca", ca or authority.ca)):
            path = self.directory / f"{kind}.pem"
            path.touch(mode=0o600)
            path.write_bytes(source.read_bytes())
            self.settings[f"cluster__tls.{kind}"] = str(path)
        self.write_settings()

    # --- The process

    def task(self, *flags):
        """Runs a task of tubed with the node's settings. Returns (exit code, stdout, stderr)."""
        return harness.run("--config", str(self.config), *flags, program=self.program)

    def bootstrap(self):
        code, _, errors = self.task("--cluster-bootstrap")
        assert code == 0, (code, errors)

    def start(self, wait=True, **options):
        assert not self.is_running(), self.name
        self.daemon = Daemon(["--config", str(self.config)], listeners=0,
                             **({"command": [self.program]} | self.cluster.daemon_options | self.options |
                                options))
        self.cluster.daemons.append(self.daemon)
        self.cluster.test.daemons = [node.daemon for node in self.cluster if node.daemon]
        self.frozen = False
        if wait:
            until(f"node {self.name} to open its admin socket",
                  lambda: not self.is_running() or self.status())
            assert self.is_running(), (self.name, self.daemon.wait(), self.daemon.lines[-5:])
        return self

    def is_running(self):
        return self.daemon is not None and self.daemon.process.poll() is None

    def kill(self):
        """Sends SIGKILL and waits for the end of the process."""
        self.daemon.kill()

    def stop(self):
        """Sends SIGTERM, waits, and checks that the node exits regularly."""
        self.daemon.process.terminate()
        code = self.daemon.wait()
        assert code == 0, (self.name, code, self.daemon.lines[-20:])

    def wait_for_exit(self, code):
        """Waits until the process ends by itself, and checks its exit code."""
        self.daemon.expected_code = code
        got = self.daemon.wait()
        assert got == code, (self.name, got, self.daemon.lines[-20:])

    def freeze(self):
        self.daemon.freeze()
        self.frozen = True

    def thaw(self):
        self.daemon.thaw()
        self.frozen = False

    # --- Status

    def ask(self, method, target, body=None):
        status, text = http_request(self.admin, method, target, body)
        return status, json.loads(text) if text else {}

    def status(self):
        """GET /cluster; None if the node does not run, is frozen, or ends before it answers."""
        if not self.is_running() or self.frozen:
            return None
        with contextlib.suppress(OSError, http.client.HTTPException):
            code, status = self.ask("GET", "/cluster")
            if code == 200:
                return status
        return None

    def member(self, name):
        """Returns a member as this node knows it, or None."""
        members = (self.status() or {"members": []})["members"]
        return next((one for one in members if one["name"] == name), None)

    def role(self):
        status = self.status()
        return status["role"] if status else None

    def serves(self):
        """True if the node serves clients now."""
        return (self.status() or {}).get("serves", False)

    def metrics(self):
        code, text = http_request(self.http, "GET", "/metrics")
        assert code == 200, (code, text)
        found = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found

    def connect(self):
        """Returns a client of this node."""
        client = Client(self.client_address)
        self.cluster.test.addCleanup(client.close)
        return client

    def all_jobs(self):
        """All jobs, by id, with the values that must be the same on all nodes. The node leads."""
        with contextlib.closing(Client(self.client_address)) as client:
            return self.read_jobs(client)

    @staticmethod
    def read_jobs(client):
        jobs = {}
        client.send(b"list-tubes\r\n")
        for line in client.body()[1].decode().splitlines()[1:]:
            tube, start = line.removeprefix("- ").strip('"'), 0
            while True:
                client.send(b"list-jobs %s all %d 1000\r\n" % (tube.encode(), start))
                lines = client.body()[1].decode().splitlines()
                jobs |= {int(row.split()[1]): {"tube": tube} for row in lines[3:]}
                start = int(lines[1].split()[2])
                if not start:
                    break
        ids = list(jobs)
        for begin in range(0, len(ids), 100):
            some = ids[begin:begin + 100]
            client.send(b"".join(b"peek %d\r\nstats-job %d\r\n" % (i, i) for i in some))
            for job_id in some:
                jobs[job_id]["body"] = client.body()[1]
                stats = as_dict(client.body()[1])
                jobs[job_id] |= {key: stats[key] for key in COMPARED}
        return jobs


class Cluster:
    """`nodes` names are known; start() makes them a cluster. `settings`: of all nodes, as
    section__key. `election`: the election timeout."""

    def __init__(self, test, nodes=3, proxied=False, settings=None, election=STEADY,
                 **daemon_options):
        self.test = test
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=test.directory, prefix=""))
        self.settings = settings or {}
        self.election = election
        self.daemon_options = daemon_options
        self.net = Net() if proxied else None
        if self.net:
            test.addCleanup(self.net.close)
        test.addCleanup(self.end)
        self.nodes = {}
        self.daemons = []  # all processes that were started
        for name in NAMES[:nodes]:
            self.new_node(name)

    def held_address(self):
        """Returns HOST:PORT with a port that is held until the test ends."""
        holder = held_port()
        self.test.addCleanup(holder.close)
        return "%s:%d" % holder.getsockname()

    def new_node(self, name, **settings):
        node = Node(self, name)
        node.settings = settings
        node.write_settings()
        self.nodes[name] = node
        return node

    def __getitem__(self, name):
        return self.nodes[name]

    def __iter__(self):
        return iter(self.nodes.values())

    def names(self):
        return list(self.nodes)

    def client_addresses(self):
        return [node.client_address for node in self]

    def start(self, **options):
        """Bootstraps the first node, starts all nodes, and adds the others. Returns when all nodes
        vote and know it."""
        first, *others = self
        first.bootstrap()
        first.start(**options)
        self.leader()
        for node in others:
            node.start(**options)
        for node in others:
            self.add(node)
        until("all nodes to vote", lambda: self.complete(self.nodes) or self.add_missing())
        return self

    def end(self):
        """Ends all nodes, one after the other: the leader first, while another node can take
        over."""
        leader = self.find_leader()
        running = [daemon for daemon in self.daemons if daemon.process.poll() is None]
        running.sort(key=lambda daemon: leader is None or daemon is not leader.daemon)
        try:
            for daemon in running[:-1]:
                daemon.ask_to_end()
                daemon.wait()
            for daemon in running[-1:]:
                self.end_last(daemon)
        finally:
            codes = [(daemon.end(), daemon.expected_code, daemon) for daemon in self.daemons]
        wrong = [(code, daemon.lines[-20:]) for code, expected, daemon in codes if code != expected]
        assert not wrong, f"a node ended with another code than expected: {wrong}"

    @staticmethod
    def end_last(daemon):
        """Ends the last node. If it leads, it waits for another leader until a second signal."""
        def passes_on():
            return len(daemon.lines_with("passing leadership on"))
        before = passes_on()
        daemon.ask_to_end()
        until("the last node to end, or to wait for another leader",
              lambda: daemon.process.poll() is not None or passes_on() > before)
        if daemon.process.poll() is None:
            daemon.process.terminate()
            # Without a majority its last entries may not be stored.
            if daemon.wait() == EXIT_NOT_STORED:
                daemon.expected_code = EXIT_NOT_STORED

    # --- Leaders and members

    def find_leader(self):
        """Returns the node that serves clients, or None."""
        return next((node for node in self if node.serves()), None)

    def leader(self):
        return until("a node to serve clients", self.find_leader)

    def followers(self):
        leader = self.leader()
        return [node for node in self if node is not leader and node.is_running()]

    def add(self, node):
        """Adds a member; returns when the leader has accepted the change."""
        self.change("/cluster/add", {"name": node.name, "address": node.address})

    def add_standby(self, node):
        """Adds a standby that stays; returns when it follows the leader."""
        self.change("/cluster/add-standby", {"name": node.name, "address": node.address})

        def follows():
            leader = self.find_leader()
            member = leader and leader.member(node.name)
            return member and member["lag_ms"] is not None
        until(f"{node.name} to follow", follows)

    def add_missing(self):
        """Adds the nodes that the leader does not have. If leadership moves, the next leader may
        lack an entry that the previous leader accepted."""
        leader = self.find_leader()
        status = leader.status() if leader else None
        for node in self if status else ():
            if node.name not in (member["name"] for member in status["members"]):
                self.add(node)

    def remove(self, name):
        """Removes a member; returns when the leader no longer has it. A leader that is to be
        removed asks the next leader to remove it, and gives up if no leader is elected soon."""
        asked = []

        def removed():
            leader = self.find_leader()
            status = leader.status() if leader else None
            if status and name not in (member["name"] for member in status["members"]):
                return True
            self.change("/cluster/remove", {"name": name}, repeated=bool(asked))
            asked.append(name)
            return False
        until(f"{name} to be removed", removed)

    def transfer(self, name=None):
        self.change("/cluster/transfer", {"name": name} if name else {})

    def change(self, path, body, repeated=False):
        """Repeats a request while another change is in progress or no node leads. The node that
        accepts it may lose leadership before it answers; the next request then finds the change
        done."""
        done = {"/cluster/add": 409, "/cluster/add-standby": 409,
                "/cluster/remove": 404}.get(path)

        def accepted():
            nonlocal repeated
            before, repeated = repeated, True
            try:
                code, answer = self.leader().ask("POST", path, body)
            except (OSError, http.client.HTTPException):
                return False
            if code == 200 or before and code == done:
                return True
            assert code in (409, 503), (path, body, code, answer)
            return False
        until(f"{path} {body} to be accepted", accepted)

    def complete(self, names):
        """Returns the leader's status if its members are exactly these nodes, the change that made
        them so is committed, and all vote and have every committed entry."""
        leader = self.find_leader()
        status = leader.status() if leader else None
        if not status or sorted(m["name"] for m in status["members"]) != sorted(names):
            return None
        complete = status["members_index"] <= status["committed"] and all(
            m["votes"] and (m["self"] or (m["match"] or 0) >= status["committed"])
            for m in status["members"])
        return status if complete else None

    def wait_for_voters(self, names=None):
        names = sorted(names or self.nodes)
        return until(f"the members to be {names}, and to have all entries",
                     lambda: self.complete(names))

    def wait_until_applied(self, nodes=None):
        """Waits until these nodes have applied all entries committed so far."""
        index = self.leader().status()["committed"]
        for node in nodes or self:
            until(f"node {node.name} to apply entry {index}",
                  lambda node=node: (node.status() or {"applied": 0})["applied"] >= index)

    def hand_over(self, node):
        """Makes a node the leader. Repeats the transfer if it fails."""
        def leads():
            leader = self.find_leader()
            if leader not in (None, node):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    code, answer = leader.ask("POST", "/cluster/transfer", {"name": node.name})
                    assert code in (200, 409, 503), (node.name, code, answer)
            return leader is node
        until(f"node {node.name} to lead", leads)

    def jobs_of(self, node):
        """Returns all jobs, as this node shows them while it leads."""
        while True:
            self.hand_over(node)
            term = (node.status() or {}).get("term")
            try:
                return node.all_jobs()
            except (OSError, AssertionError):
                if node.serves() and node.status()["term"] == term:
                    raise

    def check_replicas(self):
        """Checks that each node shows the same jobs when it leads; returns the jobs."""
        self.wait_for_voters(node.name for node in self if node.is_running())
        first, *others = [self.jobs_of(node) for node in self if node.is_running()]
        for other in others:
            self.test.assertEqual(first, other)
        return first

    def exchange(self, times):
        """A pause: each running node answers some requests. It is longer on a slower machine."""
        for _ in range(times):
            for node in self:
                node.status()

    def wait_until_felt(self, leader, followers):
        """Waits until a leader has missed some followers for longer than the election timeout, or
        no longer leads."""
        def felt():
            status = leader.status()
            return not status or not status["serves"] or all(
                member["silent_ms"] is not None and
                member["silent_ms"] > 1200 * self.election
                for member in status["members"] if member["name"] in followers)
        until(f"{leader.name} to miss {followers}", felt)

    def check_journals(self):
        """Stops all nodes, and checks that each journal is intact."""
        for node in self:
            if node.is_running():
                node.stop()
            code, _, errors = harness.run("--check", str(node.journal))
            self.test.assertEqual(code, 0, errors)

    # --- Clients

    def connect(self):
        """Returns a client of the node that serves."""
        def connected():
            leader = self.find_leader()
            if not leader:
                return None
            with contextlib.suppress(OSError, AssertionError):
                client = Client(leader.client_address)
                self.test.addCleanup(client.close)
                if client.ask("use default") == "USING default":
                    return client
            return None
        return until("a node to serve a client", connected)

    def load(self, **options):
        load = Load(self.client_addresses(), **options)
        self.test.addCleanup(load.close)
        return load


class ClusterTest(DaemonTest):
    def start_load(self, cluster, **options):
        load = cluster.load(**({"clients": 30} | options))
        load.next_put()
        return load

    def stop_load(self, load):
        load.next_put()
        report = load.stop()
        print(summary(report), flush=True)
        self.assert_clean(report)
        return report

    def assert_clean(self, report):
        """Checks that the load has found no problem."""
        self.assertEqual(report["problem_count"], 0, "\n" + "\n".join(report["problems"]))
        self.assertGreater(report.get("count_inserted", 0), 0, report)

    def assert_same_leader(self, leader, term):
        status = leader.status()
        self.assertEqual((status["role"], status["term"]), ("leader", term))


def one_error_line(errors):
    """Returns the only line on stderr that is not a log line."""
    lines = [line for line in errors.splitlines() if line.startswith("tubed: ")]
    assert len(lines) == 1, errors
    return lines[0]


def summary(report):
    return ", ".join(f"{key.removeprefix('count_')} {value}" for key, value in report.items()
                     if key.startswith("count_"))
