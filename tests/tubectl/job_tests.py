"""Helpers of the tests of clear, move, export and import: jobs in every state, and queries."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

from programs import DONE, SECONDS, TUBECTL, Client, TubectlTest, until
STATES = ("ready", "delayed", "buried")
LONG = 1000  # a delay longer than any test
BODIES = [b"", b"plain", b"\r\n", bytes(range(256)), "größer".encode(), b"\xff" * 65535,
          b"x" * 65535]
TUBES = ["default", "a-b+c/d;e.f$g_h(i)", "1.0", "t" * 200]
LEAST_LINE = 150  # the smallest line of a job, in bytes


class Left:
    """A remaining delay, measured at a certain time. Two of them are equal if they differ by at
    most two seconds plus the time between the measurements, because the machine may be slow."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.moment = time.monotonic()

    def __eq__(self, other):
        return (isinstance(other, Left) and abs(self.seconds - other.seconds)
                <= 2 + abs(self.moment - other.moment))

    def __repr__(self):
        return f"Left({self.seconds}) at {self.moment:.1f}"


def left_of(state, seconds):
    """The remaining time; of a job that is not delayed, compared exactly."""
    return Left(seconds) if state == "delayed" else seconds


class Gate:
    """A proxy in front of a server. Before it forwards the first command that contains `mark`, it
    calls `reached` once: an event then happens in the middle of a run, however fast the run is. If
    `reached` is set again meanwhile, it is called before the next such command."""

    def __init__(self, server, mark):
        self.server = server
        self.mark = mark
        self.reached = None  # set this before the first byte arrives
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            server = Client(self.server).socket
            for source, target, mark in ((client, server, self.mark), (server, client, None)):
                threading.Thread(target=self.pass_on, args=(source, target, mark),
                                 daemon=True).start()

    def pass_on(self, source, target, mark):
        last = b""
        try:
            while data := source.recv(1 << 16):
                if mark and self.reached and mark in last + data:
                    reached, self.reached = self.reached, None
                    reached()
                last = (last + data)[-len(mark):] if mark else b""
                target.sendall(self.changed(data))
            target.shutdown(socket.SHUT_WR)
        except OSError:  # one side has closed its connection
            pass

    def changed(self, data):
        return data

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class OldServer(Gate):
    """A server that does not know `capabilities`, as tubed 2.0.0."""

    def __init__(self, server):
        super().__init__(server, None)

    def changed(self, data):
        return data.replace(b"capabilities\r\n", b"capabilitie-\r\n")


class ServerWithout(Gate):
    """A server that does not list this capability."""

    def __init__(self, server, capability):
        self.capability = capability
        super().__init__(server, None)

    def changed(self, data):
        return data.replace(b"- " + self.capability, b"- " + b"x" * len(self.capability))


class CapabilityTest(TubectlTest):
    def without(self, server, capability):
        """Returns the address of a proxy of the server that does not list this capability."""
        proxy = ServerWithout(server, capability)
        self.addCleanup(proxy.close)
        return proxy.address


