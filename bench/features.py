#!/usr/bin/env python3
"""Measures what the commands cost that beanstalkd lacks: server CPU a job, and memory.

  TUBED_PROGRAM=build/release/src/tubed python3 bench/features.py [jobs [rows]]

Each row starts a new tubed without a journal and sends pipelined commands on one connection. The
CPU is the user and kernel time of the process, over the jobs that the row names. A row that has a
counterpart among beanstalkd's commands is compared with it, in the same run. The memory is what the
process has more than before its first job. With a regular expression as `rows`, only the rows whose
names it matches are measured; the ratio is missing if the counterpart is not among them.
"""

import re
import sys
import time

from servers import Client, Daemon

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ROWS = sys.argv[2] if len(sys.argv) > 2 else ""
BATCH = 1000
FEWER = JOBS // 10  # operations of a row that costs this script, or the server, much more
BODY = b"0123456789abcdef"


class Tubed:
    """A tubed without a journal, and a client of it."""

    def __init__(self):
        self.daemon = Daemon(["--listen", "127.0.0.1:0", "--limits-job-memory", "16GiB",
                              "--limits-output-bytes", "1MiB"])
        self.client = self.connect()
        self.empty = self.daemon.resident_bytes()

    def connect(self):
        return Client(self.daemon.addresses[0])

    def end(self):
        self.client.close()
        self.daemon.end()

    def put(self, tag="", line="put 0 0 600"):
        """Puts the jobs 1 to JOBS; with a tag, its key has the number of the job."""
        begin = line.encode()
        for first in range(1, JOBS + 1, BATCH):
            self.client.pump(b"".join(
                b"%b %d%b\r\n%b\r\n" % (begin, len(BODY), tag.format(i).encode(), BODY)
                for i in range(first, first + BATCH)), BATCH)

    def each(self, command, lines=1):
        """Sends command(id) for each job; its reply has this number of lines."""
        for first in range(1, JOBS + 1, BATCH):
            self.client.pump(b"".join(command(i) for i in range(first, first + BATCH)),
                             BATCH * lines)

    def repeat(self, command):
        """Sends the command FEWER times; all replies have the same number of lines."""
        self.client.send(command)
        words = self.client.line().split()
        lines = 1
        if words[0] == "OK":
            lines += self.client.read(int(words[1]) + 2).count(b"\n")
        for left in range(FEWER, 0, -BATCH):
            count = min(left, BATCH)
            self.client.pump(command * count, count * lines)

    def policy(self, **values):
        """Sets the policy of the tube default: max_attempts is max-attempts."""
        for key, value in values.items():
            self.expect(f"tube-policy default {key.replace('_', '-')} {value}", "POLICY_SET")

    def expect(self, command, reply):
        answer = self.client.ask(command)
        assert answer == reply, answer

    def until(self, key, value):
        """Waits until this line of stats has the value."""
        while self.client.stats()[key] != value:
            time.sleep(0.01)

    def reserve(self, request, count):
        """Reserves all jobs, `count` with each request."""
        for _ in range(JOBS // BATCH):
            self.client.send(request * (BATCH // count))
            lines = BATCH + (BATCH // count if count > 1 else 0)
            jobs = 0
            for _ in range(lines):
                words = self.client.line().split()
                if words[0] == "RESERVED":
                    self.client.read(int(words[2]) + 2)
                    jobs += 1
            assert jobs == BATCH, jobs

    def put_and_reserve(self):
        self.put()
        self.reserve(b"reserve-batch 1000\r\n", 1000)

    def release(self, delay=0):
        self.each(lambda i: b"release %d 0 %d\r\n" % (i, delay))

    def release_and_reserve(self, delay=0):
        self.release(delay)
        self.until("current-jobs-ready", JOBS)
        self.reserve(b"reserve-with-timeout 0\r\n", 1)

    def reserve_and_delete(self):
        """Never holds two jobs: all may have the same key."""
        self.each(lambda i: b"reserve-with-timeout 0\r\ndelete %d\r\n" % i, lines=3)

    def put_in_two_tubes(self):
        """Half of the jobs in each, and the client watches both."""
        for first in range(1, JOBS + 1, BATCH):
            self.client.pump(b"".join(
                b"put-in-tube %b 0 0 600 %d\r\n%b\r\n" % ((b"a", b"b")[i % 2], len(BODY), BODY)
                for i in range(first, first + BATCH)), BATCH)
        self.expect("watch a", "WATCHING 2")
        self.expect("watch b 3", "WATCHING 3")

    def put_with_cooldown_and_delete(self):
        """Each job has a key that is free some seconds after its deletion."""
        self.put(" idp:user/{:07}:15")
        self.each(lambda i: b"delete %d\r\n" % i)

    def list_jobs(self):
        """All ready jobs, page by page."""
        start = 1
        jobs = 0
        while start:
            self.client.send(b"list-jobs default ready %d %d\r\n" % (start, BATCH))
            page = self.client.read(int(self.client.line().split()[1]) + 2)
            lines = page.decode().splitlines()
            jobs += sum(line[2:3].isdigit() for line in lines)
            next_lines = [line for line in lines if line.startswith("- next ")]
            start = int(next_lines[0].split()[2]) if next_lines else 0
        assert jobs == JOBS, jobs

    def put_member(self):
        """A job of the group g, after all others."""
        self.client.send(b"put 9 0 600 0 grp:g\r\n\r\n")
        return int(self.client.line().split()[1])

    def end_group(self, member):
        """Deletes the member, and waits until no job is held."""
        began = time.monotonic()
        self.expect(f"delete {member}", "DELETED")
        took = time.monotonic() - began
        self.until("current-jobs-held", 0)
        return f"DELETED, answered in {took * 1e3:.2f} ms, all ready"

    def wait_and_delete(self):
        """Many clients wait for one job each, which another client deletes."""
        clients = [self.connect() for _ in range(min(500, FEWER))]
        for first in range(1, FEWER + 1, len(clients)):
            for i, client in enumerate(clients, first):
                client.send(b"wait 600 %d\r\n" % i)
            self.until("cmd-wait", first + len(clients) - 1)
            self.client.pump(b"".join(b"delete %d\r\n" % (first + i)
                                      for i in range(len(clients))), len(clients))
            for i, client in enumerate(clients, first):
                reply = client.line()
                assert reply == f"DELETED {i}", reply
        for client in clients:
            client.close()

    def batches(self, word):
        """Sends one command for each BATCH of ids."""
        for first in range(1, JOBS + 1, BATCH):
            ids = " ".join(map(str, range(first, first + BATCH)))
            self.client.ask(f"{word} {ids}")


def nothing(_server):
    """Prepares nothing."""


def measured(name, prepare, act, compared=None, jobs=JOBS):
    """Prints the cost of act(server), which does `jobs` operations, and its ratio to the cost `compared`.
    A text that act() returns is a note. Returns the cost of an operation."""
    if not re.search(ROWS, name):
        return None
    server = Tubed()
    prepared = prepare(server)
    before = server.daemon.cpu_seconds()
    began = time.monotonic()
    reply = act(server) if prepared is None else act(server, prepared)
    took = time.monotonic() - began
    cpu = (server.daemon.cpu_seconds() - before) / jobs
    memory = (server.daemon.resident_bytes() - server.empty) / JOBS
    ratio = f"{cpu / compared:.2f}" if compared else ""
    note = f"{reply} after {took * 1e3:.1f} ms" if isinstance(reply, str) else ""
    print(f"| {name} | {cpu * 1e6:.2f} µs | {ratio} | {memory:.0f} | {note} |", flush=True)
    server.end()
    return cpu


def until_freed(server, command):
    """Sends the command, and waits until the memory of the jobs is free."""
    began = time.monotonic()
    reply = server.client.ask(command)
    took = time.monotonic() - began
    server.until("job-memory", 0)
    return f"{reply}, answered in {took * 1e3:.2f} ms, all freed"


def policies(put):
    measured("put with max and ttl", nothing, lambda s: s.put(" max:5 ttl:3600"), put)
    measured("put, of a tube with a policy", lambda s: s.policy(max_attempts=5, backoff=1),
             Tubed.put, put)

    def reserved(**values):
        def prepare(server):
            server.policy(**values)
            server.put_and_reserve()
        return prepare
    release = measured("release", reserved(), Tubed.release)
    measured("release, max-attempts 5 and backoff 1", reserved(max_attempts=5, backoff=1),
             Tubed.release, release)
    measured("release, of a dead job to a tube", reserved(max_attempts=1, dead="t"),
             Tubed.release, release)
    both = measured("release and reserve", reserved(), Tubed.release_and_reserve)
    measured("release and reserve, max-attempts 5", reserved(max_attempts=5),
             Tubed.release_and_reserve, both)
    both = measured("release by 1 s and reserve", reserved(), lambda s: s.release_and_reserve(1))
    measured("release and reserve, backoff 1", reserved(max_attempts=5, backoff="1:1"),
             Tubed.release_and_reserve, both)
    measured("tube-policy", nothing, lambda s: s.repeat(b"tube-policy default\r\n"), jobs=FEWER)
    measured("tube-policy with a value", nothing,
             lambda s: s.repeat(b"tube-policy default max-attempts 5\r\n"), jobs=FEWER)


def keys_and_groups(put, reserve, delete):
    of_its_own, of_all = " con:user/{:07}", " con:user"
    measured("put with con, a key for each job", nothing, lambda s: s.put(of_its_own), put)
    measured("put with con, one key for all", nothing, lambda s: s.put(of_all), put)
    measured("reserve-with-timeout 0, a key for each job", lambda s: s.put(of_its_own),
             lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1), reserve)
    both = measured("reserve and delete", Tubed.put, Tubed.reserve_and_delete)
    measured("reserve and delete, a key for each job", lambda s: s.put(of_its_own),
             Tubed.reserve_and_delete, both)
    measured("reserve and delete, one key for all", lambda s: s.put(of_all),
             Tubed.reserve_and_delete, both)
    measured("put with grp, a group for each job", nothing, lambda s: s.put(" grp:order/{:07}"),
             put)
    measured("put with grp, one group for all", nothing, lambda s: s.put(" grp:g"), put)

    def with_group(server):
        server.put_member()
    measured("put with aft, held", with_group, lambda s: s.put(" aft:g"), put)

    def pairs(server):
        server.put(" grp:order/{:07}")
        server.put(" aft:order/{:07}")
    measured("delete, which releases a held job", pairs,
             lambda s: s.each(lambda i: b"delete %d\r\n" % i), delete)

    def held(server):
        member = server.put_member()
        server.put(" aft:g")
        return member
    measured("the end of a group, for each held job", held, Tubed.end_group, delete)


def other_states(put, reserve, delete):
    measured("put-in-tube", nothing, lambda s: s.put(line="put-in-tube t 0 0 600"), put)
    measured("put, a TTR of 1500ms", nothing, lambda s: s.put(line="put 0 0 1500ms"), put)
    two = measured("reserve-with-timeout 0, of two tubes", Tubed.put_in_two_tubes,
                   lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1), reserve)

    def mode(word):
        def prepare(server):
            server.put_in_two_tubes()
            server.expect(f"reserve-mode {word}", f"USING {word}")
        return prepare
    for word in ("weighted", "weighted-fair"):
        measured(f"reserve-with-timeout 0, of two tubes, {word}", mode(word),
                 lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1), two)

    def limited(server):
        server.policy(max_reserved=2 * JOBS, rate="4000000/1")
        server.put()
    measured("reserve-with-timeout 0, max-reserved and rate", limited,
             lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1), reserve)
    measured("touch-all", Tubed.put_and_reserve, lambda s: s.client.ask("touch-all"), delete)
    measured("peek-reserved", Tubed.put_and_reserve,
             lambda s: s.each(lambda _: b"peek-reserved\r\n", lines=2))

    def buried(server):
        server.put_and_reserve()
        server.each(lambda i: b"bury %d 0\r\n" % i)
    measured("kick-tube", buried, lambda s: s.client.ask(f"kick-tube default {JOBS} buried"), delete)
    measured("flush-buried", buried, lambda s: s.client.ask("flush-buried default"), delete)
    measured("truncate", Tubed.put, lambda s: until_freed(s, "truncate default"), delete)
    measured("list-jobs", Tubed.put, Tubed.list_jobs, delete)

    def gone(word):
        def act(server):
            server.until(word, JOBS)
        return act
    measured("put and expire", nothing,
             lambda s: (s.put(" ttl:5"), gone("expired-jobs")(s)) and None, put)
    measured("put, delete and the end of a cooldown", nothing,
             lambda s: (s.put_with_cooldown_and_delete(), s.until("job-memory", 0)) and None, put)


