"""Restarts of a server with a journal.

The tests cover the state that survives a stop or a kill, the statistics of the journal, directories
that are refused or repaired at a start, the tasks --check, --dump and --salvage, and a reload of
journal.sync.
"""

import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import unittest

from harness import BEANSTALKD, SECONDS, DaemonTest, run, until

HEADER_BYTES = 64


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(payload):
    """Returns a record of segment 1."""
    rest = struct.pack("<I", len(payload)) + payload
    rest += bytes(-(4 + len(rest)) % 8)
    return struct.pack("<I", crc32c(b"segment" + struct.pack("<Q", 1) + rest)) + rest


def segment_of_a_cluster():
    """Returns segment 1 as left by a server of a cluster: job 1 is ready, and held for an hour."""
    identity, now = 0x1234, time.time_ns()
    header = b"tubedjnl" + struct.pack("<IIQQq20x", 3, HEADER_BYTES, identity, 1, now)
    batch = struct.pack("<BBxxIQQQQQqQ", 1, 0, 3, identity, HEADER_BYTES, 0, 0, 2, now, 1)
    added = struct.pack("<BBBxIQIIqQ5II", 2, 0, 7, 0, 1, 0, 60, now, 0, 0, 0, 0, 0, 0, 1)
    held = struct.pack("<B7xQq", 12, 1, now + 3600 * 10**9)
    applied = struct.pack("<B7xQQQ", 13, 5, 1, 0)
    facts = [added + b"default" + b"x", held, applied]
    return (header + struct.pack("<I", crc32c(header)) + record(batch) +
            b"".join(map(record, facts)))


