"""kill -9 at random moments under load. The clients record all jobs and acknowledgements.

Each round starts a server on the same directory, lets 50 clients pipeline commands, kills the
server, starts it again, and compares its jobs with the record. Most clients (`Owner`) have a tube
of their own and know the effect of each command. After the kill, the jobs of such a tube must be as
after some prefix of the commands in flight: all commands up to one of them done, and no command
after it. The other clients (`Sharer`) share a tube; only the existence of its jobs is compared.

TUBED_KILL_ROUNDS is the number of rounds. TUBED_KILL_SEED repeats the random choices of a run.
"""

import collections
import copy
import dataclasses
import os
import random
import selectors
import sys
import threading
import time
import unittest

from harness import SANITIZED, SECONDS, Client, DaemonTest, as_dict, parse_reply, run

ROUNDS = int(os.environ.get("TUBED_KILL_ROUNDS", "40" if SANITIZED else "200"))
SEED = int(os.environ.get("TUBED_KILL_SEED", str(random.randrange(1 << 32))))
MODES = (("-f", "0"), (), ("-F",))
OWNERS, SHARERS = 42, 8
OWN_JOBS = 6  # the approximate number of jobs in an owner's tube
SHARED_JOBS = 60
TTR = 100_000
LOST_IDS = 10_000_000  # ids that the server skips after a loss of power
REPLIES = 5_000  # at most, of the server in a round, before it is killed
SECOND = 1  # a delay that ends during a round
ROUNDING = 1  # of a time left, which is in whole seconds

Command = collections.namedtuple("Command", "wire kind job detail", defaults=(b"", None))


@dataclasses.dataclass
class Rest:
    """The durable state of a job: its last state of rest."""
    state: str
    priority: int
    delay: int = 0
    earliest: float = 0  # when the delay ends
    latest: float = 0
    order: int = 0  # position among the buried jobs
    reserves: int = 0
    releases: int = 0
    buries: int = 0
    kicks: int = 0

    def fits(self, stats):
        states = (self.state,)
        if self.state == "delayed":
            least = self.earliest - time.time() - ROUNDING
            if least <= 0:
                states += ("ready",)
            if stats["state"] == "delayed" and not (
                    least <= stats["time-left"] <= self.latest - stats["asked"] + ROUNDING):
                return False
        return stats["state"] in states and all(
            stats[key] == value for key, value in (
                ("pri", self.priority), ("delay", self.delay), ("reserves", self.reserves),
                ("releases", self.releases), ("buries", self.buries), ("kicks", self.kicks)))


@dataclasses.dataclass
class Job:
    rest: Rest
    id: int = 0  # 0: its INSERTED has not arrived
    held: bool = False
    reserves: int = 0  # including reserves after the last state of rest

    def may_have_expired(self):
        return self.rest.state == "delayed" and self.rest.delay == SECOND


class Sender:
    """A connection of a client: it pipelines a batch, waits for all replies, and repeats that."""

    def __init__(self, client):
        self.client = client
        self.data = bytearray()
        self.in_flight = collections.deque()
        self.replies = 0

    def send_batch(self, greeting=()):
        batch = [*greeting, *self.client.next_batch()]
        self.in_flight.extend(batch)
        self.client.sent = time.time()
        self.client.socket.sendall(b"".join(command.wire for command in batch))

    def receive(self):
        """False: the connection has ended."""
        try:
            chunk = self.client.socket.recv(1 << 16)
            self.data += chunk
            begin = 0
            while reply := parse_reply(self.data, begin):
                words, body, begin = reply
                self.replies += 1
                self.client.acknowledge(self.in_flight.popleft(), words, body)
            del self.data[:begin]
            if chunk and not self.in_flight:
                self.send_batch()
        except (ConnectionResetError, BrokenPipeError):
            return False
        return bool(chunk)


def greeting(tube):
    return (Command(b"use %s\r\n" % tube, "use"), Command(b"watch %s\r\n" % tube, "watch"),
            Command(b"ignore default\r\n", "ignore"))


class Load:
    """State that all clients share: the random numbers and the ids."""

    def __init__(self, dice):
        self.dice = dice
        self.ids = set()  # all acknowledged ids
        self.serial = 0

    def new_body(self, owner):
        self.serial += 1
        chance = self.dice.random()
        if chance < 0.003:
            size = self.dice.randrange(30_000, 65_000)
        elif chance < 0.03:
            size = self.dice.randrange(1_000, 9_000)
        else:
            size = self.dice.randrange(20, 250)
        return (b"%s %d " % (owner, self.serial)).ljust(size, b".")

    def inserted(self, job_id):
        assert job_id not in self.ids, f"id {job_id} was given twice"
        self.ids.add(job_id)


