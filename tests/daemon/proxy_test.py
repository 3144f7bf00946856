"""The PROXY protocol on the real daemon, with headers made by the test. haproxy_test.py has a real
proxy.
"""

import contextlib
import os
import socket
import unittest

from harness import StandingClock, tls_context, until, write_tokens
from listeners_test import has_ipv6
from proxies import (FOUND, LOCAL, PROXY, SIGNATURE, UNKNOWN, ProxyTest, binary, field, line,
                     tls_field)
from tls_tests import table

TOKENS = {"worker-1": "tbd_token-of-worker-1"}


class Addresses(ProxyTest):
    def test_both_versions_name_the_client(self):
        daemon = self.serve_proxies()
        for header in (line(), binary(), binary(field(0xea, b"cloud"))):
            row = self.own(self.connect_by(daemon, header))
            self.assertEqual((row["address"], row.get("tls-name")), (FOUND, None))
        v6 = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
        row = self.own(self.connect_by(
            daemon, binary(family=0x21, addresses=v6 + v6 + b"\0\x01\0\x02")))
        self.assertEqual(row["address"], "[2001:db8::1]:1")
        paths = b"/run/client.sock".ljust(108, b"\0") + bytes(108)
        row = self.own(self.connect_by(daemon, binary(family=0x31, addresses=paths)))
        self.assertEqual(row["address"], "unix:/run/client.sock")

    def test_a_connection_of_the_proxy_itself_has_its_own_address(self):
        daemon = self.serve_proxies()
        for header in (LOCAL, UNKNOWN, binary(command=0), binary(family=0x00, addresses=b"")):
            client = self.connect_by(daemon, header)
            host, port = client.socket.getsockname()
            self.assertEqual(self.own(client)["address"], f"{host}:{port}")
            self.assertEqual(host, PROXY)

    def test_the_name_of_a_certificate_is_shown(self):
        daemon = self.serve_proxies()
        row = self.own(self.connect_by(daemon, binary(tls_field("worker 1"))))
        self.assertEqual((row["address"], row["role"], row["tls-name"]), (FOUND, "-", "worker_1"))
        row = self.own(self.connect_by(daemon, binary(tls_field("worker 1", verified=False))))
        self.assertNotIn("tls-name", row)

    def test_bytes_after_the_header_are_commands(self):
        daemon = self.serve_proxies()
        for number, header in enumerate((line(), binary(), LOCAL, UNKNOWN), 1):
            client = self.connect_by(daemon, header, after=b"put 0 0 60 6\r\n" + b"PROXY \r\n")
            self.assertEqual(client.line(), f"INSERTED {number}")
        # A second header is a command.
        self.assertEqual(self.connect_by(daemon, line(), after=line()).line(), "UNKNOWN_COMMAND")

    def test_a_header_arrives_byte_by_byte(self):
        daemon = self.serve_proxies()
        for header in (line(), binary(tls_field("ada"))):
            client = self.connect_by(daemon, b"")
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in header + b"list-tube-used\r\n":
                client.send(bytes([byte]))
                daemon.wait_for_two_ticks()
            self.assertEqual(client.line(), "USING default")
            self.assertEqual(self.own(client)["address"], FOUND)

    def test_a_unix_socket(self):
        path = self.directory / "socket"
        daemon = self.serve_proxies(self.proxied(f"unix:{path}", ["unix"]))
        client = self.connect_by(daemon, line())
        self.assertEqual(self.own(client)["address"], FOUND)
        own = self.connect_by(daemon, LOCAL)
        self.assertEqual(self.own(own)["address"], f"unix:{os.getuid()}:{os.getpid()}")
        self.assert_closed(self.connect_by(daemon, b"stats\r\n"))

    @unittest.skipUnless(has_ipv6(), "no ::1 here")
    def test_ipv6(self):
        daemon = self.serve_proxies(self.proxied("[::1]:0", ["10.0.0.0/8", "::1"]),
                                    self.proxied("[::1]:0", ["0.0.0.0/0", "fd00::/8"]))
        self.assert_serves(self.connect_by(daemon, line(), source="::1"))
        self.assert_closed(self.connect_by(daemon, line(), index=1, source="::1"))


