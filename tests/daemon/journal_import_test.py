#!/usr/bin/env python3
"""The import of a beanstalkd directory, with files written by Debian's beanstalkd 1.12."""

import os
import pathlib
import shutil
import unittest
import urllib.parse

from harness import DaemonTest

BINLOGS = pathlib.Path(__file__).resolve().parent.parent / "journal" / "binlogs"
FIELDS = ("tube", "state", "pri", None, "delay", "ttr", None, "reserves", "timeouts", "releases",
          "buries", "kicks")


def expected_jobs(folder):
    """Returns the lines of stats-job and the body, by id."""
    jobs = {}
    for line in (folder / "expected").read_text().splitlines():
        words = line.split(" ")
        if words[0] != "job":
            continue
        stats = dict(zip(FIELDS, words[2:14]))
        stats.pop(None, None)
        jobs[int(words[1])] = stats, urllib.parse.unquote_to_bytes(words[14])
    return jobs


class Import(DaemonTest):
    def directory_of(self, folder):
        directory = self.directory / folder.name
        directory.mkdir()
        for binlog in folder.glob("binlog.*"):
            shutil.copy(binlog, directory)
        (directory / "lock").touch()
        return directory

    def check(self, client, jobs):
        self.assertEqual(sum(client.stats()[f"current-jobs-{state}"]
                             for state in ("ready", "delayed", "buried")), len(jobs))
        for job_id, (expected, body) in jobs.items():
            stats = client.stats(f"stats-job {job_id}")
            found = {key: str(stats[key]).strip('"') for key in expected if key != "delay"}
            expected = {key: expected[key] for key in found}
            self.assertEqual(found, expected, job_id)
            client.send(b"peek %d\r\n" % job_id)
            self.assertEqual(client.body()[1], body, job_id)

    def test_all_jobs_are_imported_and_the_binlogs_are_moved_unchanged(self):
        for name in ("states", "compacted", "restarted"):
            with self.subTest(binlogs=name):
                folder = BINLOGS / name
                jobs = expected_jobs(folder)
                self.assertGreater(len(jobs), 3)
                directory = self.directory_of(folder)
                before = {path.name: path.read_bytes() for path in directory.glob("binlog.*")}
                for start in range(2):  # the second start reads the journal
                    daemon = self.start("-b", str(directory))
                    client = self.connect(daemon)
                    self.check(client, jobs)
                    daemon.wait_for_line("recovered")  # the last line of the start
                    self.assertEqual(len(daemon.lines_with("imported")), 1 - start)
                    new = client.put(b"new")
                    self.assertGreater(new, max(jobs))
                    self.assertEqual(client.ask(f"delete {new}"), "DELETED")
                    client.close()
                    self.end(daemon)
                self.assertEqual(sorted(directory.glob("binlog.*")), [])
                after = {path.name: path.read_bytes()
                         for path in (directory / "imported").glob("binlog.*")}
                self.assertEqual(after, before)

    def test_a_folder_that_root_makes_belongs_to_the_owner_of_the_directory(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        directory = self.directory_of(BINLOGS / "states")
        shutil.chown(directory, "nobody", "nogroup")
        self.end(self.start("-b", str(directory)))
        status, owner = (directory / "imported").stat(), directory.stat()
        self.assertEqual((status.st_uid, status.st_gid), (owner.st_uid, owner.st_gid))

    def test_a_damaged_binlog_is_refused_and_stays(self):
        directory = self.directory_of(BINLOGS / "states")
        binlog = directory / "binlog.1"
        contents = bytearray(binlog.read_bytes())
        contents[0] = 77
        binlog.write_bytes(contents)
        line = self.start_refused(73, "-b", str(directory))
        self.assertIn("binlog.1", str(line))
        self.assertEqual(binlog.read_bytes(), contents)
        self.assertEqual(sorted(path.name for path in directory.glob("journal.*")), [])


if __name__ == "__main__":
    unittest.main()
