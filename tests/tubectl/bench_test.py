"""`tubectl bench` against tubed, and against a server that does nothing: each workload runs
briefly, and its report is compared with the server's counters.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    DO_NOTHING_PROGRAM=build/dev/bench/bench_do_nothing python3 tests/tubectl/bench_test.py
"""

import array
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

from programs import SECONDS, TUBECTL, Client, DaemonTest, until

DO_NOTHING = os.environ.get("DO_NOTHING_PROGRAM")
IN_FLIGHT = (1, 16, 30)
CYCLE_BATCH = 3  # commands per job
KEYS = ["workload", "clients", "in-flight", "body", "all", "measured", "seconds", "per-second",
        "latency-us"]


def command(server, *arguments):
    return [TUBECTL, "bench", *map(str, arguments), "--server", server]


def run(server, *arguments, environment=None):
    """Returns (exit code, stdout, stderr)."""
    done = subprocess.run(command(server, *arguments), stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=SECONDS,
                          env=os.environ | (environment or {}))
    return done.returncode, done.stdout, done.stderr


class BenchTest(DaemonTest):
    def bench(self, server, *arguments):
        """Returns the figures of a successful run."""
        code, output, errors = run(server, *arguments, "--json")
        self.assertEqual((code, errors), (0, ""), output)
        figures = json.loads(output)
        self.assertEqual(list(figures), KEYS)
        self.assertLessEqual(figures["measured"], figures["all"])
        latencies = figures["latency-us"]
        if figures["measured"] > 0:
            ordered = [latencies[key] for key in ("p50", "p99", "p999", "max")]
            self.assertEqual(ordered, sorted(ordered))
            self.assertGreater(latencies["mean"], 0)
        else:
            self.assertEqual(set(latencies.values()), {None})
        return figures

    def stats(self, daemon):
        return self.connect(daemon).stats()

    def assert_no_job_is_left(self, stats, total):
        left = {key: value for key, value in stats.items() if key.startswith("current-jobs-")}
        self.assertEqual(set(left.values()), {0}, left)
        self.assertEqual((stats["total-jobs"], stats["cmd-delete"]), (total, total))

    def do_nothing(self):
        """Starts the server that does nothing; returns its address."""
        return self.start("--port", "0", listen=None, command=[DO_NOTHING]).addresses[0]


