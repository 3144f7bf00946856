"""A server process that is measured: its start, its processor time, its memory, its end.

durable_puts, compare and failover share this. A server has its own folder, which is removed when it
ends.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT = 600  # seconds for operations that take far less


def log(text):
    print(text, file=sys.stderr, flush=True)


def cpu_seconds_of(pid):
    """User and system time of all threads of a process, exact to the nanosecond while it is idle.
    """
    paths = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in paths) / 1e9


# A server of systemd's kind takes a listening socket as descriptor 3. The shell gets it as its input,
# and then becomes the server, which keeps the process id.
HAND_OVER = 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@" 3<&0 </dev/null'


def listening_socket():
    """On a port that the kernel chooses, with the options that beanstalkd sets by itself: accepted
    connections inherit them."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setblocking(False)
    return listener


def start_process(command, log_path, pinned=False, listener=None):
    """Its output goes to the end of the file `log_path`. `listener`: a socket that it gets."""
    before = ["taskset", "--cpu-list", "0"] if pinned else []
    if listener is not None:
        before += ["sh", "-c", HAND_OVER, "sh"]
    with open(log_path, "ab") as log_file:
        return subprocess.Popen([*before, *map(str, command)], stdin=listener or subprocess.DEVNULL,
                                stdout=log_file, stderr=log_file)


class Server:
    """One server process with its own folder. `command` is a function of the folder for a journal,
    and returns a command line with which the server listens on any free port of 127.0.0.1 and logs
    it, as tubed does. A subclass adds what another server needs."""

    LISTENERS = 1

    def __init__(self, name, command, folder, pinned=False):
        self.name = name
        self.folder = folder
        self.journal = folder / "journal"
        self.journal.mkdir(parents=True)
        self.host = "127.0.0.1"
        self.log = folder / "log"
        self.process = None
        self._ports = []
        self._command = command
        self._pinned = pinned

    def launch(self):
        """Starts the process without waiting until it serves."""
        self._ports = []
        self.log.write_bytes(b"")  # an earlier process had other ports
        self.process = start_process(self._command(self.journal), self.log, self._pinned)

    def ports(self):
        """The ports of its listeners, in the order of its settings."""
        if not self._ports:
            found = re.findall(rb"\blistening (?:address=)?127\.0\.0\.1:(\d+)\n",
                               self.log.read_bytes())
            if len(found) < self.LISTENERS:
                raise ConnectionRefusedError(f"{self.name} does not listen yet")
            self._ports = [int(port) for port in found]
        return self._ports

    @property
    def port(self):
        return self.ports()[0]

    def bench_address(self):
        """The arguments of `tubectl bench` that lead to it."""
        return ["-s", f"127.0.0.1:{self.port}"]

    def start(self):
        self.launch()
        self.wait_for("PING")

    def wait_for(self, command, expected="", seconds=TIMEOUT, pause=0.001):
        """Waits until the server answers this command, with `expected` in the reply. Every server
        here answers an unknown command, if only with an error."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                if expected in self.ask(command):
                    return
            time.sleep(pause)
        text = self.log.read_text(encoding="utf-8", errors="replace")
        sys.exit(f"{self.name} did not answer {command} with {expected!r}; its log:\n{text[-2000:]}")

    def wait_for_ready_jobs(self, count, seconds=TIMEOUT):
        self.wait_for("stats", f"\ncurrent-jobs-ready: {count}\n", seconds)

    def ask(self, command):
        """The answer to a command on a new connection: a line, and after `OK` also a body."""
        # From another address: otherwise a connection to a port without a listener might get that
        # same port and connect to itself.
        with socket.create_connection((self.host, self.port), TIMEOUT,
                                      ("127.0.0.2", 0)) as connection:
            connection.sendall(command.encode() + b"\r\n")
            reply = b""
            while not reply.endswith(b"\n\r\n" if reply.startswith(b"OK") else b"\r\n"):
                chunk = connection.recv(65536)
                if not chunk:
                    raise ConnectionResetError
                reply += chunk
            return reply.decode()

    def figure(self, name):
        """One number of `stats`."""
        for line in self.ask("stats").splitlines():
            if line.startswith(f"{name}: "):
                return int(line.split(": ")[1])
        sys.exit(f"{self.name} has no {name} in its stats")

    def cpu_seconds(self):
        return cpu_seconds_of(self.process.pid)

    def resident_bytes(self):
        path = pathlib.Path(f"/proc/{self.process.pid}/status")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        sys.exit(f"{self.name} has no memory: it has ended")

    def stop(self, number=signal.SIGKILL):
        """If the process ends in another way, or earlier, the measurements are not reliable."""
        if self.process is None:
            return
        ended = self.process.poll()
        if ended is None:
            self.process.send_signal(number)
            self.process.wait(TIMEOUT)
        self.process = None
        if ended is not None:
            sys.exit(f"{self.name} ended by itself, with {ended}; see its log")


class HandedOver(Server):
    """A server that cannot log which free port it has, and takes a listening socket."""

    def launch(self):
        with listening_socket() as listener:
            self._ports = [listener.getsockname()[1]]
            self.process = start_process(self._command(self.journal), self.log, self._pinned,
                                         listener)


# The servers that can be run: they return what Server expects as its `command`.

def tubed(options, *flags, journal=False):
    """Without its bound on memory, because the other servers have no such bound."""
    return lambda folder: [options.tubed, "-l", "127.0.0.1:0",
                           "--limits-job-memory", "1048576GiB",
                           *(("-b", folder) if journal else ()), *flags]


def beanstalkd(options, *flags, journal=False):
    def command(folder):
        return [options.beanstalkd, *(("-b", folder) if journal else ()), *flags]
    command.kind = HandedOver
    return command


@contextlib.contextmanager
def fresh(name, command, directory, pinned=False):
    """A server that is not started yet, with an empty journal. At the end its files are removed. A
    command may have a subclass of Server as its attribute `kind`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tubed-bench-", dir=directory))
    server = getattr(command, "kind", Server)(name, command, folder, pinned)
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
    """Every other round in the opposite order, so that no server always follows the same server."""
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
