"""Taking turns: each server is loaded for a slice of time while the others are idle, in rounds.

Servers are compared within a round only, where both met the same machine; a figure is the median of
the rounds.
"""

import contextlib
import dataclasses
import statistics
import sys
import time
from typing import Callable

import servers

SETTLE = 0.01  # seconds a server has to be done with the clients that have left


@dataclasses.dataclass
class Contender:
    """`command` is what servers.Server runs. `prepare` gets the server once it serves, before the
    first slice of a round, and is a context manager; what it gives goes to each step."""

    name: str
    command: Callable
    prepare: Callable = contextlib.nullcontext


class Tally:
    """What one server did in all its slices of one round."""

    def __init__(self):
        self.operations = 0  # all, those that are not measured too
        self.measured = 0
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.latencies = {"p50": [], "p99": []}  # of each slice, in microseconds

    def add(self, run, cpu_seconds):
        self.operations += run["all"]
        self.measured += run["measured"]
        self.seconds += run["seconds"]
        self.cpu_seconds += cpu_seconds
        for name, values in self.latencies.items():
            if "latency_us" in run:
                values.append(run["latency_us"][name])

    def cpu(self):
        """The server's, in microseconds an operation."""
        return self.cpu_seconds * 1e6 / self.operations

    def rate(self):
        return self.measured / self.seconds

    # The median of the slices: what else the machine does for a moment spoils one slice, not all.
    def p50(self):
        return statistics.median(self.latencies["p50"])

    def p99(self):
        return statistics.median(self.latencies["p99"])


def take_turns(options, row, contenders, steps):
    """`steps` is {label: what is called with (server, what was prepared, seconds)}; it loads the
    server and returns {all, measured, seconds} and maybe latency_us. Returns {label: {contender:
    [Tally, one a round]}}."""
    slices = max(1, round(options.seconds / options.slice))
    length = options.seconds / slices
    tallies = {label: {each.name: [] for each in contenders} for label in steps}
    for number in range(options.rounds):
        servers.tell(f"{row}: round {number + 1} of {options.rounds}")
        with contextlib.ExitStack() as stack:
            started = {}
            for each in contenders:
                server = stack.enter_context(
                    servers.fresh(each.name, each.command, options.directory, options.pin))
                server.start()
                started[each.name] = (server, stack.enter_context(each.prepare(server)))
            for figures in tallies.values():
                for rounds in figures.values():
                    rounds.append(Tally())
            for turn in range(slices):
                for name in servers.in_turn(started, number + turn):
                    for label, step in steps.items():
                        _one_slice(step, *started[name], length, tallies[label][name][-1])
    return tallies


def _one_slice(step, server, prepared, length, tally):
    time.sleep(SETTLE)
    before = server.cpu_seconds()
    run = step(server, prepared, length)
    time.sleep(SETTLE)
    tally.add(run, server.cpu_seconds() - before)


def load(options, workload, *arguments, timed=True):
    """A step: `tubectl bench` with these arguments. Not timed: the arguments say when it ends."""
    def step(server, _, length):
        what = [workload, *arguments]
        if timed:
            what += ["--seconds", length, "--warm-up", length / 10]
        run = servers.run_bench(options.tubectl, server, *what, seconds=length, pinned=options.pin)
        if run["measured"] == 0:
            sys.exit(f"nothing was measured in {length} s: give it more --seconds")
        return run
    return step


# --- From rounds to figures -----------------------------------------------------------------------

FIGURES = {
    "cpu": ("CPU µs", Tally.cpu),
    "rate": ("a second", Tally.rate),
    "p50": ("p50 µs", Tally.p50),
    "p99": ("p99 µs", Tally.p99),
}


def table(title, tallies, keys, operation="operation"):
    """The medians of all contenders: a table as report.py prints it."""
    columns = [FIGURES[key][0] + (f" a {operation}" if key == "cpu" else "") for key in keys]
    return {"title": title, "columns": columns, "keys": list(keys),
            "rows": {name: [statistics.median(FIGURES[key][1](tally) for tally in rounds)
                            for key in keys]
                     for name, rounds in tallies.items()}}


def claim(what, one, other, key, bound, of):
    """One contender's figure as part of another's in the same round: the median, and from where to
    where it went. `key` is of a time. No bound: it is told and not judged."""
    figure = FIGURES[key][1]
    ratios = [figure(a) / figure(b) for a, b in zip(one, other)]
    return judged(what, statistics.median(ratios), bound, of=of, least=min(ratios),
                  most=max(ratios), value=statistics.median(map(figure, one)),
                  beside=statistics.median(map(figure, other)), figures_in="µs")


def judged(what, measured, bound, unit="", **more):
    """A claim. No unit: `measured` is a part `of` what is beside it, and both are `figures_in`."""
    reached = None if bound is None else measured <= bound
    return {"what": what, "measured": measured, "bound": bound, "unit": unit, "reached": reached,
            **more}
