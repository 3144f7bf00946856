"""What tubed takes over from its parent: standard descriptors that are closed, output that cannot be
written, and signals that are ignored or blocked."""

import itertools
import signal
import socket
import subprocess
import sys
import unittest

from harness import PROGRAM, SECONDS, Client, DaemonTest, until

# Ends as the program does that it becomes, whose words are its arguments.
WITHOUT_SIGNALS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
OUTPUT = 74  # EX_IOERR


def shell(command, *arguments):
    """The exit code of a shell command in which "$0" is tubed, and its standard error."""
    done = subprocess.run(["bash", "-c", command, PROGRAM, *map(str, arguments)], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    return done.returncode, done.stderr.decode()


def connects(path):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


class ClosedDescriptors(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        daemon = self.start("-b", self.journal)
        self.connect(daemon).put(b"kept")
        self.end(daemon)

    def closings(self):
        """Every set of closed standard descriptors, in the words of a shell."""
        for count in range(4):
            for numbers in itertools.combinations(("<&-", ">&-", "2>&-"), count):
                with self.subTest(closed=numbers):
                    yield " ".join(numbers)

    def test_a_server_serves_and_stops(self):
        path = self.directory / "socket"
        for closed in self.closings():
            process = subprocess.Popen(["bash", "-c", f'exec "$0" "$@" {closed}', PROGRAM, "-l",
                                        f"unix:{path}", "-b", str(self.journal)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            until("the server to listen or to end",
                  lambda: connects(path) or process.poll() is not None)
            client = Client(f"unix:{path}")
            jobs = client.stats()["current-jobs-ready"]
            client.close()
            process.send_signal(signal.SIGTERM)
            self.assertEqual((jobs, process.wait(SECONDS)), (1, 0))

    def test_tasks_that_print_nothing_succeed(self):
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            with self.subTest(closed=closed):
                copy = self.directory / "copy"
                self.assertEqual(shell(f'"$0" "$@" {closed}', "-b", self.journal,
                                       "--backup", copy)[0], 0)
                self.assertEqual(shell(f'"$0" "$@" {closed}', "--check", copy)[0], 0)
                for file in copy.iterdir():
                    file.unlink()
                copy.rmdir()
        self.assertEqual(shell('"$0" "$@" <&- >&- 2>&-', "-b", self.journal, "--check-config")[0], 0)

    def test_output_that_is_lost_is_a_failure(self):
        for arguments in (("--help",), ("--print-config",), ("--dump", self.journal),
                          ("--check", self.journal)):
            for target in (">&-", ">/dev/full"):
                with self.subTest(arguments=arguments, target=target):
                    code, errors = shell(f'"$0" "$@" {target}', *arguments)
                    self.assertEqual(code, OUTPUT)
                    self.assertEqual(errors, "tubed: standard output: cannot write all of it\n")
        # The files of the journal have not become the output.
        self.assertEqual(self.connect(self.start("-b", self.journal)).reserve()[1], b"kept")


class InheritedSignals(DaemonTest):
    def test_signals_that_the_parent_blocks_and_ignores_arrive(self):
        config = self.write_config('[log]\nlevel = "info"\n')
        daemon = self.start("--config", config,
                            command=[sys.executable, "-c", WITHOUT_SIGNALS, PROGRAM])
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_line(" info reloaded")
        daemon.signal(signal.SIGUSR1)
        daemon.wait_for_line(" info draining")
        daemon.signal(signal.SIGUSR2)
        daemon.wait_for_line(" info not draining")
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)

    def test_a_broken_pipe_ends_a_task_without_a_word(self):
        journal = self.directory / "journal"
        journal.mkdir()
        daemon = self.start("-b", journal)
        client = self.connect(daemon)
        for _ in range(1000):  # more than a pipe without a reader takes
            client.put(b"x" * 100)
        self.end(daemon)
        process = subprocess.Popen([sys.executable, "-c", WITHOUT_SIGNALS, PROGRAM, "--dump", journal],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        self.assertEqual((process.wait(SECONDS), errors), (-signal.SIGPIPE, b""))


if __name__ == "__main__":
    unittest.main()
