#!/usr/bin/env python3
"""Tests the check of instruction counts with made-up numbers: each kind of fault is reported."""

import json
import pathlib
import tempfile
import unittest

import callgrind
import check_commands

BUILD = "some system, some compiler"
RECORDED = {BUILD: {"put": 1000.0, "delete": 500.0}}


class Check(unittest.TestCase):
    def check(self, counted, recorded=None, build=BUILD):
        self.output = ""

        def report(text):
            self.output += text + "\n"

        return check_commands.check(RECORDED if recorded is None else recorded, build, counted,
                                    report)

    def test_as_recorded(self):
        self.assertEqual(self.check({"put": 1000.0, "delete": 500.0}), 0)

    def test_within_the_margin(self):
        self.assertEqual(self.check({"put": 1029.0, "delete": 486.0}), 0)
        self.assertIn("+2.90%", self.output)

    def test_a_slowdown_of_one_step_fails(self):
        self.assertEqual(self.check({"put": 1000.0, "delete": 516.0}), 1)
        self.assertIn("FAILED: delete: 3.2% more than recorded", self.output)
        self.assertNotIn("FAILED: put", self.output)

    def test_a_gain_has_to_be_recorded(self):
        self.assertEqual(self.check({"put": 960.0, "delete": 500.0}), 1)
        self.assertIn("FAILED: put: 4.0% less than recorded: record the gain", self.output)
        self.assertIn("record-instructions", self.output)

    def test_a_new_step_has_to_be_recorded(self):
        self.assertEqual(self.check({"put": 1000.0, "delete": 500.0, "peek": 1.0}), 1)
        self.assertIn("FAILED: peek: not recorded", self.output)

    def test_a_step_that_is_missing_fails(self):
        self.assertEqual(self.check({"put": 1000.0}), 1)
        self.assertIn("FAILED: delete: no longer counted", self.output)

    def test_another_build_is_skipped_with_a_message(self):
        self.assertEqual(self.check({"put": 9999.0}, build="another"), check_commands.SKIPPED)
        self.assertIn("9999.0", self.output)
        self.assertIn("Nothing is recorded for 'another'", self.output)

    def test_recording_keeps_other_builds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "file")
            check_commands.record(path, RECORDED, "another", {"put": 1.0})
            written = json.loads(path.read_text())
        self.assertEqual(written, {**RECORDED, "another": {"put": 1.0}})
        self.assertEqual(self.check({"put": 1.0}, written, "another"), 0)


class Counting(unittest.TestCase):
    def profile(self, name, instructions):
        return callgrind.read_profile(
            f"version: 1\ndesc: Trigger: Client Request: {name}\nevents: Ir\nfn=(1)\n1 2\n"
            f"totals: {instructions}\n")

    def test_instructions_a_command(self):
        profiles = [self.profile("put, 16 pipelined", 3200), self.profile("put", 1001)]
        at_end = callgrind.read_profile("desc: Trigger: Program termination\ntotals: 0\n")
        counts = check_commands.per_command("10 put\n160 put, 16 pipelined\n", [*profiles, at_end])
        self.assertEqual(counts, {"put": 100.1, "put, 16 pipelined": 20.0})

    def test_a_step_without_its_profile_fails(self):
        with self.assertRaises(SystemExit):
            check_commands.per_command("10 put\n", [self.profile("delete", 1000)])

    def test_a_step_that_collected_nothing_fails(self):
        with self.assertRaises(SystemExit):
            check_commands.per_command("10 put\n", [self.profile("put", 0)])

    def test_a_program_that_measured_nothing_fails(self):
        with self.assertRaises(SystemExit):
            check_commands.per_command("", [])


class Recorded(unittest.TestCase):
    def test_the_build_of_ci_is_recorded(self):
        counts = json.loads(check_commands.RECORDED.read_text())[check_commands.CI]
        self.assertGreater(len(counts), 10)
        for name, count in counts.items():
            self.assertGreater(count, 100, name)


if __name__ == "__main__":
    unittest.main()