class Closed(ProxyTest):
    def test_only_proxies_are_served(self):
        daemon = self.serve_proxies(self.proxied(), self.listen())
        for header in (line(), b"", b"stats\r\n"):
            client = self.connect_by(daemon, header, source="127.0.0.1")
            self.assert_closed(client)
        log = daemon.wait_for_line("connection refused: not from a proxy of proxy_protocol", 3)
        self.assertRegex(log, r" warning .* address=127\.0\.0\.1:\d+$")
        self.assertEqual((self.refused(daemon), self.failed_headers(daemon)), (3, 0))
        self.assert_serves(self.connect_by(daemon, line()))
        # Other listeners need no header.
        self.assert_serves(self.connect_tls(daemon, 1))

    def test_the_log_of_refused_connections_is_bounded(self):
        daemon = self.serve_proxies()
        for _ in range(60):
            self.connect_by(daemon, b"", source="127.0.0.1").close()
        until("all to be refused", lambda: self.refused(daemon) == 60)
        daemon.wait_for_line("not from a proxy of proxy_protocol", 5)

    def test_malformed_headers(self):
        daemon = self.serve_proxies()
        served = self.connect_by(daemon, line())
        bad = {b"list-tube-used\r\n": "no PROXY header",
               b"\x16\x03\x01\x02\x00": "no PROXY header",
               b"PROXY TCP4 192.0.2.1\r\n": "malformed PROXY line",
               b"PROXY UNKNOWN " + b"x" * 100: "a PROXY line of more than 107 bytes",
               SIGNATURE + b"\x31": "unknown version of the PROXY protocol",
               SIGNATURE + b"\x21\x11\xff\xff": "a PROXY header of more than 4112 bytes",
               binary(command=2): "unknown PROXY command",
               binary(b"\x04\0\x01"): "malformed field in the PROXY header"}
        for number, (sent, reason) in enumerate(bad.items(), 1):
            self.assert_closed(self.connect_by(daemon, sent))
            until("it to be counted", lambda: self.failed_headers(daemon) == number)
            if number <= 5:  # of an event, five lines are written in a second
                log = daemon.wait_for_line("PROXY header failed", number)
                self.assertRegex(log, rf' info .* address={PROXY}:\d+ reason="{reason}"$')
        self.assertEqual(self.refused(daemon), 0)
        self.assert_serves(served)

    def test_a_connection_that_ends_in_its_header(self):
        daemon = self.serve_proxies()
        for number, sent in enumerate((b"", b"PROXY", binary()[:20]), 1):
            client = self.connect_by(daemon, sent)
            client.half_close()
            self.assert_closed(client)
            self.assertEqual(self.failed_headers(daemon), number)

    def test_a_health_check_that_closes_at_once_is_no_failure(self):
        daemon = self.serve_proxies()
        for header in (LOCAL, UNKNOWN, line()):
            for resets in (False, True):
                client = self.connect_by(daemon, header)
                if resets:
                    client.reset()
                else:
                    client.close()
        asking = self.connect_by(daemon, line())  # accepted after them
        until("their end", lambda: asking.stats()["current-connections"] == 1)
        daemon.wait_for_two_ticks()
        self.assertEqual((self.failed_headers(daemon), self.refused(daemon)), (0, 0))

    def test_slow_headers(self):
        clock = StandingClock(self.directory)
        daemon = self.serve_proxies(settings='timeouts.handshake = "1m"\n',
                                    environment=clock.environment)
        clock.advance()
        served = self.connect_by(daemon, line())
        self.assert_serves(served)
        slow = [self.connect_by(daemon, sent) for sent in (b"", b"PROXY TCP4 ", binary()[:-1])]
        daemon.wait_for_two_ticks()
        self.assertEqual(self.failed_headers(daemon), 0)
        clock.advance(61)
        self.assert_serves(served)
        for client in slow:
            self.assert_closed(client)
        daemon.wait_for_line('reason="the PROXY header has taken too long"', 3)
        self.assertEqual(self.failed_headers(daemon), 3)

    def test_the_oldest_of_too_many_is_closed(self):
        daemon = self.serve_proxies(settings="limits.handshakes = 3\n")
        waiting = [self.connect_by(daemon, b"P") for _ in range(4)]
        self.assert_closed(waiting[0])
        daemon.wait_for_line('reason="too many PROXY headers at once"')
        waiting[1].send(line()[1:])
        self.assert_serves(waiting[1])

    def test_limits_connections(self):
        daemon = self.serve_proxies(settings="limits.connections = 1\n")
        late = self.connect_by(daemon, b"")
        daemon.wait_for_two_ticks()
        served = self.connect_by(daemon, line())
        self.assert_serves(served)
        # Before the header, and after a header that arrived late.
        for client in (self.connect_by(daemon, line()), late):
            if client is late:
                client.send(line())
            self.assertEqual(client.rest(), b"OUT_OF_MEMORY\r\n")
        served.close()
        until("its end", lambda: self.serves_now(daemon))

    def serves_now(self, daemon):
        with contextlib.suppress(OSError, AssertionError):
            self.assert_serves(self.connect_by(daemon, line()))
            return True
        return False

    def test_a_stop_does_not_wait_for_headers(self):
        daemon = self.serve_proxies(settings='timeouts.handshake = "1h"\n')
        slow = [self.connect_by(daemon, b"PROXY") for _ in range(20)]
        self.assert_serves(self.connect_by(daemon, line()))
        daemon.signal(15)
        self.assertEqual(daemon.wait(), 0)
        for client in slow:
            self.assert_closed(client)


