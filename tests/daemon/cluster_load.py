"""The load of the cluster's tests: many pipelining clients in a process of their own.

`Load` starts this file as a program and controls it with lines of JSON. The program has one loop
with all clients, plain sockets, and the checker (cluster_checker.py) that judges each reply. A
client connects to the node that last served; if a connection is refused or ends, it tries the next
address immediately, and after all addresses it waits a moment. Each put has a serial number in its
body. A put without a reply is sent again with the same number, which allows jobs that exist twice
to be counted.

Client 0 always puts, one job at a time: next_put() waits for it. The others are producers, workers
(which delete, release, bury, touch and kick the jobs that they have reserved), and workers that
wait. A worker whose connection was ended by the server continues with its jobs on the next
connection.
"""

import collections
import heapq
import json
import os
import pathlib
import random
import selectors
import socket
import subprocess
import sys
import threading
import time

from cluster_checker import Checker
from cluster_clients import TUBES, make_client
from harness import parse_address, parse_reply, until

SWEEP_SECONDS = 0.05
HANG_SECONDS = 600  # against a hang only


class Program:
    """The process with the load."""

    def __init__(self, options):
        self.addresses = [parse_address(text) for text in options["addresses"]]
        self.dice = random.Random(options["seed"])
        self.think = options["think"]
        self.names, self.spread = options["names"], options["spread"]
        self.checker = Checker(options["grace"])
        self.counts = collections.Counter()
        self.epochs, self.last_epoch = {}, -1
        self.serving = 0
        self.recent = collections.deque(maxlen=500)
        self.acknowledged = collections.deque(maxlen=1 << 16)  # of client 0: (sent, arrived)
        self.waiting_for_put = None
        self.stopping = False
        self.timers, self.timer_number = [], 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(0, selectors.EVENT_READ, None)
        os.set_blocking(0, False)
        self.orders = b""
        self.done = False
        self.clients = [make_client(self, number) for number in range(options["clients"])]

    def after(self, seconds, action):
        self.timer_number += 1
        heapq.heappush(self.timers, (time.monotonic() + seconds, self.timer_number, action))

    def put_acknowledged(self, sent, now):
        self.acknowledged.append((sent, now))
        if self.waiting_for_put is not None and sent > self.waiting_for_put:
            self.waiting_for_put = None
            self.answer(put=now)

    def answer(self, **values):
        print(json.dumps(values), flush=True)

    def run(self):
        for client in self.clients:
            client.connect()
        self.after(SWEEP_SECONDS, self.sweep)
        while not self.done:
            wait = max(0.0, self.timers[0][0] - time.monotonic()) if self.timers else None
            for key, events in self.selector.select(wait):
                if key.data is None:
                    self.read_orders()
                elif key.data is key.data.client.connection and not key.data.on_events(events):
                    key.data.client.lose_connection(given_up=False)
            now = time.monotonic()
            while self.timers and self.timers[0][0] <= now:
                heapq.heappop(self.timers)[2]()

    def sweep(self):
        now = time.monotonic()
        for client in self.clients:
            if client.connection and client.connection.deadline < now:
                self.counts["timeouts"] += 1
                client.slowness *= 2
                client.lose_connection(given_up=True)
        if self.stopping and not any(client.connection and client.connection.in_flight
                                     for client in self.clients):
            self.finish()
        self.after(SWEEP_SECONDS, self.sweep)

    def read_orders(self):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            os._exit(1)  # the test has ended
        self.orders += chunk
        *lines, self.orders = self.orders.split(b"\n")
        for line in lines:
            order = json.loads(line)
            getattr(self, "order_" + order.pop("order"))(**order)

    def order_next_put(self, after):
        """Answers when a put that was sent after this time is acknowledged."""
        for sent, arrived in self.acknowledged:
            if sent > after:
                self.answer(put=arrived)
                return
        self.waiting_for_put = after

    def order_longest_pause(self, after):
        """Answers how long, after this time, no put of client 0 was acknowledged, at most."""
        longest, last = 0.0, after
        for _, arrived in self.acknowledged:
            if arrived > after:
                longest, last = max(longest, arrived - last), arrived
        self.answer(pause=longest)

    def order_report(self):
        self.answer(**self.report())

    def order_stop(self):
        self.stopping = True

    def report(self):
        return {"problems": self.checker.problems, "problem_count": self.checker.problem_count,
                "live": self.checker.live(), "last_epoch": self.last_epoch,
                **{f"count_{key}": value for key, value in
                   (self.counts + self.checker.counts).items()}}

    # --- The end

    def finish(self):
        for client in self.clients:
            if client.connection:
                client.lose_connection(given_up=True)
        began, seconds = time.monotonic(), 5
        while True:
            try:
                self.checker.check_jobs(self.read_all_jobs(seconds))
                break
            except OSError as error:
                if time.monotonic() > began + HANG_SECONDS:
                    self.checker.problem(0, f"(all): the jobs cannot be read at the end: {error}")
                    break
                self.serving = (self.serving + 1) % len(self.addresses)
                seconds *= 2 if isinstance(error, TimeoutError) else 1
                time.sleep(0.02)
        self.answer(**self.report())
        self.done = True

    def read_all_jobs(self, seconds):
        """Reads the bodies of all jobs from the serving node, by id. A node that sends nothing for
        some seconds does not serve."""
        family, address = self.addresses[self.serving]
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            stream.settimeout(seconds)
            stream.connect(address)
            reader = ReplyReader(stream)
            ids = []
            for tube in TUBES:
                start = 0
                while True:
                    stream.sendall(b"list-jobs %s all %d 1000\r\n" % (tube, start))
                    lines = reader.next()[1].decode().splitlines()
                    ids += [int(line.split()[1]) for line in lines[3:]]
                    start = int(lines[1].split()[2])
                    if not start:
                        break
            found = {}
            for begin in range(0, len(ids), 200):
                some = ids[begin:begin + 200]
                stream.sendall(b"".join(b"peek %d\r\n" % job_id for job_id in some))
                for job_id in some:
                    words, body = reader.next()
                    if words[0] != b"FOUND":
                        self.checker.problem(job_id, "is listed, and cannot be read")
                    else:
                        found[job_id] = body
            return found


