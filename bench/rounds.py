"""Alternating slices: in rounds, each server is loaded for a slice of time while the others are
idle.

Servers are compared only within a round, in which the machine was the same for both; a figure is
the median of the rounds.
"""

import contextlib
import dataclasses
import statistics
import sys
import time
from typing import Callable

import servers

CLOSE_SECONDS = 0.01  # seconds for a server to finish closing connections


@dataclasses.dataclass
class Contender:
    """`server` makes it, as servers.tubed() does. `prepare` gets the server once it serves, before the
    first slice of a round, and is a context manager; each step gets its value."""

    name: str
    server: Callable
    prepare: Callable = contextlib.nullcontext


class RoundResult:
    """The results of one server in all its slices of one round."""

    def __init__(self):
        self.operations = 0  # all operations, including those that are not measured
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
            if "latency-us" in run:
                values.append(run["latency-us"][name])

    def cpu(self):
        """The server's processor time, in microseconds an operation."""
        return self.cpu_seconds * 1e6 / self.operations

    def rate(self):
        return self.measured / self.seconds

    # The median of the slices: a short disturbance of the machine affects one slice, not all.
    def p50(self):
        return statistics.median(self.latencies["p50"])

    def p99(self):
        return statistics.median(self.latencies["p99"])


def run_alternately(options, row, contenders, steps):
    """`steps` is {label: step}. A step is called with (server, prepared value, seconds), loads the
    server and returns {all, measured, seconds} and optionally latency_us. Returns {label:
    {contender: [RoundResult, one a round]}}."""
    slices = max(1, round(options.seconds / options.slice))
    length = options.seconds / slices
    results = {label: {each.name: [] for each in contenders} for label in steps}
    for number in range(options.rounds):
        servers.log(f"{row}: round {number + 1} of {options.rounds}")
        with contextlib.ExitStack() as stack:
            started = {}
            for each in contenders:
                server = stack.enter_context(
                    servers.fresh(each.name, each.server, options.directory, options.pin))
                server.start()
                started[each.name] = (server, stack.enter_context(each.prepare(server)))
            for figures in results.values():
                for rounds in figures.values():
                    rounds.append(RoundResult())
            for number_of_slice in range(slices):
                for name in servers.in_alternating_order(started, number + number_of_slice):
                    for label, step in steps.items():
                        _one_slice(step, *started[name], length, results[label][name][-1])
    return results


def medians(figures):
    """{name: [[a, b, …], one a round]} to {name: [a, b, …]}."""
    return {name: [statistics.median(column) for column in zip(*rounds)]
            for name, rounds in figures.items()}


def in_rounds(options, row, kinds, measure):
    """At most three rounds, in each a new server of each kind. Returns {name: [measure(server), one
    for each round]}."""
    figures = {name: [] for name in kinds}
    for number in range(min(options.rounds, 3)):
        servers.log(f"{row}: round {number + 1}")
        for name in servers.in_alternating_order(kinds, number):
            with servers.fresh(name, kinds[name], options.directory) as server:
                server.start()
                figures[name].append(measure(server))
    return figures


def _one_slice(step, server, prepared, length, result):
    time.sleep(CLOSE_SECONDS)
    before = server.cpu_seconds()
    run = step(server, prepared, length)
    time.sleep(CLOSE_SECONDS)
    result.add(run, server.cpu_seconds() - before)


def load(options, workload, *arguments, timed=True):
    """A step: `tubectl bench` with these arguments, which also limit its time."""
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
    "cpu": ("CPU µs", RoundResult.cpu),
    "rate": ("a second", RoundResult.rate),
    "p50": ("p50 µs", RoundResult.p50),
    "p99": ("p99 µs", RoundResult.p99),
}


def table(title, results, keys, operation="operation"):
    """The medians of all contenders: a table as report.py prints it."""
    columns = [FIGURES[key][0] + (f" a {operation}" if key == "cpu" else "") for key in keys]
    return {"title": title, "columns": columns, "keys": list(keys),
            "rows": {name: [statistics.median(FIGURES[key][1](result) for result in rounds)
                            for key in keys]
                     for name, rounds in results.items()}}


def claim(what, one, other, key, bound, of):
    """The ratio of two contenders' figures in the same round: the median, the least and the most.
    `key` names a time. Without a bound it is printed and not judged."""
    figure = FIGURES[key][1]
    ratios = [figure(a) / figure(b) for a, b in zip(one, other)]
    return judged(what, statistics.median(ratios), bound, of=of, least=min(ratios),
                  most=max(ratios), value=statistics.median(map(figure, one)),
                  beside=statistics.median(map(figure, other)), figures_in="µs")


def judged(what, measured, bound, unit="", **more):
    """A claim. Without a unit, `measured` is the ratio of `value` to `beside`, which are in the unit
    `figures_in`."""
    reached = None if bound is None else measured <= bound
    return {"what": what, "measured": measured, "bound": bound, "unit": unit, "reached": reached,
            **more}