def contents(directory):
    """Returns the contents, modification time and mode of all files, by name."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
            for path in directory.iterdir()}


def quoted(value):
    return value.strip('"') if isinstance(value, str) else value


class Journaled(DaemonTest):
    environment = None  # added to the environment of the test

    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()

    def start_on_it(self, *flags):
        daemon = self.start("-b", str(self.journal), *flags, environment=self.environment)
        daemon.wait_for_line("recovered")
        return daemon

    def serve(self, *flags):
        """Starts a daemon on the journal; returns it and a client."""
        daemon = self.start_on_it(*flags)
        return daemon, self.connect(daemon)

    def restart(self, daemon, *flags, how="stop"):
        """Stops or kills the daemon and starts another; returns it and a client."""
        if how == "stop":
            self.end(daemon)
        else:
            daemon.kill()
        daemon, client = self.serve(*flags)
        line = daemon.lines_with("recovered")[0]
        self.assertIn('after="a stop"' if how == "stop" else 'after="a crash"', line)
        return daemon, client

    def segments(self):
        return sorted(self.journal.glob("journal.*"))


class First(Journaled):
    def test_a_new_journal_is_logged_as_new(self):
        daemon = self.start_on_it()
        self.assertIn(' after="nothing: the journal is new" ', daemon.wait_for_line("recovered"))
        self.connect(daemon).put()  # makes a segment exist when the daemon stops
        self.restart(daemon)


class Survives(Journaled):
    def both_ways(self, prepare, check):
        """Calls prepare(client) before a restart and check(client, result of prepare) after it, for
        a stop and for a kill."""
        for how in ("stop", "kill"):
            with self.subTest(how=how):
                shutil.rmtree(self.journal)
                self.journal.mkdir()
                daemon, client = self.serve()
                prepared = prepare(client)
                for _ in range(2):  # the second restart reads the records of the first
                    daemon, client = self.restart(daemon, how=how)
                    check(client, prepared)
                self.end(daemon)

    def job(self, client, job_id, **expected):
        stats = client.stats(f"stats-job {job_id}")
        self.assertEqual({key: quoted(stats[key]) for key in expected}, expected)
        return stats

    def test_bodies_priorities_tubes_and_ttrs(self):
        bodies = [b"", b"\r\n", b"put 0 0 1 1\r\n", os.urandom(60_000), b"x" * 4096]

        def prepare(client):
            client.ask("use some-tube")
            return [client.put(body, priority=1000 - i, ttr=50 + i)
                    for i, body in enumerate(bodies)]

        def check(client, jobs):
            for i, job_id in enumerate(jobs):
                self.job(client, job_id, pri=1000 - i, ttr=50 + i, tube="some-tube", state="ready",
                         file=1)
                client.send(b"peek %d\r\n" % job_id)
                self.assertEqual(client.body()[1], bodies[i])
            client.ask("use some-tube")
            client.send(b"peek-ready\r\n")
            self.assertEqual(int(client.body()[0][1]), jobs[-1])  # the most urgent
        self.both_ways(prepare, check)

    def test_a_job_that_was_held_in_a_cluster_is_ready(self):
        (self.journal / "journal.0000000001").write_bytes(segment_of_a_cluster())
        _, summary, _ = run("--check", str(self.journal))
        self.assertIn("position:    entry 5 of term 1 of a replicated log\n", summary)
        daemon, client = self.serve()
        self.job(client, 1, state="ready", reserves=1, timeouts=0)
        daemon, client = self.restart(daemon)  # a fact `placed` has ended the reservation
        self.job(client, 1, state="ready", reserves=1)
        self.assertEqual(client.reserve()[0], 1)

    def test_a_delay_that_ends_while_no_server_runs(self):
        daemon, client = self.serve()
        job_id = client.put(b"x", delay=1)
        self.end(daemon)
        began = time.time()
        until("the delay to have passed", lambda: time.time() > began + 1.05)
        _, client = self.serve()
        self.assertEqual(client.stats(f"stats-job {job_id}")["state"], "ready")

    def test_ids_that_a_loss_of_power_may_have_lost_are_not_assigned_again(self):
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        boot = boot.replace("-", "")
        lock = self.journal / "lock"
        for how, before, gap in (("kill", boot, 0),
                                 ("kill", "another boot\n", 10_000_000),
                                 ("kill", "", 10_000_000),  # the file of an older version
                                 ("stop", "another boot\n", 0),
                                 ("stop", "copy\n", 10_000_000)):  # a backup
            with self.subTest(how=how, before=before):
                daemon, client = self.serve()
                last = client.put()
                self.assertEqual(lock.read_text(encoding="ascii"), boot)
                if how == "kill":
                    daemon.kill()
                else:
                    self.end(daemon)
                lock.write_text(before, encoding="ascii")
                # A start that ends before the gap is durable does not use it up.
                daemon = self.start_on_it()
                if how == "kill":
                    daemon.kill()
                else:
                    self.end(daemon)
                for _ in range(2):  # the ids are skipped only once
                    daemon, client = self.serve()
                    last = last + 1 + gap
                    self.assertEqual(client.put(), last)
                    gap = 0
                    self.end(daemon)

    def test_a_reserved_job_has_its_last_state_of_rest(self):
        """This holds after a kill. A stop releases the job, as the end of its client's connection
        does."""
        def prepare(client):
            ready, delayed = client.put(b"r", priority=3), client.put(b"d", delay=900)
            buried = client.put(b"b")
            client.reserve(f"reserve-job {buried}")
            client.ask(f"bury {buried} 8")
            for job_id in (ready, delayed, buried):
                client.reserve(f"reserve-job {job_id}")
            return ready, delayed, buried
        daemon, client = self.serve()
        ready, delayed, buried = prepare(client)
        daemon, client = self.restart(daemon, how="kill")
        self.job(client, ready, state="ready", pri=3, reserves=0)
        self.job(client, delayed, state="delayed", delay=900, reserves=0)
        self.job(client, buried, state="buried", pri=8, buries=1, reserves=1)
        for job_id in (ready, delayed, buried):
            client.reserve(f"reserve-job {job_id}")
        daemon, client = self.restart(daemon, how="stop")
        for job_id in (ready, delayed, buried):
            self.job(client, job_id, state="ready")
        self.job(client, buried, reserves=2)

    def test_compaction_and_restarts_keep_all_jobs(self):
        daemon, client = self.serve("-s", "4096", "-z", "1000")
        kept = {client.put(b"kept %d" % i, priority=i): i for i in range(10)}
        client.ask("use p")
        client.put(b"holds the tube")
        client.ask("pause-tube p 1000")
        client.ask("use default")
        for _ in range(2000):
            self.assertEqual(client.ask(f"delete {client.put(b'churn' * 10)}"), "DELETED")
        stats = client.stats()
        self.assertGreater(stats["binlog-oldest-index"], 1)
        self.assertGreater(stats["binlog-records-migrated"], 10)
        for how in ("stop", "kill"):
            client.put(b"a change")  # without a change, a kill is recovered like a stop
            daemon, client = self.restart(daemon, "-s", "4096", "-z", "1000", how=how)
            for job_id, number in kept.items():
                self.job(client, job_id, pri=number, state="ready")
            self.assertGreater(client.stats("stats-tube p")["pause-time-left"], 900)


class Stats(Journaled):
    def test_binlog_lines_and_the_file_of_a_job(self):
        daemon, client = self.serve("-s", "8192", "-z", "1000")
        before = client.stats()
        self.assertEqual([before[f"binlog-{key}"] for key in (
            "oldest-index", "current-index", "records-migrated", "records-written", "max-size")],
                         [1, 1, 0, 0, 8 * (1000 + 512)])
        jobs = [client.put(b"x" * 1000) for _ in range(50)]
        client.ask(f"delete {jobs[15]}")
        stats = client.stats()
        self.assertEqual(stats["binlog-records-written"], 51)
        self.assertGreaterEqual(stats["binlog-current-index"], 4)
        self.assertEqual(client.stats(f"stats-job {jobs[0]}")["file"], 1)
        self.assertEqual(client.stats(f"stats-job {jobs[-1]}")["file"],
                         stats["binlog-current-index"])
        until("the files to exist",
              lambda: len(self.segments()) >= stats["binlog-current-index"])
        self.assertGreater(stats["journal-live-bytes"], 49_000)
        self.assertGreaterEqual(stats["journal-bytes"], stats["journal-live-bytes"])
        file = client.stats(f"stats-job {jobs[20]}")["file"]
        _, client = self.restart(daemon, "-s", "8192", "-z", "1000")
        self.assertEqual(client.stats(f"stats-job {jobs[20]}")["file"], file)
        self.assertEqual(client.stats()["binlog-records-written"], 0)

    def test_segments_grow_with_the_largest_allowed_job(self):
        daemon, client = self.serve("-s", "4096", "-z", "1000")
        jobs = [client.put(b"a" * 1000) for _ in range(20)]
        daemon, client = self.restart(daemon, "-s", "4096", "-z", "60000", how="kill")
        self.assertEqual(client.stats()["binlog-max-size"], 8 * (60000 + 512))
        jobs += [client.put(b"b" * 50_000) for _ in range(10)]
        # Jobs that are larger than the new segments are still readable.
        daemon, client = self.restart(daemon, "-s", "4096", "-z", "1000", how="kill")
        jobs.append(client.put(b"c"))
        files = [client.stats(f"stats-job {job_id}")["file"] for job_id in jobs]
        self.assertGreaterEqual(len(set(files)), 4)
        client.send(b"peek %d\r\n" % jobs[20])
        self.assertEqual(client.body()[1], b"b" * 50_000)
        # A restart with another segment size keeps the files of all jobs.
        _, client = self.restart(daemon, "-s", "65536")
        self.assertEqual([client.stats(f"stats-job {job_id}")["file"] for job_id in jobs], files)


class Refused(Journaled):
    def refuse(self, *names, directory=None):
        directory = str(directory or self.journal)
        line = self.start_refused(73, "-b", directory)
        for name in (directory, *names):
            self.assertIn(name, line)
        return line

    def fill(self, jobs=50, *flags):
        daemon, client = self.serve("-s", "4096", "-z", "160", *flags)
        for i in range(jobs):
            client.put(b"%d " % i * 50)
        self.end(daemon)

    def test_a_directory_without_permission(self):
        self.journal.chmod(0o500)
        # Root has all permissions, so the daemon runs as another user.
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        line = self.start_refused(73, "-b", str(self.journal), *user)
        self.assertIn(str(self.journal), line)
        self.assertIn("permission denied", line)
        self.assertIn("chown", line)
        self.assertNotIn("--salvage", line)

    def test_files_that_belong_to_another_user(self):
        daemon, client = self.serve()
        client.put(b"x")
        self.end(daemon)
        segment = sorted(self.journal.glob("journal.*"))[0]
        user = []
        if os.geteuid() == 0:
            self.directory.chmod(0o755)
            for path in (self.journal, self.journal / "lock"):
                shutil.chown(path, "nobody")
            user = ["-u", "nobody"]
        else:
            segment.chmod(0)
        line = self.start_refused(73, "-b", str(self.journal), *user)
        self.assertIn(f"{segment}: Permission denied; ", line)
        self.assertIn("chown", line)
        self.assertNotIn("--salvage", line)

    def test_files_that_root_makes_belong_to_the_owner_of_the_directory(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        self.directory.chmod(0o755)
        shutil.chown(self.journal, "nobody", "nogroup")
        for _ in range(2):  # at the first start and over a restart
            daemon, client = self.serve("--http-listen", "127.0.0.1:0", "--http-api", "read")
            client.put(b"x")
            self.end(daemon)
        copy = self.directory / "copy"
        self.assertEqual(run("-b", str(self.journal), "--salvage", str(copy))[0], 0)
        owner = self.journal.stat()
        for path in self.journal.iterdir():
            with self.subTest(file=path.name):
                status = path.stat()
                self.assertEqual((status.st_uid, status.st_gid), (owner.st_uid, owner.st_gid))
        self.assertEqual(sorted(path.name for path in self.journal.iterdir())[0], "history")
        # A copy belongs to the user that has asked for it.
        self.assertEqual({path.stat().st_uid for path in (copy, *copy.iterdir())}, {0})
        _, client = self.serve("-u", "nobody")
        self.assertEqual(client.stats()["current-jobs-ready"], 2)

    def test_a_directory_that_tubed_uses(self):
        daemon, client = self.serve()
        client.put(b"x")
        self.refuse("in use", str(daemon.pid))
        # The server that uses the directory is not affected.
        client.put(b"y")
        _, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats()["current-jobs-ready"], 2)

    def test_a_directory_that_beanstalkd_uses(self):
        server = self.start_beanstalkd("-b", str(self.journal))
        client = self.connect(server)
        client.put(b"it serves, so it has the lock")
        before = contents(self.journal)
        self.refuse("in use", str(server.pid))
        self.assertEqual(contents(self.journal), before)

    def test_beanstalkd_is_refused_while_tubed_uses_the_directory(self):
        self.assertIsNotNone(BEANSTALKD, "Debian's beanstalkd is needed")
        self.start_on_it()
        done = subprocess.run([BEANSTALKD, "-l", "127.0.0.1", "-p", "0", "-b", str(self.journal)],
                              capture_output=True, timeout=SECONDS, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"lock", done.stderr)

    def test_another_format_version(self):
        self.fill()
        first = self.segments()[0]
        image = bytearray(first.read_bytes())
        self.assertEqual(struct.unpack_from("<I", image, 60)[0], crc32c(image[:60]))
        struct.pack_into("<I", image, 8, 9)
        struct.pack_into("<I", image, 60, crc32c(image[:60]))
        first.write_bytes(image)
        before = contents(self.journal)
        self.refuse(first.name, "version 9")
        self.assertEqual(contents(self.journal), before)

    def test_a_flipped_byte_in_the_middle(self):
        self.fill(50, "-f", "0")
        segment = self.segments()[1]
        image = bytearray(segment.read_bytes())
        offset = len(image) // 2
        image[offset] ^= 0x10
        segment.write_bytes(image)
        before = contents(self.journal)
        line = self.refuse(segment.name, "--salvage")
        place = int(line.split("at offset ")[1].split(":")[0])
        self.assertLessEqual(place, offset)
        self.assertLess(offset - place, 400)  # the offset of the damaged record
        self.assertEqual(contents(self.journal), before)

        # --check reports the same damage, and --dump prints the records around it. Neither changes
        # a file.
        code, output, errors = run("--check", str(self.journal))
        self.assertEqual(code, 73)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertIn(f"{segment.name} is damaged at offset {place}", errors)
        code, output, errors = run("--dump", str(self.journal))
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(f"{segment.name}:{place} does not read", output)
        self.assertEqual(contents(self.journal), before)


class Repaired(Journaled):
    def last_written(self):
        """Returns the segment and the offset at which the log ends."""
        _, output, _ = run("--check", str(self.journal))
        name, offset = output.split("ends at:")[1].split()[0].split(":")
        return self.journal / name, int(offset)

    def test_a_torn_tail_is_cut_and_logged(self):
        daemon, client = self.serve()
        for i in range(20):
            client.put(b"%d " % i * 50)
        daemon.kill()
        segment, end = self.last_written()
        image = bytearray(segment.read_bytes())
        image[end - 9] ^= 1  # in the last record
        segment.write_bytes(image)
        daemon = self.start_on_it()
        line = daemon.lines_with("journal cut at its end")[0]
        self.assertIn(" warning ", line)
        self.assertIn(f"file={segment.name}", line)
        place = int(line.split("offset=")[1].split()[0])
        self.assertLess(place, end)
        kept = line.split("kept=")[1].split()[0].strip('"')
        self.assertEqual(len(list(self.journal.glob(kept))), 1)
        client = self.connect(daemon)
        self.assertEqual(client.stats()["current-jobs-ready"], 19)
        client.put(b"more")
        _, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats()["current-jobs-ready"], 20)
        self.assertEqual(self.daemons[-1].lines_with("journal cut"), [])

    def test_an_incomplete_segment_of_a_crash_is_removed(self):
        self.end(self.start_on_it())
        half = self.journal / "journal.0000000007.new"
        half.write_bytes(b"half")
        other = self.journal / "README"
        other.write_bytes(b"not ours")
        self.start_on_it()
        self.assertFalse(half.exists())
        self.assertTrue(other.exists())


class Tasks(Journaled):
    def test_check_changes_nothing_while_a_server_writes(self):
        daemon, client = self.serve("-s", "8192", "-z", "1000")
        for _ in range(100):
            client.put(b"x" * 100)
        code, output, _ = run("--check", str(self.journal))
        self.assertEqual(code, 0)
        self.assertIn("next job id: 101", output)
        daemon.kill()
        before = contents(self.journal)
        self.assertEqual(run("--check", str(self.journal))[0], 0)
        self.assertEqual(contents(self.journal), before)
        self.assertEqual(run("--check", str(self.directory / "none"))[0], 73)
        self.assertEqual(run("--dump", str(self.directory / "none"))[0], 73)

    def test_salvage_copies_all_readable_jobs(self):
        daemon, client = self.serve("-s", "4096", "-z", "160", "-f", "0")
        jobs = {client.put(b"%d " % i * 50, priority=i): i for i in range(50)}
        self.end(daemon)
        segment = self.segments()[1]
        image = bytearray(segment.read_bytes())
        image[len(image) // 2] ^= 0x10
        segment.write_bytes(image)
        before = {name: data for name, (data, *_) in contents(self.journal).items()}
        target = self.directory / "salvaged"
        code, output, errors = run("-b", str(self.journal), "--salvage", str(target))
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(segment.name, output)
        after = {name: data for name, (data, *_) in contents(self.journal).items()}
        self.assertEqual(after, before)
        # A target that is not empty is refused.
        code, _, errors = run("-b", str(self.journal), "--salvage", str(target))
        self.assertEqual(code, 73)
        self.assertIn("not empty", errors)
        self.journal = target
        self.assertEqual(run("--check", str(target))[0], 0)
        _, client = self.serve()
        found = [job_id for job_id in jobs if client.ask(f"kick-job {job_id}") == "NOT_FOUND"
                 and client.ask(f"delete {job_id}") == "DELETED"]
        self.assertEqual(len(found), 49)
        self.assertEqual(client.put(), 10_000_051)  # as after a power loss

    def test_salvage_is_refused_while_a_server_uses_the_journal(self):
        daemon, client = self.serve()
        client.put()
        target = self.directory / "salvaged"
        code, _, errors = run("-b", str(self.journal), "--salvage", str(target))
        self.assertEqual(code, 73)
        self.assertIn(str(daemon.pid), errors)
        self.assertFalse(target.exists())


class Reload(Journaled):
    def test_sync_is_changed_while_it_serves(self):
        config = self.write_config('[journal]\nsync = "never"\n')
        daemon, client = self.serve("--config", config)
        for count, mode in enumerate(("always", "20ms", "never", "always"), 1):
            client.put(mode.encode())
            self.write_config(f'[journal]\nsync = "{mode}"\n')
            daemon.signal(signal.SIGHUP)
            self.assertIn("journal.sync", daemon.wait_for_line(" info reloaded", count))
            client.put(mode.encode())
        _, client = self.restart(daemon, how="kill")
        self.assertEqual(client.stats()["current-jobs-ready"], 8)


if __name__ == "__main__":
    unittest.main()
