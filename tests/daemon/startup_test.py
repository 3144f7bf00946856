"""Conditions that tubed inherits from its parent: closed standard descriptors, output that cannot
be written, ignored or blocked signals, and too few threads and descriptors.
"""

import itertools
import signal
import subprocess
import sys
import unittest

from harness import PROGRAM, SANITIZED, SECONDS, Client, DaemonTest, Process, connects, preloaded, until

# Blocks and ignores all signals, and becomes the program given by its arguments.
WITHOUT_SIGNALS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
OUTPUT, RESOURCES = 74, 71  # EX_IOERR, EX_OSERR


def shell(command, *arguments):
    """Returns the exit code and the standard error of a shell command in which "$0" is tubed."""
    done = subprocess.run(["bash", "-c", command, PROGRAM, *map(str, arguments)], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    return done.returncode, done.stderr.decode()


def start_by_shell(test, command, path, *flags):
    """Starts a server at the unix socket `path` by this shell command. The server may end."""
    server = Process(["bash", "-c", command, PROGRAM, "-l", f"unix:{path}", *flags])
    test.addCleanup(server.kill)
    until("the server to listen or to end",
          lambda: connects(path) or server.process.poll() is not None)
    return server


class ClosedDescriptors(DaemonTest):
    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()
        daemon = self.start("-b", self.journal)
        self.connect(daemon).put(b"kept")
        self.end(daemon)

    def closings(self):
        """Yields every set of closed standard descriptors, in shell syntax."""
        for count in range(4):
            for numbers in itertools.combinations(("<&-", ">&-", "2>&-"), count):
                with self.subTest(closed=numbers):
                    yield " ".join(numbers)

    def test_a_server_serves_and_stops(self):
        path = self.directory / "socket"
        for closed in self.closings():
            server = start_by_shell(self, f'exec "$0" "$@" {closed}', path, "-b", str(self.journal))
            client = Client(f"unix:{path}")
            jobs = client.stats()["current-jobs-ready"]
            client.close()
            self.assertEqual((jobs, server.end()), (1, 0))

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
        # The files of the journal did not become the output.
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
        for _ in range(1000):  # more than a pipe without a reader holds
            client.put(b"x" * 100)
        self.end(daemon)
        process = subprocess.Popen([sys.executable, "-c", WITHOUT_SIGNALS, PROGRAM, "--dump", journal],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        self.assertEqual((process.wait(SECONDS), errors), (-signal.SIGPIPE, b""))


class FewResources(DaemonTest):
    """A process that gets no threads, or few descriptors, reports that before it serves."""

    def setUp(self):
        super().setUp()
        self.journal = self.directory / "journal"
        self.journal.mkdir()

    def few_threads(self, count):
        return preloaded("few_threads", self.directory) | {"TUBED_THREADS": str(count)}

    def test_a_server_without_threads_ends_before_it_is_ready(self):
        # From the fifth call on, libuv starts its threads, after earlier calls have succeeded.
        for count in (0, 3, 4, 7):
            with self.subTest(threads=count):
                line = self.start_refused(RESOURCES, "-b", str(self.journal),
                                          environment=self.few_threads(count))
                self.assertIn("threads", line)
                self.assertIn("ulimit -u", line)

    def test_a_server_has_its_threads_before_its_first_put(self):
        daemon = self.start("-b", str(self.journal), environment=self.few_threads(8))
        client = self.connect(daemon)
        client.put(b"kept")
        client.close()
        self.end(daemon)

    def test_a_server_without_a_journal_needs_none(self):
        self.connect(self.start(environment=self.few_threads(0))).put(b"x")

    def test_few_descriptors(self):
        self.end(self.start("-b", str(self.journal)))
        for task in (("-l", "127.0.0.1:0", "-b", self.journal), ("--check", self.journal),
                     ("--dump", self.journal)):
            # The undefined behaviour sanitizer itself opens a pipe for each of its checks.
            for most in (8, 12) if SANITIZED else (4, 8, 12):
                with self.subTest(task=task, descriptors=most):
                    code, errors = shell(f'ulimit -n {most}; exec "$0" "$@"', *task)
                    self.assertEqual(code, RESOURCES, errors)
                    self.assertIn(f"at most {most} may be open", errors)
                    self.assertEqual(errors.count("\n"), 1, errors)

    def test_a_log_that_has_reached_the_limit_of_a_file_ends_no_server(self):
        log, path = self.directory / "log", self.directory / "socket"
        log.write_bytes(bytes(4096))
        server = start_by_shell(self, f'ulimit -f 4; exec "$0" "$@" 2>> {log}', path)
        client = Client(f"unix:{path}")
        client.put(b"x")
        client.close()
        self.assertEqual(server.end(), 0)
        self.assertEqual(log.stat().st_size, 4096)

    def test_enough_descriptors_for_a_start_are_enough_to_serve(self):
        """With any limit the server serves, or one line gives the reason."""
        for most in range(8, 56, 4):
            with self.subTest(descriptors=most):
                server = start_by_shell(
                    self, f'ulimit -n {most}; exec "$0" "$@"', self.directory / str(most), "-b",
                    str(self.journal), "--http-listen", "127.0.0.1:0")
                self.assertIn(server.end(), (0, RESOURCES, 69, 73), server.lines)


if __name__ == "__main__":
    unittest.main()