class Tls(ProxyTest):
    def with_tls(self, **keys):
        return self.listen(keys={"proxy_protocol": [PROXY], **keys.pop("keys", {})}, **keys)

    def test_the_header_comes_before_the_handshake(self):
        daemon = self.serve_proxies(self.with_tls())
        context = tls_context(self.authority)
        for header in (line(), binary(tls_field("ada"))):
            self.assertEqual(
                self.own(self.connect_by(daemon, header, context=context))["address"], FOUND)
        client = self.connect_by(daemon, LOCAL, context=context)
        host, port = client.socket.getsockname()
        self.assertEqual(self.own(client)["address"], f"{host}:{port}")
        # A handshake in place of the header.
        with self.assertRaises(OSError):
            self.connect_by(daemon, b"", context=context)
        daemon.wait_for_line('PROXY header failed')
        # A header in place of the handshake, and commands in place of it.
        for after in (line(), b"list-tube-used\r\n"):
            self.connect_by(daemon, line(), after=after).rest()
        failed = daemon.wait_for_line("TLS handshake failed", 2)
        self.assertIn(f"address={FOUND} ", failed)
        self.assertEqual(self.failed_headers(daemon), 3)

    def test_a_certificate_gives_the_role_and_a_field_gives_none(self):
        worker = self.authority.issue("worker 1", client=True)
        other = self.authority.issue("other", client=True)
        role = table("[[role]]", {"name": "worker", "verbs": ["work", "inspect"],
                                  "subjects": ["CN=worker 1"]})
        daemon = self.serve_proxies(
            self.with_tls(keys={"auth": "mtls"}, client_ca=self.authority.ca), settings=role)
        header = binary(tls_field("worker 1"))
        row = self.own(self.connect_by(daemon, header,
                                       context=tls_context(self.authority, worker)))
        self.assertEqual((row["address"], row["role"]), (FOUND, "worker"))
        refused = self.connect_by(daemon, header, context=tls_context(self.authority, other))
        self.assertEqual(refused.rest(), b"UNAUTHORIZED\r\n")
        log = daemon.wait_for_line("connection refused: no role")
        self.assertIn(f'address={FOUND} tls_name="worker 1" ', log)
        self.assertIn('subject="CN=other"', log)


