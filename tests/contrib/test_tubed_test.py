"""contrib/test-mode/tubed_test.py with pytest, and a socket in place of a client."""

import os
import pathlib
import select
import signal
import socket
import subprocess
import sys

import pytest

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib" / "test-mode"
sys.path.insert(0, str(CONTRIB))

from tubed_test import Tubed, TubedError, tubed, tubed_server  # noqa: E402, F401


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address)
        self.file = self.socket.makefile("rwb")

    def __call__(self, text):
        """Sends lines and returns the first line of the reply, and the body if it has one."""
        self.file.write(text.replace("\n", "\r\n").encode() + b"\r\n")
        self.file.flush()
        line = self.file.readline().decode().rstrip("\r\n")
        if line.split(" ")[0] not in ("RESERVED", "OK", "FOUND"):
            return line
        body = self.file.read(int(line.split(" ")[-1]) + 2)[:-2]
        return line, body.decode()


@pytest.fixture
def client(tubed):
    one = Client(tubed.address)
    yield one
    one.file.close()
    one.socket.close()


def test_a_delayed_job_is_ready_after_its_delay(tubed, client):
    assert client("put 0 3600 60 5\nhello") == "INSERTED 1"
    assert tubed.advance(3599.5) == 3599.5
    assert client("reserve-with-timeout 0") == "TIMED_OUT"
    tubed.advance(0.5)
    assert client("reserve-with-timeout 0") == ("RESERVED 1 5", "hello")
    assert client("delete 1") == "DELETED"
    assert tubed.events() == ["put 1 default", "timed-out c1", "reserve 1 c1", "delete 1"]


def test_each_test_begins_with_an_empty_queue(tubed, client):
    assert tubed.jobs() == []
    assert client("put 7 0 60 1\nx") == "INSERTED 1"
    job, = tubed.jobs()
    assert (job["id"], job["state"], job["priority"], job["body"]) == (1, "ready", 7, "x")


def test_faults(tubed, client):
    tubed.fault("put", "OUT_OF_MEMORY", count=2)
    assert client("put 0 0 60 1\nx") == "OUT_OF_MEMORY"
    assert client("put 0 0 60 1\nx") == "OUT_OF_MEMORY"
    assert client("put 0 0 60 1\nx") == "INSERTED 1"
    tubed.fault("any", "CLOSE")
    tubed.no_faults()
    assert client("delete 1") == "DELETED"
    with pytest.raises(TubedError, match="BAD_FORMAT"):
        tubed.fault("put", "INSERTED")


def test_snapshots(tubed, client):
    client("put 0 0 60 1\nx")
    tubed.snapshot("base")
    client("delete 1")
    tubed.restore("base")
    assert client("peek 1") == ("FOUND 1 1", "x")
    with pytest.raises(TubedError, match="NOT_FOUND"):
        tubed.restore("none")


def test_events_can_be_waited_for(tubed, client):
    assert not tubed.wait_for("put", seconds=0.01)
    client("put 0 0 60 1\nx")
    assert tubed.wait_for("put")


def test_a_missing_program_is_named():
    with pytest.raises(TubedError, match="/nonexistent/tubed"):
        Tubed(program="/nonexistent/tubed")


def test_the_server_ends_when_the_test_process_is_killed():
    script = ("import tubed_test, time; t = tubed_test.Tubed(); print(t._process.pid, flush=True); "
              "time.sleep(600)")
    environment = os.environ | {"PYTHONPATH": str(CONTRIB)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                          env=environment) as child:
        server = os.pidfd_open(int(child.stdout.readline()))
        child.send_signal(signal.SIGKILL)
        ended, _, _ = select.select([server], [], [], 600)
        os.close(server)
    assert ended