def put(body, priority, delay):
    return Command(b"put %d %d %d %d\r\n%s\r\n" % (priority, delay, TTR, len(body), body),
                   "put", body, (priority, delay))


class Owner:
    """A client with a tube of its own, so that it knows the effect of each command there."""

    def __init__(self, load, number):
        self.load = load
        self.tube = b"own-%d" % number
        self.jobs = {}  # by body, as they are after all acknowledged commands
        self.order = 0
        self.sent = 0.0  # when the commands in flight were sent, or before
        self.socket = None

    def next_batch(self):
        """Commands that all succeed, whether delays have ended or not."""
        dice = self.load.dice
        batch, touched = [], set()
        for _ in range(dice.randrange(1, 8)):
            body = dice.choice(list(self.jobs)) if self.jobs else None
            if body is None or dice.randrange(OWN_JOBS * 2) >= len(self.jobs):
                delay = dice.choice((0, 0, 0, SECOND, dice.randrange(1000, 2000)))
                batch.append(put(self.load.new_body(self.tube), dice.randrange(9), delay))
            elif body not in touched:
                touched.add(body)
                batch += self.commands_for(self.jobs[body], body)
        buried = [job for body, job in self.jobs.items()
                  if job.rest.state == "buried" and not job.held and body not in touched]
        if buried and not any(command.kind in ("bury", "kick-job", "delete", "reserve-job")
                              for command in batch) and dice.random() < 0.3:
            count = dice.choice((1, 1000))
            batch.append(Command(b"kick %d\r\n" % count, "kick", b"", count))
        return batch or [Command(b"list-tube-used\r\n", "use")]

    def commands_for(self, job, body):
        dice = self.load.dice
        commands = []
        if not job.held:
            kinds = ["reserve-job", "reserve-job", "delete"]
            if job.rest.state in ("delayed", "buried") and not job.may_have_expired():
                kinds.append("kick-job")
            kind = dice.choice(kinds)
            commands.append(Command(b"%s %d\r\n" % (kind.encode(), job.id), kind, body))
            if kind != "reserve-job" or dice.random() < 0.3:
                return commands
        kind = dice.choice(("release", "release", "bury", "delete", "touch"))
        priority, delay = dice.randrange(9), dice.choice((0, SECOND, dice.randrange(1000, 2000)))
        arguments = {"release": b" %d %d" % (priority, delay), "bury": b" %d" % priority}
        commands.append(Command(b"%s %d%s\r\n" % (kind.encode(), job.id, arguments.get(kind, b"")),
                                kind, body, (priority, delay)))
        return commands

    def apply(self, command):
        """Records the effect of a successful command."""
        kind, job = command.kind, self.jobs.get(command.job)
        if kind == "put":
            priority, delay = command.detail
            self.jobs[command.job] = Job(Rest("delayed" if delay else "ready", priority, delay,
                                              self.sent + delay, time.time() + delay))
        elif kind == "reserve-job":
            job.held = True
            job.reserves += 1
        elif kind == "delete":
            del self.jobs[command.job]
        elif kind == "release":
            priority, delay = command.detail
            self.place(job, "delayed" if delay else "ready", priority=priority, delay=delay,
                        earliest=self.sent + delay, latest=time.time() + delay,
                        releases=job.rest.releases + 1)
        elif kind == "bury":
            self.order += 1
            self.place(job, "buried", priority=command.detail[0], order=self.order,
                        buries=job.rest.buries + 1)
        elif kind == "kick-job":
            self.place(job, "ready", kicks=job.rest.kicks + 1)
        elif kind == "kick":
            for kicked in self.first_buried(command.detail):
                self.place(kicked, "ready", kicks=kicked.rest.kicks + 1)

    def place(self, job, state, **changes):
        job.held = False
        job.rest = dataclasses.replace(job.rest, state=state, reserves=job.reserves, **changes)

    def first_buried(self, count):
        buried = [job for job in self.jobs.values()
                  if job.rest.state == "buried" and not job.held]
        return sorted(buried, key=lambda job: job.rest.order)[:count]

    def acknowledge(self, command, words, body):
        expected = {"put": b"INSERTED", "reserve-job": b"RESERVED", "delete": b"DELETED",
                    "release": b"RELEASED", "bury": b"BURIED", "touch": b"TOUCHED",
                    "kick-job": b"KICKED", "kick": b"KICKED", "use": b"USING",
                    "watch": b"WATCHING", "ignore": b"WATCHING"}[command.kind]
        assert words[0] == expected, f"{command} was answered {words}"
        if command.kind == "kick":
            assert int(words[1]) == len(self.first_buried(command.detail)), words
        if command.kind == "reserve-job":
            assert body == command.job
        self.apply(command)
        if command.kind == "put":
            self.jobs[command.job].id = int(words[1])
            self.load.inserted(int(words[1]))

    # --- After a crash

    def compare(self, found, in_flight):
        """Checks that the jobs are as after some prefix of the commands in flight, and records
        that prefix as done."""
        here = {body: job for body, job in found.items() if job["tube"].encode() == self.tube}
        faults = []
        after = copy.deepcopy(self)
        for done in range(len(in_flight) + 1):
            fault = after.first_difference(here)
            if not fault:
                self.jobs, self.order = after.jobs, after.order
                return self.restart(here)
            faults.append(f"after {done} of {[c[1:] for c in in_flight]}: {fault}")
            if done < len(in_flight):
                after.apply(in_flight[done])
        raise AssertionError(f"{self.tube}: " + "\n".join(faults))

    def first_difference(self, here):
        for body, job in self.jobs.items():
            stats = here.get(body)
            if stats is None:
                return f"{body[:40]} (id {job.id}) is missing, {job}"
            if job.id not in (0, stats["id"]) or not job.rest.fits(stats):
                return f"{body[:40]} should be {job} and is {stats}"
        unknown = here.keys() - self.jobs.keys()
        return f"{[body[:40] for body in unknown]} should not exist" if unknown else None

    def restart(self, here):
        for body, job in self.jobs.items():
            job.id, job.held, job.reserves = here[body]["id"], False, job.rest.reserves

    def __deepcopy__(self, memo):
        twin = Owner(self.load, 0)
        twin.tube, twin.jobs, twin.order = self.tube, copy.deepcopy(self.jobs, memo), self.order
        twin.sent = self.sent
        return twin

    def live_ids(self):
        return [job.id for job in self.jobs.values() if job.id]


