"""The disk fails, hangs, or writes fewer bytes than requested.

The daemon runs with the library faulty_disk.cc preloaded, and the tests switch faults on and off.
After a failed write or sync the process ends with code 74, no reply to an affected command is sent,
and a restart has all acknowledged jobs. A full disk in calls that the server can do without is not
a failure: puts are refused until the disk has space again. While a sync hangs, all replies that
depend on it are held back.
"""

import os
import select
import signal
import socket
import unittest

from harness import SECONDS, DaemonTest, preloaded, until

SYNC_MODES = (("-f", "0"), ("-f", "20"), ("-F",))


class FaultyDisk(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        self.fault = self.directory / "fault"
        self.environment = preloaded("faulty_disk", self.directory) | {
            "TUBED_FAULT": str(self.fault)}

    def start_on_it(self, *flags):
        return self.start("-b", str(self.journal), *flags, environment=self.environment)

    def set_fault(self, text):
        """Sets the fault by a rename: the library never reads a part of the text."""
        new = self.fault.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.rename(self.fault)

    def connect(self, daemon, index=0, **options):
        client = super().connect(daemon, index, **options)
        # The kernel sends small commands immediately, even if earlier commands are unanswered.
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def wait_for_preallocation(self, client):
        """Waits until the journal has preallocated segments; it is then idle until a change."""
        def grown():
            stats = client.stats()
            return stats["journal-bytes"] >= stats["binlog-max-size"] // 2
        until("the segments to be preallocated", grown)

    def expect_failure(self, daemon):
        """Waits until the daemon exits with code 74, and checks that it has logged one error."""
        daemon.expected_code = 74
        self.assertEqual(daemon.wait(), 74, daemon.lines)
        errors = [line for line in daemon.lines if " error " in line]
        self.assertEqual(len(errors), 1, daemon.lines)
        self.assertIn("journal failed", errors[0])
        self.assertIn(str(self.journal), errors[0])
        return errors[0]

    def jobs_of_a_restart(self, *flags):
        """Starts a daemon without faults and returns its jobs: bodies by id."""
        self.fault.unlink(missing_ok=True)
        client = self.connect(self.start_on_it(*flags))
        last = client.put(b"the last")
        jobs = {}
        for job_id in range(1, last):
            client.send(b"peek %d\r\n" % job_id)
            reply = client.line().split()
            if reply[0] == "FOUND":
                jobs[job_id] = client.read(int(reply[2]) + 2)[:-2]
        return jobs


class Failing(FaultyDisk):
    def fail_under_load(self, fault, flags):
        """Sets the fault after some puts are acknowledged, and sends more puts. Checks that a
        restart has all acknowledged jobs; returns them."""
        daemon = self.start_on_it("-s", "16384", "-z", "1000", *flags)
        clients = [self.connect(daemon) for _ in range(10)]
        watcher = self.connect(daemon)
        acknowledged = {}
        for number, client in enumerate(clients):
            body = b"%d " % number * 300
            acknowledged[client.put(body)] = body
        self.set_fault(fault)
        puts = 60
        for number, client in enumerate(clients):
            client.send(b"".join(b"put 0 0 60 904\r\n%s\r\n" % (b"%d-%d" % (number, i)).ljust(904)
                                 for i in range(puts)))
        self.expect_failure(daemon)
        for number, client in enumerate(clients):
            replies = client.rest().split(b"\r\n")
            self.assertEqual(replies.pop(), b"")
            self.assertLess(len(replies), puts)
            for i, reply in enumerate(replies):
                word, job_id = reply.split()
                self.assertEqual(word, b"INSERTED")
                acknowledged[int(job_id)] = (b"%d-%d" % (number, i)).ljust(904)
        self.assertEqual(watcher.rest(), b"")
        jobs = self.jobs_of_a_restart("-s", "16384", "-z", "1000")
        self.assertEqual({job_id: jobs.get(job_id) for job_id in acknowledged}, acknowledged)
        return acknowledged

    def test_write_fails(self):
        for flags in SYNC_MODES:
            with self.subTest(flags=flags):
                for old in self.journal.iterdir():
                    old.unlink()
                self.assertEqual(len(self.fail_under_load("write 5", flags)), 10)

    def test_sync_fails(self):
        self.assertEqual(len(self.fail_under_load("sync 5", ("-f", "0"))), 10)

    def test_sync_fails_while_replies_do_not_wait_for_it(self):
        self.assertGreaterEqual(len(self.fail_under_load("sync 5", ("-f", "20"))), 10)

    def test_growth_fails(self):
        self.assertGreaterEqual(len(self.fail_under_load("allocate 5", ("-f", "0"))), 10)

    def test_a_full_disk_in_a_sync_is_a_failure_too(self):
        """The server can do without a new file if the disk is full. But a sync covers writes that
        are done and cannot be repeated, so the server must not ignore its failure."""
        daemon = self.start_on_it("-f", "20")
        client = self.connect(daemon)
        kept = client.put(b"kept")
        self.wait_for_preallocation(client)
        self.set_fault("sync 28")
        client.send(b"put 0 0 60 1\r\nx\r\n")
        self.expect_failure(daemon)
        self.assertIn(client.rest(), (b"", b"INSERTED 2\r\n"))
        self.assertEqual(self.jobs_of_a_restart()[kept], b"kept")

    def test_a_single_job_is_synced_in_time_or_the_failure_is_noticed(self):
        daemon = self.start_on_it("-f", "20")
        client = self.connect(daemon)
        client.put(b"warm")
        self.wait_for_preallocation(client)
        self.set_fault("sync 5")
        try:
            client.put(b"x")
        except (AssertionError, OSError):
            pass  # the sync of the first job was late and failed
        self.expect_failure(daemon)

    def test_at_the_start(self):
        daemon = self.start_on_it()
        self.connect(daemon).put(b"x")  # gives recovery a job to read
        self.end(daemon)
        self.set_fault("sync 5")
        line = self.start_refused(73, "-b", str(self.journal), environment=self.environment)
        self.assertIn(str(self.journal), line)

    def test_a_delete_that_was_not_acknowledged_may_be_undone(self):
        daemon = self.start_on_it("-f", "0")
        client, other = self.connect(daemon), self.connect(daemon)
        job = client.put(b"x")
        self.set_fault("write 5")
        client.send(b"delete %d\r\n" % job)
        other.send(b"stats\r\n")
        self.expect_failure(daemon)
        self.assertEqual(client.rest(), b"")
        self.assertEqual(self.jobs_of_a_restart(), {job: b"x"})


class NoSpace(FaultyDisk):
    """Copy-on-write file systems and quotas refuse calls. The process continues to serve."""

    ENOSPC, EDQUOT = 28, 122
    FLAGS = ("-s", "16384", "-z", "1000")

    def churn(self, client, times=1):
        for _ in range(times):
            reply = self.put_or_refusal(client)
            if reply is not None:
                self.assertEqual(client.ask(f"delete {reply}"), "DELETED")

    def put_or_refusal(self, client):
        client.send(b"put 0 0 60 900\r\n%s\r\n" % bytes(900))
        word, *rest = client.line().split()
        if word == "OUT_OF_MEMORY":
            return None
        self.assertEqual(word, "INSERTED")
        return int(rest[0])

    def check_service_continues(self, daemon, client, kept):
        """While the disk refuses, all commands except put succeed; afterwards put succeeds as
        well."""
        self.assertEqual(client.ask(f"peek {kept}"), f"FOUND {kept} 4")
        self.assertEqual(client.read(6), b"kept\r\n")
        self.assertEqual(client.ask("kick 1"), "KICKED 0")
        self.fault.unlink()
        until("a put to be accepted", lambda: self.put_or_refusal(client))
        self.churn(client, 60)
        self.assertEqual([line for line in daemon.lines if " error " in line], [])
        daemon.kill()
        self.assertEqual(self.jobs_of_a_restart(*self.FLAGS)[kept], b"kept")
        self.end(self.daemons[-1])
        for old in self.journal.iterdir():
            old.unlink()

    def refused(self, fault, *flags):
        for error in (self.ENOSPC, self.EDQUOT):
            with self.subTest(fault=fault, error=error):
                daemon = self.start_on_it(*self.FLAGS, *flags)
                client = self.connect(daemon)
                kept = client.put(b"kept")
                self.churn(client, 40)
                self.set_fault(f"{fault} {error}")
                until("puts to be refused", lambda c=client: self.put_or_refusal(c) is None)
                line = daemon.wait_for_line("no room for the journal")
                self.assertIn(os.strerror(error), line)
                self.check_service_continues(daemon, client, kept)

    def test_a_removal(self):
        self.refused("unlink")

    def test_the_sync_of_the_directory_after_a_removal(self):
        self.refused("sync-directory")

    def test_the_name_of_a_new_segment(self):
        self.refused("rename")

    def test_a_segment_that_cannot_be_cut_keeps_its_length(self):
        for error in (self.ENOSPC, self.EDQUOT):
            with self.subTest(error=error):
                daemon = self.start_on_it(*self.FLAGS)
                client = self.connect(daemon)
                kept = client.put(b"kept")
                self.set_fault(f"truncate {error}")
                before = client.stats()["binlog-oldest-index"]

                def compacted(client=client, before=before):
                    self.churn(client, 10)
                    return client.stats()["binlog-oldest-index"] > before + 2
                until("segments to be removed", compacted)
                self.check_service_continues(daemon, client, kept)

    def test_the_sync_of_a_synced_write(self):
        for error in (self.ENOSPC, self.EDQUOT):
            with self.subTest(error=error):
                daemon = self.start_on_it("-f", "0", *self.FLAGS)
                client, other = self.connect(daemon), self.connect(daemon)
                kept = client.put(b"kept")
                self.wait_for_preallocation(client)
                self.set_fault(f"synced-write {error}")
                client.send(b"put 0 0 60 3\r\nnew\r\n")
                daemon.wait_for_line("no room for the journal")
                # The first put is not acknowledged, and the second is refused.
                other.send(b"put 0 0 60 5\r\nother\r\n")
                daemon.wait_for_two_ticks()
                self.assertEqual(select.select([client.socket], [], [], 0)[0], [])
                self.fault.unlink()
                self.assertEqual(client.line(), f"INSERTED {kept + 1}")
                self.assertEqual(other.line(), "OUT_OF_MEMORY")
                self.set_fault("none")
                self.check_service_continues(daemon, client, kept)


class Hanging(FaultyDisk):
    def test_replies_do_not_wait_if_a_write_is_enough(self):
        for flags in (("-f", "1"), ("-F",)):
            with self.subTest(flags=flags):
                daemon = self.start_on_it(*flags)
                client = self.connect(daemon)
                client.put(b"x")
                self.set_fault("sync hang")
                for _ in range(200):
                    client.put(b"y" * 100)
                self.assertEqual(client.stats("stats-tube default")["current-jobs-ready"], 201)
                daemon.kill()
                self.fault.unlink()
                for old in self.journal.iterdir():
                    old.unlink()

    def test_input_that_waits_for_the_disk_is_bounded(self):
        daemon = self.start_on_it("-f", "0")
        client = self.connect(daemon)
        client.put(b"x")
        self.set_fault("sync hang")
        body = b"z" * 60_000
        batch = b"put 0 0 60 60000\r\n%s\r\n" % body * 40
        client.socket.setblocking(False)
        sent = 0

        def is_held_back():
            nonlocal sent
            try:
                sent += client.socket.send(batch[sent % len(batch):])
            except BlockingIOError:
                daemon.wait_for_two_ticks()
                return not select.select([], [client.socket], [], 0)[1]
            return False
        until("the server to stop reading", is_held_back)
        self.assertLess(sent, 100 << 20)
        self.fault.unlink()
        client.socket.setblocking(True)
        client.socket.settimeout(SECONDS)
        client.send(batch[sent % len(batch):] if sent % len(batch) else b"")
        puts = -(-sent // len(batch)) * 40
        for number in range(puts):
            self.assertEqual(client.line(), f"INSERTED {number + 2}")

    def test_a_stop_waits_for_the_disk_until_its_timeout(self):
        daemon = self.start_on_it("-f", "0", "--timeouts-shutdown", "100ms")
        client = self.connect(daemon)
        client.put(b"x")
        self.wait_for_preallocation(client)
        self.set_fault("sync hang")
        client.send(b"put 0 0 60 1\r\ny\r\n")
        daemon.wait_for_two_ticks()
        daemon.signal(signal.SIGTERM)
        daemon.expected_code = 74
        self.assertEqual(daemon.wait(), 74, daemon.lines)
        self.assertEqual(client.rest(), b"")
        self.assertEqual(self.jobs_of_a_restart()[1], b"x")

class ShortWrites(FaultyDisk):
    def test_are_completed(self):
        self.set_fault("write short")
        daemon = self.start_on_it("-f", "0", "-s", "16384", "-z", "20000")
        client = self.connect(daemon)
        bodies = {client.put(os.urandom(size).hex().encode()): size
                  for size in (0, 1, 10, 36, 37, 38, 500, 3000, 9000)}
        daemon.kill()
        jobs = self.jobs_of_a_restart("-s", "16384", "-z", "20000")
        self.assertEqual({job_id: len(body) // 2 for job_id, body in jobs.items()}, bodies)


if __name__ == "__main__":
    unittest.main()
