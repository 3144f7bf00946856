"""Authentication and roles on the real daemon: tokens, certificates and users, the limits of roles,
reloads, and the log.
"""

import os
import pwd
import time
import unittest

from certificates import Authority
from harness import SECONDS, Client, StandingClock, tls_context, until, write_tokens
from tls_tests import TlsTest, table

FAMILIES = ["produce", "work", "inspect", "admin"]
TOKENS = {"web-1": "tbd_token-of-web-1", "worker-1": "tbd_token-of-worker-1",
          "admin-1": "tbd_token-of-admin-1"}
WRONG = "tbd_a-token-that-nobody-has"
SECRET_BODY = b"secret-body-of-a-job"
HELD = 0.1  # least time in seconds that a refused connection stays open


def role(name, *verbs, **keys):
    return table("[[role]]", {"name": name, "verbs": list(verbs), **keys})


WEB = role("web", "produce", tubes=["mail.*"], tokens=["web-1"])
WORKER = role("worker", "work", "inspect", tokens=["worker-1"])
ADMIN = role("admin", *FAMILIES, tokens=["admin-1"])


class AccessTest(TlsTest):
    def setUp(self):
        super().setUp()
        self.tokens = write_tokens(self.directory / "tokens", TOKENS)
        self.path = self.directory / "socket"

    def text(self, *parts, settings=""):
        return settings + table("", {"auth.tokens": self.tokens}) + "".join(parts)

    def local(self, **keys):
        """Returns the settings of a listener on a unix socket."""
        return table("[[listen]]", {"address": f"unix:{self.path}", **keys})

    def serve_roles(self, *parts, settings="", **options):
        """Starts a daemon with these settings, by default with a TLS listener that accepts
        tokens."""
        if not any("[[listen]]" in part for part in parts):
            parts = (self.listen(keys={"auth": "token"}), *parts)
        path = self.write_config(self.text(*parts, settings=settings))
        listeners = sum(part.count("[[listen]]") for part in parts)
        return self.start("--config", path, listen=None, listeners=listeners, **options)

    def reload_roles(self, daemon, *parts, count=1, settings=""):
        if not any("[[listen]]" in part for part in parts):
            parts = (self.listen(keys={"auth": "token"}), *parts)
        self.write_config(self.text(*parts, settings=settings))
        return self.reload(daemon, count)

    def login(self, daemon, name, index=0):
        client = self.connect_to(daemon, index)
        self.assertEqual(client.ask(f"auth {TOKENS[name]}"), "AUTHENTICATED")
        return client

    def connect_to(self, daemon, index=0):
        if daemon.addresses[index].startswith("unix:"):
            return self.connect(daemon, index)
        return self.connect_tls(daemon, index)

    def assert_closed(self, client, *replies):
        self.assertEqual(client.rest(), b"".join(reply.encode() + b"\r\n" for reply in replies))

    def assert_no_reply(self, client):
        """Checks that neither a reply nor the end of the connection has arrived."""
        client.socket.setblocking(False)
        self.assertRaises(BlockingIOError, client.receive)
        client.socket.settimeout(SECONDS)

    def assert_no_secret(self, daemon, *others):
        log = "\n".join(daemon.lines)
        for secret in (*TOKENS.values(), WRONG, SECRET_BODY.decode(), *others):
            self.assertNotIn(secret, log)


