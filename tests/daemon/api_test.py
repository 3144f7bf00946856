"""The HTTP API of the real daemon: bodies, reservations, roles, requests of other sites, bounds,
the stream of events, reloads, and clients of the queue next to many clients of the API (measured by
bench/measure/api.py). openapi_test.py tests every operation; tests/api, tests/server and tests/loop
test parameters, targets, waits and incomplete requests; tests/simulation tests acknowledgements.
"""

import base64
import contextlib
import http.client
import json
import multiprocessing
import os
import pwd
import select
import signal
import socket
import ssl
import threading
import time
import unittest

from harness import (SANITIZED, SECONDS, Client, StandingClock, http_connection, parse_address,
                     tls_context, until, write_tokens)
from tls_tests import Tls, TlsTest, table

TOKENS = {"ops": "tbd_token-of-ops", "web": "tbd_token-of-web", "worker": "tbd_token-of-worker",
          "watcher": "tbd_token-of-watcher"}
EVENT_STREAMS = 16


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class ApiTest(TlsTest):
    def serve(self, *flags, api="full", http_settings=None, settings="", **options):
        keys = {"http.listen": "127.0.0.1:0", "http.api": api, **(http_settings or {})}
        self.config = self.write_config(table("", keys) + settings)
        return self.start("--config", self.config, *flags, **options)

    def rewrite(self, daemon, api="full", http_settings=None, settings="", count=1):
        keys = {"http.listen": "127.0.0.1:0", "http.api": api, **(http_settings or {})}
        self.write_config(table("", keys) + settings)
        return self.reload(daemon, count)

    def connection(self, daemon, context=None):
        return http_connection(daemon.http_addresses[0], context)

    def ask(self, daemon, method, path, body=None, token=None, headers=None, context=None):
        """`body`: bytes, or the parameters of a request."""
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        headers = {"X-Requested-By": "test", **(headers or {})}
        if token:
            headers["Authorization"] = f"Bearer {TOKENS.get(token, token)}"
        headers = {name: value for name, value in headers.items() if value is not None}
        path = path if path.startswith("/api") or path.startswith("//") else "/api/v1" + path
        with contextlib.closing(self.connection(daemon, context)) as connection:
            connection.request(method, path, body=body, headers=headers,
                               encode_chunked="Transfer-Encoding" in headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def get(self, daemon, path, **options):
        return self.ask(daemon, "GET", path, **options)

    def post(self, daemon, path, body=None, **options):
        return self.ask(daemon, "POST", path, body, **options)

    def put(self, daemon, body=b"x", tube="mail", query="", **options):
        answer = self.post(daemon, f"/tubes/{tube}/jobs{query}", body, **options)
        self.assertEqual(answer.status, 201, answer)
        return answer.json["id"]

    def assert_problem(self, answer, status, reply=None):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        problem = answer.json
        self.assertEqual(problem["status"], status)
        self.assertEqual(problem.get("reply"), reply, problem)
        for key in ("type", "title", "detail"):
            self.assertTrue(problem[key], problem)

    def socket_to(self, daemon, receive_buffer=None):
        family, peer = parse_address(daemon.http_addresses[0])
        plain = socket.socket(family, socket.SOCK_STREAM)
        self.addCleanup(plain.close)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(SECONDS)
        plain.connect(peer)
        return plain

    def assert_healthy(self, daemon):
        """Health checks are answered while other clients keep their connections."""
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b"ok\n")

    def connections(self, daemon):
        """Returns the number of connections other than this query's."""
        client = Client(daemon.addresses[0])
        with contextlib.closing(client):
            return client.stats()["current-connections"] - 1


class Bodies(ApiTest):
    def test_bodies(self):
        daemon = self.serve("--limits-job-bytes", "2000000")
        for body in (b"", b"plain", bytes(range(256)) * 3, b"\r\nput 0 0 60 1\r\nx\r\n",
                     os.urandom(2_000_000)):
            job = self.put(daemon, body)
            raw = self.get(daemon, f"/jobs/{job}/body")
            self.assertEqual((raw.headers["Content-Type"], raw.body),
                             ("application/octet-stream", body))
            read = self.get(daemon, f"/jobs/{job}/body", headers={"Accept": "application/json"})
            got = read.json
            self.assertEqual(base64.b64decode(got["body_base64"]) if "body_base64" in got
                             else got["body"].encode(), body)
        self.assertEqual(self.get(daemon, "/server").json["current-jobs-ready"], 5)


