"""Helpers of tubectl's tests: runs of the program, and the servers that it contacts.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/inspect_test.py
"""

import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "daemon"))

from harness import SANITIZED, SECONDS, Client, DaemonTest, until  # noqa: E402

TUBECTL = str(pathlib.Path(os.environ.get("TUBECTL_PROGRAM",
                                          "build/dev/src/tubectl/tubectl")).resolve())

# Exit codes, as in tubectl(1).
DONE, FAILURE, BURIED, USAGE, BAD_INPUT, UNAVAILABLE, IO, TIMED_OUT, NOT_ALLOWED = (
    0, 1, 2, 64, 65, 69, 74, 75, 77)


# A shell ignores SIGINT for what it runs in the background, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def within(what, call, seconds=SECONDS):
    """Returns the result of call(), which may block for at most `seconds`."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    if not results:
        raise AssertionError(f"waited {seconds} s without success for: {what}")
    return results[0]


class ScriptedServer:
    """Answers each command with the next of `answers`; None closes the connection. For replies that
    a real server does not send."""

    def __init__(self, answers):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(SECONDS)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.answers = answers
        self.commands = []  # command lines, without bodies
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        answers = iter(self.answers)
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # closed
                return
            with connection, connection.makefile("rb") as commands:
                while line := commands.readline():
                    words = line.split()
                    self.commands.append(line.decode().strip())
                    if words[0] == b"put":
                        commands.read(int(words[4]) + 2)
                    answer = next(answers, None)
                    if answer is None:
                        break
                    connection.sendall(answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(SECONDS)


def subcommands():
    """The subcommands in the order of the help."""
    text = subprocess.run([TUBECTL, "--help"], capture_output=True, text=True, check=True,
                          timeout=SECONDS).stdout
    between = text.partition("--version")[2].partition("\nA server is")[0]
    return re.findall(r"^  ([a-z][a-z-]*)  ", between, re.MULTILINE)


class TubectlTest(DaemonTest):
    """Most tests use both servers: `for server in self.servers():`.

    A test that waits for a timer of the server (a TTR, a delay, the end of a reserve-with-timeout)
    uses only tubed, because beanstalkd 1.12 loses some timers until it gets another command."""

    def tubed(self, *flags):
        """Starts a tubed; returns its address."""
        return self.start(*flags).addresses[0]

    def beanstalkd(self, *flags):
        """Starts a beanstalkd on a unix socket, which needs no port; returns its address."""
        path = self.directory / f"beanstalkd-{len(list(self.directory.iterdir()))}.sock"
        return self.start_beanstalkd(*flags, path=path).addresses[0]

    def servers(self):
        """Yields a tubed and then a beanstalkd, each as a subtest. With a sanitizer only tubed is
        tested, because beanstalkd would add much time and little coverage."""
        servers = (("tubed", self.tubed), ("beanstalkd", self.beanstalkd))
        for name, start in servers[:1] if SANITIZED else servers:
            with self.subTest(server=name):
                yield start()

    def client(self, address):
        client = Client(address)
        self.addCleanup(client.close)
        return client

    def popen(self, server, *arguments, environment=None, **options):
        return subprocess.Popen([TUBECTL, *map(str, arguments)],
                                env=os.environ | {"TUBED_SERVER": server} | (environment or {}),
                                **options)

    def run_tubectl(self, server, *arguments, stdin=b"", environment=None):
        """Returns (exit code, stdout, stderr) as text."""
        process = self.popen(server, *arguments, environment=environment, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            try:
                output, errors = process.communicate(stdin, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return (process.returncode, output.decode(errors="surrogateescape"),
                errors.decode(errors="surrogateescape"))

    def tubectl(self, server, *arguments, stdin=b""):
        """Returns the output of a successful run that prints nothing on stderr."""
        code, output, errors = self.run_tubectl(server, *arguments, stdin=stdin)
        self.assertEqual((code, errors), (DONE, ""), f"{arguments}: {output}")
        return output

    def tubectl_json(self, server, *arguments, stdin=b""):
        return json.loads(self.tubectl(server, *arguments, "--json", stdin=stdin))

    def on_terminal(self, server, *arguments, stream="stdout", environment=None, **options):
        """Runs tubectl with a terminal as this stream; returns the bytes that the terminal gets.
        The run must succeed. `output` is then the piped standard output."""
        leader, follower = pty.openpty()
        process = self.popen(server, *arguments, **(options | {stream: follower}),
                             environment={"TERM": "xterm"} | (environment or {}))
        os.close(follower)
        shown = bytearray()

        def read():
            try:
                while chunk := os.read(leader, 1 << 16):
                    shown.extend(chunk)
            except OSError:  # the end of the terminal's output
                return True
        within("the end of what the terminal is shown", read)
        os.close(leader)
        self.output, _ = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, DONE)
        return bytes(shown)

    def refused(self, code, server, *arguments, stdin=b""):
        """Returns the single line on stderr of a run that exits with that code."""
        got, output, errors = self.run_tubectl(server, *arguments, stdin=stdin)
        self.assertEqual(got, code, (output, errors))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.startswith("tubectl: "), errors)
        return errors