class SharedTube:
    """The jobs of the tube that several clients use, and which of them are deleted."""

    def __init__(self):
        self.present = {}  # by body: the id, or 0 if the put is not acknowledged
        self.deleting = set()  # bodies of jobs for which a delete was sent
        self.deleted = set()  # bodies of jobs for which a delete was acknowledged

    def compare(self, found):
        here = {body: job for body, job in found.items() if job["tube"] == "shared"}
        back = self.deleted & here.keys()
        assert not back, f"deleted and back: {[body[:40] for body in back]}"
        lost = {body for body, job_id in self.present.items() if job_id} - here.keys()
        lost -= self.deleting
        assert not lost, f"lost: {[(body[:40], self.present[body]) for body in lost]}"
        unknown = here.keys() - self.present.keys()
        assert not unknown, f"no client has put {[body[:40] for body in unknown]}"
        for body, job in here.items():
            assert self.present[body] in (0, job["id"]) and job["state"] != "reserved", job
        self.present = {body: job["id"] for body, job in here.items()}
        self.deleting.clear()
        self.deleted.clear()


class Sharer:
    tube = b"shared"

    def __init__(self, load, shared):
        self.load, self.shared = load, shared
        self.held = []  # (id, body)
        self.socket = None

    def next_batch(self):
        dice = self.load.dice
        batch = []
        for job_id, body in self.held:
            kind = dice.choice(("delete", "delete", "delete", "release", "bury"))
            rest = {"delete": b"", "release": b" 5 0", "bury": b" 5"}[kind]
            if kind == "delete":
                self.shared.deleting.add(body)
            batch.append(Command(b"%s %d%s\r\n" % (kind.encode(), job_id, rest), kind, body))
        self.held = []
        for _ in range(2):
            if len(self.shared.present) < SHARED_JOBS:
                body = self.load.new_body(b"shared")
                self.shared.present[body] = 0
                batch.append(put(body, dice.randrange(9), 0))
            batch.append(Command(b"reserve-with-timeout 0\r\n", "reserve"))
        batch.append(Command(b"kick 3\r\n", "kick"))
        return batch

    def acknowledge(self, command, words, body):
        if command.kind == "put":
            assert words[0] == b"INSERTED", words
            self.load.inserted(int(words[1]))
            if command.job in self.shared.present:  # else another client has deleted it already
                self.shared.present[command.job] = int(words[1])
        elif command.kind == "reserve" and words[0] == b"RESERVED":
            self.held.append((int(words[1]), body))
        elif command.kind == "delete":
            assert words[0] == b"DELETED", words
            self.shared.deleting.discard(command.job)
            self.shared.deleted.add(command.job)
            del self.shared.present[command.job]


