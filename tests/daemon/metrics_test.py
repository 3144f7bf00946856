"""The HTTP listener of the real daemon.

The tests check the samples of /metrics after known work, the page with promtool and a real
Prometheus, the health checks during a drain, a stop and with a full journal, malformed requests and
slow readers, and clients of the queue while a page is made. bench/measure/scrape.py measures the
cost and the delay of a scrape.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import SANITIZED, SECONDS, Client, DaemonTest, Process, StandingClock, until

TUBES = 1_000 if SANITIZED else 10_000
CONNECTIONS = 16


def need(program):
    path = shutil.which(program)
    if not path:
        raise AssertionError(f"{program} is not installed: tools/install-deps more")
    return path


def check_page(page):
    """Fails if promtool finds a fault in the metrics."""
    done = subprocess.run([need("promtool"), "check", "metrics"], input=page, text=True,
                          capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def samples_of(page):
    """Returns {"name{labels}": value}. Each line must be a sample or a comment, and no series may
    occur twice."""
    samples = {}
    for line in page.splitlines():
        if line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        if series in samples:
            raise AssertionError(f"twice: {series}")
        samples[series] = float(value)
    return samples


class HttpTest(DaemonTest):
    def serve(self, *flags, **options):
        return self.start("--http-listen", "127.0.0.1:0", *flags, **options)

    def fetch(self, daemon, path="/metrics"):
        """Requests `path`; returns (status, body)."""
        url = f"http://{daemon.http_addresses[0]}{path}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def journal(self):
        path = self.directory / "journal"
        path.mkdir()
        return str(path)

    def samples(self, daemon):
        status, page = self.fetch(daemon)
        self.assertEqual(status, 200)
        return samples_of(page)

    def make_tubes(self, daemon, count=TUBES):
        """Makes tubes with samples in all histograms; returns the client."""
        client = self.connect(daemon)
        for first in range(0, count, 500):
            names = [b"tube-with-a-usual-name-%d" % i for i in range(first, first + 500)]
            client.pump(b"".join(
                b"use %s\r\nwatch %s\r\nput 0 0 60 1\r\nx\r\nreserve\r\ndelete %d\r\n"
                b"put 0 0 60 1\r\nx\r\nignore %s\r\n" % (name, name, 2 * (first + i) + 1, name)
                for i, name in enumerate(names)), 8 * len(names))
        return client

    def http(self, daemon, **options):
        client = Client(daemon.http_addresses[0], **options)
        self.addCleanup(client.close)
        return client


class Page(HttpTest):
    def test_samples_after_known_work(self):
        daemon = self.serve()
        client = self.connect(daemon)
        client.ask("use mail")
        client.ask("watch mail")
        jobs = [client.put(b"x" * 10) for _ in range(5)]
        client.put(b"later", delay=1000)
        client.reserve()
        client.reserve()
        self.assertEqual(client.ask(f"delete {jobs[0]}"), "DELETED")
        self.assertEqual(client.ask(f"bury {jobs[1]} 0"), "BURIED")
        self.assertEqual(client.ask("pause-tube mail 100"), "PAUSED")
        samples = self.samples(daemon)
        for series, value in {
                'tubed_jobs{state="ready"}': 3, 'tubed_jobs{state="delayed"}': 1,
                'tubed_jobs{state="buried"}': 1, 'tubed_jobs{state="reserved"}': 0,
                "tubed_jobs_put_total": 6, 'tubed_commands_total{command="put"}': 6,
                'tubed_commands_total{command="delete"}': 1, "tubed_connections": 1,
                "tubed_producers": 1, "tubed_workers": 1, "tubed_tubes": 2, "tubed_draining": 0,
                'tubed_tube_jobs{tube="mail",state="ready"}': 3,
                'tubed_tube_jobs_put_total{tube="mail"}': 6,
                'tubed_tube_jobs_deleted_total{tube="mail"}': 1,
                'tubed_tube_paused{tube="mail"}': 1,
                'tubed_tube_put_to_reserve_seconds_count{tube="mail"}': 2,
                'tubed_tube_reserve_to_delete_seconds_count{tube="mail"}': 1}.items():
            self.assertEqual(samples.get(series), value, series)
        self.assertNotIn("tubed_journal_bytes", samples)

    def test_a_scrape_reads_the_clock(self):
        daemon = self.serve()
        self.connect(daemon).put(b"x")
        age = 'tubed_tube_oldest_ready_job_age_seconds{tube="default"}'
        first = self.samples(daemon)[age]
        until("the job to grow older", lambda: self.samples(daemon)[age] > first)

    def test_tubes_beyond_the_bound_are_other(self):
        config = self.write_config('[http]\nlisten = "127.0.0.1:0"\nmax_tubes = 3\n')
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        for name in ("a", "b", "c", "d", "e"):
            client.ask(f"use {name}")
            client.put()
        samples = self.samples(daemon)
        named = {series for series in samples if series.startswith("tubed_tube_jobs_put_total")}
        self.assertEqual(len(named), 4, named)
        self.assertEqual(sum(samples[series] for series in named), 5)
        # A reload can raise the bound.
        self.write_config('[http]\nlisten = "127.0.0.1:0"\nmax_tubes = 100\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_line("reloaded")
        client.ask("use f")
        client.put()
        self.assertEqual(self.samples(daemon)['tubed_tube_jobs_put_total{tube="f"}'], 1)

    def test_promtool_finds_no_fault(self):
        daemon = self.serve("-b", self.journal(), "--journal-sync", "never")
        client = self.connect(daemon)
        client.put()
        client.ask(f"delete {client.reserve()[0]}")
        _, page = self.fetch(daemon)
        self.assertIn("\ntubed_journal_bytes ", page)
        check_page(page)

    def test_without_the_setting_no_http_listener_is_opened(self):
        self.assertEqual(self.start().http_addresses, [])

    def test_a_unix_socket(self):
        path = self.directory / "http.sock"
        daemon = self.start("--http-listen", f"unix:{path}")
        client = self.http(daemon)
        client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertTrue(client.rest().endswith(b"\r\n\r\nok\n"))
        self.end(daemon)
        self.assertFalse(path.exists())

    def test_an_address_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            line = self.start_refused(69, "--http-listen", f"127.0.0.1:{port}")
        self.assertIn(str(port), line)


class Clients(HttpTest):
    def closed(self, daemon):
        samples = self.samples(daemon)
        return {reason: samples[f'tubed_closed_clients_total{{reason="{reason}"}}']
                for reason in ("idle", "stall", "output_memory")}

    def test_closed_for_being_idle_or_stalled(self):
        clock = StandingClock(self.directory)
        daemon = self.serve("--timeouts-idle", "100s", "--timeouts-stall", "10s",
                            environment=clock.environment)
        clock.advance()
        self.assertEqual(self.closed(daemon), {"idle": 0, "stall": 0, "output_memory": 0})
        stalled = self.connect(daemon)
        stalled.send(b"put 0 0 60 5\r\nhe")
        until("the body to have begun", lambda: self.samples(daemon)["tubed_job_memory_bytes"] > 0)
        until("the stalled client to be closed",
              lambda: clock.advance(5) or self.closed(daemon)["stall"] == 1)
        self.assertEqual(stalled.rest(), b"")
        idle = self.connect(daemon)
        until("the idle client to be closed",
              lambda: clock.advance(30) or self.closed(daemon)["idle"] == 1)
        self.assertEqual(idle.rest(), b"")
        self.assertEqual(self.closed(daemon), {"idle": 1, "stall": 1, "output_memory": 0})

    def test_closed_for_replies_that_they_do_not_read(self):
        daemon = self.serve("-z", "8MiB", "--limits-output-memory", "16MiB")
        other = self.connect(daemon)
        job = other.put(b"l" * (8 << 20))
        clients = [self.connect(daemon, receive_buffer=4096) for _ in range(10)]
        for client in clients:
            client.send(b"peek %d\r\n" % job)
        # Ten replies of 8 MiB exceed the limit of two. The number of closed clients depends on how
        # much of each reply the kernel buffers.
        until("three to be closed", lambda: self.closed(daemon)["output_memory"] >= 3)
        samples = self.closed(daemon)
        self.assertEqual((samples["idle"], samples["stall"]), (0, 0))

    def test_descriptors(self):
        daemon = self.serve()

        def difference():
            """Returns the number of open descriptors that are not connections, except the
            connection of the scrape."""
            samples = self.samples(daemon)
            return samples["tubed_open_descriptors"] - samples["tubed_connections"]

        own = difference()
        listed = len(list(pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir()))
        self.assertIn(own - listed, (0, 1), "the scrape's connection may be open yet")
        clients = [self.connect(daemon) for _ in range(50)]
        for client in clients:
            client.ask("list-tube-used")
        self.assertEqual(self.samples(daemon)["tubed_connections"], 50)
        until("the difference to be the same", lambda: difference() == own)
        limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text(encoding="utf-8")
        soft = re.search(r"^Max open files +(\d+)", limits, re.M)[1]
        self.assertEqual(self.samples(daemon)["tubed_descriptor_limit"], int(soft))


class Prometheus(HttpTest):
    def test_prometheus_scrapes_the_page(self):
        daemon = self.serve()
        client = self.connect(daemon)
        for _ in range(7):
            client.put()
        config = self.directory / "prometheus.yml"
        config.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: tubed\n"
                          f"  static_configs: [{{targets: ['{daemon.http_addresses[0]}']}}]\n",
                          encoding="utf-8")
        prometheus = Process(
            [need("prometheus"), f"--config.file={config}", "--web.listen-address=127.0.0.1:0",
             f"--storage.tsdb.path={self.directory / 'data'}"], stdout=True)
        try:
            def address():
                self.assertFalse(prometheus.log_ended, prometheus.lines)
                return self.listening_address(prometheus.pid)
            base = f"http://{until('Prometheus to listen', address)}"

            def samples():
                query = urllib.parse.urlencode({"query": 'tubed_jobs{state="ready"}'})
                try:
                    with urllib.request.urlopen(f"{base}/api/v1/query?{query}",
                                                timeout=SECONDS) as answer:
                        found = json.load(answer)["data"]["result"]
                except OSError:  # Prometheus is not ready yet
                    return None
                return [each["value"][1] for each in found]
            until("Prometheus to show the jobs", lambda: samples() == ["7"])
        finally:
            prometheus.end()

    @staticmethod
    def listening_address(pid):
        """Returns the address at which the process listens. It was started with port 0 and does not
        log the port, so this reads /proc."""
        try:
            inodes = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            return None
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                return f"127.0.0.1:{int(fields[1].split(':')[1], 16)}"
        return None


class Health(HttpTest):
    def ready(self, daemon):
        status, text = self.fetch(daemon, "/readyz")
        return status, text.strip()

    def test_during_a_drain(self):
        daemon = self.serve()
        self.assertEqual(self.fetch(daemon, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.ready(daemon), (200, "ready"))
        daemon.signal(signal.SIGUSR1)
        daemon.wait_for_line("draining")
        self.assertEqual(self.ready(daemon), (503, "draining"))
        self.assertEqual(self.fetch(daemon, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.samples(daemon)["tubed_draining"], 1)
        daemon.signal(signal.SIGUSR2)
        daemon.wait_for_line("not draining")
        self.assertEqual(self.ready(daemon), (200, "ready"))

    def test_a_server_that_is_in_no_cluster_is_its_own_leader(self):
        daemon = self.serve()
        self.assertEqual(self.fetch(daemon, "/leader"), (200, "leader\n"))
        daemon.signal(signal.SIGUSR1)
        daemon.wait_for_line("draining")
        self.assertEqual(self.fetch(daemon, "/leader"), (200, "leader\n"))

    def test_during_a_stop(self):
        daemon = self.serve("-z", str(8 * (1 << 20)), "--timeouts-shutdown", "1h")
        client = self.unread_reply(daemon)
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        self.assertEqual(self.ready(daemon), (503, "stopping"))
        self.assertEqual(self.fetch(daemon, "/leader"), (503, "stopping\n"))
        self.assertEqual(self.fetch(daemon, "/healthz"), (200, "ok\n"))
        client.close()
        self.assertEqual(daemon.wait(), 0)

    def test_with_a_full_journal(self):
        daemon = self.serve("-b", self.journal(), "--journal-max-bytes", "256KiB", "-s", "64KiB",
                            "-z", "1000", "--journal-sync", "never")
        client = self.connect(daemon)
        jobs = []
        until("a put to be refused", lambda: self.put_into(client, jobs) == "OUT_OF_MEMORY")
        until("the server not to be ready",
              lambda: self.ready(daemon) == (503, "the journal has no space"))
        self.assertEqual(self.fetch(daemon, "/healthz"), (200, "ok\n"))
        self.assertEqual(self.samples(daemon)["tubed_journal_full"], 1)
        for job in jobs:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        until("a put to be accepted", lambda: self.put_into(client, jobs) == "INSERTED")
        until("the server to be ready", lambda: self.ready(daemon) == (200, "ready"))

    @staticmethod
    def put_into(client, jobs):
        words = client.ask("put 0 0 60 900\r\n" + "x" * 900).split()
        if words[0] == "INSERTED":
            jobs.append(int(words[1]))
        return words[0]


class BadClients(HttpTest):
    def test_other_methods_and_bodies_are_refused(self):
        daemon = self.serve()

        def ask(request):
            client = self.http(daemon)
            client.send(request)
            return client.rest()

        for method in (b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"get", b"NONSENSE"):
            for path in (b"/metrics", b"/healthz", b"/readyz", b"/", b"/none"):
                answer = ask(method + b" " + path + b" HTTP/1.1\r\nHost: x\r\n"
                             b"Connection: close\r\n\r\n")
                self.assertTrue(answer.startswith(b"HTTP/1.1 405 "), answer)
                self.assertIn(b"\r\nAllow: GET, HEAD\r\n", answer)
        for header in (b"Content-Length: 5", b"Transfer-Encoding: chunked"):
            for body in (b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n"):
                answer = ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n" + body)
                self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        answer = ask(b"HEAD /healthz?x=y HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
        self.assertTrue(answer.endswith(b"\r\n\r\n"), answer)

    def test_slow_readers_and_a_crowd(self):
        daemon = self.serve("--http-max-tubes", str(TUBES))
        tubes = self.make_tubes(daemon)
        self.fetch(daemon)
        before = daemon.resident_bytes()
        slow = [self.http(daemon, receive_buffer=4096) for _ in range(CONNECTIONS)]
        for client in slow:
            client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            client.read(100)
        # All HTTP connections are in use, and a hundred more wait. Clients of the queue are not
        # affected.
        crowd = [self.http(daemon) for _ in range(100)]
        for client in crowd:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for _ in range(100):
            self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")
        if not SANITIZED:
            self.assertLess(daemon.resident_bytes() - before, 8 << 20)
        # The server closes an HTTP client that reads nothing for ten seconds.
        for client in crowd:
            self.assertTrue(client.rest().endswith(b"\r\n\r\nok\n"))
        self.assertEqual(tubes.ask("list-tube-used")[:6], "USING ")

class Beside(HttpTest):
    def test_clients_of_the_queue_are_answered_while_a_page_is_made(self):
        """The page is larger than all buffers between the daemon and its reader: it is not complete
        before the reader takes it."""
        daemon = self.serve("--http-max-tubes", str(TUBES))
        client = self.make_tubes(daemon)
        page = self.http(daemon, receive_buffer=4096)
        page.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        response = http.client.HTTPResponse(page.socket)
        self.addCleanup(response.close)
        response.begin()
        self.assertEqual(response.status, 200)
        begin = response.read(100)
        last = f"tube-with-a-usual-name-{TUBES - 10}"  # the last tubes are in `other`
        client.ask(f"use {last}")
        for _ in range(100):
            client.put()
        text = (begin + response.read()).decode()
        self.assertGreaterEqual(len(re.findall("^tubed_tube_jobs_put_total", text, re.M)), TUBES)
        # The end of the page includes puts made after its beginning was read.
        samples = samples_of(text)
        self.assertEqual(samples[f'tubed_tube_put_to_reserve_seconds_count{{tube="{last}"}}'], 1)
        self.assertEqual(samples[f'tubed_tube_jobs_put_total{{tube="{last}"}}'], 102)


if __name__ == "__main__":
    unittest.main()