def other_commands(delete):
    measured("wait 0", Tubed.put, lambda s: s.each(lambda i: b"wait 0 %d\r\n" % i), delete)
    measured("wait of another client, and delete", Tubed.put, Tubed.wait_and_delete, delete,
             jobs=FEWER)
    measured("stats-tube", Tubed.put, lambda s: s.repeat(b"stats-tube default\r\n"), jobs=FEWER)
    measured("stats-tubes", Tubed.put, lambda s: s.repeat(b"stats-tubes\r\n"), jobs=FEWER)
    measured("stats-group", lambda s: s.put(" grp:g"), lambda s: s.repeat(b"stats-group g\r\n"),
             jobs=FEWER)


def main():
    print(f"| {JOBS:,} jobs of {len(BODY)} bytes | server CPU a job | ratio | bytes a job | |")
    print("|---|---:|---:|---:|---|")
    put = measured("put", nothing, Tubed.put)
    measured("put with a unique key", nothing, lambda s: s.put(" idp:user/{:07}"), put)
    measured("the same keys again", lambda s: s.put(" idp:user/{:07}"),
             lambda s: s.put(" idp:user/{:07}"), put)
    reserve = measured("reserve-with-timeout 0", Tubed.put,
                       lambda s: s.reserve(b"reserve-with-timeout 0\r\n", 1))
    measured("reserve-batch 1000", Tubed.put, lambda s: s.reserve(b"reserve-batch 1000\r\n", 1000),
             reserve)
    delete = measured("delete", Tubed.put, lambda s: s.each(lambda i: b"delete %d\r\n" % i))
    measured("delete-batch of 1,000 ids", Tubed.put, lambda s: s.batches("delete-batch"), delete)
    measured("delete, of unique jobs with a cooldown", lambda s: s.put(" idp:user/{:07}:3600"),
             lambda s: s.each(lambda i: b"delete %d\r\n" % i), delete)
    measured("flush-tube", Tubed.put, lambda s: until_freed(s, "flush-tube default"), delete)
    measured("flush-tube, of unique jobs", lambda s: s.put(" idp:user/{:07}"),
             lambda s: until_freed(s, "flush-tube default"), delete)
    measured("flush-tube default ready", Tubed.put, lambda s: s.client.ask(
        "flush-tube default ready"), delete)
    measured("move-job", Tubed.put, lambda s: s.each(lambda i: b"move-job %d t\r\n" % i), delete)
    measured("move-jobs", Tubed.put, lambda s: s.client.ask("move-jobs default ready t"), delete)
    measured("reprioritize", Tubed.put, lambda s: s.each(lambda i: b"reprioritize %d 7\r\n" % i),
             delete)
    policies(put)
    keys_and_groups(put, reserve, delete)
    other_states(put, reserve, delete)
    other_commands(delete)


if __name__ == "__main__":
    main()
