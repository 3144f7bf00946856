"""The clients of the load (cluster_load.py): producers, workers, and client 0, which always puts.

`Connection` is one connection to one node: it sends, and parses the replies. `Client` connects,
sends a batch of commands, and sends the next when all replies have arrived. The checker gets every
event.
"""

import collections
import errno
import selectors
import socket
import time

from cluster_checker import body_of
from harness import as_dict, parse_reply

TUBES = [b"load-%d" % number for number in range(4)]
TTR = 100
MOST_LIVE = 2000  # with more jobs, producers only look at jobs
# Clients abandon a connection without replies, because the node may be stopped or cut off. A client
# waits twice as long after each time: it is finally served, however slow the machine is.
GREETING_SECONDS = 0.4
REPLY_SECONDS = 1.0
RETRY_SECONDS = 0.05
FIRST_RETRY_SECONDS = 0.005  # of client 0


class Command:
    __slots__ = ("kind", "detail", "sent")

    def __init__(self, kind, detail, sent):
        self.kind, self.detail, self.sent = kind, detail, sent


class Connection:
    """One connection of a client to one address."""
    numbers = 0

    def __init__(self, client, node):
        Connection.numbers += 1
        self.number = Connection.numbers
        self.client, self.node = client, node
        self.epoch = None  # unknown before the reply to stats
        self.input, self.output = bytearray(), bytearray()
        self.in_flight = collections.deque()
        family, address = client.load.addresses[node]
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.deadline = time.monotonic() + GREETING_SECONDS * client.slowness
        self.connected = False
        self.writing = True
        code = self.socket.connect_ex(address)
        self.failed = code not in (0, errno.EINPROGRESS)
        if not self.failed:
            client.load.selector.register(self.socket, selectors.EVENT_WRITE, self)

    def close(self):
        if not self.failed:
            self.client.load.selector.unregister(self.socket)
        self.socket.close()

    def send(self, data):
        if not self.output:
            try:
                data = data[self.socket.send(data):]
            except BlockingIOError:
                pass
            except OSError:
                return  # the end of the stream is read later
        if data:
            self.output += data
            self.want_writing(True)

    def want_writing(self, wanted):
        if wanted != self.writing:
            self.writing = wanted
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
            self.client.load.selector.modify(self.socket, events, self)

    def on_events(self, events):
        """Returns False if the connection has ended."""
        if not self.connected:
            if self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return False
            self.connected = True
            self.writing = None
            self.want_writing(False)
            self.client.greet()
            return True
        try:
            if events & selectors.EVENT_WRITE and self.output:
                del self.output[:self.socket.send(self.output)]
                if not self.output:
                    self.want_writing(False)
            if events & selectors.EVENT_READ:
                chunk = self.socket.recv(1 << 17)
                self.input += chunk
                if not chunk:
                    return False
                self.read_replies()
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def read_replies(self):
        now = time.monotonic()
        begin = 0
        while self.in_flight and (reply := parse_reply(self.input, begin)):
            words, body, begin = reply
            self.client.on_reply(self.in_flight.popleft(), words, body, now)
        del self.input[:begin]
        if self.in_flight:
            self.deadline = self.client.reply_deadline(now)
        else:
            self.deadline = float("inf")
            self.client.slowness = max(1, self.client.slowness // 2)
            self.client.on_idle(now)


class Client:
    """The base of all clients: it connects, and sends a batch when all replies have arrived."""
    patience = 0.0

    def __init__(self, load, number):
        self.load, self.number = load, number
        self.checker, self.dice = load.checker, load.dice
        self.first = None  # the node that is tried first; None: the one that served last
        self.tube = TUBES[number % len(TUBES)]
        self.connection = None
        self.tried = 0  # addresses since the last connection that served
        self.lost_puts = []  # serial numbers
        self.slowness = 1

    def reply_deadline(self, now):
        return now + REPLY_SECONDS * self.slowness + self.patience

    # --- Connections

    def connect(self):
        load = self.load
        if self.tried == 0:
            anywhere = self.number and self.dice.random() < load.spread
            self.first = self.dice.randrange(len(load.addresses)) if anywhere else None
        while self.tried < len(load.addresses):
            first = load.serving if self.first is None else self.first
            node = (first + self.tried) % len(load.addresses)
            self.tried += 1
            connection = Connection(self, node)
            if not connection.failed:
                self.connection = connection
                return
            connection.close()
        self.tried = 0
        wait = FIRST_RETRY_SECONDS if self.number == 0 else RETRY_SECONDS * (
            1 + self.dice.random())
        load.after(wait, self.connect_if_idle)

    def connect_if_idle(self):
        if not self.connection and not self.load.stopping:
            self.connect()

    def lose_connection(self, given_up):
        connection, self.connection = self.connection, None
        connection.close()
        if connection.epoch is not None:  # it has served
            self.tried = 1 if given_up else 0
            self.checker.connection_ended(connection.number, given_up)
            if not given_up:
                self.load.counts["ended"] += 1
            # The node no longer answers, so the next address is tried first.
            if self.load.serving == connection.node and given_up:
                self.load.serving = (connection.node + 1) % len(self.load.addresses)
                self.tried = 0
            for command in connection.in_flight:
                self.unanswered(command)
        if not self.load.stopping:
            self.connect()

    def greet(self):
        now = time.monotonic()
        greeting = (("stats", b"stats\r\n"), ("use", b"use %s\r\n" % self.tube),
                    *(("watch", b"watch %s\r\n" % tube) for tube in TUBES),
                    ("watch", b"ignore default\r\n"))
        for kind, _ in greeting:
            self.connection.in_flight.append(Command(kind, None, now))
        self.connection.send(b"".join(wire for _, wire in greeting))

    def greeted(self, stats):
        text = as_dict(stats)
        if "cluster-term" in text:
            self.connection.epoch = text["cluster-term"]
        else:  # a server without a cluster: each process is an epoch
            self.connection.epoch = self.load.epochs.setdefault(text["id"], len(self.load.epochs))
        leader = text.get("cluster-name")
        passed_on = bool(self.load.names) and leader != self.load.names[self.connection.node]
        self.load.counts["passed_on"] += passed_on
        self.checker.connected(self.connection.number, self.connection.epoch, leader, passed_on)
        self.load.serving = (self.load.names.index(leader) if passed_on and
                             leader in self.load.names else self.connection.node)
        self.load.last_epoch = max(self.load.last_epoch, self.connection.epoch)
        self.tried = 0

    # --- Batches

    def on_idle(self, now):
        if self.connection.epoch is None or self.load.stopping:
            return
        wait = self.load.think * 2 * self.dice.random() if self.number else 0
        if wait:
            connection = self.connection
            self.load.after(wait, lambda: self.send_batch(connection))
        else:
            self.send_batch(self.connection)

    def send_batch(self, connection):
        if connection is not self.connection or self.load.stopping:
            return
        now = time.monotonic()
        wires = []
        self.make_batch(lambda kind, detail, wire: (
            wires.append(wire), connection.in_flight.append(Command(kind, detail, now))), now)
        if not wires:
            self.load.after(0.01 + self.load.think, lambda: self.send_batch(connection))
            return
        connection.deadline = self.reply_deadline(now)
        connection.send(b"".join(wires))

    def make_batch(self, add, now):
        raise NotImplementedError

    def add_put(self, add, serial=None):
        checker = self.checker
        if serial is None:
            chance = self.dice.random()
            size = (self.dice.randrange(30_000, 60_000) if chance < 0.003 else
                    self.dice.randrange(1000, 9000) if chance < 0.03 else
                    self.dice.randrange(12, 250))
            serial = checker.new_put(size, self.tube.decode(), self.dice.randrange(9), TTR)
        put = checker.puts[serial]
        newest = checker.put_sent(serial)
        body = body_of(serial, put.size)
        delay = 1 if self.number and self.dice.random() < 0.02 else 0
        add("put", (serial, newest), b"put %d %d %d %d\r\n%s\r\n" % (
            put.priority, delay, put.ttr, len(body), body))

    def add_look(self, add):
        """Looks at a job of the load: the server may have other jobs, put before the load
        started."""
        if not self.load.recent:
            return
        job_id = self.dice.choice(self.load.recent)
        if self.dice.random() < 0.5:
            add("peek", job_id, b"peek %d\r\n" % job_id)
        else:
            add("stats-job", job_id, b"stats-job %d\r\n" % job_id)

    # --- Replies

    def on_reply(self, command, words, body, now):
        epoch = self.connection.epoch
        kind, checker = command.kind, self.checker
        self.load.counts["replies"] += 1
        if epoch is not None:
            checker.reply(epoch, command.sent, self.connection.number)
        if kind == "put":
            self.on_put(command, words, now)
        elif kind == "reserve":
            if words[0] == b"RESERVED":
                job_id = int(words[1])
                checker.reserved(self.number, self.connection.number, epoch, job_id, body,
                                 command.sent, now)
                self.on_reserved(job_id)
            elif words[0] not in (b"TIMED_OUT", b"DEADLINE_SOON"):
                self.unexpected(command, words)
        elif kind == "end":
            done = words[0] != b"NOT_FOUND"
            if done and words[0] not in (b"DELETED", b"RELEASED", b"BURIED", b"TOUCHED"):
                self.unexpected(command, words)
            checker.end_reply(command.detail, epoch, done, now)
            self.on_end(command.detail, done)
        elif kind == "peek" and words[0] == b"FOUND":
            checker.found(command.detail, body, command.sent)
        elif kind == "stats-job" and words[0] == b"OK":
            checker.stats_job(command.detail, as_dict(body), command.sent, now)
        elif kind in ("peek", "stats-job"):
            if words[0] != b"NOT_FOUND":
                self.unexpected(command, words)
            checker.not_found(command.detail, command.sent)
        elif kind == "stats":
            self.greeted(body)
        elif words[0] not in (b"USING", b"WATCHING", b"KICKED", b"NOT_FOUND"):
            self.unexpected(command, words)

    def on_put(self, command, words, now):
        serial, newest = command.detail
        if words[0] == b"INSERTED":
            job_id = int(words[1])
            self.checker.inserted(serial, job_id, newest, now)
            self.load.recent.append(job_id)
            if self.number == 0:
                self.load.put_acknowledged(command.sent, now)
        else:
            self.checker.put_refused(serial)
            self.load.counts[words[0].decode()] += 1
            if words[0] != b"OUT_OF_MEMORY":
                self.unexpected(command, words)

    def unexpected(self, command, words):
        self.checker.problem(0, f"({command.kind} {command.detail}) was answered {words}")

    def unanswered(self, command):
        self.load.counts["unanswered"] += 1
        if command.kind == "put" and (self.number == 0 or self.dice.random() < 0.5):
            self.lost_puts.append(command.detail[0])

    def on_reserved(self, job_id):
        pass

    def on_end(self, end, done):
        pass


class Putter(Client):
    """Client 0."""

    def make_batch(self, add, now):
        self.add_put(add, self.lost_puts.pop() if self.lost_puts else None)


class Producer(Client):
    def make_batch(self, add, now):
        for serial in self.lost_puts:
            self.add_put(add, serial)
        self.lost_puts.clear()
        for _ in range(self.dice.randrange(1, 8)):
            if self.checker.live() < MOST_LIVE and self.dice.random() < 0.9:
                self.add_put(add)
            else:
                self.add_look(add)


class Worker(Client):
    def __init__(self, load, number):
        super().__init__(load, number)
        self.held = []
        self.buried = []

    def make_batch(self, add, now):
        held, self.held = self.held, []
        for job_id in held:
            self.add_end(add, job_id, now)
        for job_id in self.buried:
            add("kick-job", job_id, b"kick-job %d\r\n" % job_id)
        self.buried = []
        self.add_reserves(add)

    def add_reserves(self, add):
        for _ in range(self.dice.randrange(1, 6)):
            add("reserve", None, b"reserve-with-timeout 0\r\n")

    def add_end(self, add, job_id, now):
        job = self.checker.jobs.get(job_id)
        priority = self.checker.puts[job.serial].priority if job else 0
        chance = self.dice.random()
        kinds = ("touch",) if chance < 0.1 else ("touch", "delete") if chance < 0.2 else (
            "delete",) if chance < 0.8 else ("release",) if chance < 0.95 else ("bury",)
        for kind in kinds:
            arguments = {"release": b" %d %d" % (priority, self.dice.random() < 0.1),
                         "bury": b" %d" % priority}.get(kind, b"")
            end = self.checker.end_sent(kind, self.number, self.connection.number, job_id, now)
            add("end", end, b"%s %d%s\r\n" % (kind.encode(), job_id, arguments))
        if kinds == ("touch",):
            self.held.append(job_id)
        elif kinds == ("bury",):
            self.buried.append(job_id)  # kicked in the next batch, even without a reply

    def on_reserved(self, job_id):
        self.held.append(job_id)

    def on_end(self, end, done):
        if end.kind == "touch" and not done and end.id in self.held:
            self.held.remove(end.id)

    def unanswered(self, command):
        super().unanswered(command)
        if command.kind == "kick-job":
            self.buried.append(command.detail)
        elif command.kind == "end" and command.detail.kind == "delete":
            self.held.append(command.detail.id)  # to be deleted again

    def lose_connection(self, given_up):
        if given_up:
            self.held.clear()  # the server gives them to other clients
        super().lose_connection(given_up)


class Waiter(Worker):
    patience = 1.0

    def add_reserves(self, add):
        add("reserve", None, b"reserve-with-timeout 1\r\n")


def make_client(load, number):
    if number == 0:
        return Putter(load, number)
    kinds = (Producer, Worker, Producer, Worker, Waiter, Producer, Worker, Producer, Worker, Worker)
    return kinds[number % len(kinds)](load, number)
