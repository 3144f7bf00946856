"""Helpers of the measures in this folder. A measure is a program that tools/measure starts: a file of
unittest cases whose methods take figures and call `figure` for each. A case may fail only if it could
not measure, never because of a figure."""

import pathlib
import threading
import time


def figure(what, value, unit, baseline=None, of=None):
    """Prints one figure, and `baseline`, the same figure of `of` (such as "an idle server" or
    "beanstalkd") in the same run."""
    line = f"{what}: {value:.4g} {unit}"
    if baseline is not None:
        line += f" ({of}: {baseline:.4g} {unit})"
    print(line, flush=True)


def summary(times):
    """The median, p99 and the longest of these times, in ms."""
    ordered = sorted(times)
    return [1e3 * ordered[at] for at in (len(ordered) // 2, len(ordered) * 99 // 100, -1)]


def figures_of(what, times, baseline=None, of=None):
    """Prints the figures of summary()."""
    baselines = summary(baseline) if baseline else [None] * 3
    for name, value, other in zip(("median", "p99", "longest"), summary(times), baselines):
        figure(f"{what}, {name}", value, "ms", other, of)


def seconds_without_processor(pid):
    """The time for which a process has been ready to run and had no processor."""
    text = pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8")
    return int(text.split()[1]) / 1e9


class Stopwatch:
    """Measures how long a daemon takes, regardless of the load on the machine: elapsed time without the
    time for which the daemon or this thread was ready to run and had no processor."""

    def __init__(self, daemon):
        self.processes = (daemon.pid, f"self/task/{threading.get_native_id()}")
        self.last = self.now()

    def now(self):
        waited = sum(seconds_without_processor(process) for process in self.processes)
        return time.monotonic(), waited

    def lap(self):
        """The seconds since the last lap."""
        now = self.now()
        clock, waited = (after - before for after, before in zip(now, self.last))
        self.last = now
        # The kernel counts a wait when it ends; the wait may have begun before this lap.
        return max(clock - waited, 0)
