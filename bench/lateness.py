"""The row about lateness: the time from the moment at which a job is due until a waiting client has
it.

A server receives a command between the moment before the command is sent and the moment at which
its reply is read; the job is due a second later. Lateness is counted from the earliest moment at which
the job may have been due; a job that comes before that moment is too early.
"""

import contextlib
import gc
import sys
import time

import wire
from load_rows import both, row
from rounds import in_rounds, judged, medians

SECOND = 1_000_000_000
CHUNK = 100  # commands in one batch
SHARE = 20  # paused tubes of one waiting client
COLUMNS = ("p50 ms", "p99 ms", "most ms", "p99 at least", "early")


class Due:
    """For each job the earliest and the latest time in ns at which it may be due."""

    def __init__(self):
        self.bounds = {}

    def ask(self, connection, requests, count, lines, word, jobs=None):
        """Sends `count` commands, each of which makes a job due in a second. `jobs` has the ids of
        the jobs; None: the replies have them."""
        before = time.monotonic_ns()
        arrived = connection.arrivals(requests, lines)
        bounds = (before + SECOND, arrived[-1][0] + SECOND)
        data = b"".join(chunk for _, chunk in arrived)
        for job in jobs or wire.identities(data, word, count):
            self.bounds[job] = bounds

    def wait(self, exchanges):
        """`exchanges` is a list of (connection, requests that wait for jobs, lines). Sends the
        requests, and returns for each job the ns since the earliest and since the latest time at
        which it was due."""
        if time.monotonic_ns() >= min(first for first, _ in self.bounds.values()):
            sys.exit("lateness: the first jobs were due before all commands were sent")
        late, rests = [], [b""] * len(exchanges)
        for moment, place, chunk in wire.arrivals_at(exchanges):
            *whole, rests[place] = (rests[place] + chunk).split(b"\r\n")
            for line in whole:
                if line.startswith(b"RESERVED "):
                    first, last = self.bounds.pop(int(line.split()[1]))
                    late.append((moment - first, moment - last))
        if self.bounds:
            sys.exit(f"lateness: {len(self.bounds)} jobs did not arrive")
        return late


def delays(server, count):
    """Jobs that are put with a delay."""
    due = Due()
    with wire.Connection(server.address) as producer, wire.Connection(server.address) as waiting:
        for _ in range(count // CHUNK):
            due.ask(producer, wire.put(delay=1) * CHUNK, CHUNK, CHUNK, b"INSERTED")
        return due.wait([(waiting, b"reserve\r\n" * count, 2 * count)])


def ttrs(server, count):
    """Jobs that clients hold until their TTR ends."""
    due = Due()
    with contextlib.ExitStack() as stack:
        waiting = stack.enter_context(wire.Connection(server.address))
        jobs = wire.identities(waiting.exchange(wire.put(ttr=1) * count, count), b"INSERTED", count)
        for _ in range(count // CHUNK):
            holder = stack.enter_context(wire.Connection(server.address))
            due.ask(holder, b"reserve\r\n" * CHUNK, CHUNK, 2 * CHUNK, b"RESERVED")
        # A waiting client must not hold jobs whose TTR ends soon, so it deletes each job at once.
        # It knows the id: the jobs were reserved in the order of their ids, and become ready in
        # that order.
        requests = b"".join(b"reserve\r\ndelete %d\r\n" % job for job in jobs)
        return due.wait([(waiting, requests, 3 * count)])


def pauses(server, count):
    """A job in each of several paused tubes; each client waits at some of the tubes."""
    due = Due()
    names = [b"late-%d" % number for number in range(count)]
    shares = [names[begin:begin + SHARE] for begin in range(0, count, SHARE)]
    with contextlib.ExitStack() as stack:
        producer = stack.enter_context(wire.Connection(server.address))
        puts = b"".join(b"use %s\r\n" % name + wire.put() for name in names)
        lines = producer.exchange(puts, 2 * count).split(b"\r\n")[1::2]
        jobs = [int(line.split()[1]) for line in lines]
        waiting = [stack.enter_context(wire.Connection(server.address)) for _ in shares]
        for connection, some in zip(waiting, shares):
            watches = b"".join(b"watch %s\r\n" % name for name in some)
            connection.exchange(watches + b"ignore default\r\n", len(some) + 1)
        for number, some in enumerate(shares):
            due.ask(producer, b"".join(b"pause-tube %s 1\r\n" % name for name in some), len(some),
                    len(some), b"PAUSED", jobs[number * SHARE:][:len(some)])
        return due.wait([(connection, b"reserve\r\n" * len(some), 2 * len(some))
                         for connection, some in zip(waiting, shares)])


def _figures(measure, server, count):
    """In milliseconds, with the number of jobs that came early."""
    gc.collect()
    gc.disable()  # which would count as lateness
    late = measure(server, count)
    gc.enable()
    at_most = sorted(most / 1e6 for most, _ in late)
    at_least = sorted(least / 1e6 for _, least in late)
    p99 = len(late) * 99 // 100
    return [at_most[len(late) // 2], at_most[p99], at_most[-1], at_least[p99],
            sum(each < 0 for each in at_most)]


def lateness(options):
    count = options.scaled(10_000)
    tables, claims, early = [], [], 0
    for part, measure in (("delay", delays), ("TTR", ttrs), ("pause", pauses)):
        compared = {each.name: each.server for each in both(options)
                    if part != "TTR" or each.name == "tubed"}
        each = in_rounds(options, f"lateness, {part}", compared,
                         lambda server, measure=measure: _figures(measure, server, count))
        of = f"{count:,} tubes" if part == "pause" else f"{count:,} jobs"
        middle = medians(each)
        tables.append({"title": f"lateness of {of}: {part} of a second", "columns": list(COLUMNS),
                       "keys": ["p50", "p99", "most", "p99_at_least", "early"], "rows": middle})
        p99s = [one[1] for one in each["tubed"]]
        claims.append(judged(f"lateness, p99: {part}", middle["tubed"][1], 3, "ms",
                             least=min(p99s), most=max(p99s), value=middle["tubed"][1],
                             beside=middle.get("beanstalkd", [None, None])[1], figures_in="ms"))
        early += sum(one[-1] for one in each["tubed"])
    claims.append(judged("jobs that came too early", early, 0, "jobs"))
    notes = ["No TTRs of beanstalkd 1.12: of 100 jobs that one connection holds, most are not back "
             "3 s after their time is over."]
    return row("how late jobs are", tables, claims, notes)
