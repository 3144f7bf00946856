"""The commands and programs of docs/http-api.md, unchanged except for the server's address."""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest

from harness import SECONDS, Client, DaemonTest, Process, until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "http-api.md"
ADDRESS = "127.0.0.1:11380"
BLOCK = re.compile(r"^(?:<!-- run: (\S+) -->\n)?```(\w+)\n(.*?)^```$", re.M | re.S)


class HttpApiPage(DaemonTest):
    def setUp(self):
        super().setUp()
        self.daemon = self.start("--http-listen", "127.0.0.1:0", "--http-api", "full")
        text = PAGE.read_text(encoding="utf-8").replace(ADDRESS, self.daemon.http_addresses[0])
        self.blocks = BLOCK.findall(text)

    def named(self, name):
        return next(code for found, _, code in self.blocks if found == name)

    def run_program(self, name):
        file = self.directory / name
        file.write_text(self.named(name), encoding="utf-8")
        return self.run_file(file)

    def run_file(self, file):
        """Starts the program; its lines are read as they arrive."""
        program = Process([sys.executable, file], stdout=True)
        self.addCleanup(program.kill)
        return program

    def connect_queue(self):
        client = Client(self.daemon.addresses[0])
        self.addCleanup(client.close)
        self.assertEqual(client.ask("use mail"), "USING mail")
        return client

    def test_the_commands_for_a_shell(self):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.named("shell")], text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        put, jobs, ordered, rest = done.stdout.split("\n", 3)
        body, rest = rest[:len("to: ada")], rest[len("to: ada"):]
        kicked, tubes, deleted = rest.splitlines()
        self.assertEqual(json.loads(put), {"result": "INSERTED", "id": 1})
        job = json.loads(jobs)["jobs"][0]
        self.assertEqual((job["id"], job["pri"], job["ttr"], body), (1, 0, 30, "to: ada"))
        self.assertEqual(json.loads(ordered), {"total": 0, "next": 0, "jobs": []})
        self.assertEqual(json.loads(kicked), {"result": "KICKED", "count": 0})
        self.assertEqual(json.loads(tubes)["tubes"][0]["name"], "mail")
        self.assertEqual(json.loads(deleted), {"result": "DELETED"})
        # The page has the answers in comments.
        for answer in (put, kicked):
            self.assertIn(answer, self.named("shell"))

    def test_the_commands_for_many_jobs(self):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.named("batches")], text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        put, deleted, touched, ended = map(json.loads, done.stdout.splitlines())
        self.assertEqual([one["id"] for one in put["results"]], [1, 2, 3])
        self.assertEqual([one["status"] for one in deleted["results"]], [200, 200, 404])
        self.assertEqual(touched, {"result": "TOUCHED_ALL", "count": 1})
        self.assertEqual(ended["results"], [{"id": 3, "status": 200, "result": "DELETED"}])
        self.assertIn(done.stdout[:80], self.named("batches"))

    def test_the_worker_and_its_producer(self):
        worker = self.run_program("worker.py")
        client = self.connect_queue()
        for body in (b"to: ada", b"\xff\xfe"):
            client.put(body)
            self.assertEqual(worker.next_line(), f"{len(body)} bytes")
        until("both jobs to be deleted", lambda: client.stats()["cmd-delete"] == 2)
        with self.producer() as producer:
            self.assertEqual(producer.wait(SECONDS), 0)
        self.assertEqual(worker.next_line(), "7 bytes")

    def producer(self, **environment):
        """Runs the page's put with the functions of worker.py, which is in the directory."""
        put = next(code for _, _, code in self.blocks if code.startswith('call("POST"'))
        program = f"import sys\nsys.path.insert(0, {str(self.directory)!r})\nfrom worker import *\n"
        return subprocess.Popen([sys.executable, "-c", program + put], env=os.environ | environment,
                                stderr=subprocess.PIPE if environment else None, text=True)

    def test_a_program_tries_again_when_the_server_cannot_serve_it(self):
        (self.directory / "worker.py").write_text(self.named("worker.py"), encoding="utf-8")
        client = self.connect_queue()
        self.assertEqual(client.ask("drain"), "DRAINING")
        with self.producer() as producer:
            until("a refusal", lambda: client.stats()["cmd-put-in-tube"] > 0)
            self.assertEqual(client.ask("undrain"), "NOT_DRAINING")
            self.assertEqual(producer.wait(SECONDS), 0)
        self.assertEqual(client.stats()["current-jobs-ready"], 1)

    def test_a_program_does_not_repeat_a_put_that_may_have_run(self):
        (self.directory / "worker.py").write_text(self.named("worker.py"), encoding="utf-8")
        puts = []

        class Closed(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                puts.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_error(503 if len(puts) == 1 else 500)

            def log_message(self, format, *arguments):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Closed) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            self.addCleanup(thread.join)
            self.addCleanup(server.shutdown)
            with self.producer(TUBED_API=f"http://127.0.0.1:{server.server_port}") as producer:
                _, errors = producer.communicate(timeout=SECONDS)
            server.shutdown()
        self.assertIn("HTTP Error 503", errors)
        self.assertEqual((producer.returncode, puts), (1, [b"to: ada"]))

    def test_a_job_that_fails_is_buried(self):
        (self.directory / "worker.py").write_text(self.named("worker.py"), encoding="utf-8")
        client = self.connect_queue()
        client.put(b"not a number")
        file = self.directory / "fails.py"
        file.write_text("from worker import *\nwork('mail', int)\n", encoding="utf-8")
        program = self.run_file(file)
        self.assertIn("job 1 is buried: invalid literal", program.next_line())
        until("the burial", lambda: client.stats()["current-jobs-buried"] == 1)

    def test_the_program_that_watches(self):
        client = self.connect_queue()
        program = self.run_program("watch.py")

        def expect(tubes):
            line = str(tubes)
            until(line, lambda: program.next_line() == line)

        expect({"default": 0, "mail": 0})
        client.put(b"x")
        expect({"default": 0, "mail": 1})
        self.assertEqual(client.reserve("reserve-job 1")[1], b"x")
        self.assertEqual(client.ask("delete 1"), "DELETED")
        self.assertEqual(client.ask("use default"), "USING default")
        expect({"default": 0})

    def test_the_problem_of_the_page(self):
        page = next(code for _, kind, code in self.blocks
                    if kind == "json" and "urn:tubed:problem:" in code)
        done = subprocess.run(["curl", "-s", f"{self.daemon.http_addresses[0]}/api/v1/jobs/99"],
                              check=True, timeout=SECONDS, capture_output=True, text=True)
        self.assertEqual(done.stdout, page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