class Filters(ApiTest):
    def test_a_walk(self):
        daemon = self.serve()
        bodies = [b"100% sure\n", b"other", "größer".encode(), b"a+b", b"other"]
        for i, body in enumerate(bodies):
            self.put(daemon, body, query=f"?pri={i}&tags=grp:g{i % 2}")

        def found(query):
            pages = []
            start = 0
            while True:
                page = self.get(daemon, f"/tubes/mail/jobs?from={start}&limit=2{query}").json
                pages.append((page["looked"], [job["id"] for job in page["jobs"]]))
                start = page["next"]
                if start == 0:
                    return pages
        self.assertEqual(found("&q=100%25%20sure%0A"), [(5, [1])])
        self.assertEqual(found("&q=gr%C3%B6%C3%9Fer"), [(5, [3])])
        self.assertEqual(found("&q=a%2Bb"), [(5, [4])])
        self.assertEqual(found("&tag=grp:g0"), [(3, [1, 3]), (2, [5])])
        self.assertEqual(found("&q=other&pri_over=1&pri_below=9&age_below=1000000"), [(5, [5])])
        self.assertEqual(found("&age_over=1000000"), [(5, [])])
        self.assertEqual(found("&failures_over=0"), [(5, [])])
        row = self.get(daemon, "/tubes/mail/jobs?q=sure").json["jobs"][0]
        self.assertEqual((row["failures"], row["dead-from"], row["tags"]), (0, "-", "grp:g0"))
        ordered = self.get(daemon, "/tubes/mail/jobs?sort=bytes&order=desc&limit=2").json
        self.assertEqual((ordered["total"], ordered["next"]), (5, 2))
        self.assertEqual([job["id"] for job in ordered["jobs"]], [1, 3])
        ordered = self.get(daemon, "/tubes/mail/jobs?sort=pri&order=desc&tag=grp:g0").json
        self.assertEqual((ordered["total"], ordered["looked"], ordered["next"]), (3, 5, 0))
        self.assertEqual([job["id"] for job in ordered["jobs"]], [5, 3, 1])
        plain = self.get(daemon, "/tubes/mail/jobs").json
        self.assertNotIn("looked", plain)
        self.assertNotIn("failures", plain["jobs"][0])
        for query in ("q=", "q=" + "x" * 201, "age_over=x", "tag=grp", "tag=x:y", "state=next&q=x",
                      "pri_below=4294967296", "q=a&q=b"):
            with self.subTest(query):
                self.assertEqual(self.get(daemon, f"/tubes/mail/jobs?{query}").status, 400)


class Reload(ApiTest):
    def test_changes_and_mistakes(self):
        daemon = self.serve(settings="limits.tubes = 5\n")
        nothing = {"changed": [], "needs-restart": []}
        self.assertEqual(self.post(daemon, "/reload").json, nothing)
        self.serve_later("limits.tubes = 6\ntcp.backlog = 9\n")
        self.assertEqual(self.post(daemon, "/reload").json,
                         {"changed": ["limits.tubes"], "needs-restart": ["tcp.backlog"]})
        self.serve_later("limits.tubes = 0\n")
        refused = self.post(daemon, "/reload")
        self.assert_problem(refused, 409, "NOT_RELOADED")
        self.assertIn("limits.tubes: 0 is below the minimum of 1", refused.json["detail"])

    def serve_later(self, settings, **http_settings):
        """The settings of the next reload."""
        self.write_config(table("", {"http.listen": "127.0.0.1:0", "http.api": "full",
                                     **http_settings}) + settings)

    def test_a_reload_that_closes_the_api_is_answered(self):
        daemon = self.serve()
        self.write_config(table("", {"http.listen": "127.0.0.1:0", "http.api": "off"}))
        self.assertEqual(self.post(daemon, "/reload").json["changed"], ["http.api"])
        self.assertEqual(self.post(daemon, "/reload").status, 405)

    def test_a_client_that_leaves_before_the_answer(self):
        daemon = self.serve(settings="limits.tubes = 5\n")
        self.serve_later("limits.tubes = 6\n")
        daemon.freeze()
        leaving = self.socket_to(daemon)
        leaving.sendall(b"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nX-Requested-By: x\r\n"
                        b"Content-Length: 0\r\n\r\n")
        leaving.close()
        daemon.thaw()
        self.assertIn(self.post(daemon, "/reload").json["changed"], ([], ["limits.tubes"]))
        daemon.wait_for_two_ticks()
        self.assertEqual(len(daemon.lines_with(" changed=limits.tubes ")), 1)
        self.assert_healthy(daemon)


