"""The rows that `tubectl bench` (for Redis: redis-benchmark) loads, in alternating slices.

A row is a function of the options. It returns {title, tables, claims, notes}; report.py prints
them, pictures.py draws them.
"""

import contextlib
import csv
import functools
import io
import os
import sys
import time

import servers
import wire
from rounds import Contender, claim, load, run_alternately, table
from servers import beanstalkd, harness, tubed

CLIENTS = ("--clients", 50)


def do_nothing(options):
    return functools.partial(servers.Server, lambda _: [options.do_nothing, "--port", 0])


class Redis(servers.Server):
    """Redis can neither log a free port nor take a socket. It listens on a loopback address that
    no other process uses."""

    PORT = 16379

    def run(self, command):
        number = os.getpid()  # at most 22 bits
        host = f"127.{128 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        process = harness.Process([*command, "--bind", host, "--port", str(self.PORT)], stdout=True)
        process.addresses = [f"{host}:{self.PORT}"]
        process.wait_for_line("Ready to accept connections")
        return process


def redis(options):
    return functools.partial(Redis, lambda folder: [
        options.redis, "--save", "", "--appendonly", "no", "--dir", folder])


def both(options):
    return [Contender("tubed", tubed(options)), Contender("beanstalkd", beanstalkd(options))]


def all_three(options):
    return [*both(options), Contender("do-nothing", do_nothing(options))]


def row(title, tables, claims, notes=()):
    return {"title": title, "tables": tables, "claims": claims, "notes": list(notes)}


# --- CPU an operation -----------------------------------------------------------------------------

def cpu_row(options, name, title, workload, in_flight, bounds):
    operation = "put" if workload == "put" else "command"
    steps = {"": load(options, workload, *CLIENTS, "--in-flight", in_flight)}
    results = run_alternately(options, name, all_three(options), steps)[""]
    claims = [claim(f"server CPU a {operation}", results["tubed"], results[other], "cpu", bound,
                    of=other)
              for other, bound in bounds.items()]
    return row(title, [table(title, results, ("cpu", "rate", "p50", "p99"), operation)], claims)


def put_1(options):
    return cpu_row(options, "put-1", "50 clients, one put in flight each", "put", 1,
                   {"beanstalkd": 0.78, "do-nothing": 1.15})


def cycle_1(options):
    return cpu_row(options, "cycle-1", "50 clients: put, reserve, delete in turn", "cycle", 1,
                   {"beanstalkd": 0.75})


def put_16(options):
    return cpu_row(options, "put-16", "50 clients, 16 puts in flight each", "put", 16,
                   {"beanstalkd": 0.09, "do-nothing": 1.8})


def cycle_30(options):
    return cpu_row(options, "cycle-30", "50 clients: 10 puts, 10 reserves, 10 deletes in flight",
                   "cycle", 30, {"beanstalkd": 0.10})


def single(options):
    title = "one client, one put in flight"
    results = run_alternately(options, "single", all_three(options),
                              {"": load(options, "put", "--clients", 1, "--in-flight", 1)})[""]
    claims = [claim("round trip, p50", results["tubed"], results["beanstalkd"], "p50", 1.0,
                    of="beanstalkd")]
    return row(title, [table(title, results, ("p50", "p99", "cpu", "rate"), "put")], claims)


def large(options):
    # Limited by count, not by time: all jobs are in memory at the same time, and both servers have
    # the same number.
    jobs = options.scaled(20_000)
    of_16_kib = (*CLIENTS, "--in-flight", 16, "--body", 16384, "--jobs", jobs)
    results = run_alternately(options, "large", both(options), {
        "put": load(options, "put", *of_16_kib, timed=False),
        "reserve, delete": load(options, "reserve", *of_16_kib, "--no-fill", timed=False)})
    tables = [table(f"bodies of 16 KiB, 50 clients, 16 in flight: {label}", each,
                    ("cpu", "rate", "p50", "p99"), "command") for label, each in results.items()]
    claims = [claim(f"server CPU a command: {label}", each["tubed"], each["beanstalkd"], "cpu", 0.6,
                    of="beanstalkd") for label, each in results.items()]
    return row("bodies of 16 KiB, 16 in flight", tables, claims)


WAITERS = 1000
RATE = 5000


