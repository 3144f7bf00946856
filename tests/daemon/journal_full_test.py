"""The journal has no space left: puts are refused, all other commands succeed, and puts succeed
again when space becomes free.

The tests with journal.max_bytes always run. The tests with a full file system need a mount, so the
program restarts itself in a private mount namespace; if that is not allowed, it skips them.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from harness import SECONDS, DaemonTest, until

PRIVATE = "TUBED_PRIVATE_MOUNTS"
BODY_BYTES = 900


def body_of(number):
    return (b"job %d " % number).ljust(BODY_BYTES, b".")


class Full(DaemonTest):
    flags = ()
    mount_options = None

    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        if self.mount_options:
            self.mount(self.mount_options)
        self.acknowledged = {}  # bodies by id
        self.serial = 0

    def mount(self, options):
        if not os.environ.get(PRIVATE):
            self.skipTest("mounting is not allowed here")
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tubed-test", self.journal],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.journal], check=True)

    def serve(self):
        daemon = self.start("-b", str(self.journal), *self.flags)
        return daemon, self.connect(daemon)

    # --- Load; the reply to each command is checked

    def fill(self, client, most=100_000):
        """Puts jobs until a put is refused; returns the number of accepted puts."""
        puts, batch = 0, 20
        while puts < most:
            bodies = [body_of(self.serial + i) for i in range(batch)]
            self.serial += batch
            client.send(b"".join(b"put 5 0 1000 %d\r\n%s\r\n" % (len(body), body)
                                 for body in bodies))
            replies = [client.line().split() for _ in bodies]
            for body, reply in zip(bodies, replies):
                if reply[0] == "INSERTED":
                    self.acknowledged[int(reply[1])] = body
                    puts += 1
                else:
                    self.assertEqual(reply, ["OUT_OF_MEMORY"])
            if ["OUT_OF_MEMORY"] in replies:
                return puts
        raise AssertionError(f"{puts} puts were accepted, and none refused")

    def move_jobs(self, client, commands):
        """Reserves, touches, releases, buries and kicks jobs, but deletes none."""
        done = 0
        jobs = list(self.acknowledged)
        while done < commands:
            for job_id in jobs[:50]:
                exchanges = ((b"reserve-job %d", f"RESERVED {job_id} {BODY_BYTES}"),
                          (b"touch %d", "TOUCHED"), (b"release %d 7 0", "RELEASED"),
                          (b"reserve-job %d", f"RESERVED {job_id} {BODY_BYTES}"),
                          (b"bury %d 6", "BURIED"), (b"kick-job %d", "KICKED"))
                client.send(b"".join(command % job_id + b"\r\n" for command, _ in exchanges))
                for command, answer in exchanges:
                    self.assertEqual(client.line(), answer)
                    if command.startswith(b"reserve"):
                        self.assertEqual(client.read(BODY_BYTES + 2)[:-2],
                                         self.acknowledged[job_id])
                done += len(exchanges)
            jobs = jobs[50:] + jobs[:50]

    def delete(self, client, count):
        for job_id in list(self.acknowledged)[:count]:
            self.assertEqual(client.ask(f"delete {job_id}"), "DELETED")
            del self.acknowledged[job_id]

    def check_all(self, client):
        """Checks that the server has exactly the acknowledged jobs."""
        for job_id, body in self.acknowledged.items():
            client.send(b"peek %d\r\n" % job_id)
            self.assertEqual(client.body()[1], body)
        stats = client.stats()
        self.assertEqual(sum(stats[f"current-jobs-{state}"] for state in
                             ("ready", "reserved", "delayed", "buried")), len(self.acknowledged))

    def put_until_accepted(self, client):
        def put():
            body = body_of(self.serial)
            client.send(b"put 5 0 1000 %d\r\n%s\r\n" % (len(body), body))
            self.serial += 1
            reply = client.line().split()
            if reply == ["OUT_OF_MEMORY"]:
                return False
            self.acknowledged[int(reply[1])] = body
            return True
        until("a put to be accepted", put)


class FullTests(Full):
    """The tests of every kind of full journal. The subclasses define what is full."""

    def setUp(self):
        if type(self) is FullTests:
            self.skipTest("its subclasses run")
        super().setUp()

    def test_all_commands_but_puts_succeed_and_deletes_free_space(self):
        daemon, client = self.serve()
        self.assertGreater(self.fill(client), 50)
        self.assertIn(" warning ", daemon.wait_for_line("no room for the journal"))
        self.move_jobs(client, 6_000)
        self.assertLess(self.fill(client), 50)  # the moves have used little space
        for _ in range(3):
            self.delete(client, len(self.acknowledged) // 2)
            self.put_until_accepted(client)
            self.assertGreater(self.fill(client), 20)
            self.move_jobs(client, 600)
        daemon.wait_for_line("room for the journal again")
        self.check_all(client)

    def test_a_kill_while_it_is_full(self):
        daemon, client = self.serve()
        self.fill(client)
        for _ in range(3):
            self.move_jobs(client, 900)
            daemon.kill()
            daemon, client = self.serve()
            self.check_all(client)
            self.delete(client, 3)
            self.fill(client)
        self.delete(client, len(self.acknowledged) - 1)
        self.put_until_accepted(client)
        self.assertGreater(self.fill(client), 50)
        self.end(daemon)
        _, client = self.serve()
        self.check_all(client)

    def test_a_stop_while_it_is_full_is_orderly(self):
        daemon, client = self.serve()
        self.fill(client)
        self.end(daemon)
        daemon, client = self.serve()
        self.assertIn('after="a stop"', daemon.wait_for_line("recovered"))
        self.check_all(client)

    def test_all_jobs_can_be_deleted(self):
        _, client = self.serve()
        for _ in range(3):
            self.fill(client)
            self.delete(client, len(self.acknowledged))
            self.put_until_accepted(client)


class OwnBound(FullTests):
    flags = ("--journal-max-bytes", "1048576", "-s", "65536", "-z", "1000")

    def test_the_files_stay_within_the_bound(self):
        _, client = self.serve()
        self.fill(client)
        self.move_jobs(client, 1_200)
        self.assertLessEqual(client.stats()["journal-bytes"], 1 << 20)
        size = sum(path.stat().st_size for path in self.journal.glob("journal.*"))
        self.assertLessEqual(size, 1 << 20)

    def test_a_reload_with_a_larger_bound_adds_space(self):
        config = self.write_config('[journal]\nmax_bytes = 524288\n')
        daemon = self.start("-b", str(self.journal), "-s", "65536", "-z", "1000", "--config", config)
        client = self.connect(daemon)
        before = self.fill(client)
        self.write_config('[journal]\nmax_bytes = 1048576\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_line(" info reloaded")
        self.put_until_accepted(client)
        self.assertGreater(self.fill(client), before // 2)


class OwnBoundSynced(FullTests):
    flags = ("--journal-max-bytes", "1048576", "-s", "65536", "-z", "1000", "-f", "0")


class SmallFileSystem(FullTests):
    mount_options = "size=3m"
    flags = ("-s", "65536", "-z", "1000")


class SmallFileSystemSynced(FullTests):
    mount_options = "size=3m"
    flags = ("-s", "65536", "-z", "1000", "-f", "0")


class FewNames(FullTests):
    """A file system with free bytes but without free inodes."""
    mount_options = "size=64m,nr_inodes=8"
    flags = ("-s", "65536", "-z", "1000")


EATER = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    try:
        os.write(file, bytes(4096))
    except OSError:
        if len(sys.argv) > 2:
            sys.argv.pop()
            print("full", flush=True)
        time.sleep(0.001)
"""


