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
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import run_client

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "workers.md"
PROGRAM = re.compile(r"^<!-- (program|not run): (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```(?:python|ruby|php|js|go)$", re.M)
INTERPRETERS = run_client.INTERPRETERS | {".py": sys.executable}
SECONDS = run_client.SECONDS


def check(claim, holds):
    if not holds:
        raise run_client.Failure(claim)
    print(f"ok    {claim}")


def wait_until(what, holds):
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise run_client.Failure(f"waited {SECONDS} s until {what}")
        time.sleep(0.02)
    print(f"ok    {what}")


def programs():
    """The runnable programs of the page by name. Every program has to be marked."""
    text = PAGE.read_text(encoding="utf-8")
    marked = PROGRAM.findall(text)
    check(f"each of the {len(marked)} programs is marked", len(FENCE.findall(text)) == len(marked))
    return {name: code for mark, name, code in marked if mark == "program"}


class Server:
    """tubed on a constant port: the test owns the socket and passes it at each start."""

    def __init__(self, path, directory):
        self.path = path
        self.journal = directory / "journal"
        self.journal.mkdir()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def start(self):
        handed = self.listener.fileno()
        self.process = run_client.Server(
            [sys.executable, "-c", run_client.HAND_OVER, str(handed), self.path,
             "-b", str(self.journal)], pass_fds=(handed,))
        self.connection = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        self.replies = self.connection.makefile("rb")

    def end(self):
        self.replies.close()
        self.connection.close()
        self.process.end()

    def ask(self, command, body=b""):
        self.connection.sendall(command.encode() + b"\r\n" + body)
        words = self.replies.readline().decode().split()
        if words and words[0] == "OK":
            return self.replies.read(int(words[1]) + 2).decode()
        return words

    def put(self, body):
        self.ask("use mail")
        return self.ask(f"put 1024 0 60 {len(body)}", body + b"\r\n")[1]

    def number_of(self, command, key):
        return int(re.search(rf"^{key}: (\d+)", self.ask(command), re.M)[1])

    def job(self, number):
        """State and delay; nothing if the job does not exist."""
        stats = self.ask(f"stats-job {number}")
        if stats == ["NOT_FOUND"]:
            return None
        return (re.search(r"^state: (\w+)", stats, re.M)[1],
                int(re.search(r"^delay: (\d+)", stats, re.M)[1]))


class Program:
    """One running program of the page; its lines are read as they arrive."""

    def __init__(self, file):
        self.lines = queue.Queue()
        self.process = subprocess.Popen([INTERPRETERS[file.suffix], str(file)], cwd=file.parent,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            print("     ", line, end="")
            self.lines.put(line.strip())

    def wait_for_line(self, text):
        end = time.monotonic() + SECONDS
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise run_client.Failure(f"waited {SECONDS} s for the line {text!r}") from None
            if line == text:
                return

    def wait_for_end(self):
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise run_client.Failure(f"the program did not end within {SECONDS} s") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def fail_until_buried(server):
    number = server.put(b"nonsense")
    for delay in 10, 20, 40, 80, 160:
        wait_until(f"the failing job is released for {delay} s",
                   lambda: server.job(number) == ("delayed", delay))
        server.ask(f"kick-job {number}")
    wait_until("and then it is buried", lambda: server.job(number)[0] == "buried")


def stop_in_a_job(server, worker):
    number = server.put(b"to: eve")
    wait_until("the worker has the job", lambda: (server.job(number) or ["done"])[0] != "ready")
    worker.process.send_signal(signal.SIGTERM)
    check("the worker ends with 0 after SIGTERM", worker.wait_for_end() == 0)
    check("and has finished its job", server.job(number) is None)


def exercise(server, producer, worker):
    producing = Program(producer)
    try:
        check("the producer ends with 0", producing.wait_for_end() == 0)
    finally:
        producing.kill()
    check("one job is ready", server.number_of("stats-tube mail", "current-jobs-ready") == 1)
    working = Program(worker)
    try:
        working.wait_for_line("sent to: ada")
        wait_until("the worker has deleted it", lambda: server.job(1) is None)
        check("it has touched the job", server.number_of("stats", "cmd-touch") == 3)
        fail_until_buried(server)
        server.end()
        server.start()
        check("the buried job exists after a restart",
              server.number_of("stats-tube mail", "current-jobs-buried") == 1)
        server.put(b"to: bob")
        working.wait_for_line("sent to: bob")
        stop_in_a_job(server, working)
    finally:
        working.kill()


def run(options):
    if options.npm_dir:
        run_client.install_from_npm(options.npm_dir)
    sources = programs()
    with tempfile.TemporaryDirectory(prefix="tubed-workers-") as directory:
        directory = pathlib.Path(directory)
        server = Server(str(options.server.resolve()), directory)
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
    except (run_client.Failure, OSError) as error:
        print(f"workers_test: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
