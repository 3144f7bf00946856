"""--backup of a journal to which 20 clients write, while compaction removes its segments."""

import selectors
import shutil
import threading
import unittest

from harness import SANITIZED, Client, DaemonTest, run, until

BACKUPS = 3 if SANITIZED else 10
CLIENTS = 20
KEPT = 15  # jobs that a client does not delete
FLAGS = ("-s", "16384", "-z", "1000")


class Churn:
    """A connection that puts jobs, deletes its oldest jobs, and records the acknowledgements."""

    def __init__(self, address, number):
        self.client = Client(address)
        self.number, self.serial = number, 0
        self.bodies = {}  # of acknowledged puts, by id
        self.kept = []
        self.deleting = set()  # ids for which a delete was sent
        self.deleted = set()  # ids for which a delete was acknowledged
        self.waiting = []  # commands without a reply yet: a body, or the id of a delete
        self.data = b""

    def send_batch(self):
        wire = []
        for _ in range(5):
            self.serial += 1
            body = (b"client %d job %d " % (self.number, self.serial)).ljust(self.serial % 400)
            wire.append(b"put 0 0 1000 %d\r\n%s\r\n" % (len(body), body))
            self.waiting.append(body)
        while len(self.kept) > KEPT:
            # The first job is never deleted: compaction then has a job to move.
            job_id = self.kept.pop(1)
            self.deleting.add(job_id)
            wire.append(b"delete %d\r\n" % job_id)
            self.waiting.append(job_id)
        self.client.send(b"".join(wire))

    def receive(self):
        self.data += self.client.socket.recv(1 << 16)
        *lines, self.data = self.data.split(b"\r\n")
        for line in lines:
            sent = self.waiting.pop(0)
            word, *rest = line.split()
            if isinstance(sent, bytes):
                assert word == b"INSERTED", line
                self.bodies[int(rest[0])] = sent
                self.kept.append(int(rest[0]))
            else:
                assert word == b"DELETED", line
                self.deleted.add(sent)


class Load(threading.Thread):
    """A thread that runs all clients until stop(). Their members may be read under the lock."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.clients = [Churn(address, number) for number in range(CLIENTS)]
        self.lock = threading.Lock()
        self.stopping = False
        self.fault = None

    def run(self):
        try:
            selector = selectors.DefaultSelector()
            for client in self.clients:
                selector.register(client.client.socket, selectors.EVENT_READ, client)
                client.send_batch()
            while not self.stopping:
                for key, _ in selector.select(0.1):
                    with self.lock:
                        key.data.receive()
                        if not key.data.waiting:
                            key.data.send_batch()
        except (OSError, AssertionError) as error:
            self.fault = error

    def stop(self):
        self.stopping = True
        self.join()
        for client in self.clients:
            client.client.close()

    def collect(self, name):
        """Returns the union of the members `name` of all clients."""
        with self.lock:
            return {item for client in self.clients for item in getattr(client, name)}

    def body_of(self, job_id):
        with self.lock:
            return next(client.bodies[job_id] for client in self.clients
                        if job_id in client.bodies)


class Backup(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()

    def back_up(self, target, **how):
        return run("-b", str(self.journal), "--backup", str(target), **how)

    def check_backup(self, target, present, absent, load):
        daemon = self.start("-b", str(target), *FLAGS)
        daemon.wait_for_line("recovered")
        self.assertEqual(daemon.lines_with("journal cut"), [])
        client = Client(daemon.addresses[0])
        ids = sorted(present | absent)
        sender = threading.Thread(target=client.send,
                                  args=(b"".join(b"peek %d\r\n" % job_id for job_id in ids),))
        sender.start()
        for job_id in ids:
            words = client.line().split()
            body = client.read(int(words[2]) + 2)[:-2] if words[0] == "FOUND" else None
            if job_id in present:
                self.assertEqual(body, load.body_of(job_id), f"job {job_id}")
            else:
                self.assertIsNone(body, f"job {job_id} was deleted")
        sender.join()
        # A backup can be served like any journal, and its server assigns new ids.
        self.assertGreater(client.put(b"new"), max(ids))
        client.close()
        self.end(daemon)

    def test_of_a_journal_under_load(self):
        # Removing a dead segment costs a sync of the directory. With smaller segments a slow disk
        # would accumulate many dead segments.
        daemon = self.start("-b", str(self.journal), "-s", "65536", "-z", "1000")
        load = Load(daemon.addresses[0])
        self.addCleanup(load.stop)
        load.start()
        watcher = self.connect(daemon)
        target = self.directory / "backup"
        oldest = 0
        for _ in range(BACKUPS):
            until("compaction to remove segments",
                  lambda before=oldest: load.fault or
                  watcher.stats()["binlog-oldest-index"] > before + 3)
            self.assertIsNone(load.fault)
            stats = watcher.stats()
            self.assertGreater(stats["binlog-records-migrated"], 0)
            oldest = stats["binlog-oldest-index"]
            absent = load.collect("deleted")
            acknowledged = load.collect("bodies")
            code, output, errors = self.back_up(target)
            self.assertEqual((code, errors), (0, ""))
            self.assertIn("copied", output)
            present = acknowledged - load.collect("deleting")
            self.assertGreater(len(present), 0)
            self.assertGreater(len(absent), 0)
            self.check_backup(target, present, set(sorted(absent)[-3000:]), load)
            shutil.rmtree(target)

    def test_of_a_journal_without_a_server(self):
        daemon = self.start("-b", str(self.journal), *FLAGS)
        client = self.connect(daemon)
        jobs = [client.put(b"%d" % i) for i in range(500)]
        client.ask("pause-tube default 1000")
        self.end(daemon)
        target = self.directory / "backup"
        self.assertEqual(self.back_up(target)[0], 0)
        self.assertEqual(run("--check", str(target))[0], 0)
        daemon = self.start("-b", str(target))
        client = self.connect(daemon)
        self.assertEqual(client.stats()["current-jobs-ready"], len(jobs))
        self.assertGreater(client.stats("stats-tube default")["pause-time-left"], 900)

    def test_of_more_segments_than_the_soft_limit_has_descriptors(self):
        daemon = self.start("-b", str(self.journal), *FLAGS)
        client = self.connect(daemon)
        for i in range(400):
            client.put(b"%d" % i * 300)
        self.end(daemon)
        self.assertGreater(len(list(self.journal.glob("journal.*"))), 20)
        target = self.directory / "backup"
        code, _, errors = self.back_up(target, descriptors=20)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(run("--check", str(target))[0], 0)

    def test_into_a_directory_that_is_not_empty_is_refused(self):
        daemon = self.start("-b", str(self.journal))
        self.connect(daemon).put(b"x")
        target = self.directory / "backup"
        target.mkdir()
        (target / "something").write_bytes(b"")
        code, output, errors = self.back_up(target)
        self.assertEqual((code, output), (73, ""))
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertIn(f"{target}: not empty", errors)
        self.assertEqual([path.name for path in target.iterdir()], ["something"])
        (target / "something").unlink()
        self.assertEqual(self.back_up(target)[0], 0)  # an empty directory is accepted

    def test_of_nothing(self):
        target = self.directory / "backup"
        code, _, errors = self.back_up(target)
        self.assertEqual(code, 73, errors)
        self.assertIn("no segment", errors)
        self.assertIn(str(self.journal), errors)
        self.assertFalse(target.exists())
        code, _, errors = run("-b", str(self.directory / "none"), "--backup", str(target))
        self.assertEqual(code, 73)
        self.assertIn("none", errors)


if __name__ == "__main__":
    unittest.main()