class ReplyReader:
    def __init__(self, stream):
        self.stream, self.data = stream, bytearray()

    def next(self):
        while not (reply := parse_reply(self.data, 0)):
            chunk = self.stream.recv(1 << 17)
            if not chunk:
                raise ConnectionResetError("the stream ended")
            self.data += chunk
        words, body, end = reply
        del self.data[:end]
        return words, body


class Load:
    """The load as used by a test: a process, and the methods that control it."""

    def __init__(self, addresses, clients=50, think=0.02, grace=10.0, seed=None, names=(),
                 spread=0.0):
        """`names`: of the nodes at the addresses, if nodes pass clients on. `spread`: the share of
        connections that begin at any node, and not at the one that served last."""
        self.seed = random.randrange(1 << 32) if seed is None else seed
        options = {"addresses": list(addresses), "clients": clients, "think": think,
                   "grace": grace, "seed": self.seed, "names": list(names), "spread": spread}
        self.process = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).resolve()), json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.result = None

    def ask(self, order, **arguments):
        line = json.dumps({"order": order, **arguments}).encode() + b"\n"
        timer = threading.Timer(HANG_SECONDS, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not answer:
            raise AssertionError(f"the load gave no answer to {order!r} within {HANG_SECONDS} s "
                                 f"(seed {self.seed})")
        return json.loads(answer)

    def next_put(self, after=None):
        """Waits until a put that was sent after this time (of time.monotonic(); default: now) is
        acknowledged. Returns when the acknowledgement arrived."""
        return self.ask("next_put", after=time.monotonic() if after is None else after)["put"]

    def longest_pause(self, after):
        """Returns for how many seconds at most, between this time and the last acknowledgement, no
        put of client 0 was acknowledged."""
        return self.ask("longest_pause", after=after)["pause"]

    def more_puts(self, count):
        """Waits until some more puts of any client are acknowledged."""
        enough = self.report().get("count_inserted", 0) + count
        until(f"{count} more puts", lambda: self.report().get("count_inserted", 0) >= enough)

    def report(self):
        return self.ask("report")

    def stop(self):
        """Stops the load, compares all jobs of the server, and returns the report."""
        self.result = self.ask("stop")
        self.close()
        return self.result

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    Program(json.loads(sys.argv[1])).run()
