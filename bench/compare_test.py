"""The conclusions of compare from figures, and its detection of a server with wrong answers."""

import argparse
import contextlib
import io
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import pictures
import rounds
import servers
import wire

COMPARE = pathlib.Path(__file__).resolve().parent / "compare"


def rounds_of(*microseconds):
    """Rounds with these times for an operation."""
    made = []
    for each in microseconds:
        one_round = rounds.RoundResult()
        one_round.add({"all": 1000, "measured": 1000, "seconds": 1,
                       "latency-us": {"p50": each, "p99": 2 * each}}, each / 1000)
        made.append(one_round)
    return made


def results(bound):
    ours, theirs = rounds_of(6, 7), rounds_of(10, 10)
    claim = rounds.claim("server CPU a put", ours, theirs, "cpu", bound, of="beanstalkd")
    table = rounds.table("puts", {"tubed": ours, "beanstalkd": theirs}, ("cpu", "p50", "p99"),
                         "put")
    return {"machine": "a machine", "versions": ["tubed 0"], "rounds": 2, "seconds": 1,
            "pinned": False,
            "rows": {name: {"title": "puts", "tables": [table], "claims": [claim], "notes": []}
                     for name in ("put-1", "single")}}


class Claims(unittest.TestCase):
    def test_ratios_are_made_within_a_round(self):
        # The machine was slow in the third round; the ratio of the medians would be 0.55.
        claim = rounds.claim("", rounds_of(5, 6, 50), rounds_of(10, 11, 100), "cpu", 0.5,
                             of="other")
        self.assertAlmostEqual(claim["measured"], 0.5)
        self.assertAlmostEqual(claim["least"], 0.5)
        self.assertAlmostEqual(claim["most"], 6 / 11)
        self.assertTrue(claim["reached"])

    def test_a_bound_is_reached_up_to_itself(self):
        self.assertIs(rounds.judged("", 1.0, 1.0)["reached"], True)
        self.assertIs(rounds.judged("", 1.001, 1.0)["reached"], False)
        self.assertIsNone(rounds.judged("", 1.0, None)["reached"])

    def test_one_slice_does_not_spoil_a_round(self):
        one_round = rounds.RoundResult()
        for p99 in (9, 9000, 8):
            one_round.add({"all": 10, "measured": 10, "seconds": 1,
                           "latency-us": {"p50": p99 / 2, "p99": p99}}, 1)
        self.assertEqual((one_round.p50(), one_round.p99()), (4.5, 9))


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tubed-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, bound, *arguments):
        file = self.folder / "figures.json"
        file.write_text(json.dumps(results(bound)), encoding="utf-8")
        return subprocess.run([sys.executable, COMPARE, *arguments, file], capture_output=True,
                              text=True, check=False)

    def test_check_fails_when_a_target_is_missed(self):
        self.assertEqual(self.compare(0.7, "--check", "--from").returncode, 0)
        missed = self.compare(0.6, "--check", "--from")
        self.assertEqual(missed.returncode, 1, missed.stderr)
        self.assertIn("at most 0.6 of beanstalkd       NO", missed.stdout)
        self.assertEqual(self.compare(0.6, "--from").returncode, 0)

    def test_markdown(self):
        output = self.compare(0.6, "--markdown").stdout
        self.assertIn("| `put-1` | server CPU a put | 6.50 µs | 10.0 µs | 0.65 | 0.60–0.70 "
                      "| at most 0.6 of beanstalkd | **no** |\n", output)
        self.assertIn("\n| tubed | 6.50 | 6.50 | 13.0 |\n", output)

    def test_the_same_figures_give_the_same_pictures(self):
        if pictures.matplotlib is None:
            self.skipTest("no matplotlib here")
        drawn = [{path.name: path.read_bytes()
                  for path in pictures.draw(results(1), self.folder / str(number))}
                 for number in range(2)]
        self.assertEqual(set(drawn[0]), {"cpu.svg", "latency.svg"})
        self.assertEqual(drawn[0], drawn[1])


@contextlib.contextmanager
def answering(reply):
    """A server for one connection that answers all input with `reply`, and closes the connection.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)
        thread = threading.Thread(target=serve)
        thread.start()
        yield "%s:%d" % listener.getsockname()
        thread.join()


class Wire(unittest.TestCase):
    def ends(self, what, *arguments):
        with self.assertRaises(SystemExit) as end:
            what(*arguments)
        return str(end.exception)

    def test_ids(self):
        self.assertEqual(wire.identities(b"RESERVED 3 1\r\nx\r\nRESERVED 5 1\r\nx\r\n", b"RESERVED",
                                         2), [3, 5])

    def test_a_wrong_reply_ends_the_run(self):
        self.assertIn("BURIED", self.ends(wire.identities, b"INSERTED 1\r\nBURIED 2\r\n",
                                          b"INSERTED", 2))
        self.assertIn("1 arrived", self.ends(wire.identities, b"INSERTED 1\r\n", b"INSERTED", 2))
        with answering(b"OUT_OF_MEMORY\r\n") as address, wire.Connection(address) as connection:
            self.assertIn("OUT_OF_MEMORY", self.ends(wire.put_many, connection, [wire.put()]))

    def test_a_closed_connection_ends_the_run(self):
        with answering(b"INSERTED 1\r\n") as address, wire.Connection(address) as connection:
            self.assertIn("still due on it: 1", self.ends(connection.exchange, wire.put() * 2, 2))


class Options(unittest.TestCase):
    def test_unknown_rows_are_refused(self):
        with contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaises(argparse.ArgumentTypeError):
                servers.one_of({"put-1"})("put-1,put-2")


if __name__ == "__main__":
    unittest.main()
