"""The rows about the memory, the connections and the start of a server.

A row is a function of the options, as in load_rows.py.
"""

import contextlib
import os
import resource
import signal
import statistics
import sys
import time

import servers
import wire
from load_rows import row
from rounds import in_rounds, judged, medians
from servers import beanstalkd, tubed

MIB = 1 << 20
KEPT_DESCRIPTORS = 100  # descriptors that a server and this program need in addition to the clients


# --- Memory ---------------------------------------------------------------------------------------

def _million_jobs(options, server, jobs):
    """Returns (MiB at the beginning, bytes for each job, MiB after all deletes, MiB a second
    later)."""
    load = ("--clients", 4, "--body", 16, "--in-flight", 250)
    for count in (4000, jobs):  # first a few: buffers and code are allocated before the measurement
        begun = server.process.resident_bytes()
        servers.run_bench(options.tubectl, server, "put", *load, "--jobs", count)
        server.wait_for_ready_jobs(count)
        full = server.process.resident_bytes()
        servers.run_bench(options.tubectl, server, "reserve", *load, "--jobs", count, "--no-fill")
        server.wait_for_ready_jobs(0)
    empty = server.process.resident_bytes()
    time.sleep(1)
    return begun / MIB, (full - begun) / jobs, empty / MIB, server.process.resident_bytes() / MIB


def memory(options):
    jobs = options.scaled(1_000_000)
    commands = {"tubed": tubed(options), "beanstalkd": beanstalkd(options)}
    figures = in_rounds(options, "memory", commands,
                        lambda server: _million_jobs(options, server, jobs))
    ratios = [ours[1] / theirs[1] for ours, theirs in zip(figures["tubed"], figures["beanstalkd"])]
    kept = [later / begun for begun, _, _, later in figures["tubed"]]
    middle = medians(figures)
    begun, _, _, later = middle["tubed"]
    table = {"title": f"{jobs:,} ready jobs with bodies of 16 bytes",
             "columns": ["MiB before", "bytes a job", "MiB when deleted", "MiB 1 s later"],
             "keys": ["begun", "a_job", "deleted", "later"], "rows": middle}
    claims = [judged("memory a job", statistics.median(ratios), 0.6, of="beanstalkd",
                     least=min(ratios), most=max(ratios), value=middle["tubed"][1],
                     beside=middle["beanstalkd"][1], figures_in="bytes"),
              judged("memory 1 s after all are deleted", statistics.median(kept), 1.2, of="before",
                     least=min(kept), most=max(kept), value=later, beside=begun, figures_in="MiB")]
    return row("a million ready jobs", [table], claims)


# --- Connections ----------------------------------------------------------------------------------

def _idle_connections(server, wanted):
    """Returns KiB for each connection."""
    with contextlib.ExitStack() as stack:
        # The first connection makes the server allocate its shared memory.
        with wire.Connection(server.address) as first:
            first.exchange(b"list-tube-used\r\n", 1)
        before = server.process.resident_bytes()
        for number in range(wanted):
            source = f"127.0.0.{2 + number // 5000}"
            connection = stack.enter_context(wire.Connection(server.address, source))
            connection.exchange(b"list-tube-used\r\n", 1)
        held = server.process.resident_bytes() - before
        open_connections = server.stats()["current-connections"]
    if open_connections < wanted:
        sys.exit(f"{server.name} holds {open_connections} connections, and {wanted} are wanted")
    return held / wanted / 1024


def connections(options):
    possible = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - KEPT_DESCRIPTORS
    wanted = options.scaled(20_000)
    count = min(wanted, possible)
    notes = [] if count == wanted else [f"{count:,} instead of {wanted:,}: no more descriptors are "
                                        f"allowed here (ulimit -Hn)."]
    commands = {"tubed": tubed(options, "--limits-connections", 30_000),
                "beanstalkd": beanstalkd(options)}
    middle = medians(in_rounds(options, "connections", commands,
                               lambda server: [_idle_connections(server, count)]))
    table = {"title": f"{count:,} idle connections that have sent one command each",
             "columns": ["KiB each"], "keys": ["kib"], "rows": middle}
    claims = [judged("memory a connection", middle["tubed"][0], 1.5, "KiB")]
    return row("idle connections", [table], claims, notes)


# --- Start ----------------------------------------------------------------------------------------

def _start_ms(server):
    begun = time.monotonic()
    server.start()
    return (time.monotonic() - begun) * 1000


def _starts(options):
    """The servers to start, and whether the journal's folder was used before."""
    starts = {}
    for name, command in (("tubed", tubed), ("beanstalkd", beanstalkd)):
        with_journal = command(options, journal=True)
        starts |= {name: (command(options), False), f"{name}, new journal": (with_journal, False),
                   f"{name}, empty journal": (with_journal, True)}
    return starts


def start(options):
    starts = _starts(options)
    times = {name: [] for name in starts}
    servers.log("start")
    for number in range(3 if options.quick else 20):
        for name in servers.in_alternating_order(starts, number):
            command, used = starts[name]
            with servers.fresh(name, command, options.directory) as server:
                if used:
                    server.start()
                    server.stop(signal.SIGTERM)
                os.sync()  # waits until pending writes of the previous server are on the disk
                times[name].append([_start_ms(server)])
    middle = medians(times)
    table = {"title": "from the start of the process to its first reply",
             "columns": ["ms", "least", "most"], "keys": ["ms", "least", "most"],
             "rows": {name: [middle[name][0], *min(each), *max(each)]
                      for name, each in times.items()}}
    claims = [judged(name.replace("tubed", "start", 1), middle[name][0], 10, "ms",
                     least=min(each)[0], most=max(each)[0])
              for name, each in times.items() if name.startswith("tubed")]
    return row("from nothing to the first reply", [table], claims)