class Kill(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        self.dice = random.Random(SEED)
        self.load = Load(self.dice)
        self.owners = [Owner(self.load, number) for number in range(OWNERS)]
        self.shared = SharedTube()
        self.sharers = [Sharer(self.load, self.shared) for _ in range(SHARERS)]
        self.next_id = 1
        self.migrated = 0

    def start_server(self, number):
        daemon = self.start("-b", str(self.journal), "-s", "65536", *MODES[number % len(MODES)])
        if self.dice.random() < 0.1:  # kill the server during its recovery or just after it
            if self.dice.random() < 0.5:
                daemon.wait_for_line("recovered")
            daemon.kill()
            daemon = self.start("-b", str(self.journal), "-s", "65536",
                                *MODES[number % len(MODES)])
        return daemon

    def load_until_killed(self, daemon):
        """Returns the commands in flight, by id() of the client."""
        selector = selectors.DefaultSelector()
        senders = []
        for client in self.owners + self.sharers:
            connection = Client(daemon.addresses[0])
            client.socket = connection.socket
            sender = Sender(client)
            senders.append(sender)
            selector.register(client.socket, selectors.EVENT_READ, sender)
            sender.send_batch(greeting(client.tube))
        # A number of replies, so that a slow server does as much work as a fast one, and then a
        # thread that kills the server, so that the moment does not depend on this loop.
        enough = self.dice.randrange(REPLIES)
        killer = threading.Timer(self.dice.uniform(0.0, 0.01), daemon.process.kill)
        deadline = time.monotonic() + SECONDS
        while selector.get_map():
            if killer.ident is None and sum(sender.replies for sender in senders) >= enough:
                killer.start()
            self.assertLess(time.monotonic(), deadline, "some streams do not end after the kill")
            for key, _ in selector.select(SECONDS):
                if not key.data.receive():
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
        self.assertIsNotNone(killer.ident, "the server ended by itself")
        killer.join()
        daemon.kill()
        selector.close()
        return {id(sender.client): list(sender.in_flight) for sender in senders}

    def find_jobs(self, client):
        """All jobs of the server, by body: those of all possible ids. The totals of stats show that
        no others exist."""
        first, self.next_id = self.next_id, client.put(b"the next id")
        self.assertEqual(client.ask(f"delete {self.next_id}"), "DELETED")
        self.assertNotIn(self.next_id, self.load.ids)
        self.assertLess(max(self.load.ids, default=0), self.next_id)
        # A server that is killed before its first commit is complete has not recorded the boot id;
        # the next server treats the kill as a loss of power.
        end = self.next_id - LOST_IDS if self.next_id - first >= LOST_IDS else self.next_id
        ids = set(range(first, end)) | set(self.shared.present.values()) - {0}
        for owner in self.owners:
            ids.update(owner.live_ids())
        self.next_id += 1
        asked = time.time()
        wire = b"".join(b"peek %d\r\nstats-job %d\r\n" % (i, i) for i in sorted(ids)) + b"stats\r\n"
        sender = threading.Thread(target=client.send, args=(wire,))
        sender.start()
        data, begin, found = bytearray(), 0, {}

        def reply():
            nonlocal begin
            while not (parsed := parse_reply(data, begin)):
                chunk = client.socket.recv(1 << 18)
                assert chunk, "the stream ended"
                data.extend(chunk)
            begin = parsed[2]
            return parsed[1]
        for _ in ids:
            body, block = reply(), reply()
            if body is not None:
                self.assertNotIn(body, found)
                found[body] = as_dict(block) | {"asked": asked}
        totals = as_dict(reply())
        sender.join()
        self.assertEqual(sum(totals[f"current-jobs-{state}"] for state in
                             ("ready", "reserved", "delayed", "buried")), len(found))
        return found

    def check(self, daemon, in_flight):
        client = Client(daemon.addresses[0])
        found = self.find_jobs(client)
        client.close()
        tubes = {owner.tube.decode() for owner in self.owners} | {"shared"}
        self.assertLessEqual({job["tube"] for job in found.values()}, tubes)
        for owner in self.owners:
            owner.compare(found, in_flight.get(id(owner), []))
        self.shared.compare(found)
        for sharer in self.sharers:
            sharer.held = []

    def test_acknowledged_changes_survive_every_kill(self):
        print(f"seed {SEED}, {ROUNDS} rounds", file=sys.stderr, flush=True)
        daemon = self.start_server(0)
        for number in range(1, ROUNDS + 1):
            try:
                in_flight = self.load_until_killed(daemon)
                if number % 10 == 0:
                    code, _, errors = run("--check", str(self.journal))
                    self.assertEqual(code, 0, errors)
                daemon = self.start_server(number)
                self.check(daemon, in_flight)
            except AssertionError as error:
                raise AssertionError(f"seed {SEED}, round {number}: {error}") from error
            self.daemons = [daemon]
        current = max(self.journal.glob("journal.*[0-9]"))
        print(f"{len(self.load.ids)} jobs were put; the journal ends in {current.name}",
              file=sys.stderr)
        self.assertGreater(int(current.suffix[1:]), ROUNDS // 4)


if __name__ == "__main__":
    unittest.main()
