"""wire_run judges a play with a real clock by its replies, and repeats one that failed late.

The server is a script that answers a line `ask` after some time, with a word for each play.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLAYER = os.environ.get("TUBED_WIRE_RUN", "build/dev/tests/wire/wire_run")
SERVER = """#!{python}
import os, socketserver, sys, time

directory = "{directory}"
plays = len(os.listdir(directory + "/plays"))
open(directory + "/plays/" + str(plays), "w").close()
words = {words}

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            if line == b"ask\\r\\n":
                time.sleep({seconds})
                self.wfile.write(words[min(plays, len(words) - 1)].encode() + b"\\r\\n")
            else:
                self.wfile.write(b"UNKNOWN_COMMAND\\r\\n")

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

Server(sys.argv[sys.argv.index("--listen") + 1].removeprefix("unix:"), Handler).serve_forever()
"""


class Plays(unittest.TestCase):
    def play(self, words, seconds, advance="1ms"):
        """Plays a transcript that expects `right`: (exit status, number of plays, output)."""
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (directory / "plays").mkdir()
        server = directory / "server"
        server.write_text(SERVER.format(python=sys.executable, directory=directory, words=words,
                                        seconds=seconds), encoding="utf-8")
        server.chmod(0o755)
        transcript = directory / "ask.wire"
        transcript.write_text(f"advance {advance}\nA> ask\nA< right\n", encoding="utf-8")
        done = subprocess.run([PLAYER, "--server", "tubed", "--binary", server, transcript],
                              capture_output=True, check=False, text=True, timeout=60)
        return done.returncode, len(list((directory / "plays").iterdir())), done.stdout

    def test_a_right_reply_is_enough_however_late(self):
        self.assertEqual(self.play(["right"], seconds=0.3)[:2], (0, 1))

    def play_in_time(self, words, advance="1ms"):
        """A play that is in time, as most are; on a busy machine, the first may be late."""
        for _ in range(10):
            status, plays, output = self.play(words, seconds=0, advance=advance)
            if plays == 1:
                break
        return status, plays, output

    def test_a_failure_in_time_is_a_failure(self):
        status, plays, output = self.play_in_time(["wrong", "right"])
        self.assertEqual((status, plays), (1, 1), output)
        self.assertIn('A expected "right\\r\\n" got "wrong\\r\\n"', output)

    def test_a_late_failure_is_played_again(self):
        status, plays, output = self.play(["wrong", "right"], seconds=0.3)
        self.assertEqual((status, plays), (0, 2), output)
        self.assertRegex(output, r"ask\.wire: failed \d+ ms late, played again\n")

    def test_three_late_failures_are_a_failure(self):
        status, plays, output = self.play(["wrong", "wrong", "wrong", "right"], seconds=0.3)
        self.assertEqual((status, plays), (1, 3), output)
        self.assertEqual(output.count("played again"), 2)

    def test_the_time_that_a_transcript_states_is_not_late(self):
        status, plays, output = self.play_in_time(["wrong", "right"], advance="500ms")
        self.assertEqual((status, plays), (1, 1), output)


if __name__ == "__main__":
    unittest.main()
