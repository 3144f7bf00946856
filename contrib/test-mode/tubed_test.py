"""A work-queue server for a test suite in Python: tubed in test mode, with a clock that tests move.

With pytest, in conftest.py:

    from tubed_test import tubed, tubed_server  # noqa: F401

and in a test, with any client:

    def test_a_delayed_job(tubed):
        queue = greenstalk.Client(tubed.address)
        queue.put("hello", delay=3600)
        tubed.advance(3600)
        assert queue.reserve(timeout=0).body == "hello"

Every test gets the same server with an empty queue. Without pytest: `with Tubed() as tubed: …`.

The server ends with this process, however it ends: it reads its standard input from a pipe that
only this process has open. The program is $TUBED, or tubed on the PATH.
"""

import json
import os
import subprocess
import threading

try:
    import pytest
except ImportError:
    pytest = None


class TubedError(Exception):
    """The server has refused a request of the test, or has ended."""


class Tubed:
    """A server in test mode. `address` is (host, port), as socket.create_connection() takes it."""

    REFUSALS = ("BAD_FORMAT", "UNKNOWN_COMMAND", "OUT_OF_MEMORY", "NOT_FOUND", "JOB_TOO_BIG")

    def __init__(self, *flags, clock="manual", program=None):
        program = program or os.environ.get("TUBED", "tubed")
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen([program, f"--test-mode={clock}", *flags],
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except FileNotFoundError:
            raise TubedError(f"there is no program {program}: install tubed, or set TUBED to its "
                             "path") from None
        host, _, port = self._line().rpartition(":")
        self.address = host, int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _line(self):
        line = self._process.stdout.readline().decode().rstrip("\n")
        if not line:
            raise TubedError("tubed has ended; its message is on standard error")
        return line

    def _send(self, command):
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()
        return self._line()

    def control(self, command):
        """Sends one test verb or command and returns the line of the reply."""
        with self._lock:
            reply = self._send(command)
        if reply.startswith(self.REFUSALS):
            raise TubedError(f"{command}: {reply}")
        return reply

    def block(self, command):
        """The same for a command whose reply is OK and a block. Returns the block."""
        with self._lock:
            word, _, size = self._send(command).partition(" ")
            if word != "OK":
                raise TubedError(f"{command}: {word}")
            return self._process.stdout.read(int(size) + 1)[:-1].decode()

    def advance(self, seconds):
        """Moves the clock; everything that was due has been done. Returns the seconds since the
        clock's beginning."""
        return int(self.control(f"test-advance {round(seconds * 1000)}ms").split()[1]) / 1000

    def reset(self):
        """Forgets all jobs, pauses, faults and events, and resets ids and the clock. A
        connection that stays open uses and watches "default" again."""
        self.control("test-reset")

    def snapshot(self, name):
        """Keeps the jobs under a name, for restore()."""
        self.control(f"test-snapshot {name}")

    def restore(self, name):
        """Brings the jobs of a snapshot back."""
        self.control(f"test-restore {name}")

    def fault(self, verb, reply, count=1):
        """The next commands of this verb, or of "any", are answered so: an error word, "CLOSE" or
        "HANG"."""
        self.control(f"test-fault {verb} {count} {reply}")

    def no_faults(self):
        """Removes all faults."""
        self.control("test-fault off")

    def events(self):
        """The events since the last reset: ["put 1 mails", "reserve 1 c1"]."""
        lines = self.block("test-events").splitlines()[1:]
        return [line.split(" ", 2)[2] for line in lines]

    def wait_for(self, event, count=1, seconds=5):
        """Waits, in real time, until `count` events of this word have happened since the last
        reset. False: they have not."""
        reply = self.control(f"test-await {event} {count} {round(seconds * 1000)}")
        return reply.startswith("AWAITED")

    def dump(self):
        """All lines of test-dump, as dictionaries."""
        return [json.loads(line) for line in self.block("test-dump").splitlines()]

    def jobs(self):
        """The jobs, as dictionaries: {"id": 1, "tube": "mails", "state": "ready", "body": …}."""
        return [line for line in self.dump() if "state" in line]

    def stop(self):
        """Ends the server."""
        if not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()


if pytest is not None:

    @pytest.fixture(scope="session")
    def tubed_server():
        """One server for all tests of the session."""
        with Tubed() as server:
            yield server

    @pytest.fixture
    def tubed(tubed_server):
        """The server, with an empty queue and the clock at its beginning."""
        tubed_server.reset()
        return tubed_server