class Reservations(ApiTest):
    def reserve(self, daemon, tube="mail", **body):
        answer = self.post(daemon, f"/tubes/{tube}/reserve", body)
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def test_the_life_of_a_reservation(self):
        daemon = self.serve()
        job = self.put(daemon, b"work", query="?pri=77&ttr=100")
        held = self.reserve(daemon)
        self.assertEqual((held["id"], held["body"], held["tube"], held["pri"]),
                         (job, "work", "mail", 77))
        path = f"/reservations/{held['token']}"
        self.assertEqual(self.get(daemon, path).json["state"], "reserved")
        self.assertEqual(self.post(daemon, path + "/touch").json, {"result": "TOUCHED"})
        self.assertEqual(self.post(daemon, path + "/touch", {"seconds": 1000}).status, 200)
        self.assertGreater(self.get(daemon, path).json["time-left"], 900)
        # Another client cannot delete it.
        self.assert_problem(self.ask(daemon, "DELETE", f"/jobs/{job}"), 409, "NOT_FOUND")
        self.assertEqual(self.post(daemon, path + "/release").json, {"result": "RELEASED"})
        self.assertEqual(self.get(daemon, f"/jobs/{job}").json["pri"], 77)
        ended = self.get(daemon, path)
        self.assert_problem(ended, 409, "NOT_FOUND")
        self.assertEqual(ended.json["state"], "ready")
        held = self.reserve(daemon)
        path = f"/reservations/{held['token']}"
        self.assertEqual(self.post(daemon, path + "/bury", {"pri": 5}).json, {"result": "BURIED"})
        self.assertEqual(self.get(daemon, f"/jobs/{job}").json["state"], "buried")
        # A buried job can be reserved by its id.
        held = self.post(daemon, f"/jobs/{job}/reserve").json
        again = self.ask(daemon, "DELETE", path)
        self.assert_problem(again, 409, "NOT_FOUND")
        self.assertEqual(again.json["state"], "reserved")
        self.assertEqual(self.ask(daemon, "DELETE", f"/reservations/{held['token']}").json,
                         {"result": "DELETED"})
        self.assert_problem(self.ask(daemon, "DELETE", path), 404, "NOT_FOUND")
        self.assert_problem(self.get(daemon, f"/jobs/{job}"), 404, "NOT_FOUND")
        until("the clients to be closed", lambda: self.connections(daemon) == 0)

    def test_a_request_that_is_cut_short_leaves_it(self):
        daemon = self.serve()
        self.put(daemon, query="?ttr=1000")
        path = f"/reservations/{self.reserve(daemon)['token']}"
        half = self.socket_to(daemon)
        half.sendall(f"POST /api/v1{path}/release HTTP/1.1\r\nHost: localhost\r\nX-Requested-By: t\r\n"
                     "Content-Length: 12\r\n\r\n{".encode())
        self.assertEqual(self.get(daemon, path).status, 200)
        half.close()
        self.assertEqual(self.get(daemon, path).status, 200)
        self.assertEqual(self.post(daemon, path + "/bury").status, 200)

    def test_the_ttr_ends_it(self):
        clock = StandingClock(self.directory)
        daemon = self.serve(environment=clock.environment)
        clock.advance()
        self.put(daemon, query="?ttr=10")
        self.reserve(daemon)
        job = self.put(daemon, query="?ttr=5")
        held = self.reserve(daemon)
        self.assertEqual(self.connections(daemon), 2)
        clock.advance(5)
        until("the job to be ready again",
              lambda: self.get(daemon, f"/jobs/{job}").json["state"] == "ready")
        until("the reservation to end",
              lambda: self.get(daemon, f"/reservations/{held['token']}").status == 409)
        self.assertGreater(self.connections(daemon), 0)  # the connection of the first reservation
        until("the clients to be closed",
              lambda: clock.advance(1) or self.connections(daemon) == 0)
        self.assertEqual(self.get(daemon, f"/jobs/{job}").json["timeouts"], 1)

    def test_it_takes_no_connection_of_a_client(self):
        daemon = self.serve("--limits-connections", "2")
        for _ in range(3):
            self.put(daemon)
            self.reserve(daemon)
        clients = [Client(daemon.addresses[0]) for _ in range(3)]
        for client in clients:
            self.addCleanup(client.close)
        self.assertEqual(clients[0].stats()["current-connections"], 5)
        self.assertEqual(clients[1].stats()["current-jobs-reserved"], 3)
        self.assertEqual(clients[2].line(), "OUT_OF_MEMORY")

    def test_a_token_that_no_one_has(self):
        daemon = self.serve()
        self.put(daemon)
        self.reserve(daemon)
        for path in ("/reservations/0", "/reservations/" + "0" * 32):
            self.assert_problem(self.get(daemon, path), 404, "NOT_FOUND")
            self.assert_problem(self.ask(daemon, "DELETE", path), 404, "NOT_FOUND")
        self.assertEqual(self.get(daemon, "/server").json["current-jobs-reserved"], 1)