class OnTubed(BenchTest):
    def test_put_leaves_what_it_says(self):
        for in_flight in IN_FLIGHT:
            for tubes in (1, 3):
                with self.subTest(in_flight=in_flight, tubes=tubes):
                    daemon = self.start()
                    figures = self.bench(daemon.addresses[0], "put", "--in-flight", in_flight,
                                         "--tubes", tubes, "--clients", 6, "--seconds", 0.1)
                    stats = self.stats(daemon)
                    self.assertEqual(stats["current-jobs-ready"], figures["all"])
                    self.assertGreaterEqual(figures["seconds"], 0.1)
                    self.assertGreater(figures["measured"], 0)

    def test_put_asks_for_what_it_was_told(self):
        daemon = self.start()
        self.bench(daemon.addresses[0], "put", "--tubes", 2, "--clients", 4, "--jobs", 100,
                   "--body", 1234, "--priority", 17, "--delay", 1000, "--ttr", 99)
        client = self.connect(daemon)
        self.assertEqual(client.stats()["current-jobs-delayed"], 100)
        self.assertEqual(set(client.stats(f"stats-tube bench-{tube}")["total-jobs"] > 0
                             for tube in range(2)), {True})
        job = client.stats("stats-job 1")
        self.assertEqual((job["pri"], job["delay"], job["ttr"]), (17, 1000, 99))
        client.send(b"peek 1\r\n")
        self.assertEqual(client.body()[1], b"x" * 1234)

    def test_reserve_takes_all_that_it_put(self):
        for in_flight in IN_FLIGHT:
            for tubes in (1, 3):
                with self.subTest(in_flight=in_flight, tubes=tubes):
                    daemon = self.start()
                    figures = self.bench(daemon.addresses[0], "reserve", "--jobs", 1000,
                                         "--in-flight", in_flight, "--tubes", tubes)
                    self.assertEqual((figures["all"], figures["measured"]), (2000, 2000))
                    self.assert_no_job_is_left(self.stats(daemon), 1000)

    def test_reserve_takes_what_was_there(self):
        for tubes in (1, 4):
            with self.subTest(tubes=tubes):
                daemon = self.start()
                there = ["--jobs", 1000, "--tubes", tubes, "--in-flight", 16]
                self.bench(daemon.addresses[0], "put", *there)
                figures = self.bench(daemon.addresses[0], "reserve", "--no-fill", *there)
                self.assertEqual(figures["all"], 2000)
                self.assert_no_job_is_left(self.stats(daemon), 1000)

    def test_reserve_does_not_wait_for_jobs_that_are_not_there(self):
        daemon = self.start()
        self.bench(daemon.addresses[0], "put", "--jobs", 10)
        self.assertEqual(run(daemon.addresses[0], "reserve", "--no-fill", "--jobs", 11),
                         (1, "", "tubectl: only 10 of 11 jobs are ready\n"))

    def test_cycle_leaves_nothing(self):
        for in_flight in IN_FLIGHT:
            for tubes in (1, 3):
                with self.subTest(in_flight=in_flight, tubes=tubes):
                    daemon = self.start()
                    figures = self.bench(daemon.addresses[0], "cycle", "--in-flight", in_flight,
                                         "--tubes", tubes, "--clients", 6, "--seconds", 0.1)
                    self.assertEqual(figures["all"] % CYCLE_BATCH, 0)
                    self.assert_no_job_is_left(self.stats(daemon), figures["all"] // CYCLE_BATCH)

    def test_cycle_of_so_many_jobs(self):
        daemon = self.start()
        figures = self.bench(daemon.addresses[0], "cycle", "--in-flight", 30, "--jobs", 1234)
        self.assertEqual((figures["all"], figures["measured"]), (3702, 3702))
        self.assert_no_job_is_left(self.stats(daemon), 1234)

    def test_pipe_leaves_nothing(self):
        for in_flight in IN_FLIGHT:
            for tubes in (1, 3):
                with self.subTest(in_flight=in_flight, tubes=tubes):
                    daemon = self.start()
                    figures = self.bench(daemon.addresses[0], "pipe", "--in-flight", in_flight,
                                         "--tubes", tubes, "--clients", 6, "--seconds", 0.1)
                    self.assertGreater(figures["measured"], 0)
                    self.assert_no_job_is_left(self.stats(daemon), figures["all"])

    def test_pipe_with_a_rate_and_many_consumers(self):
        daemon = self.start()
        figures = self.bench(daemon.addresses[0], "pipe", "--producers", 3, "--consumers", 200,
                             "--rate", 1000, "--jobs", 600)
        self.assertEqual((figures["clients"], figures["all"]), (203, 600))
        # The last job is due 599 ms after the first; a busy machine makes that later.
        self.assertGreater(figures["seconds"], 0.5)
        self.assert_no_job_is_left(self.stats(daemon), 600)

    def test_pipe_does_not_take_jobs_of_others(self):
        daemon = self.start()
        self.connect(daemon).put(b"x" * 100, priority=7)
        code, output, errors = run(daemon.addresses[0], "pipe", "--seconds", 0.1,
                                   "--priority", 10, "--producers", 1, "--consumers", 1)
        self.assertEqual((code, output), (1, ""))
        self.assertIn("that this run has not put", errors)
        until("its jobs to come back",
              lambda: self.stats(daemon)["current-jobs-reserved"] == 0)

    def test_large_bodies(self):
        daemon = self.start("--limits-job-bytes", "8MiB")
        for work in ("put", "cycle", "pipe"):
            with self.subTest(work=work):
                address = daemon.addresses[0]
                figures = self.bench(address, work, "--body", 5_000_000, "--in-flight", 3,
                                     "--clients", 2, "--jobs", 8, "--tubes", 2 if work == "put" else 1)
                self.assertEqual(figures["all"], 24 if work == "cycle" else 8)

    def test_a_warm_up_is_not_measured(self):
        daemon = self.start()
        figures = self.bench(daemon.addresses[0], "put", "--seconds", 0.1, "--warm-up", 0.1)
        self.assertGreater(figures["all"], figures["measured"])
        self.assertEqual(self.stats(daemon)["total-jobs"], figures["all"])

    def test_each_latency_is_kept_if_asked_for(self):
        daemon = self.start()
        path = self.directory / "latencies"
        figures = self.bench(daemon.addresses[0], "put", "--jobs", 500, "--latencies", path)
        nanoseconds = array.array("I")
        nanoseconds.frombytes(path.read_bytes())
        if sys.byteorder == "big":
            nanoseconds.byteswap()
        self.assertEqual(len(nanoseconds), 500)
        self.assertAlmostEqual(max(nanoseconds) / 1000, figures["latency-us"]["max"], places=2)

    def test_a_unix_socket_from_the_environment(self):
        path = f"{self.directory}/socket"
        daemon = self.start(listen=f"unix:{path}")
        for name in (path, f"unix:{path}"):
            done = subprocess.run([TUBECTL, "bench", "put", "--jobs", "10", "--clients", "2"],
                                  check=False, capture_output=True, text=True, timeout=SECONDS,
                                  env=os.environ | {"TUBED_SERVER": name})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            head, line = done.stdout.splitlines()
            self.assertEqual(len(head.split()), len(line.split()) + 1, head)  # "mean us"
        self.assertEqual(self.stats(daemon)["total-jobs"], 20)

    def test_a_signal_ends_it_early_and_it_tells_what_it_measured(self):
        for work, number in (("put", signal.SIGINT), ("cycle", signal.SIGTERM),
                             ("pipe", signal.SIGTERM)):
            with self.subTest(work=work):
                daemon = self.start()
                watcher = self.connect(daemon)
                process = subprocess.Popen(
                    command(daemon.addresses[0], work, "--seconds", 1000, "--clients", 4, "--json"),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True)
                with process:
                    try:
                        until("jobs", lambda: watcher.stats()["total-jobs"] > 100)
                        process.send_signal(number)
                        output, errors = process.communicate(timeout=SECONDS)
                    finally:
                        process.kill()
                self.assertEqual((process.returncode, errors), (0, ""))
                figures = json.loads(output)
                total = figures["all"] // (CYCLE_BATCH if work == "cycle" else 1)
                stats = watcher.stats()
                self.assertEqual(stats["total-jobs"], total)
                self.assertEqual(stats["current-jobs-ready"], total if work == "put" else 0)

    def test_a_refusal_ends_the_run(self):
        daemon = self.start("--limits-job-bytes", "99")
        self.assertEqual(run(daemon.addresses[0], "put"),
                         (1, "", 'tubectl: a put was answered "JOB_TOO_BIG"\n'))

    def test_a_server_that_hangs_up(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            process = subprocess.Popen(command(f"127.0.0.1:{port}", "put", "--clients", 1),
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            with process:
                listener.settimeout(SECONDS)
                connection, _ = listener.accept()
                connection.settimeout(SECONDS)
                with connection:
                    connection.recv(1)
                    connection.shutdown(socket.SHUT_WR)
                    _, errors = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, errors),
                         (1, "tubectl: the server closed a connection without an answer; "
                         "if it speaks TLS, use --tls\n"))


class CommandLine(unittest.TestCase):
    def test_mistakes_are_told_in_one_line(self):
        for arguments in ([], ["bench"], ["nonsense"], ["bench", "nonsense"],
                          ["bench", "put", "--nonsense"], ["bench", "put", "--clients", "0"],
                          ["bench", "put", "--clients", "-1"], ["bench", "put", "--ttr", "-1"],
                          ["bench", "put", "--jobs", "many"], ["bench", "put", "--delay", "1e9x"],
                          ["bench", "put", "--no-fill"], ["bench", "cycle", "--rate", "5"],
                          ["bench", "reserve", "--consumers", "5"],
                          ["bench", "cycle", "--in-flight", "2"],
                          ["bench", "put", "--warm-up", "1", "--jobs", "5"],
                          ["bench", "pipe", "--body", "15"],
                          ["bench", "pipe", "--tubes", "3", "--producers", "3", "--consumers", "2"],
                          ["bench", "put", "--server", "exam ple.org:11300"]):
            with self.subTest(arguments=arguments):
                done = subprocess.run([TUBECTL, *arguments], check=False, capture_output=True,
                                      text=True, timeout=SECONDS)
                self.assertEqual((done.returncode, done.stdout), (64, ""))
                self.assertRegex(done.stderr, r"^tubectl: [^\n]+; try tubectl( bench)? --help\n$")

    def test_no_server(self):
        with socket.socket() as unheard:  # bound, but not listening
            unheard.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{unheard.getsockname()[1]}"
            self.assertEqual(run(address, "put"), (1, "", f"tubectl: cannot connect to {address}: "
                                                          "Connection refused\n"))

    def test_help_and_version(self):
        for arguments, text in ((["--help"], "bench"), (["bench", "--help"], "stay in the queue"),
                                (["--version"], "tubectl 2")):
            done = subprocess.run([TUBECTL, *arguments], check=False, capture_output=True,
                                  text=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(text, done.stdout)


@unittest.skipUnless(DO_NOTHING, "built only with TUBED_BENCH=ON")
class OnDoNothing(BenchTest):
    def test_workloads(self):
        address = self.do_nothing()
        for in_flight in IN_FLIGHT:
            for tubes in (1, 3):
                with self.subTest(in_flight=in_flight, tubes=tubes):
                    load = ["--in-flight", in_flight, "--tubes", tubes, "--clients", 6]
                    self.assertEqual(self.bench(address, "put", "--jobs", 999, *load)["all"], 999)
                    cycles = self.bench(address, "cycle", "--jobs", 999, *load)
                    self.assertEqual(cycles["all"], 2997)
                    for fill in ([], ["--no-fill"]):
                        reserves = self.bench(address, "reserve", "--jobs", 999, *fill, *load)
                        self.assertEqual(reserves["all"], 1998)
                    timed = self.bench(address, "put", "--seconds", 0.05, *load)
                    self.assertGreater(timed["measured"], 0)

    def test_large_bodies(self):
        address = self.do_nothing()
        figures = self.bench(address, "cycle", "--body", 5_000_000, "--in-flight", 6,
                             "--clients", 3, "--jobs", 12)
        self.assertEqual(figures["all"], 36)

    def test_pipe_wants_a_queue(self):
        """The server that does nothing returns bodies that the pipe has not put; tubectl reports
        that."""
        code, output, errors = run(self.do_nothing(), "pipe", "--seconds", 0.05)
        self.assertEqual((code, output), (1, ""))
        self.assertIn("that this run has not put", errors)

    def test_its_words_cut_at_every_byte(self):
        address = self.do_nothing()
        commands = (b"watch a\r\nput 0 0 60 3\r\n\r\n!\r\nreserve\r\nuse b\r\ndelete 1\r\n"
                    b"reserve-with-timeout 5\r\nignore a\r\nignore default\r\nstats\r\n")
        words = ["WATCHING 2", "INSERTED", "RESERVED", "xxx", "USING b", "DELETED", "RESERVED",
                 "xxx", "WATCHING 1", "NOT_IGNORED", "UNKNOWN_COMMAND"]
        for cut in range(len(commands) + 1):
            client = Client(address)
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.send(commands[:cut])
            client.send(commands[cut:])
            got = [client.line() for _ in words]
            client.close()
            self.assertEqual([line[:len(word)] for line, word in zip(got, words)], words)


if __name__ == "__main__":
    unittest.main()