class KeptFull(Full):
    """Another process uses all space that becomes free. TUBED_FULL_SECONDS is the duration."""
    mount_options = "size=4m"
    flags = ("-s", "65536", "-z", "1000")
    SECONDS = float(os.environ.get("TUBED_FULL_SECONDS", "3"))

    def start_eater(self):
        eater = subprocess.Popen([sys.executable, "-c", EATER, self.journal / "another", "report"],
                                 stdout=subprocess.PIPE)
        self.addCleanup(eater.stdout.close)
        self.addCleanup(eater.wait)
        self.addCleanup(eater.kill)
        eater.stdout.readline()

    def start_reader(self, daemon):
        """Starts a thread that sends commands without facts, and measures the longest time for a
        reply."""
        client = self.connect(daemon)
        some = list(self.acknowledged)[0]
        for command in ("watch empty", "ignore default"):
            self.assertTrue(client.ask(command).startswith("WATCHING"))
        self.assertEqual(client.ask(f"reserve-job {some}"), f"RESERVED {some} {BODY_BYTES}")
        client.read(BODY_BYTES + 2)

        def read():
            while not self.done.is_set():
                for command in (f"peek {some}", "peek-ready", "stats", f"stats-job {some}",
                                f"touch {some}", "reserve-with-timeout 0", "list-tubes-watched"):
                    began = time.monotonic()
                    client.send(command.encode() + b"\r\n")
                    words = client.line().split()
                    if words[0] in ("FOUND", "OK"):
                        client.read(int(words[-1]) + 2)
                    self.longest = max(self.longest, time.monotonic() - began)
                    self.reads += 1
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def test_all_commands_but_puts_succeed(self):
        daemon, client = self.serve()
        for _ in range(800):
            self.acknowledged[client.put(body_of(self.serial))] = body_of(self.serial)
            self.serial += 1
        self.start_eater()
        self.fill(client)
        daemon.wait_for_line("no room for the journal")
        self.done, self.longest, self.reads = threading.Event(), 0.0, 0
        reader = self.start_reader(daemon)
        ends = time.monotonic() + self.SECONDS
        commands = 0
        moving = {job_id: self.acknowledged[job_id] for job_id in list(self.acknowledged)[-100:]}
        everything, self.acknowledged = self.acknowledged, moving
        while time.monotonic() < ends or self.reads <= 10:
            before = self.reads
            self.move_jobs(client, 600)
            commands += 600
            until("a read to be answered", lambda: self.reads > before or self.done.is_set())
        self.acknowledged = everything
        self.done.set()
        reader.join(SECONDS)
        self.assertFalse(reader.is_alive(), "a command is not answered")
        print(f"{commands} commands and {self.reads} reads, the longest read "
              f"{self.longest * 1000:.0f} ms", file=sys.stderr)
        daemon.kill()
        daemon, client = self.serve()
        self.check_all(client)
        self.delete(client, len(self.acknowledged))
        self.put_until_accepted(client)
        self.assertEqual([line for line in daemon.lines if " error " in line], [])


