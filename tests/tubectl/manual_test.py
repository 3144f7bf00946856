"""Tests tubectl(1) and --help: each subcommand is described, and each example of the page and of
each subcommand's help runs.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from fake_admin import FakeAdmin
from programs import DONE, SECONDS, TUBECTL, TubectlTest, subcommands

PAGE = pathlib.Path(__file__).resolve().parents[2] / "packaging/man/tubectl.1"
# Addresses in examples, which the test replaces.
OTHERS = ("old.example.org:11300", "new.example.org:11300")
ESCAPES = {r"\&": "", r"\e": "\\", r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(ti": "~",
           r"\(ha": "^", r"\(ga": "`"}
# Examples that need a terminal; top_test.py runs them.
WANTS_TERMINAL = re.compile(r"^\s*tubectl top(?!.*--once)")
# An example of work that runs until a signal ends it.
ENDLESS = re.compile(r"^tubectl (work (?!.*(--exit-when-idle|--count|-h))|.*--watch)")
# An example that needs the service, which the test does not have.
WANTS_SERVICE = re.compile(r"unix:/run/tubed/tubed.sock|systemctl")


def plain(text):
    for escape, character in ESCAPES.items():
        text = text.replace(escape, character)
    return text


def sections(page):
    """Returns the lines of each subcommand, which start at `.Ss Cm NAME`."""
    found, name = {}, None
    for line in page.splitlines():
        if line.startswith(".Sh "):
            name = None
        elif line.startswith(".Ss Cm "):
            name = line.split()[2]
            found.setdefault(name, [])
        if name:
            found[name].append(line)
    return found


def page_examples(lines):
    """Returns the text in `.Dl` and between `.Bd -literal` and `.Ed`."""
    examples, literal = [], False
    for line in lines:
        if line.startswith(".Bd -literal"):
            literal = True
        elif line.startswith(".Ed"):
            literal = False
        elif literal:
            examples.append(plain(line))
        elif line.startswith(".Dl "):
            examples.append(plain(line[len(".Dl "):]))
    return examples


def help_examples(text):
    """Returns the lines after `examples:`."""
    _, _, rest = text.partition("examples:\n")
    return [line.strip() for line in rest.splitlines() if line.strip()]


class ManualTest(TubectlTest):
    @staticmethod
    def fill(client):
        """Adds jobs in each state, in the tubes and in the group that the examples name."""
        for tube in ("default", "mail", "images", "work"):
            client.ask(f"use {tube}")
            for delay in (0, 0, 0, 1000):
                client.put(b"hello", delay=delay)
            client.ask(f"watch {tube}")
        job, _ = client.reserve()
        client.ask(f"bury {job} 0")
        client.ask("put 0 0 120 5 grp:report\r\nhello")

    def run_examples(self, lines, fill=True):
        """Runs all examples in one shell and one directory, with jobs in the tubes."""
        lines = [line for line in lines
                 if not WANTS_TERMINAL.search(line) and not WANTS_SERVICE.search(line)]
        self.assertTrue(lines, "an example that a test can run")
        server = self.tubed()
        script = "\n".join("timeout --preserve-status -s TERM 2 " + line if ENDLESS.match(line)
                           else line for line in lines)
        for name in OTHERS:
            if name in script:
                script = script.replace(name, self.tubed())
        if fill:
            client = self.client(server)
            self.fill(client)
            if "--reserved" in script:
                client.reserve("reserve-job 5")  # in the tube mail
        with tempfile.TemporaryDirectory(prefix="tubectl-manual-") as directory:
            pathlib.Path(directory, "jobs.txt").write_text("one\ntwo\n", encoding="utf-8")
            pathlib.Path(directory, "jobs.jsonl").write_text(
                '{"body":"one"}\n{"body":"two","tube":"mail"}\n', encoding="utf-8")
            for command in ("send-mail", "convert"):
                path = pathlib.Path(directory, command)
                path.write_text("#!/bin/sh\ncat >/dev/null\n", encoding="utf-8")
                path.chmod(0o755)
            admin = FakeAdmin(pathlib.Path(directory, "admin"))
            self.addCleanup(admin.close)
            admin.state["members"].pop()  # an example adds the third member
            environment = os.environ | {
                "TUBED_SERVER": server, "TUBED_ADMIN": admin.address, "PATH": f"{pathlib.Path(TUBECTL).parent}:/usr/bin:/bin"}
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], check=False,
                                  cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, DONE, f"{script}\n{done.stdout}{done.stderr}")

    def run_all(self, name, examples):
        if name != "bench":
            return self.run_examples(examples)
        # A tenth of the jobs tests the same, even on a busy machine.
        examples = [line.replace("--jobs 100000", "--jobs 10000") for line in examples]
        # Each example has its own server, unless it needs the jobs put by the previous example.
        scripts = []
        for line in examples:
            if "--no-fill" in line:
                scripts[-1].append(line)
            elif not WANTS_SERVICE.search(line):
                scripts.append([line])
        for script in scripts:
            self.run_examples(script, fill=False)

    def test_the_page_has_each_subcommand_and_no_other(self):
        names = subcommands()
        self.assertGreater(len(names), 20)
        self.assertEqual(sorted(sections(PAGE.read_text(encoding="utf-8"))), sorted(names))

    def test_the_brackets_of_the_page(self):
        """Op encloses the rest of its line, so a heading with more text needs Oo."""
        headings = re.findall("^[.]Ss Cm .*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(headings), 20)
        for heading in headings:
            self.assertNotRegex(heading, r" Op .* (Op|Oo) ")

    def test_the_examples_of_the_page(self):
        for name, lines in sections(PAGE.read_text(encoding="utf-8")).items():
            with self.subTest(subcommand=name):
                examples = page_examples(lines)
                self.assertTrue(any(f"tubectl {name}" in line for line in examples), examples)
                if name != "top" or any("--once" in line for line in examples):
                    self.run_all(name, examples)

    def test_the_examples_of_the_first_help(self):
        text = self.tubectl("127.0.0.1:1", "--help").partition("\ntubectl help SUBCOMMAND")[0]
        self.run_examples(help_examples(text), fill=False)

    def test_the_examples_of_the_help(self):
        for name in subcommands():
            with self.subTest(subcommand=name):
                text = self.tubectl("127.0.0.1:1", name, "--help")
                self.run_all(name, help_examples(text))


if __name__ == "__main__":
    unittest.main()