class Rights(ApiTest):
    def settings(self, *roles):
        tokens = write_tokens(self.directory / "tokens", TOKENS)
        roles = roles or (
            {"name": "ops", "verbs": ["produce", "work", "inspect", "admin"], "tokens": ["ops"]},
            {"name": "web", "verbs": ["produce"], "tubes": ["mail.*"], "tokens": ["web"]},
            {"name": "worker", "verbs": ["work"], "tokens": ["worker"], "max_connections": 1},
            {"name": "watcher", "verbs": ["inspect"], "tubes": ["mail.*"], "tokens": ["watcher"]})
        return (table("", {"auth.tokens": tokens}) +
                "".join(table("[[role]]", role) for role in roles))

    def serve_tokens(self, *roles, **options):
        return self.serve(http_settings={"http.auth": "token"}, settings=self.settings(*roles),
                          **options)

    def test_a_request_needs_a_token(self):
        daemon = self.serve_tokens()
        for path in ("/server", "/access", "/events", "/settings", "/history", "/jobs/1/body"):
            answer = self.get(daemon, path)
            self.assert_problem(answer, 401, "UNAUTHORIZED")
            self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
        self.assert_problem(self.post(daemon, "/tubes/mail.a/jobs", b"x"), 401, "UNAUTHORIZED")
        self.assertEqual(self.get(daemon, "/server", token="ops").json["current-jobs-ready"], 0)
        # The page itself and the health checks are public; the metrics are not.
        self.assertEqual(self.raw(daemon, "/").status, 200)
        self.assertEqual(self.raw(daemon, "/healthz").status, 200)
        self.assertEqual(self.raw(daemon, "/metrics").status, 401)
        self.assertEqual(self.raw(daemon, "/metrics", token="web").status, 403)
        self.assertEqual(self.raw(daemon, "/metrics", token="watcher").status, 200)
        self.assertNotIn(TOKENS["ops"], "\n".join(daemon.lines))

    def raw(self, daemon, path, token=None):
        headers = {"Authorization": f"Bearer {TOKENS[token]}"} if token else {}
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def test_a_right_token_does_not_wait_for_a_refusal(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_tokens(environment=clock.environment)
        clock.advance()
        wrong = self.socket_to(daemon)
        wrong.sendall(b"GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\n"
                      b"Authorization: Bearer tbd_wrong\r\n\r\n")
        daemon.wait_for_line("HTTP request refused")
        # No time passes: the right token from this address is answered.
        self.assertEqual(self.get(daemon, "/server", token="ops").status, 200)
        self.assertEqual(select.select([wrong], [], [], 0)[0], [])
        clock.advance(1)
        self.assertEqual(self.get(daemon, "/server", token="ops").status, 200)
        self.assertIn(b" 401 ", wrong.recv(4096))

    def test_roles(self):
        daemon = self.serve_tokens()
        self.assertEqual(self.get(daemon, "/access", token="web").json,
                         {"api": "full", "auth": "token", "role": "web", "verbs": ["produce"],
                          "tubes": ["mail.*"], "title": None, "color": None,
                          "version": self.get(daemon, "/access", token="ops").json["version"]})
        job = self.put(daemon, b"1", "mail.a", token="web")
        other = self.put(daemon, b"2", "secret", token="ops")
        self.assert_problem(self.post(daemon, "/tubes/secret/jobs", b"x", token="web"), 403, "DENIED")
        batch = b'[{"body": "a"}, {"body": "b"}]'
        self.assert_problem(self.post(daemon, "/tubes/secret/put-batch", batch, token="web"), 403,
                            "DENIED")
        self.assert_problem(self.post(daemon, "/tubes/mail.a/put-batch", batch, token="watcher"),
                            403, "DENIED")
        self.assert_problem(self.ask(daemon, "DELETE", f"/jobs?ids={job},{other}", token="web"),
                            403, "DENIED")
        self.assertEqual(self.get(daemon, "/server", token="ops").json["total-jobs"], 2)
        self.assert_problem(self.get(daemon, "/tubes/mail.a", token="web"), 403, "DENIED")
        self.assert_problem(self.get(daemon, "/settings", token="watcher"), 403, "DENIED")
        # Who may inspect a tube may read its policy, and not change it.
        policy = self.get(daemon, "/tubes/mail.a/policy", token="watcher")
        self.assertEqual((policy.status, policy.json["max-jobs"]), (200, 0))
        self.assert_problem(self.get(daemon, "/tubes/secret/policy", token="watcher"), 403, "DENIED")
        self.assert_problem(self.get(daemon, "/tubes/mail.a/policy", token="web"), 403, "DENIED")
        for request in (lambda token: self.ask(daemon, "PUT", "/tubes/mail.a/policy/max-jobs",
                                               {"value": 7}, token=token),
                        lambda token: self.ask(daemon, "DELETE", "/tubes/mail.a/policy/max-jobs",
                                               token=token)):
            self.assert_problem(request("watcher"), 403, "DENIED")
            self.assertEqual(self.get(daemon, "/tubes/mail.a/policy", token="ops").json, policy.json)
        self.assert_problem(self.get(daemon, "/events", token="web"), 403, "DENIED")
        self.assert_problem(self.post(daemon, "/drain", token="watcher"), 403, "DENIED")
        # A job of another tube seems not to exist.
        self.assertEqual(self.get(daemon, f"/jobs/{job}", token="watcher").status, 200)
        self.assert_problem(self.get(daemon, f"/jobs/{other}", token="watcher"), 404, "NOT_FOUND")
        self.assert_problem(self.get(daemon, f"/jobs/{other}/body", token="watcher"), 404,
                            "NOT_FOUND")
        names = [tube["name"] for tube in self.get(daemon, "/tubes", token="watcher").json["tubes"]]
        self.assertEqual(names, ["mail.a"])
        sorted_names = self.get(daemon, "/tubes?sort=ready", token="watcher").json
        self.assertEqual((sorted_names["total"], sorted_names["tubes"][0]["name"]), (1, "mail.a"))
        self.assertEqual(self.get(daemon, "/settings", token="ops").status, 200)
        daemon.wait_for_line("denied")

    def test_a_worker_without_inspect(self):
        daemon = self.serve_tokens()
        job = self.put(daemon, b"work", "mail.a", "?pri=9", token="ops")
        held = self.post(daemon, "/tubes/mail.a/reserve", token="worker")
        self.assertEqual((held.status, held.json["id"], held.json["body"]), (201, job, "work"))
        path = f"/reservations/{held.json['token']}"
        # The role allows one connection, which the reservation uses.
        self.assert_problem(self.post(daemon, "/tubes/mail.a/reserve", token="worker"), 507,
                            "OUT_OF_MEMORY")
        # The token of a reservation is valid only for its role.
        self.assert_problem(self.ask(daemon, "DELETE", path, token="ops"), 404, "NOT_FOUND")
        self.assertEqual(self.post(daemon, path + "/release", token="worker").status, 200)
        self.assertEqual(self.get(daemon, f"/jobs/{job}", token="ops").json["pri"], 9)

    def test_a_revoked_token(self):
        daemon = self.serve_tokens()
        self.put(daemon, b"x", "mail.a", "?ttr=1000", token="ops")
        held = self.post(daemon, "/tubes/mail.a/reserve", token="worker").json
        stream = Events(self, daemon, token="watcher")
        stream.next("tubes")
        half = self.socket_to(daemon)
        half.sendall(f"POST /api/v1/reservations/{held['token']}/touch HTTP/1.1\r\nHost: localhost\r\n"
                     f"Authorization: Bearer {TOKENS['worker']}\r\nX-Requested-By: t\r\n"
                     "Content-Length: 13\r\n\r\n{".encode())
        self.rewrite(daemon, http_settings={"http.auth": "token"}, settings=self.settings(
            {"name": "ops", "verbs": ["inspect"], "tokens": ["ops"]}))
        self.assertEqual(self.get(daemon, "/server", token="worker").status, 401)
        self.assertEqual(self.get(daemon, "/server", token="ops").json["current-jobs-reserved"], 0)
        self.assert_problem(self.get(daemon, f"/reservations/{held['token']}", token="ops"), 404,
                            "NOT_FOUND")
        stream.assert_ends()
        half.sendall(b'"seconds":5}')
        self.assertIn(b"HTTP/1.1 401", half.recv(4096))
        self.assert_healthy(daemon)

    def test_a_role_for_all(self):
        daemon = self.serve(http_settings={"http.role": "watcher"}, settings=self.settings())
        self.assertEqual(self.get(daemon, "/tubes").json["tubes"], [])
        self.assert_problem(self.post(daemon, "/tubes/mail.a/jobs", b"x"), 403, "DENIED")

    def test_certificates(self):
        mailer = self.authority.issue("mailer", client=True)
        stranger = self.authority.issue("stranger", client=True)
        role = table("[[role]]", {"name": "mail", "verbs": ["inspect"], "subjects": ["CN=mailer"]})
        daemon = self.serve(settings=role, http_settings={
            "http.auth": "mtls",
            **Tls((self.server,), {"client_ca": self.authority.ca}).keys("http.tls.")})
        known = tls_context(self.authority, mailer)
        self.assertEqual(self.get(daemon, "/access", context=known).json["role"], "mail")
        self.assert_problem(self.post(daemon, "/drain", context=known), 403, "DENIED")
        self.assert_problem(self.get(daemon, "/server", context=tls_context(self.authority, stranger)),
                            401, "UNAUTHORIZED")

    def test_users_of_a_unix_socket(self):
        user = pwd.getpwuid(os.getuid()).pw_name
        path = self.directory / "http.sock"
        role = table("[[role]]", {"name": "me", "verbs": ["inspect"], "users": [user]})
        daemon = self.serve(settings=role, http_settings={"http.listen": f"unix:{path}",
                                                          "http.auth": "peer"})
        self.assertEqual(self.get(daemon, "/access").json["role"], "me")
        self.assert_problem(self.post(daemon, "/drain"), 403, "DENIED")

    def test_read_changes_nothing(self):
        daemon = self.serve(api="read")
        job = self.connect(daemon).put(b"x")
        for method, path in (("POST", "/tubes/default/jobs"), ("DELETE", f"/jobs/{job}"),
                             ("POST", "/drain"), ("POST", "/tubes/default/reserve"),
                             ("PUT", "/tubes/default/policy/ttl")):
            self.assert_problem(self.ask(daemon, method, path, b""), 403)
        self.assertEqual(self.get(daemon, f"/jobs/{job}/body").body, b"x")
        self.assertEqual(self.get(daemon, "/access").json["api"], "read")


class OtherSites(ApiTest):
    def test_hosts(self):
        daemon = self.serve(http_settings={"http.hosts": ["queue.example"]})
        for host in ("localhost", "127.0.0.1", "localhost:1234", "[::1]:11380", "queue.example",
                     "QUEUE.example:443", "queue.example."):
            self.assertEqual(self.get(daemon, "/server", headers={"Host": host}).status, 200, host)
        for host in ("evil.example", "localhost.evil.example", "queue.example.evil.example", "",
                     "[::1", "127.0.0.1.evil.example"):
            answer = self.get(daemon, "/server", headers={"Host": host})
            self.assertIn(answer.status, (400, 421), host)

    def test_origins(self):
        daemon = self.serve()
        own = "http://" + daemon.http_addresses[0]
        self.assertEqual(self.get(daemon, "/server", headers={"Origin": own}).status, 200)
        for origin in ("http://evil.example", "null", own + "0", "http://localhost:1"):
            self.assert_problem(self.get(daemon, "/server", headers={"Origin": origin}), 403)
            self.assert_problem(self.post(daemon, "/drain", headers={"Origin": origin}), 403)
        self.assertEqual(self.get(daemon, "/server").json["draining"], False)

    def test_a_change_needs_the_header(self):
        daemon = self.serve()
        for value in (None, ""):
            self.assert_problem(self.post(daemon, "/drain", headers={"X-Requested-By": value}), 403)
        self.assertEqual(self.get(daemon, "/server", headers={"X-Requested-By": None})
                         .json["draining"], False)

    def test_headers_of_the_page(self):
        daemon = self.serve()
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            page = answer.read()
        self.assertEqual((answer.status, answer.headers["Content-Encoding"]), (200, "gzip"))
        self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        self.assertLess(len(page), 20_000)
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/", headers={"If-None-Match": answer.headers["ETag"]})
            self.assertEqual(connection.getresponse().status, 304)


class KeptConnections(ApiTest):
    def requests(self, daemon, context=None):
        """Yields the status of each request, all of them on one connection."""
        with contextlib.closing(self.connection(daemon, context)) as connection:
            for number in range(5):
                for method, path, body in (
                        ("POST", "/api/v1/tubes/mail/jobs", b"to: ada"),
                        ("POST", "/api/v1/tubes/mail/reserve", b'{"timeout": 50}'),
                        ("GET", "/api/v1/jobs/99", None), ("DELETE", "/api/v1/tubes", None),
                        ("GET", "/metrics", None), ("HEAD", "/healthz", None)):
                    connection.request(method, path, body, {"X-Requested-By": "test"})
                    plain = connection.sock
                    answer = connection.getresponse()
                    answer.read()
                    self.assertIs(connection.sock, plain, (number, method, path))
                    yield answer.status

    def test_requests_in_turn(self):
        daemon = self.serve()
        self.assertEqual(list(self.requests(daemon)), 5 * [201, 201, 404, 405, 200, 200])

    def test_requests_in_turn_over_tls(self):
        daemon = self.serve(http_settings=Tls((self.server,), {}).keys("http.tls."))
        context = tls_context(self.authority)
        self.assertEqual(list(self.requests(daemon, context)), 5 * [201, 201, 404, 405, 200, 200])

    def test_a_short_answer_is_one_record_of_tls(self):
        daemon = self.serve(http_settings=Tls((self.server,), {}).keys("http.tls."))
        arrived, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = tls_context(self.authority).wrap_bio(arrived, sent, server_hostname="127.0.0.1")
        with contextlib.closing(self.socket_to(daemon)) as plain:
            raw = bytearray()

            def step(call):
                while True:
                    try:
                        result = call()
                    except ssl.SSLWantReadError:
                        result = None
                    plain.sendall(sent.read())
                    if result is not None:
                        return result
                    more = plain.recv(65536)
                    self.assertTrue(more, "the server has closed the connection")
                    raw.extend(more)
                    arrived.write(more)

            step(lambda: tls.do_handshake() or True)
            for _ in range(3):  # the tickets of the session precede the first answer
                raw.clear()
                tls.write(b"POST /api/v1/tubes/mail/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                          b"X-Requested-By: test\r\nContent-Length: 5\r\n\r\nhello")
                answer = b""
                while not answer.endswith(b"}\n"):
                    answer += step(lambda: tls.read(65536))
                self.assertTrue(answer.startswith(b"HTTP/1.1 201 "), answer)
            # A record: its type, its version, and the length of what follows.
            self.assertEqual(raw[0], 23)
            self.assertEqual(len(raw), 5 + int.from_bytes(raw[3:5], "big"))

    def test_a_body_that_was_refused_ends_the_connection(self):
        daemon = self.serve("-z", "10")
        request = ("POST /api/v1/tubes/mail/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                   "X-Requested-By: test\r\nContent-Length: 1000\r\n\r\n"
                   "DELETE /api/v1/jobs/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with contextlib.closing(self.socket_to(daemon)) as plain:
            plain.sendall(request.encode())
            answer = b"".join(iter(lambda: plain.recv(65536), b""))
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        self.assertEqual(answer.count(b"HTTP/1.1"), 1)
        self.assertIn(b"\r\nConnection: close\r\n", answer)

    def test_a_stop_does_not_wait_for_them(self):
        daemon = self.serve(http_settings={"timeouts.shutdown": "1h"})
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b"ok\n")
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(), 0)

    def test_a_reload_ends_it(self):
        daemon = self.serve()
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b"ok\n")
            self.rewrite(daemon, http_settings={"http.keep_alive": "0s"})
            self.assertEqual(connection.sock.recv(1), b"")
            connection.close()
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            self.assertEqual(answer.headers["Connection"], "close")


