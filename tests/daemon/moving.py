"""Clients that reconnect and retry while one server replaces another, and that know which jobs must
exist afterwards.
"""

import itertools
import threading

from harness import Client, until

LONG = 600  # seconds: only a hang takes this long


def is_lost(error):
    """True if the error is the end of a connection during the replacement of a server."""
    return isinstance(error, OSError) or "the stream ended" in str(error)


class RetryingClients:
    """Producers and a worker, each with one connection, which they reopen when it ends: to the next
    of the addresses. A producer puts a body until a server acknowledges it. The worker finishes one
    job for three that it leaves."""

    def __init__(self, *addresses, producers=2):
        self.addresses = itertools.cycle(addresses)
        self.changed = threading.Condition()
        self.over = threading.Event()
        self.acknowledged = set()  # bodies
        self.finished = set()      # those whose deletion was acknowledged
        self.uncertain = set()     # those whose deletion was not answered
        self.refused = 0           # attempts to connect
        self.errors = []
        self.threads = [threading.Thread(target=self.run, args=(self.work,), daemon=True)]
        self.threads += [threading.Thread(target=self.run, args=(self.produce, number), daemon=True)
                         for number in range(producers)]
        for thread in self.threads:
            thread.start()

    def run(self, role, *arguments):
        try:
            role(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(error)
            self.over.set()

    def connect(self):
        """Returns a connection, or None once stop() was called."""
        while not self.over.is_set():
            try:
                client = Client(next(self.addresses))
                client.socket.settimeout(LONG)  # a socket of systemd opens before a server answers
                return client
            except OSError:
                with self.changed:
                    self.refused += 1
                self.over.wait(0.01)
        return None

    def put(self, client, body):
        """Returns False if the server drains."""
        client.send(b"put 0 0 100 %d\r\n%s\r\n" % (len(body), body))
        word = client.line().split()[0]
        assert word in ("INSERTED", "DRAINING"), word
        return word == "INSERTED"

    def produce(self, number):
        client, count = self.connect(), 0
        while client and not self.over.is_set():
            body = b"%d-%d" % (number, count)
            try:
                if not self.put(client, body):
                    self.over.wait(0.01)
                    continue
            except (OSError, AssertionError) as error:
                client.close()
                if not is_lost(error):
                    raise
                client = self.connect()
                continue
            count += 1
            with self.changed:
                self.acknowledged.add(body)
                self.changed.notify_all()
        if client:
            client.close()

    def work(self):
        client, body = self.connect(), None
        while client and not self.over.is_set():
            with self.changed:
                if len(self.acknowledged) < 4 * (len(self.finished) + len(self.uncertain)):
                    self.changed.wait(0.1)
                    continue
            try:
                body = None
                client.send(b"reserve-with-timeout 1\r\n")
                line = client.line()
                if line in ("TIMED_OUT", "DEADLINE_SOON"):
                    continue
                word, job, size = line.split()
                assert word == "RESERVED", line
                body = client.read(int(size) + 2)[:-2]
                answer = client.ask(f"delete {job}")
                assert answer == "DELETED", answer
            except (OSError, AssertionError) as error:
                client.close()
                if not is_lost(error):
                    raise
                with self.changed:
                    self.uncertain |= {body} - {None}
                client = self.connect()
                continue
            with self.changed:
                self.finished.add(body)
        if client:
            client.close()

    def more(self, count):
        """Waits until this many more puts are acknowledged."""
        goal = len(self.acknowledged) + count
        until(f"{count} more acknowledgements", lambda: self.errors or len(self.acknowledged) >= goal,
              LONG)

    def meet_a_refusal(self):
        goal = self.refused + 1
        until("a refused connection", lambda: self.errors or self.refused >= goal, LONG)

    def missing(self):
        """Stops the clients, takes all ready jobs from the server, and returns the missing
        bodies."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        there = set()
        client = Client(next(self.addresses))
        while True:
            client.send(b"reserve-with-timeout 0\r\n")
            line = client.line()
            if line == "TIMED_OUT":
                break
            there.add(client.read(int(line.split()[2]) + 2)[:-2])
            assert client.ask(f"delete {line.split()[1]}") == "DELETED"
        client.close()
        return self.acknowledged - self.finished - self.uncertain - there

    def expect_all(self):
        """Fails if missing() finds any. Returns the counts as a text."""
        missing = self.missing()
        text = (f"{len(self.acknowledged)} acknowledged, {len(self.finished)} finished, "
                f"{self.refused} refusals")
        assert not missing, f"{len(missing)} jobs are missing: {text}"
        return text