class Tokens(AccessTest):
    def check_tokens(self, daemon):
        web, worker = self.login(daemon, "web-1"), self.login(daemon, "worker-1")
        self.assertEqual(web.ask("use mail.out"), "USING mail.out")
        job = web.put(SECRET_BODY)
        self.assertEqual(web.ask("use other"), "DENIED")
        self.assertEqual(web.ask("reserve-with-timeout 0"), "DENIED")
        self.assertEqual(worker.ask("watch mail.out"), "WATCHING 2")
        self.assertEqual(worker.reserve(), (job, SECRET_BODY))
        worker.send(b"put 0 0 9 1\r\nx\r\n")
        self.assertEqual(worker.line(), "DENIED")
        self.assertEqual(web.ask(f"delete {job}"), "DENIED")
        self.assertEqual(worker.ask(f"delete {job}"), "DELETED")
        # Another token changes the role.
        self.assertEqual(worker.ask(f"auth {TOKENS['web-1']}"), "AUTHENTICATED")
        self.assertEqual(worker.ask("reserve-with-timeout 0"), "DENIED")
        self.assert_no_secret(daemon)

    def test_over_tls(self):
        self.check_tokens(self.serve_roles(WEB, WORKER, ADMIN))

    def test_a_right_token_does_not_wait_for_a_refusal(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_roles(WEB, WORKER, ADMIN, environment=clock.environment)
        clock.advance()
        client = self.connect_tls(daemon)
        client.send(f"auth {WRONG}\r\n".encode())
        daemon.wait_for_line("warning unauthorized")
        # No time passes: the token and other commands from this address are answered.
        worker = self.login(daemon, "worker-1")
        self.assertEqual(worker.ask("list-tube-used"), "USING default")
        self.assert_no_reply(client)
        clock.advance(1)
        worker.ask("list-tube-used")
        self.assertEqual(client.line(), "UNAUTHORIZED")
        for _ in range(2):  # a later tick begins: the connection is held
            worker.ask("list-tube-used")
        clock.advance(1)  # for the same time
        worker.ask("list-tube-used")
        self.assert_closed(client)

    def test_a_client_that_leaves_before_its_refusal(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_roles(WEB, WORKER, ADMIN, environment=clock.environment)
        clock.advance()
        for end in (Client.close, Client.reset, Client.half_close):
            client = self.connect_tls(daemon)
            client.send(f"auth {WRONG}\r\n".encode())
            end(client)
            # The next client may reuse its session.
            worker = self.login(daemon, "worker-1")
            clock.advance(1)  # past the delay
            for _ in range(10):
                self.assertEqual(worker.ask("list-tube-used"), "USING default")
            worker.close()

    def test_a_silent_client_is_closed(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_roles(WEB, WORKER, ADMIN, environment=clock.environment,
                                  settings='timeouts.handshake = "1m"\n')
        clock.advance()
        worker = self.login(daemon, "worker-1")
        silent, slow = self.connect_tls(daemon), self.connect_tls(daemon)
        slow.send(b"auth ")
        for _ in range(59):  # a byte now and then does not help
            clock.advance(1)
            slow.send(b"x")
            self.assertEqual(worker.ask("list-tube-used"), "USING default")
        self.assert_no_reply(silent)
        self.assert_no_reply(slow)
        clock.advance(2)
        worker.ask("list-tube-used")
        self.assert_closed(silent)
        self.assert_closed(slow)
        self.assertIn("timeouts.handshake", daemon.wait_for_line("timeouts.handshake"))
        self.assertEqual(worker.ask("list-tube-used"), "USING default")

    def test_clients_that_have_not_authenticated_are_bounded(self):
        daemon = self.serve_roles(self.local(auth="token"), WEB, WORKER, ADMIN,
                                  settings="limits.handshakes = 10\n")
        worker = self.login(daemon, "worker-1")
        silent = [self.connect(daemon) for _ in range(30)]
        for client in silent[:20]:  # the oldest first
            self.assert_closed(client)
        self.assertEqual(worker.stats()["current-connections"], 11)
        self.assertEqual(silent[-1].ask(f"auth {TOKENS['web-1']}"), "AUTHENTICATED")
        self.assertEqual(silent[-10].ask(f"auth {TOKENS['web-1']}"), "AUTHENTICATED")


class Certificates(AccessTest):
    def test_subjects_and_names(self):
        clients = Authority(self.directory, name="CA of clients")
        roles = (role("by-subject", "inspect", subjects=["CN=worker 1", "DNS:first.example"]),
                 role("by-name", "produce", subjects=["DNS:web.example", "email:a@web.example",
                                                      "URI:spiffe://web/one"]))
        daemon = self.serve_roles(self.listen(client_ca=clients.ca, keys={"auth": "mtls"}), *roles)

        def connect(name, *names):
            certificate = clients.issue(name, names=names, client=True)
            return self.connect_tls(daemon, context=tls_context(self.authority, certificate))
        for client in (connect("worker 1"), connect("x", "DNS:first.example"),
                       connect("worker 1", "DNS:unknown.example"),
                       connect("x", "DNS:none.example", "DNS:first.example", "DNS:web.example")):
            self.assertEqual(client.ask("use x"), "DENIED")
            self.assertEqual(client.stats()["total-jobs"], 0)
            client.close()
        for names in (("DNS:web.example",), ("email:a@web.example",), ("URI:spiffe://web/one",)):
            client = connect("worker 1", *names)  # names precede the subject
            self.assertEqual(client.ask("use x"), "USING x")
            self.assertEqual(client.ask("reserve"), "DENIED")
        for count, (name, *names) in enumerate((
                ("worker 2",), ("worker",), ("web.example",), ("x", "URI:DNS:web.example"),
                ("x", "DNS:WEB.example.evil"), ("x/O=worker 1",)), 1):
            self.assert_closed(connect(name, *names), "UNAUTHORIZED")
            line = daemon.wait_for_line("connection refused: no role", count)
            self.assertIn(name.split("/")[0], line)
            if count % 4 == 0:  # few lines per second are logged
                break
        # `auth` is not a command on this listener.
        client = connect("worker 1")
        self.assertEqual(client.ask(f"auth {TOKENS['web-1']}"), "UNKNOWN_COMMAND")

    def test_a_reload_takes_the_role_of_a_subject(self):
        certificate = self.authority.issue("one", client=True)
        listen = self.listen(client_ca=self.authority.ca, keys={"auth": "mtls"})
        both = role("both", *FAMILIES, subjects=["CN=one", "CN=two"])
        daemon = self.serve_roles(listen, both)

        def connect():
            return self.connect_tls(daemon, context=tls_context(self.authority, certificate))
        client = connect()
        self.assertEqual(client.ask("use a"), "USING a")
        self.reload_roles(daemon, listen, both.replace('"CN=one", ', ""))
        self.assert_closed(client)
        self.assert_closed(connect(), "UNAUTHORIZED")
        self.reload_roles(daemon, listen, both, count=2)
        self.assertEqual(connect().ask("use a"), "USING a")


class Users(AccessTest):
    def check_peer(self, served, **keys):
        daemon = self.serve_roles(self.local(auth="peer"), role("own", "inspect", **keys),
                                  role("others", "produce", users=["4000000000"]))
        client = self.connect(daemon)
        if served:
            self.assertEqual(client.ask("list-tube-used"), "USING default")
            self.assertEqual(client.ask("use x"), "DENIED")
        else:
            self.assert_closed(client, "UNAUTHORIZED")
        daemon.end()
        return daemon

    def test_by_user(self):
        self.check_peer(True, users=[pwd.getpwuid(os.getuid()).pw_name])
        self.check_peer(True, users=[str(os.getuid())])

    def test_no_role(self):
        other = next(entry for entry in pwd.getpwall() if entry.pw_uid != os.getuid())
        daemon = self.check_peer(False, users=[other.pw_name], groups=["4000000000"])
        self.assertIn("unix uid", daemon.wait_for_line("connection refused: no role"))

class Listeners(AccessTest):
    def test_the_role_of_a_listener(self):
        daemon = self.serve_roles(self.local(role="reader"), self.listen(keys={"role": "reader"}),
                                  table("[[listen]]", {"address": "127.0.0.1:0"}),
                                  role("reader", "inspect"))
        for index in (0, 1):
            client = self.connect_to(daemon, index)
            self.assertEqual(client.ask("list-tube-used"), "USING default")
            self.assertEqual(client.ask("use x"), "DENIED")
            self.assertEqual(client.ask(f"auth {WRONG}"), "UNKNOWN_COMMAND")
        self.assertEqual(self.connect(daemon, 2).ask("use x"), "USING x")


class Limits(AccessTest):
    def test_connections(self):
        limited = role("limited", *FAMILIES, max_connections=2)
        by_token = role("by-token", *FAMILIES, tokens=["web-1"], max_connections=2)
        daemon = self.serve_roles(self.local(role="limited"), self.listen(keys={"auth": "token"}),
                                  limited, by_token)
        first, second = self.connect(daemon), self.connect(daemon)
        for client in (first, second):
            client.ask("list-tube-used")
        self.assert_closed(self.connect(daemon), "OUT_OF_MEMORY")
        daemon.wait_for_line("connection refused: its role is full")
        first.close()
        until("room", lambda: second.stats()["current-connections"] == 1)
        self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")
        others = [self.login(daemon, "web-1", 1) for _ in range(2)]
        client = self.connect_tls(daemon, 1)
        client.send(f"auth {TOKENS['web-1']}\r\n".encode())
        self.assert_closed(client, "OUT_OF_MEMORY")
        daemon.wait_for_line("role is full")
        for other in others:
            self.assertEqual(other.ask("list-tube-used"), "USING default")

class Held(AccessTest):
    """A refused connection is closed later: a client that reconnects immediately does so only a few
    times per second."""

    def assert_slow(self, daemon, *replies, sends=b"", index=0):
        """Reconnects as soon as the connection is closed."""
        times = 5
        begin = time.monotonic()
        for _ in range(times):
            client = self.connect(daemon, index)
            if sends:
                client.send(sends)
            self.assert_closed(client, *replies)
            client.close()
        self.assertGreaterEqual(time.monotonic() - begin, times * HELD)

    def test_without_a_token(self):
        daemon = self.serve_roles(self.local(auth="token"), WEB)
        self.assert_slow(daemon, "UNAUTHORIZED", sends=b"list-tubes-watched\r\n")
        self.assertEqual(self.login(daemon, "web-1").ask("use mail.out"), "USING mail.out")

    def test_a_stop_does_not_wait_for_it(self):
        # No time passes in the server, so a held connection never expires.
        clock = StandingClock(self.directory)
        daemon = self.serve_roles(self.local(auth="token"), WEB, environment=clock.environment)
        clock.advance()
        refused = self.connect(daemon)
        refused.send(b"stats\r\n")
        self.assertEqual(refused.line(), "UNAUTHORIZED")
        other = self.login(daemon, "web-1")
        other.ask("use mail.out")
        self.assert_no_reply(refused)
        other.close()
        self.assertEqual(daemon.end(), 0)
        self.assertEqual(refused.rest(), b"")


class Reload(AccessTest):
    def test_a_role_that_is_removed_closes_its_clients(self):
        daemon = self.serve_roles(WEB, WORKER, ADMIN)
        admin, worker, waiting = (self.login(daemon, name)
                                  for name in ("admin-1", "worker-1", "worker-1"))
        job = admin.put()
        worker.reserve()
        waiting.send(b"reserve\r\n")
        until("it to wait", lambda: admin.stats()["current-waiting"] == 1)
        self.reload_roles(daemon, WEB, ADMIN)
        self.assert_closed(worker)
        self.assertNotIn(b"RESERVED", waiting.rest())
        self.assertEqual(admin.stats(f"stats-job {job}")["state"], "ready")
        client = self.connect_tls(daemon)
        client.send(f"auth {TOKENS['worker-1']}\r\n".encode())
        self.assert_closed(client, "UNAUTHORIZED")

    def test_tokens_that_are_removed_or_replaced(self):
        daemon = self.serve_roles(WEB, WORKER, ADMIN)
        admin, worker, web = (self.login(daemon, name)
                              for name in ("admin-1", "worker-1", "web-1"))
        write_tokens(self.tokens, {"admin-1": TOKENS["admin-1"], "web-1": "tbd_a-new-token"})
        self.assertIn(" changed=auth.tokens ", self.reload_roles(daemon, WEB, WORKER, ADMIN))
        self.assert_closed(worker)
        self.assert_closed(web)
        self.assertEqual(admin.ask("list-tube-used"), "USING default")
        client = self.connect_tls(daemon)
        self.assertEqual(client.ask("auth tbd_a-new-token"), "AUTHENTICATED")
        self.assertIn("no token worker-1", daemon.wait_for_line("check the access files"))

    def test_a_client_that_loses_its_token_by_its_own_reload_is_answered(self):
        daemon = self.serve_roles(WEB, WORKER, ADMIN)
        admin, other = self.login(daemon, "admin-1"), self.login(daemon, "admin-1")
        write_tokens(self.tokens, {"admin-1": "tbd_another-token", "web-1": TOKENS["web-1"],
                                   "worker-1": TOKENS["worker-1"]})
        admin.send(b"reload\r\nuse x\r\n")
        self.assertEqual(admin.rest(), b"OK 45\r\n---\nchanged: [auth.tokens]\nneeds-restart: []\n\r\n")
        self.assertEqual(other.rest(), b"")
        client = self.connect_tls(daemon)
        self.assertEqual(client.ask("auth tbd_another-token"), "AUTHENTICATED")

    def test_only_administrators_reload(self):
        some = role("some", *FAMILIES, tubes=["mail.*"], tokens=["worker-1"])
        daemon = self.serve_roles(WEB, some, ADMIN)
        for name in ("web-1", "worker-1"):
            self.assertEqual(self.login(daemon, name).ask("reload"), "DENIED")
        self.assertEqual(daemon.lines_with("reloaded"), [])
        self.login(daemon, "admin-1").ask("reload")
        line = daemon.wait_for_line(" admin command ")
        self.assertIn("command=reload", line)
        self.assertIn("reply=OK", line)

    def test_a_wrong_file_changes_nothing(self):
        daemon = self.serve_roles(WEB, WORKER, ADMIN)
        worker = self.login(daemon, "worker-1")
        self.tokens.write_text("worker-1 nonsense\n", encoding="utf-8")
        daemon.signal(1)
        self.assertNotIn("nonsense", daemon.wait_for_line("error not reloaded"))
        self.assertEqual(worker.ask("list-tube-used"), "USING default")
        self.assertEqual(self.login(daemon, "admin-1").ask("use x"), "USING x")

    def test_a_listener_takes_tokens_from_now_on(self):
        """Connected clients are not affected; new clients authenticate."""
        daemon = self.serve_roles(self.local(), WEB, WORKER, ADMIN)
        old = self.connect(daemon)
        self.assertEqual(old.ask("use x"), "USING x")
        self.reload_roles(daemon, self.local(auth="token"), WEB, WORKER, ADMIN)
        new = self.connect(daemon)
        new.send(b"use x\r\n")
        self.assert_closed(new, "UNAUTHORIZED")
        self.assertEqual(self.login(daemon, "admin-1").ask("use x"), "USING x")
        self.assertEqual(old.ask("use y"), "USING y")


class Log(AccessTest):
    def do_everything(self, daemon):
        admin, web = self.login(daemon, "admin-1"), self.login(daemon, "web-1")
        admin.put(SECRET_BODY)
        self.assertEqual(admin.ask("pause-tube default 1"), "PAUSED")
        self.assertEqual(admin.ask("kick 10"), "KICKED 0")
        self.assertEqual(web.ask("list-tubes"), "DENIED")
        self.assertEqual(web.ask("use other"), "DENIED")
        web.ask("use mail.x")
        job = web.put(SECRET_BODY)
        self.assertEqual(admin.stats(f"stats-job {job}")["state"], "ready")
        for line in ("stats", f"put 0 0 9 {len(SECRET_BODY)}\r\n{SECRET_BODY.decode()}",
                     f"auth {WRONG}"):
            client = self.connect_to(daemon)
            client.send(line.encode() + b"\r\n")
            self.assert_closed(client, "UNAUTHORIZED")

    def test_text(self):
        daemon = self.serve_roles(self.local(auth="token"), WEB, WORKER, ADMIN)
        self.do_everything(daemon)
        self.assertRegex(
            daemon.wait_for_line("admin command"),
            r' info admin command command=pause-tube tube=default reply=PAUSED '
            r'principal="token admin-1" '
            rf'role=admin address="unix uid {os.getuid()} pid {os.getpid()}" session=\d+$')
        self.assertIn("command=kick tube=default reply=KICKED jobs=0 principal=",
                      daemon.wait_for_line("admin command", 2))
        self.assertRegex(
            daemon.wait_for_line(" denied "),
            r' warning denied command=list-tubes tube=\S* principal="token web-1" role=web address=')
        self.assertRegex(daemon.wait_for_line(" denied ", 2), "command=use tube=other ")
        for count, command in enumerate(("stats", "put", "auth"), 1):
            self.assertRegex(daemon.wait_for_line("warning unauthorized", count),
                             rf'command={command} tube=\S* principal=\S* role=\S* address="unix')
        self.assertEqual(len(daemon.lines_with("admin command")), 2)
        self.assert_no_secret(daemon)

    def test_the_audit_is_bounded_and_says_what_it_leaves_out(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_roles(WEB, WORKER, ADMIN, environment=clock.environment,
                                  settings='http.listen = "127.0.0.1:0"\n')
        clock.advance()
        admin = self.login(daemon, "admin-1")
        self.assertEqual(admin.ask("list-tube-used"), "USING default")
        admin.send(b"kick 1\r\n" * 130)
        for _ in range(130):
            self.assertEqual(admin.line(), "KICKED 0")
        clock.advance(1)
        self.assertEqual(admin.ask("list-tube-used"), "USING default")
        until("the end of the second or a line too many",
              lambda: daemon.lines_with("left out of the log")
              or len(daemon.lines_with("info admin command ")) > 100)
        self.assertEqual(len(daemon.lines_with("info admin command ")), 100)
        self.assertTrue(daemon.wait_for_line("warning admin commands left out of the log")
                        .endswith(" count=30"))
        # In the next second every line is logged, without a summary.
        self.assertEqual(admin.ask("kick 1"), "KICKED 0")
        clock.advance(2)
        self.assertEqual(admin.ask("kick 1"), "KICKED 0")
        daemon.wait_for_line("info admin command ", 102)
        self.assertEqual(len(daemon.lines_with("left out of the log")), 1)
        page = Client(daemon.http_addresses[0])
        page.send(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        self.assertIn(b"\ntubed_admin_commands_total 132\n", page.rest())
        page.close()

if __name__ == "__main__":
    unittest.main()