class Bounds(ApiTest):
    def test_bodies_that_are_too_long(self):
        daemon = self.serve("--limits-job-bytes", "1000")
        self.assert_problem(self.post(daemon, "/tubes/mail/jobs", b"x" * 1001), 413, "JOB_TOO_BIG")
        self.put(daemon, b"x" * 1000)
        self.assert_problem(self.post(daemon, "/tubes/mail/kick", b" " * 20_000), 413)
        self.assertEqual(self.get(daemon, "/server").json["current-jobs-ready"], 1)

    def test_chunked_bodies(self):
        daemon = self.serve()
        chunked = {"Transfer-Encoding": "chunked"}
        answer = self.ask(daemon, "POST", "/tubes/mail/jobs", iter([b"a", b"b"]), headers=chunked)
        self.assert_problem(answer, 411)
        answer = self.ask(daemon, "POST", "/tubes/mail/kick", iter([b'{"bou', b'nd":1}']),
                          headers=chunked)
        self.assertEqual(answer.json, {"result": "KICKED", "count": 0})
        answer = self.ask(daemon, "POST", "/tubes/mail/kick", iter([b" " * 9000] * 3),
                          headers=chunked)
        self.assert_problem(answer, 413)

    def test_a_put_that_is_cut_short_adds_no_job(self):
        daemon = self.serve()
        client = self.socket_to(daemon)
        client.sendall(b"POST /api/v1/tubes/mail/jobs HTTP/1.1\r\nHost: localhost\r\n"
                       b"X-Requested-By: t\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)
        until("the put to have begun", lambda: self.get(daemon, "/server").json["job-memory"] > 0)
        client.close()
        until("its memory to be free", lambda: self.get(daemon, "/server").json["job-memory"] == 0)
        self.assertEqual(self.get(daemon, "/server").json["total-jobs"], 0)

    def test_clients_that_disconnect_anywhere(self):
        daemon = self.serve()
        self.put(daemon, b"x" * 60_000)
        request = (b"GET /api/v1/jobs/1/body HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for i in range(200):
            client = self.socket_to(daemon)
            client.sendall(request[:1 + i % len(request)] if i % 3 else request)
            if i % 15 == 0:
                client.recv(100)
            client.close()
        until("all to be gone", lambda: self.connections(daemon) == 0)
        self.assert_healthy(daemon)


class Events:
    """A stream of events."""

    def __init__(self, test, daemon, token=None):
        self.test = test
        self.connection = test.connection(daemon)
        test.addCleanup(self.connection.close)
        headers = {"Authorization": f"Bearer {TOKENS[token]}"} if token else {}
        self.connection.request("GET", "/api/v1/events", headers=headers)
        self.answer = self.connection.getresponse()
        test.assertEqual(self.answer.status, 200)
        test.assertEqual(self.answer.headers["Content-Type"], "text/event-stream")

    def event(self):
        lines = []
        while (line := self.answer.readline()) not in (b"\n", b""):
            lines.append(line.decode())
        if not lines:
            return None, None
        self.test.assertEqual([line.split(":")[0] for line in lines], ["event", "data"])
        return lines[0][len("event: "):-1], json.loads(lines[1][len("data: "):])

    def events(self, what):
        """Yields all events. Some arrive each second, so a missing event must not cause a hang."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            yield self.event()
        raise AssertionError(f"waited {SECONDS} s without success for: {what}")

    def next(self, name):
        for event, data in self.events(f"the event {name}"):
            self.test.assertIsNotNone(event, "the stream has ended")
            if event == name:
                return data

    def until_tube(self, condition):
        """Returns the row of the first tube for which the condition is true."""
        for event, data in self.events("the row of a tube"):
            self.test.assertIsNotNone(event, "the stream has ended")
            for row in data["tubes"] if event == "tubes" else ():
                if condition(row):
                    return row

    def assert_ends(self):
        for event, _ in self.events("the end of the stream"):
            if event is None:
                return


class Streams(ApiTest):
    def test_tubes_that_change(self):
        daemon = self.serve()
        self.put(daemon, tube="first")
        begin = time.time()
        stream = Events(self, daemon)
        server = stream.next("server")
        self.assertEqual(server["current-jobs-ready"], 1)
        self.assertGreaterEqual(server["time"] / 1000, int(begin))
        self.assertLessEqual(server["time"] // 1000, time.time())
        first = stream.next("tubes")
        self.assertTrue(first["reset"])
        column = first["columns"].index
        rows = {row[0]: row for row in first["tubes"]}
        self.assertEqual(set(rows), {"default", "first"})
        self.assertEqual(rows["first"][column("ready")], 1)
        job = self.put(daemon, tube="second")
        row = stream.until_tube(lambda row: row[0] == "second")
        self.assertEqual((row[column("ready")], row[column("total")]), (1, 1))
        self.ask(daemon, "DELETE", f"/jobs/{job}")
        while "second" not in (event := stream.next("tubes"))["gone"]:
            self.assertNotIn("reset", event)
        self.assertEqual(stream.next("server")["oldest-ready"]["tube"], "first")

    def test_no_more_than_there_may_be(self):
        daemon = self.serve()
        streams = [Events(self, daemon) for _ in range(EVENT_STREAMS)]
        self.assert_problem(self.get(daemon, "/events"), 503)
        streams.pop().connection.close()
        until("a place to be free", lambda: self.one_more(daemon))
        self.assert_healthy(daemon)

    def one_more(self, daemon):
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/api/v1/events")
            return connection.getresponse().status == 200

    def test_a_reload_ends_it(self):
        daemon = self.serve()
        stream = Events(self, daemon)
        stream.next("server")
        self.rewrite(daemon, api="off")
        stream.assert_ends()
        with contextlib.closing(self.connection(daemon)) as connection:
            connection.request("GET", "/")
            self.assertIn(b"/metrics", connection.getresponse().read())
        self.assertEqual(self.get(daemon, "/server").status, 404)
        self.rewrite(daemon, api="read", count=2)
        self.assertEqual(self.get(daemon, "/server").status, 200)

    def test_the_title_and_the_color(self):
        daemon = self.serve()
        got = self.get(daemon, "/access").json
        self.assertEqual((got["title"], got["color"]), (None, None))
        self.rewrite(daemon, http_settings={"http.title": "pr\u00f6d <b>", "http.color": "#00ff7F"})
        got = self.get(daemon, "/access").json
        self.assertEqual((got["title"], got["color"]), ("pr\u00f6d <b>", "#00ff7F"))
        # A reload with a mistake keeps what is in force.
        self.write_config(table("", {"http.listen": "127.0.0.1:0", "http.api": "full",
                                     "http.color": "crimson"}))
        daemon.signal(signal.SIGHUP)
        self.assertIn("http.color", daemon.wait_for_line("not reloaded"))
        self.assertEqual(self.get(daemon, "/access").json, got)

    def test_history(self):
        begin = time.time()
        daemon = self.serve()
        history = until("a sample", lambda: (
            got if (got := self.get(daemon, "/history").json)["samples"] else None))
        self.assertEqual(history["columns"][0], "time")
        self.assertEqual(len(history["samples"][0]), len(history["columns"]))
        self.assertGreaterEqual(history["samples"][0][0], int(begin))
        self.assertLessEqual(int(history["samples"][0][0]), time.time())


class LoadTest(ApiTest):
    """50 clients use the API at once and read pages of 10,000 tubes; 4 read the stream of
    events."""

    CLIENTS = 50

    def serve_tubes(self):
        daemon = self.serve()
        tubes = 10_000 if not SANITIZED else 1_000
        self.connect(daemon).pump(
            b"".join(b"put-in-tube tube-%d 0 0 600 10\r\n0123456789\r\n" % i for i in range(tubes)),
            tubes)
        return daemon

    @contextlib.contextmanager
    def load(self, daemon):
        """The load runs in processes of its own, because threads would delay the client of the
        queue."""
        self.daemon = daemon
        self.stop = multiprocessing.Event()
        self.requests = multiprocessing.Value("l", 0)
        load = [multiprocessing.Process(target=self.run_threads, args=(target, count), daemon=True)
                for target, count in ((self.use_api, self.CLIENTS), (self.read_events, 4))]
        for process in load:
            process.start()
        until("the load to begin", lambda: self.requests.value > self.CLIENTS)
        try:
            yield
        finally:
            self.stop.set()
            for process in load:
                process.join(SECONDS)

    def run_threads(self, target, count):
        threads = [threading.Thread(target=target, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def read_events(self, _):
        stream = Events(self, self.daemon)
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            while not self.stop.is_set() and stream.event()[0] is not None:
                pass

    def use_api(self, number):
        tube = f"tube-{number}"
        steps = [("GET", "/tubes?limit=1000", None), ("GET", "/tubes?sort=ready&order=desc", None),
                 ("GET", f"/tubes/{tube}/jobs", None), ("POST", f"/tubes/{tube}/jobs", b"x"),
                 ("GET", "/server", None), ("POST", f"/tubes/{tube}/kick", {"bound": 10}),
                 ("GET", "/clients", None), ("GET", f"/tubes/{tube}", None)]
        while not self.stop.is_set():
            for method, path, body in steps:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.ask(self.daemon, method, path, body)
                    with self.requests.get_lock():
                        self.requests.value += 1


class Load(LoadTest):
    def test_clients_of_the_queue_beside_the_api(self):
        daemon = self.serve_tubes()
        client = self.connect(daemon)
        client.ask("use probe")
        with self.load(daemon):
            begin = self.requests.value
            for _ in range(300):
                job = client.put(b"probe")
                self.assertEqual(client.ask(f"delete {job}"), "DELETED")
            until("the API to be served as well",
                  lambda: self.requests.value > begin + self.CLIENTS)


if __name__ == "__main__":
    unittest.main()