def waiters(options):
    pipe = ("pipe", "--producers", 10, "--consumers", options.scaled(WAITERS))
    results = run_alternately(options, "waiters", both(options), {
        f"at {RATE} puts a second": load(options, *pipe, "--rate", RATE),
        "as fast as it goes": load(options, *pipe)})
    tables = [table(f"{options.scaled(WAITERS)} clients waiting in reserve on one tube, "
                    f"from put to worker, {label}", each, ("p50", "p99", "cpu", "rate"), "job")
              for label, each in results.items()]
    claims = [claim(f"from put to worker, p99, {label}", each["tubed"], each["beanstalkd"], "p99",
                    0.7, of="beanstalkd") for label, each in results.items()]
    return row(f"{options.scaled(WAITERS)} clients waiting in reserve", tables, claims)


# --- Crowds ---------------------------------------------------------------------------------------

def _want(server, name, least):
    """Checks that the crowd exists."""
    count = server.stats()[name]
    if count < least:
        sys.exit(f"{server.name} has {name}: {count}, and {least} are wanted")


@contextlib.contextmanager
def many_tubes(server, count):
    with wire.Connection(server.address) as connection:
        wire.put_many(connection, (b"use crowd-%d\r\n" % number + wire.put()
                                   for number in range(count)))
    _want(server, "current-tubes", count)
    yield


@contextlib.contextmanager
def many_waiters(server, count):
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(wire.Connection(server.address))
            connection.exchange(b"watch crowd\r\nignore default\r\nreserve\r\n", 2)
        _want(server, "current-waiting", count)
        yield


def many_delayed(options):
    @contextlib.contextmanager
    def prepare(server, count):
        servers.run_bench(options.tubectl, server, "put", "--clients", 4, "--in-flight", 250,
                          "--body", 16, "--delay", 100_000, "--jobs", count)
        _want(server, "current-jobs-delayed", count)
        yield
    return prepare


def crowd(options):
    crowds = (("other tubes", 50_000, many_tubes), ("other idle waiters", 10_000, many_waiters),
              ("delayed jobs", 1_000_000, many_delayed(options)))
    steps = {"": load(options, "cycle", *CLIENTS, "--in-flight", 1)}
    tables, claims = [], []
    command = tubed(options, "--limits-connections", 20_000)
    for name, wanted, prepare in crowds:
        count = options.scaled(wanted)
        label = f"beside {count:,} {name}"
        contenders = [Contender("alone", command),
                      Contender(label, command, lambda server, prepare=prepare, count=count:
                                prepare(server, count))]
        results = run_alternately(options, f"crowd, {name}", contenders, steps)[""]
        tables.append(table(f"50 clients: put, reserve, delete in turn, {label}", results,
                            ("cpu", "rate", "p50", "p99"), "command"))
        claims.append(claim(f"server CPU a command, {label}", results[label], results["alone"],
                            "cpu", 1.2, of="alone"))
    return row("the same work in a crowd", tables, claims)


