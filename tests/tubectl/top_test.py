"""`tubectl top` in tmux, a real terminal: the screen at several sizes, the effects of keys, and the
final state of the terminal.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/top_test.py
"""

import os
import re
import shlex
import signal
import subprocess
import unittest
import uuid

from programs import SECONDS, TUBECTL, UNAVAILABLE, USAGE, TubectlTest, until

PROMPT = "ready> "


class Terminal:
    """A tmux window with a shell, on a socket of its own."""

    def __init__(self, test, columns=80, rows=24, environment=()):
        self.socket = f"tubectl-top-{uuid.uuid4().hex}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "env", "LC_ALL=C.UTF-8", f"PS1={PROMPT}", *environment, "sh")
        test.addCleanup(self.tmux, "kill-server")
        self.tmux("set-option", "-g", "window-size", "manual")
        self.wait_for(lambda text: text.startswith(PROMPT.strip()), "a prompt")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", self.socket, *arguments], check=True,
                              capture_output=True, text=True, timeout=SECONDS).stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.text().split("\n")[:-1]

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def write(self, text):
        self.tmux("send-keys", "-l", text)

    def run(self, *words):
        self.write(shlex.join(map(str, words)))
        self.type("Enter")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, there, what):
        """Waits until there(text) is true, and returns the text of the screen."""
        seen = [""]

        def look():
            seen[0] = self.text()
            return there(seen[0])
        try:
            until(what, look)
        except AssertionError as error:
            raise AssertionError(f"{error}, but there is:\n{seen[0]}") from error
        return seen[0]

    def wait_for_text(self, *texts):
        return self.wait_for(lambda shown: all(text in shown for text in texts), str(texts))

    def wait_for_row(self, pattern):
        return self.wait_for(lambda shown: re.search(pattern, shown, re.MULTILINE), pattern)