class KeptFullSynced(KeptFull):
    flags = ("-s", "65536", "-z", "1000", "-f", "0")


class FileSystem(Full):
    mount_options = "size=8m"
    flags = ("-s", "65536", "-z", "1000")

    def occupy(self):
        """Fills the file system with another file; returns its path."""
        other = self.journal / "another"
        with open(other, "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass
            while True:
                try:
                    os.write(file.fileno(), bytes(1 << 9))
                except OSError:
                    break
        return other

    def test_another_file_fills_it(self):
        daemon, client = self.serve()
        for _ in range(50):
            self.acknowledged[client.put(body_of(self.serial))] = body_of(self.serial)
        other = self.occupy()
        self.fill(client)
        daemon.wait_for_line("no room for the journal")
        self.move_jobs(client, 3_000)
        self.delete(client, 10)
        other.unlink()
        self.put_until_accepted(client)  # the server finds the free space by itself
        daemon.wait_for_line("room for the journal again")
        for _ in range(1000):
            self.put_until_accepted(client)
        daemon.kill()
        _, client = self.serve()
        self.check_all(client)

    def test_it_is_full_at_the_start(self):
        other = self.occupy()
        daemon, client = self.serve()
        daemon.wait_for_line("no room for the journal")
        self.fill(client)
        self.assertEqual(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
        other.unlink()
        self.put_until_accepted(client)
        self.assertEqual(client.reserve()[1], list(self.acknowledged.values())[0])

    def test_it_is_read_only(self):
        daemon, client = self.serve()
        client.put(b"x")
        self.end(daemon)
        subprocess.run(["mount", "-o", "remount,ro", self.journal], check=True)
        line = self.start_refused(73, "-b", str(self.journal))
        self.assertIn(str(self.journal), line)
        self.assertIn("Read-only", line)


def go_private():
    """Restarts this program in a private mount namespace, if that is allowed."""
    for unshare in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        probe = [*unshare, "mount", "-t", "tmpfs", "tubed-test", "/mnt"]
        if not shutil.which("unshare") or subprocess.run(probe, capture_output=True,
                                                         check=False).returncode != 0:
            continue
        os.environ[PRIVATE] = "1"
        os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


if __name__ == "__main__":
    if not os.environ.get(PRIVATE):
        go_private()
    unittest.main()