class Watcher:
    """One client that reserves from one tube and also watches other tubes."""

    def __init__(self, connection, tubes):
        self.connection = connection
        watch = b"".join(b"watch watched-%d\r\n" % number for number in range(tubes))
        connection.exchange(b"watch watched-0\r\nignore default\r\n" + watch, tubes + 2)
        connection.exchange(b"use watched-%d\r\n" % (tubes // 2), 1)

    def work(self, batch, seconds):
        """put, reserve and delete for `seconds`, with `batch` of the same command in flight."""
        puts = wire.put() * batch
        reserves = b"reserve\r\n" * batch
        start = time.monotonic()
        done = 0
        while time.monotonic() - start < seconds:
            wire.identities(self.connection.exchange(puts, batch), b"INSERTED", batch)
            taken = wire.identities(self.connection.exchange(reserves, 2 * batch), b"RESERVED",
                                    batch)
            deletes = b"".join(b"delete %d\r\n" % job for job in taken)
            wire.replies(self.connection.exchange(deletes, batch), b"DELETED", batch)
            done += batch
        return {"all": done, "measured": done, "seconds": time.monotonic() - start}


def watch(options):
    many = options.scaled(10_000)
    title = f"one client that watches {many:,} tubes"

    def watching(tubes):
        @contextlib.contextmanager
        def prepare(server):
            with wire.Connection(server.address) as connection:
                yield Watcher(connection, tubes)
        return prepare

    contenders = [Contender(f"{name}, {label}", command, watching(count))
                  for name, command in (("tubed", tubed(options)),
                                        ("beanstalkd", beanstalkd(options)))
                  for label, count in (("one tube", 1), ("many tubes", many))]
    results = run_alternately(options, "watch", contenders, {
        label: lambda server, watcher, length, batch=batch: watcher.work(batch, length)
        for label, batch in (("one command in flight", 1), ("10 in flight", 10))})
    tables, claims = [], []
    for label, each in results.items():
        tables.append(table(f"{title}: put, reserve, delete, {label}", each, ("cpu",), "cycle"))
        for name, bound in (("tubed", 3), ("beanstalkd", None)):
            claims.append(claim(f"{name}: server CPU a cycle, {label}", each[f"{name}, many tubes"],
                                each[f"{name}, one tube"], "cpu", bound, of="watching one tube"))
    return row(title, tables, claims)


# --- The journal, and Redis -----------------------------------------------------------------------

def journal(options):
    title = "50 clients, one put in flight each, with a journal"
    contenders = [Contender("in memory", tubed(options)),
                  Contender("synced every 50 ms", tubed(options, "-f", 50, journal=True))]

    def step(server, prepared, length):
        run = load(options, "put", *CLIENTS, "--in-flight", 1)(server, prepared, length)
        # Syncs that are still pending count for this slice too.
        time.sleep(0.06)
        return run

    results = run_alternately(options, "journal", contenders, {"": step})[""]
    claims = [claim("server CPU a put, journal synced every 50 ms", results["synced every 50 ms"],
                    results["in memory"], "cpu", 1.25, of="in memory")]
    return row(title, [table(title, results, ("cpu", "rate", "p50", "p99"), "put")], claims)


def redis_load(options, command, pipelined, count):
    def step(server, _, length):
        host, port = server.address.split(":")
        output = servers.run_load([options.redis_benchmark, "-h", host, "-p", port, "-t", command,
                                   "-c", 50, "-P", pipelined, "-d", 100, "-n", count, "--csv"],
                                  length, options.pin)
        line = next(csv.DictReader(io.StringIO(output)))
        return {"all": count, "measured": count, "seconds": count / float(line["rps"]),
                "latency-us": {name: float(line[f"{name}_latency_ms"]) * 1000
                               for name in ("p50", "p99")}}
    return step


def jobs_load(options, workload, in_flight, count, *more):
    """An operation is a job, although a job takes two commands, reserve and delete."""
    of_tubed = load(options, workload, *CLIENTS, "--in-flight", in_flight, "--jobs", count, *more,
                    timed=False)

    def step(server, prepared, length):
        return of_tubed(server, prepared, length) | {"all": count, "measured": count}
    return step


def redis_row(options):
    contenders = [Contender("tubed", tubed(options)), Contender("Redis", redis(options))]
    steps = {}
    for in_flight, wanted in ((1, 50_000), (16, 400_000)):
        count = options.scaled(wanted)
        for label, of_tubed, of_redis in (
                (f"put / LPUSH, 50 x {in_flight}",
                 jobs_load(options, "put", in_flight, count),
                 redis_load(options, "lpush", in_flight, count)),
                (f"reserve and delete / RPOP, 50 x {in_flight}",
                 jobs_load(options, "reserve", in_flight, count, "--no-fill"),
                 redis_load(options, "rpop", in_flight, count))):
            steps[label] = lambda server, prepared, length, ours=of_tubed, theirs=of_redis: (
                ours if server.name == "tubed" else theirs)(server, prepared, length)
    results = run_alternately(options, "redis", contenders, steps)
    tables = [table(label, each, ("cpu", "rate"), "job") for label, each in results.items()]
    claims = [claim(f"server CPU a job, {label}", each["tubed"], each["Redis"], "cpu", None,
                    of="Redis") for label, each in results.items()]
    notes = ["Redis keeps a list and no reservations, delays or priorities; it is loaded by "
             "redis-benchmark, so only the servers' CPU compares."]
    return row("beside Redis's lists", tables, claims, notes)
