"""kill -9 of the real daemon at random moments under load, in each sync mode: acknowledged changes
survive the restart. tests/simulation and tests/journal/crash_test.cc test the jobs after crashes
aimed at each step of the disk.

Each round starts a server on the same directory, lets clients pipeline puts and deletes, and kills
the server after a number of replies. TUBED_KILL_ROUNDS is the number of rounds. TUBED_KILL_SEED
repeats the random choices of a run, but not its moments.
"""

import contextlib
import os
import pathlib
import random
import sys
import threading
import unittest

from harness import SANITIZED, SECONDS, Client, DaemonTest, parse_reply, run, until

ROUNDS = int(os.environ.get("TUBED_KILL_ROUNDS", "20" if SANITIZED else "60"))
SEED = int(os.environ.get("TUBED_KILL_SEED", str(random.randrange(1 << 32))))
MODES = (("-f", "0"), (), ("-F",))
CLIENTS = 20
REPLIES = 5_000  # the most replies in a round before the server is killed
KEPT_ROUNDS = 5  # later the jobs of a round are flushed, to cause compaction


class Putter(threading.Thread):
    """Puts jobs into the tube of its round and deletes some, until the connection ends."""

    def __init__(self, address, tube, seed, replied):
        super().__init__()
        self.client = Client(address)
        self.tube, self.replied = tube, replied
        self.dice = random.Random(seed)
        self.jobs = {}  # bodies of acknowledged puts, by id, without deleted jobs
        self.deleting = set()  # ids of sent deletes
        self.deleted = set()  # ids of acknowledged deletes
        self.in_flight = []  # ("put", body) and ("delete", id)
        self.problem = None

    def run(self):
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.client.send(b"use %s\r\n" % self.tube)
            data = bytearray()
            while chunk := self.client.socket.recv(1 << 16):
                data += chunk
                begin = 0
                while reply := parse_reply(data, begin):
                    words, _, begin = reply
                    self.acknowledge(words)
                del data[:begin]
                if not self.in_flight:
                    self.send_batch()
        self.client.close()

    def send_batch(self):
        wires, deletable = [], [job for job in self.jobs if job not in self.deleting]
        for _ in range(self.dice.randrange(1, 30)):
            if deletable and self.dice.random() < 0.4:
                job = deletable.pop(self.dice.randrange(len(deletable)))
                self.deleting.add(job)
                self.in_flight.append(("delete", job))
                wires.append(b"delete %d\r\n" % job)
            else:
                largest = 60_000 if self.dice.random() < 0.01 else 250
                body = self.dice.randbytes(self.dice.randrange(largest))
                self.in_flight.append(("put", body))
                wires.append(b"put 0 0 100000 %d\r\n%s\r\n" % (len(body), body))
        self.client.send(b"".join(wires))

    def acknowledge(self, words):
        self.replied()
        if words[0] == b"USING":
            return
        kind, what = self.in_flight.pop(0)
        if words[0] != {"put": b"INSERTED", "delete": b"DELETED"}[kind]:
            self.problem = f"{kind}: {words}"
        elif kind == "put":
            self.jobs[int(words[1])] = what
        else:
            del self.jobs[what]
            self.deleted.add(what)


class Kill(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        self.dice = random.Random(SEED)
        self.ids = set()  # of all acknowledged puts
        self.rounds = []  # the putters of each round

    def start_server(self, number):
        flags = ("-b", str(self.journal), "-s", "65536", *MODES[number % len(MODES)])
        if self.dice.random() < 0.1:  # kill a server during its recovery or just after it
            is_during = self.dice.random() < 0.5
            daemon = self.start(*flags, listeners=0 if is_during else 1)
            if is_during:
                self.wait_for_recovery(daemon)
            daemon.kill()
        daemon = self.start(*flags)
        self.daemons = [daemon]
        return daemon

    def wait_for_recovery(self, daemon):
        """Waits until the server has a file of the journal open."""
        def opened():
            for link in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if os.readlink(link).startswith(f"{self.journal}/"):
                        return True
            return daemon.log_ended
        until("the server to open its journal", opened)

    def load_until_killed(self, daemon, number):
        """Kills the server some time after a number of replies: slow and fast servers do the same
        work. A thread kills it, which makes the moment independent of the clients."""
        replies, enough = iter(range(1 << 30)), self.dice.randrange(1, REPLIES)
        killer = threading.Timer(self.dice.uniform(0.0, 0.01), daemon.process.kill)

        def replied():
            if next(replies) == enough:
                killer.start()
        putters = [Putter(daemon.addresses[0], b"round-%d" % number, self.dice.random(), replied)
                   for _ in range(CLIENTS)]
        for putter in putters:
            putter.start()
        for putter in putters:
            putter.join(SECONDS)
        self.assertIsNotNone(killer.ident, "the server ended by itself")
        daemon.kill()
        self.rounds.append(putters)
        for putter in putters:
            self.assertIsNone(putter.problem)
            self.assertEqual(self.ids & putter.jobs.keys(), set(), "an id was given twice")
            self.ids |= putter.jobs.keys()

    def check(self, client, number, putters):
        there, most = 0, 0
        for putter in putters:
            client.send(b"".join(b"peek %d\r\n" % job for job in putter.deleted))
            for job in putter.deleted:
                self.assertEqual(client.line(), "NOT_FOUND", f"job {job} was deleted")
            client.send(b"".join(b"peek %d\r\n" % job for job in putter.jobs))
            for job, body in list(putter.jobs.items()):
                words = client.line().split()
                if words[0] == "FOUND":
                    there += 1
                    self.assertEqual(client.body_after(words), body)
                else:
                    self.assertIn(job, putter.deleting, f"job {job} is lost")
                    del putter.jobs[job]
            putter.deleting.clear()
            most += sum(kind == "put" for kind, _ in putter.in_flight)
        stats = client.stats_if_found(f"stats-tube round-{number}") or {"current-jobs-ready": 0}
        # The puts in flight may have succeeded.
        self.assertIn(stats["current-jobs-ready"], range(there, there + most + 1))

    def test_acknowledged_changes_survive_every_kill(self):
        print(f"seed {SEED}, {ROUNDS} rounds", file=sys.stderr, flush=True)
        daemon = self.start_server(0)
        for number in range(ROUNDS):
            self.load_until_killed(daemon, number)
            if number % 10 == 0:
                code, _, errors = run("--check", str(self.journal))
                self.assertEqual(code, 0, errors)
            daemon = self.start_server(number + 1)
            client = self.connect(daemon)
            for each in range(max(0, number - KEPT_ROUNDS), number + 1):
                self.check(client, each, self.rounds[each])
            if number >= KEPT_ROUNDS:
                client.ask(f"flush-tube round-{number - KEPT_ROUNDS}")
                for putter in self.rounds[number - KEPT_ROUNDS]:
                    putter.jobs.clear()
                    putter.deleted.clear()
            client.close()
        current = max(self.journal.glob("journal.*[0-9]"))
        print(f"{len(self.ids)} jobs were put; the journal ends in {current.name}", file=sys.stderr)
        self.assertGreater(int(current.suffix[1:]), ROUNDS // 4)


if __name__ == "__main__":
    unittest.main()