class Access(ProxyTest):
    def settings(self):
        return table("", {"auth.tokens": write_tokens(self.directory / "tokens", TOKENS)})

    def role(self):
        return table("[[role]]", {"name": "worker", "verbs": ["work", "inspect", "admin"],
                                  "tokens": ["worker-1"], "subjects": ["CN=worker-1"]})

    def serve_tokens(self):
        return self.serve_proxies(self.proxied(auth="token"),
                                  settings=self.settings() + self.role())

    def test_a_field_gives_no_role(self):
        daemon = self.serve_tokens()
        client = self.connect_by(daemon, binary(tls_field("worker-1")))
        self.assertEqual(client.ask("list-tubes"), "UNAUTHORIZED")
        self.assert_closed(client)
        log = daemon.wait_for_line(" unauthorized ")
        self.assertIn(f"address={FOUND} tls_name=worker-1 ", log)

    def test_the_audit_names_the_client_of_the_proxy(self):
        daemon = self.serve_tokens()
        client = self.connect_by(daemon, binary(tls_field("ada")))
        self.assertEqual(client.ask(f"auth {TOKENS['worker-1']}"), "AUTHENTICATED")
        self.assertEqual(client.ask("kick 1"), "KICKED 0")
        log = daemon.wait_for_line(" admin command ")
        self.assertIn(f'principal="token worker-1" role=worker address={FOUND} tls_name=ada ', log)
        other = self.connect_by(daemon, line())
        self.assertEqual(other.ask(f"auth {TOKENS['worker-1']}"), "AUTHENTICATED")
        self.assertEqual(other.ask("put 0 0 60 0\r\n"), "DENIED")
        log = daemon.wait_for_line(" denied ")
        self.assertIn(f"address={FOUND} session=", log)

    def test_wrong_tokens_delay_only_their_own_client(self):
        """The delay of a refusal doubles with each failure of an address."""
        clock = StandingClock(self.directory)
        path = self.write_config("".join([
            'http.listen = "127.0.0.1:0"\n', self.settings(), self.role(),
            self.proxied(auth="token")]))
        daemon = self.start("--config", path, listen=None, environment=clock.environment)
        clock.advance()
        served = self.connect_by(daemon, line("198.51.100.1"))
        served.ask(f"auth {TOKENS['worker-1']}")

        def fail(source):
            """Returns a client with a wrong token, a second after its attempt."""
            attempts = self.metric(daemon, "tubed_unauthorized_total")
            client = self.connect_by(daemon, line(source))
            client.send(b"auth tbd_wrong\r\n")
            until("the attempt", lambda: self.metric(daemon, "tubed_unauthorized_total") > attempts)
            clock.advance(1)
            served.ask("list-tube-used")
            return client

        for _ in range(4):  # 0.1 s to 0.8 s
            self.assertEqual(fail("192.0.2.1").line(), "UNAUTHORIZED")
        fail("192.0.2.1")
        late = fail("192.0.2.1")  # 3.2 s
        # The first failure of another client of the same proxy.
        self.assertEqual(fail("192.0.2.2").line(), "UNAUTHORIZED")
        late.socket.setblocking(False)
        self.assertRaises(BlockingIOError, late.receive)


class Settings(ProxyTest):
    def test_a_reload(self):
        plain = table("[[listen]]", {"address": "127.0.0.1:0"})
        daemon = self.serve_proxies(plain)
        old = self.connect(daemon)
        self.assert_serves(old)
        self.write_config(f'http.listen = "127.0.0.1:0"\n{self.proxied()}')
        self.assertIn("changed=listen", self.reload(daemon))
        self.assert_closed(self.connect(daemon))
        waiting = self.connect_by(daemon, b"PROXY ")
        self.assertEqual(self.own(self.connect_by(daemon, line()))["address"], FOUND)
        self.write_config(f'http.listen = "127.0.0.1:0"\n{plain}')
        self.reload(daemon, 2)
        self.assert_serves(self.connect(daemon))
        self.assertEqual(self.connect_by(daemon, line()).line(), "UNKNOWN_COMMAND")
        # Accepted when its listener had proxies.
        waiting.send(line()[len(b"PROXY "):])
        self.assert_serves(waiting)
        self.assert_serves(old)

    def test_a_faulty_reload_changes_nothing(self):
        daemon = self.serve_proxies()
        self.write_config(f'http.listen = "127.0.0.1:0"\n{self.proxied(networks=["proxy.example"])}')
        daemon.signal(1)
        log = daemon.wait_for_line(" not reloaded ")
        self.assertIn("is not a network such as 10.0.0.0/8 or fd00::/8", log)
        self.assert_closed(self.connect(daemon))
        self.assert_serves(self.connect_by(daemon, line()))

    def test_http_has_no_proxies(self):
        config = self.write_config(f'[http]\nproxy_protocol = ["{PROXY}"]\n')
        self.assertTrue(self.start_refused(78, "--config", config).endswith(
            ":2: http.proxy_protocol: only [[listen]] has this key: HTTP and the nodes of a "
            "cluster take no header of the PROXY protocol"))

    def test_a_socket_that_is_passed_on(self):
        with socket.create_server((PROXY, 0)) as passed:
            address = "%s:%d" % passed.getsockname()
            daemon = self.serve(self.proxied(address), sockets=[passed],
                                environment={"LISTEN_FDNAMES": "clients"})
            self.assertEqual(self.own(self.connect_by(daemon, line()))["address"], FOUND)
            self.assert_closed(self.connect(daemon))


if __name__ == "__main__":
    unittest.main()