class TopTest(TubectlTest):
    def put(self, address, tube, count=1):
        client = self.client(address)
        client.ask(f"use {tube}")
        return [client.put(b"hello") for _ in range(count)]

    def bury(self, address, tube, count):
        client = self.client(address)
        client.ask(f"watch {tube}")
        client.ask("ignore default")
        for _ in self.put(address, tube, count):
            job, _ = client.reserve()
            self.assertEqual(client.ask(f"bury {job} 0"), "BURIED")

    def top(self, address, *arguments, columns=80, rows=24, environment=()):
        terminal = Terminal(self, columns, rows, environment)
        terminal.run(TUBECTL, "top", "-s", address, "--interval", "0.1", *arguments)
        terminal.wait_for_text("serving", "TUBE", "default")
        return terminal

    def tube_stats(self, address, tube):
        return self.client(address).stats(f"stats-tube {tube}")

    def assert_fits(self, terminal, columns, rows):
        lines = terminal.lines()
        self.assertEqual(len(lines), rows, lines)
        self.assertLessEqual(max(map(len, lines)), columns, lines)

    def test_shows_head_and_rows_at_two_sizes(self):
        for server in self.servers():
            self.put(server, "mail", 7)
            self.bury(server, "reports", 3)
            for columns, rows in ((80, 24), (200, 50)):
                terminal = self.top(server, columns=columns, rows=rows)
                shown = terminal.wait_for_text("puts/s", "reserves/s", "deletes/s", "timeouts/s",
                                               "CPU", "tubes 3", "ready 7", "buried 3", "q quit")
                self.assertIn("version", shown)
                self.assert_fits(terminal, columns, rows)
                self.assertRegex(shown, r"(?m)^▸ mail +7 ")
                self.assertRegex(shown, r"(?m)^  reports +0 .* 3 ")
                self.assertEqual("WATCHING" in shown, columns == 200)
                terminal.type("q")
                terminal.wait_for(lambda text: "TUBE" not in text, "the end")

    def test_sorts_and_selects(self):
        for server in self.servers():
            self.put(server, "few", 2)
            self.put(server, "many", 9)
            terminal = self.top(server, "--sort", "name")
            order = r"(?s)default.*\n..few.*\n..many"
            terminal.wait_for_row(order)
            terminal.type("s")
            terminal.wait_for_row(r"(?s)many.*\n..few.*\n..default")
            terminal.type("r")
            terminal.wait_for_row(order)
            terminal.type("j")
            terminal.wait_for_row("^▸ few")
            terminal.type("Down")
            terminal.wait_for_row("^▸ many")
            terminal.type("Home")
            terminal.wait_for_row("^▸ default")
            terminal.type("End")
            terminal.wait_for_row("^▸ many")
            terminal.type("k")
            terminal.wait_for_row("^▸ few")

    def test_filters_live(self):
        for server in self.servers():
            self.put(server, "mail-in")
            self.put(server, "reports")
            terminal = self.top(server)
            terminal.write("/mai")
            terminal.wait_for(lambda text: "mail-in" in text and "reports" not in text, "a filter")
            terminal.type("Enter")
            terminal.wait_for_text("tubes 1 of 3", "Esc all tubes")
            terminal.type("Escape")
            terminal.wait_for_text("mail-in", "reports", "tubes 3")
            narrow = self.top(server, "--filter", "default")
            narrow.wait_for_text("tubes 1 of 3")

    def test_pauses_and_kicks_when_asked(self):
        for server in self.servers():
            self.bury(server, "mail", 5)
            terminal = self.top(server)
            terminal.write("/mail")
            terminal.type("Enter")
            terminal.wait_for_row("^▸ mail")
            # A frozen view shows a message until the next key.
            terminal.type("Space")
            terminal.wait_for_text("FROZEN")
            terminal.write("p300")
            terminal.wait_for_text("pause mail, seconds (0 ends it): 300")
            self.assertEqual(self.tube_stats(server, "mail")["pause"], 0)
            terminal.type("Enter")
            terminal.wait_for_text("paused mail for 300 s")
            self.assertEqual(self.tube_stats(server, "mail")["pause"], 300)
            terminal.wait_for_row(r"mail .* \dm\d\ds")
            terminal.write("p0")
            terminal.type("Enter")
            terminal.wait_for_text("mail is no longer paused")
            terminal.write("K2")
            terminal.wait_for_text("kick buried jobs of mail, how many (all): 2")
            terminal.type("Enter")
            terminal.wait_for_text("kicked 2 jobs of mail")
            self.assertEqual(self.tube_stats(server, "mail")["current-jobs-ready"], 2)
            terminal.write("K")
            terminal.type("Escape")
            terminal.wait_for_text("Esc all tubes")
            self.assertEqual(self.tube_stats(server, "mail")["current-jobs-buried"], 3)
            terminal.write("K")
            terminal.type("Enter")
            terminal.wait_for_text("kicked 3 jobs of mail")
            self.assertEqual(self.tube_stats(server, "mail")["current-jobs-buried"], 0)

    def test_details_and_help(self):
        for server in self.servers():
            job = self.put(server, "mail", 2)[0]
            terminal = self.top(server)
            terminal.resize(80, 30)
            terminal.wait_for_row("^▸ mail")
            terminal.type("Enter")
            terminal.wait_for_text("TUBE mail", "current-jobs-ready", f"next ready job  {job}",
                                   "hello", "5 bytes in all")
            terminal.type("?")
            terminal.wait_for_text("KEYS", "reverse the order")
            terminal.type("?")
            terminal.wait_for_text("TUBE mail")
            terminal.type("Escape")
            terminal.wait_for_text("READY")

    def test_follows_the_window(self):
        for server in self.servers():
            terminal = self.top(server)
            for columns, rows in ((200, 50), (60, 15), (40, 8), (80, 24)):
                terminal.resize(columns, rows)
                terminal.wait_for(lambda text, rows=rows: "q quit" in text.split("\n")[rows - 1]
                                  if text.count("\n") == rows else False, (columns, rows))
                self.assert_fits(terminal, columns, rows)
            terminal.resize(30, 5)
            terminal.wait_for_text("top wants 40 x 8")

    def start_at(self, name, path):
        return (self.start(listen=f"unix:{path}") if name == "tubed" else
                self.start_beanstalkd(path=path))

    def test_waits_for_a_server_that_went_away(self):
        for name in ("tubed", "beanstalkd"):
            with self.subTest(server=name):
                path = self.directory / f"{name}-again.sock"
                server = self.start_at(name, path)
                address = f"unix:{path}"
                self.put(address, "mail", 4)
                terminal = self.top(address)
                server.kill()
                shown = terminal.wait_for_text("NO SERVER", "trying again")
                self.assertRegex(shown, "mail +4 ")
                path.unlink()
                self.start_at(name, path)
                self.put(address, "fresh", 1)
                shown = terminal.wait_for_text("serving", "fresh")
                self.assertNotIn("mail", shown)

    def test_tells_of_a_silent_server(self):
        daemon = self.start()
        terminal = self.top(daemon.addresses[0])
        daemon.freeze()
        terminal.wait_for_text("NO SERVER", "has not answered for")
        terminal.type("q")  # top does not wait for the answer
        terminal.wait_for(lambda text: "TUBE" not in text, "the end")
        daemon.thaw()

    def test_leaves_the_terminal_as_it_was(self):
        server = self.tubed()
        for way in ("q", "C-c", signal.SIGTERM, signal.SIGHUP):
            terminal = Terminal(self)
            terminal.run("stty", "-g")
            before = terminal.wait_for_row("^[0-9a-f]+:").split("\n")[1]
            terminal.write(f"{TUBECTL} top -s {server} & echo pid $!; fg >/dev/null; echo code $?")
            terminal.type("Enter")
            shown = terminal.wait_for_text("serving")
            self.assertNotIn("stty", shown)
            if isinstance(way, str):
                terminal.type(way)
            else:
                pane = terminal.tmux("display-message", "-p", "#{pane_pid}").strip()
                child = subprocess.run(["pgrep", "-P", pane], check=True, capture_output=True,
                                       text=True, timeout=SECONDS).stdout.split()[0]
                os.kill(int(child), way)
            # The screen shows its previous contents again.
            terminal.wait_for_text("stty -g", "code 0")
            terminal.run("stty", "-g")
            terminal.wait_for(lambda text, b=before: text.count(b) == 2, f"the modes {before}")

    def test_colours_and_ascii(self):
        server = self.tubed()
        self.assertIn("\x1b[3", self.top(server).tmux("capture-pane", "-e", "-p"))
        plain = self.top(server, environment=("NO_COLOR=1",))
        self.assertNotRegex(plain.tmux("capture-pane", "-e", "-p"), r"\x1b\[[0-9;]*3[0-7]")
        ascii_only = self.top(server, environment=("LC_ALL=C",))
        self.assertTrue(ascii_only.wait_for_row("^> default").isascii())

    def test_once_in_json(self):
        for server in self.servers():
            client = self.client(server)
            client.ask("use mail")
            client.put_many(3)
            told = self.tubectl_json(server, "top", "--once", "--interval", "0.1")
            self.assertEqual(told["server"]["current-jobs-ready"], 3)
            self.assertEqual(told["puts-per-second"], 0)
            mail = next(tube for tube in told["tubes"] if tube["name"] == "mail")
            self.assertEqual((mail["ready"], mail["paused"], mail["deletes-per-second"]), (3, 0, 0))
            told = self.tubectl_json(server, "top", "--once", "--interval", "0.1", "--filter", "x")
            self.assertEqual(told["tubes"], [])
            self.assertIn("--json requires --once", self.refused(USAGE, server, "top", "--json"))

    def test_once(self):
        for server in self.servers():
            self.put(server, "mail", 12)
            output = self.tubectl(server, "top", "--once", "--interval", "0.1")
            lines = output.split("\n")
            self.assertLessEqual(max(map(len, lines)), 80)
            self.assertIn("puts/s", output)
            self.assertRegex(output, "(?m)^  mail +12 ")
            self.assertNotIn("\x1b", output)
            code, output, _ = self.run_tubectl(server, "top", "--once", "--interval", "0.1",
                                               environment={"COLUMNS": "200", "LINES": "8"})
            self.assertEqual((code, output.count("\n")), (0, 5))
            self.assertIn("WATCHING", output)

    def test_ten_thousand_tubes_are_quick(self):
        server = self.tubed()
        client = self.client(server)
        lines = b"".join(b"use t%05d\r\nput 0 0 60 1\r\nx\r\n" % number
                         for number in range(10_000))
        client.pump(lines, 20_000)
        terminal = self.top(server, "--sort", "name")
        terminal.wait_for_text("tubes 10.0k", "t00000")
        terminal.type("End")
        terminal.wait_for_text("▸ t09999")

    def test_mistakes(self):
        server = self.tubed()
        told = self.refused(USAGE, server, "top")
        self.assertEqual(told, "tubectl: top wants a terminal; tubectl tubes prints once\n")
        self.refused(USAGE, server, "top", "--interval", "0.05", "--once")
        self.refused(USAGE, server, "top", "--sort", "size", "--once")
        nobody = f"unix:{self.directory}/nobody.sock"
        self.refused(UNAVAILABLE, nobody, "top", "--once")
        terminal = Terminal(self)
        terminal.write(f"{TUBECTL} top -s {nobody}; echo code $?")
        terminal.type("Enter")
        terminal.wait_for_text("cannot connect", f"code {UNAVAILABLE}")
        terminal.write(f"TERM=nonsense {TUBECTL} top -s {server}; echo code $?")
        terminal.type("Enter")
        terminal.wait_for_text('does not know the terminal "nonsense"', f"code {USAGE}")


if __name__ == "__main__":
    unittest.main()
