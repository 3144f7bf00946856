"""HTTP over TLS on the real daemon."""

import contextlib
import http.client
import io
import select
import signal
import socket
import unittest
import urllib.error
import urllib.request

from certificates import Authority
from harness import SANITIZED, SECONDS, TlsSocket, parse_address, tls_context, until
from tls_tests import LOCALHOST, Tls, TlsTest, table

TUBES = 3_000 if not SANITIZED else 300


class TlsHttpTest(TlsTest):
    def serve_http(self, *certificates, settings="", **tls):
        listen = table("", {"http.listen": "127.0.0.1:0",
                            **Tls(certificates or (self.server,), tls).keys("http.tls.")})
        path = self.write_config(settings + listen)
        return self.start("--config", path)

    def rewrite(self, *certificates, **tls):
        self.write_config(table("", {"http.listen": "127.0.0.1:0",
                                     **Tls(certificates, tls).keys("http.tls.")}))

    def fetch(self, daemon, path="/healthz", context=None, timeout=SECONDS):
        url = f"https://{daemon.http_addresses[0]}{path}"
        context = context or tls_context(self.authority)
        try:
            with urllib.request.urlopen(url, timeout=timeout, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def connect_http(self, daemon, **options):
        family, peer = parse_address(daemon.http_addresses[0])
        plain = socket.socket(family, socket.SOCK_STREAM)
        self.addCleanup(plain.close)
        plain.settimeout(SECONDS)
        for option, value in options.items():
            plain.setsockopt(socket.SOL_SOCKET, getattr(socket, option), value)
        plain.connect(peer)
        return plain


class TlsHttp(TlsHttpTest):
    def test_pages(self):
        daemon = self.serve_http()
        self.assertEqual(self.fetch(daemon), (200, "ok\n"))
        self.assertEqual(self.fetch(daemon, "/readyz"), (200, "ready\n"))
        self.assertEqual(self.fetch(daemon, "/none")[0], 404)
        status, page = self.fetch(daemon, "/metrics")
        self.assertEqual(status, 200)
        self.assertIn("\ntubed_", page)
        # An HTTP client names its protocol.
        context = tls_context(self.authority, alpn=("http/1.1",))
        self.assertEqual(self.fetch(daemon, context=context), (200, "ok\n"))
        with self.assertRaises(urllib.error.URLError):
            self.fetch(daemon, context=tls_context(alpn=("beanstalk",)))

    def test_a_plain_request_is_not_answered(self):
        daemon = self.serve_http()
        client = self.connect_http(daemon)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := client.recv(4096):
                received += chunk
        self.assertNotIn(b"200", received)
        self.assertEqual(self.fetch(daemon), (200, "ok\n"))

    def test_client_certificates(self):
        clients = Authority(self.directory, name="CA of clients")
        daemon = self.serve_http(client_ca=clients.ca)
        for certificate in (None, self.authority.issue("x", client=True)):
            with self.assertRaises(OSError):
                self.fetch(daemon, context=tls_context(self.authority, certificate))
        good = tls_context(self.authority, clients.issue("scraper", client=True))
        self.assertEqual(self.fetch(daemon, context=good), (200, "ok\n"))

    def test_an_intermediate_authority_of_clients(self):
        between = Authority(self.directory, name="CA of clients").intermediate("between")
        daemon = self.serve_http(client_ca=between.own.certificate)
        good = tls_context(self.authority, between.issue("scraper", client=True))
        self.assertEqual(self.fetch(daemon, context=good), (200, "ok\n"))
        with self.assertRaises(OSError):
            self.fetch(daemon, context=tls_context(self.authority))

    def test_a_reload_replaces_the_certificate(self):
        daemon = self.serve_http()
        client = TlsSocket(self.connect_http(daemon), tls_context(self.authority))
        other = Authority(self.directory, name="other CA")
        self.rewrite(other.issue("other", names=LOCALHOST))
        self.reload(daemon)
        with self.assertRaises(urllib.error.URLError):
            self.fetch(daemon)
        self.assertEqual(self.fetch(daemon, context=tls_context(other)), (200, "ok\n"))
        # A connection that was opened before is served.
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b""
        while chunk := client.recv(4096):
            received += chunk
        self.assertTrue(received.endswith(b"\r\n\r\nok\n"), received)
        self.assertTrue(client.notified)

    def test_a_large_page_and_a_slow_reader(self):
        daemon = self.serve_http(settings=f"http.max_tubes = {TUBES}\n")
        client = self.connect(daemon)
        client.pump(b"".join(b"use tube-%d\r\nput 0 0 9 1\r\nx\r\n" % at for at in range(TUBES)),
                    2 * TUBES)
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        slow = TlsSocket(self.connect_http(daemon, SO_RCVBUF=4096), tls_context(self.authority))
        slow.sendall(request)
        begin = slow.recv(10)
        status, page = self.fetch(daemon, "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(self.fetch(daemon), (200, "ok\n"))
        with http.client.HTTPResponse(Replay(begin, slow)) as response:
            response.begin()
            slow_page = response.read().decode()
        series = [[line.rsplit(" ", 1)[0] for line in one.splitlines()] for one in (page, slow_page)]
        self.assertEqual(series[0], series[1])
        self.assertGreater(len(page), 100 * TUBES)

    def test_a_stop_with_open_connections(self):
        daemon = self.serve_http()
        clients = [TlsSocket(self.connect_http(daemon), tls_context()) for _ in range(10)]
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)
        for client in clients:
            until("its end", lambda c=client: select.select([c.plain], [], [], 0)[0])


class Replay:
    """A stream for HTTPResponse: `begin`, followed by the input of a socket."""

    def __init__(self, begin, client):
        self.begin, self.client = begin, client

    def makefile(self, _):
        pieces = [self.begin]
        while chunk := self.client.recv(1 << 16):
            pieces.append(chunk)
        return io.BytesIO(b"".join(pieces))


if __name__ == "__main__":
    unittest.main()
