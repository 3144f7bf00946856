#!/usr/bin/env python3
"""Parsers of YAML read the name of every tube from stats unchanged, and names that clients without
a parser read have no quotes.

The parsers are PyYAML (YAML 1.1), ruamel.yaml (YAML 1.2) and Ruby's Psych, which beaneater uses.
The modules come from Debian, so the test needs Debian's Python.
"""

import json
import random
import subprocess
import unittest

import harness
import ruamel.yaml
import yaml

# Most names of these parts look like a number, a word or a date.
PARTS = ("0", "1", "7", "9", "12", "2026", "-01", "-31", "-1", "_", ".", "+", "-", "e", "E", "e5", "E+3", "0x",
         "0X", "0b", "0o", "0B", "ff", "A", "inf", "nan", ".inf", ".NaN", "true", "No", "y", "Off", "NULL",
         "on", "/", ";", "$", "(", ")", "x", "Z", "b")
SPECIAL = (
    "0", "7", "+7", "010", "08", "0_1", "1_000", "1__0", "1.0", "1.", ".5", "+.5", ".", "..", "...", "1e5",
    "1.5e3", "1E-3", "1.e+1", ".e+5", "0x1F", "0X1f", "0b101", "0o17", "0O17", "0b_", "0x_", "+_", "._",
    "1_e_5", "_1", "y", "Y", "n", "N", "yes", "Yes", "YES", "yEs", "no", "NO", "on", "ON", "off", "oFF",
    "true", "True", "TRUE", "false", "FALSE", "null", "Null", "NULL", "nuLL", ".inf", "+.INF", ".nan", ".NaN",
    "2026-01-31", "2026-1-3", "9999-99-99", "2026-01", "+", "/", ";", "$", "_", "(", ")", "()", "a;b")
ORDINARY = ("default", "mail", "mail-out", "mail.out", "mail/out", "mail_out", "$mail", "(mail)", "10-mails", "v1.0",
            "10.0.0.1", "2.0.0", "e5", "inf", "nan", "nothing", "offline", "yesterday", "x" * 200)
RUBY = """
require "json"
require "yaml"
$stdout.write JSON.generate(YAML.safe_load($stdin.read))
"""


def names(count):
    """Returns distinct names, in random order."""
    generator = random.Random(1)
    found = dict.fromkeys(SPECIAL + ORDINARY)
    while len(found) < count:
        name = "".join(generator.choices(PARTS, k=generator.randrange(1, 6)))
        if not name.startswith("-"):
            found[name] = None
    return list(found)


def yaml_1_1(text):
    return yaml.safe_load(text)


def yaml_1_2(text):
    parser = ruamel.yaml.YAML(typ="safe", pure=True)
    parser.version = "1.2"
    return parser.load(text)


def psych(text):
    done = subprocess.run(["ruby", "-e", RUBY], input=text, capture_output=True, text=True, check=True,
                          timeout=harness.SECONDS)
    return json.loads(done.stdout)


class YamlNames(harness.DaemonTest):
    def setUp(self):
        super().setUp()
        self.queue = self.connect(self.start())

    def block_of(self, command):
        self.queue.send(command.encode() + b"\r\n")
        return self.queue.body()[1].decode()

    def test_parsers_read_every_name(self):
        texts = {}
        for name in names(3000):
            self.assertEqual(self.queue.ask(f"use {name}"), f"USING {name}")
            line = self.block_of(f"stats-tube {name}").splitlines()[1]
            self.assertTrue(line.startswith("name: "), line)
            texts[name] = line.removeprefix("name: ")
        # One document for all names: `n0: …`.
        # }  // namespace
        numbered = dict(zip((f"n{i}" for i in range(len(texts))), texts))
        document = "---\n" + "".join(f"{key}: {texts[name]}\n" for key, name in numbered.items())
        for parser in (yaml_1_1, yaml_1_2, psych):
            with self.subTest(parser=parser.__name__):
                read = parser(document)
                wrong = {name: read[key] for key, name in numbered.items() if read[key] != name}
                self.assertEqual(wrong, {})
        self.assertEqual([name for name in ORDINARY if texts[name] != name], [])
        self.assertTrue(all(text in (name, f'"{name}"') for name, text in texts.items()))

    def test_parsers_read_whole_blocks(self):
        self.assertEqual(self.queue.ask("use 0x1F"), "USING 0x1F")
        self.queue.send(b"put 0 0 60 1 grp:null\r\nx\r\n"
                                b"put 0 0 60 1 idp:1e5 con:no grp:2026-01-31 aft:null max:3:010\r\nx\r\n")
        self.assertEqual([self.queue.line() for _ in range(2)], ["INSERTED 1", "INSERTED 2"])
        self.assertEqual(self.queue.ask("tube-policy 0x1F dead 1_0"), "POLICY_SET")
        expected = {
            "stats-tube 0x1F": {"name": "0x1F", "current-jobs-held": 1},
            "stats-job 2": {"id": 2, "tube": "0x1F", "idempotency-key": "1e5", "concurrency-key": "no",
                            "group": "2026-01-31", "after-group": "null", "dead": "010", "state": "delayed"},
            "stats-group 2026-01-31": {"name": "2026-01-31"},
            "tube-policy 0x1F": {"dead": "1_0", "dead-from": "wire"},
            "stats": {"draining": False, "current-jobs-held": 1},
        }
        for command, values in expected.items():
            block = self.block_of(command)
            for parser in (yaml_1_1, yaml_1_2, psych):
                with self.subTest(command=command, parser=parser.__name__):
                    read = parser(block)
                    self.assertEqual({key: read[key] for key in values}, values)
                    self.assertEqual(len(read), block.count("\n") - 1)
                    if command == "stats":
                        for key in ("version", "hostname", "os", "platform"):
                            self.assertIsInstance(read[key], str, key)


if __name__ == "__main__":
    unittest.main()
