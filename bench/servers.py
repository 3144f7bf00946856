"""A server that is measured: its start, its processor time, its memory, its end. All programs of this
folder start their servers by it, or by tests/daemon/harness.py, which it imports.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "daemon"))

# pylint: disable=wrong-import-position
import harness  # noqa: E402  (the path comes first)
from harness import Client, Daemon, until  # noqa: E402


def log(text):
    print(text, file=sys.stderr, flush=True)


class Server:
    """One server with its own folder. `command` is a function of the folder for a journal, and returns
    a command line with which the server listens on free ports of 127.0.0.1 and logs them, as tubed
    does. A subclass runs another kind of server."""

    def __init__(self, command, name, folder, pinned=False):
        self.name = name
        self.folder = folder
        self.journal = folder / "journal"
        self.journal.mkdir(parents=True)
        self.process = None
        self._command = command
        self._pin = ["taskset", "--cpu-list", "0"] if pinned else []

    def start(self):
        """Returns when the server has answered a command."""
        self.process = self.run([*self._pin, *map(str, self._command(self.journal))])
        try:
            self.ask("PING")  # an error is an answer, too
        except (OSError, AssertionError) as error:
            sys.exit(f"{self.name} does not answer ({error}): {self.process.lines[-20:]}")

    def run(self, command):
        """Returns the harness.Process of the command, which listens at its `addresses`."""
        return Daemon([], command=command)

    @property
    def address(self):
        return self.process.addresses[0]

    def bench_address(self):
        """The arguments of `tubectl bench` that lead to it."""
        return ["-s", self.address]

    def connect(self):
        return contextlib.closing(Client(self.address))

    def ask(self, command):
        with self.connect() as client:
            return client.ask(command)

    def stats(self):
        with self.connect() as client:
            return client.stats()

    def wait_for_ready_jobs(self, count):
        until(f"{self.name} to have {count} ready jobs",
              lambda: self.stats()["current-jobs-ready"] == count)

    def cpu_seconds(self):
        return self.process.cpu_seconds()

    def stop(self, number=signal.SIGKILL):
        """Fails if the process has already ended: the measurements are not reliable."""
        if self.process is None:
            return
        process, self.process = self.process, None
        ended = process.process.poll()
        process.signal(number)  # no effect on a process that has ended
        process.wait()
        if ended is not None:
            sys.exit(f"{self.name} ended by itself, with {ended}: {process.lines[-20:]}")


class Beanstalkd(Server):
    def run(self, command):
        return harness.start_beanstalkd(*command[1:], program=command[0])


# The servers that can be run: functions of a name, a folder and whether to use one processor only.

def tubed(options, *flags, journal=False):
    """Without its bound on memory, because the other servers have no such bound."""
    return functools.partial(Server, lambda folder: [
        options.tubed, "-l", "127.0.0.1:0", "--limits-job-memory", "1048576GiB",
        *(("-b", folder) if journal else ()), *flags])


def beanstalkd(options, *flags, journal=False):
    return functools.partial(Beanstalkd, lambda folder: [
        options.beanstalkd, *(("-b", folder) if journal else ()), *flags])


@contextlib.contextmanager
def fresh(name, make, directory, pinned=False):
    """A server that is not started yet, with an empty journal. At the end its files are removed.
    `make` is of tubed() or a function like it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tubed-bench-", dir=directory))
    server = make(name, folder, pinned)
    try:
        yield server
    finally:
        try:
            server.stop()
        finally:
            shutil.rmtree(folder)


def run_load(command, seconds, pinned=False):
    """Runs a load generator to its end and returns its output."""
    command = [*(["taskset", "--cpu-list", "1"] if pinned else []), *map(str, command)]
    try:
        # The load generator gives up on a silent server by itself; this limit is for a very slow
        # server.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=600 + 10 * seconds)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(command)} does not end")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def run_bench(tubectl, server, *arguments, seconds=0.0, pinned=False):
    """Runs `tubectl bench`; returns its figures."""
    command = [tubectl, "bench", arguments[0], *server.bench_address(), *arguments[1:], "--json"]
    return json.loads(run_load(command, seconds, pinned))


def in_alternating_order(names, number):
    """Reverses every other round: no server always follows the same server."""
    return list(names) if number % 2 == 0 else list(reversed(names))


# --- Description of the machine, and arguments ---------------------------------------------------

def file_system_of(directory):
    done = subprocess.run(["df", "--output=fstype", directory], capture_output=True, text=True,
                          check=True)
    return done.stdout.split()[-1]


def machine():
    model = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"Linux {platform.release()}, {os.cpu_count()} x {model}"


def one_of(possible):
    def split(text):
        chosen = [part.strip() for part in text.split(",")]
        for part in chosen:
            if part not in possible:
                raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(possible)}")
        return chosen
    return split


def program_in_path(name):
    return pathlib.Path(shutil.which(name) or name)


def end_children_on_signals():
    """A signal that ends this program also ends the processes that it has started."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda ended_by, _: sys.exit(128 + ended_by))


def print_table(title, columns, rows):
    print(f"\n{title}\n")
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        first = row[0].ljust(widths[0])
        print("  ".join(["  " + first, *(cell.rjust(width) for cell, width
                                         in zip(row[1:], widths[1:]))]).rstrip())