class JobTest(TubectlTest):
    def signalled(self, server, number, mark, *arguments):
        """Runs tubectl and sends it this signal before the server gets the first command that
        contains `mark`. Returns (exit code, stdout, stderr)."""
        gate = Gate(server, mark)
        self.addCleanup(gate.close)
        started = threading.Event()
        process = None

        def reached():
            started.wait(SECONDS)
            process.send_signal(number)
        gate.reached = reached
        process = self.popen(gate.address, *arguments, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        started.set()
        output, errors = process.communicate(timeout=SECONDS)
        return process.returncode, output, errors

    def put_in(self, client, tube, state, body=b"x", priority=10, delay=LONG, ttr=77):
        """Adds a job in that state; returns its id."""
        client.ask(f"use {tube}")
        job = client.put(body, priority, delay if state == "delayed" else 0, ttr)
        if state == "reserved":
            client.reserve(f"reserve-job {job}")
        if state == "buried":  # sent together, so no TTR expires in between
            client.send(b"reserve-job %d\r\nbury %d %d\r\n" % (job, job, priority))
            client.body()
            self.assertEqual(client.line(), "BURIED")
        return job

    def fill(self, address, tube, ready=0, delayed=0, buried=0):
        """Adds jobs with the bodies "STATE N"; returns the ids by state."""
        client = self.client(address)
        counts = {"ready": ready, "delayed": delayed, "buried": buried}
        return {state: [self.put_in(client, tube, state, f"{state} {i}".encode(), priority=i)
                        for i in range(count)] for state, count in counts.items()}

    def counts(self, address, tube):
        """Returns the numbers of ready, delayed, buried and reserved jobs."""
        stats = self.client(address).stats_if_found(f"stats-tube {tube}")
        if stats is None:
            return (0, 0, 0, 0)
        return tuple(stats[f"current-jobs-{state}"] for state in (*STATES, "reserved"))

    def job(self, client, job):
        """Returns (state, priority, TTR, remaining delay, body)."""
        stats = client.stats(f"stats-job {job}")
        client.send(b"peek %d\r\n" % job)
        body = client.body()[1]
        left = stats["time-left"] if stats["state"] == "delayed" else 0
        return stats["state"], stats["pri"], stats["ttr"], left_of(stats["state"], left), body

    def jobs(self, address, newest):
        """Returns all jobs up to that id: {tube: [job(), by id]}."""
        client = self.client(address)
        found = {}
        for job in range(1, newest + 1):
            client.send(b"stats-job %d\r\n" % job)
            line = client.line()
            if line == "NOT_FOUND":
                continue
            block = client.read(int(line.split()[1]) + 2).decode()
            tube = re.search(r'^tube: "?([^"\n]*)"?$', block, re.MULTILINE)[1]
            found.setdefault(tube, []).append(self.job(client, job))
        return found

    def drain(self, daemon):
        """Puts this tubed into drain mode."""
        client = self.connect(daemon)
        daemon.signal(signal.SIGUSR1)
        until("drain mode", lambda: client.stats()["draining"] == "true")

    def records(self, output):
        return [json.loads(line) for line in output.splitlines()]

    def assert_examples_run(self, server, name):
        """Runs the examples of the subcommand's help in a shell, in a new directory: those with
        filters only on a server that has them."""
        filters = "cmd-list-jobs" in self.client(server).stats()
        text = self.tubectl(server, name, "--help")
        examples = [line.strip() for line in text.split("examples:")[1].splitlines() if line.strip()]
        self.assertGreaterEqual(len(examples), 2)
        path = f"{pathlib.Path(TUBECTL).parent}:{os.environ['PATH']}"
        for example in examples:
            if "--grep" in example and not filters:
                continue
            if name == "clear" and "--yes" not in example:
                example += " --yes"  # no terminal answers the question
            done = subprocess.run(["bash", "-o", "pipefail", "-c", example], cwd=self.directory,
                                  env=os.environ | {"TUBED_SERVER": server, "PATH": path},
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (DONE, b""), example)


class TransferTest(JobTest):
    def export(self, server, *arguments):
        """Returns the records of a run that prints nothing on stderr."""
        return self.records(self.tubectl(server, "export", *arguments))

    def fill_with_all(self, server):
        """Puts each body in each state into tubes with unusual names; returns the newest id."""
        client = self.client(server)
        newest = 0
        for i, body in enumerate(BODIES):
            for j, state in enumerate(STATES):
                newest = self.put_in(client, TUBES[(i + j) % len(TUBES)], state, body,
                                     priority=(0, 4294967295, 1024)[(i + j) % 3],
                                     delay=LONG + i, ttr=(1, 60, 4294967295)[i % 3])
        return newest

    def assert_same_jobs(self, before, after):
        """Compares the jobs in each tube, including their order."""
        self.assertEqual(sorted(before), sorted(after))
        for tube, jobs in before.items():
            # By state, because --remove exports one state after the other.
            for state in STATES:
                old = [job for job in jobs if job[0] == state]
                new = [job for job in after[tube] if job[0] == state]
                if state == "ready":  # in the order of reservation
                    old.sort(key=lambda job: job[1])
                    new.sort(key=lambda job: job[1])
                self.assertEqual(old, new)
