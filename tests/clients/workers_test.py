#!/usr/bin/env python3
"""Runs the programs of docs/workers.md unchanged against the daemon.

  workers_test.py --server build/dev/src/tubed --language rb
  workers_test.py --server build/dev/src/tubed --language mjs --npm-dir build/dev/tests/clients/npm

The test replaces only the port of each program. The producer puts a job and the worker does it; a job
that fails is released with doubling delays and finally buried; the server is restarted; the
worker is stopped while it has a job. The page marks a program with a comment before its block:
<!-- program: NAME --> is run, <!-- not run: NAME --> is not.
"""

import argparse
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile

import run_client
from run_client import check
import harness  # in tests/daemon, see run_client
from harness import Client, Daemon, Process, until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "workers.md"
PROGRAM = re.compile(r"^<!-- (program|not run): (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```(?:python|ruby|php|js|go)$", re.M)
INTERPRETERS = run_client.INTERPRETERS | {".py": sys.executable}


def wait_until(what, holds):
    until(what, holds)
    print(f"ok    {what}")


def programs():
    """The runnable programs of the page by name. Every program must be marked."""
    text = PAGE.read_text(encoding="utf-8")
    marked = PROGRAM.findall(text)
    check(f"each of the {len(marked)} programs is marked", len(FENCE.findall(text)) == len(marked))
    return {name: code for mark, name, code in marked if mark == "program"}


class Server:
    """tubed on a constant port: the test owns the socket and passes it at each start."""

    def __init__(self, directory):
        self.journal = directory / "journal"
        self.journal.mkdir()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def start(self):
        self.daemon = Daemon(["-b", str(self.journal)], sockets=[self.listener])
        self.client = Client(self.daemon.addresses[0])

    def end(self):
        self.client.close()
        run_client.end(self.daemon)

    def put(self, body):
        self.client.ask("use mail")
        return self.client.put(body, priority=1024, ttr=60)

    def job(self, number):
        """Returns the state and the delay; None if the job does not exist."""
        stats = self.client.stats_if_found(f"stats-job {number}")
        return stats and (stats["state"], stats["delay"])


def start(file):
    """Starts a program of the page; its lines are read as they arrive."""
    return Process([INTERPRETERS[file.suffix], str(file)], stdout=True, cwd=file.parent)


def fail_until_buried(server):
    number = server.put(b"nonsense")
    for delay in 10, 20, 40, 80, 160:
        wait_until(f"the failing job is released for {delay} s",
                   lambda: server.job(number) == ("delayed", delay))
        server.client.ask(f"kick-job {number}")
    wait_until("and then it is buried", lambda: server.job(number)[0] == "buried")


def stop_in_a_job(server, worker):
    number = server.put(b"to: eve")
    wait_until("the worker has the job", lambda: (server.job(number) or ["done"])[0] != "ready")
    worker.signal(signal.SIGTERM)
    check("the worker ends with 0 after SIGTERM", worker.wait() == 0)
    check("and has finished its job", server.job(number) is None)


def exercise(server, producer, worker):
    tube = "stats-tube mail"
    producing = start(producer)
    check("the producer ends with 0", producing.wait() == 0)
    check("one job is ready", server.client.stats(tube)["current-jobs-ready"] == 1)
    working = start(worker)
    try:
        working.wait_for_line("sent to: ada")
        wait_until("the worker has deleted it", lambda: server.job(1) is None)
        check("it has touched the job", server.client.stats()["cmd-touch"] == 3)
        fail_until_buried(server)
        server.end()
        server.start()
        check("the buried job exists after a restart",
              server.client.stats(tube)["current-jobs-buried"] == 1)
        server.put(b"to: bob")
        working.wait_for_line("sent to: bob")
        stop_in_a_job(server, working)
    except BaseException:
        print("the worker's lines:", *working.lines, sep="\n  ", file=sys.stderr)
        raise
    finally:
        working.kill()


def run(options):
    if options.npm_dir:
        run_client.install_from_npm(options.npm_dir)
    sources = programs()
    harness.PROGRAM = str(options.server.resolve())
    with tempfile.TemporaryDirectory(prefix="tubed-workers-") as directory:
        directory = pathlib.Path(directory)
        server = Server(directory)
        files = [directory / f"{name}.{options.language}" for name in ("producer", "worker")]
        for file in files:
            code, replaced = re.subn(r"\b11300\b", str(server.port), sources[file.name])
            check(f"{file.name} names the port once", replaced == 1)
            file.write_text(code, encoding="utf-8")
        if options.npm_dir:
            os.symlink(options.npm_dir.resolve() / "node_modules", directory / "node_modules")
        try:
            exercise(server, *files)
        finally:
            server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    parser.add_argument("--language", required=True, choices=["py", "rb", "php", "mjs"])
    parser.add_argument("--npm-dir", type=pathlib.Path, help="where npm packages are installed")
    try:
        run(parser.parse_args())
    except (AssertionError, OSError) as error:
        print(f"workers_test: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
