"""The PROXY protocol as HAProxy sends it, and HAProxy's health checks. HAProxy's listening sockets
are made by the test and passed on, so no port is chosen twice.
"""

import shutil
import socket
import unittest

from harness import SECONDS, Process, tls_context, until, write_tokens
from proxies import PROXY, ProxyClient, ProxyTest
from tls_tests import table

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
CLIENT = "127.0.0.3"  # the machine of the clients
SERVER = f"source {PROXY}"


class HaproxyTest(ProxyTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(HAPROXY, "haproxy is not installed: tools/install-deps more")

    def start_haproxy(self, server, send, bind="", options=""):
        """Starts HAProxy in front of the address `server`, to which it connects as PROXY. `send`:
        further words of its line `server`. Returns its process and its address."""
        front = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(front.close)
        config = self.directory / f"haproxy-{front.fileno()}.cfg"
        config.write_text(
            "global\n  log stdout format raw local0\n"
            "defaults\n  mode tcp\n  log global\n  option log-health-checks\n"
            f"  timeout connect {SECONDS}s\n  timeout client {SECONDS}s\n"
            f"  timeout server {SECONDS}s\n"
            f"listen queue\n  bind fd@{front.fileno()} {bind}\n{options}"
            f"  server tubed {server} {send}\n", encoding="utf-8")
        process = Process([HAPROXY, "-db", "-f", str(config)], stdout=True,
                          pass_fds=[front.fileno()])

        def end():
            process.process.terminate()
            self.assertIn(process.wait(), (0, 143, -15), process.lines)
        self.addCleanup(end)
        return process, "%s:%d" % front.getsockname()

    def client_of(self, address, context=None):
        """A client of HAProxy on the machine CLIENT."""
        client = ProxyClient(address, b"", source=CLIENT, context=context)
        self.addCleanup(client.close)
        return client

    def assert_seen(self, client, name=None):
        """Checks that the server sees the address of the client, and this name."""
        row = self.own(client)
        self.assertEqual(row["address"], "%s:%d" % client.socket.getsockname())
        self.assertTrue(row["address"].startswith(CLIENT + ":"))
        self.assertEqual(row.get("tls-name"), name)

    def test_versions_1_and_2(self):
        daemon = self.serve_proxies()
        for send in ("send-proxy", "send-proxy-v2", "send-proxy-v2-ssl",
                     "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority"):
            _, address = self.start_haproxy(daemon.addresses[0], f"{SERVER} {send}",
                                            options="  unique-id-format %ci:%cp\n")
            client = self.client_of(address)
            self.assert_seen(client)
            self.assertEqual(client.put(b"x" * 60_000), client.reserve()[0])
        self.assertEqual((self.failed_headers(daemon), self.refused(daemon)), (0, 0))

    def test_a_proxy_that_sends_no_header(self):
        daemon = self.serve_proxies()
        _, address = self.start_haproxy(daemon.addresses[0], SERVER)
        client = self.client_of(address)
        client.send(b"list-tube-used\r\n")
        self.assertEqual(client.rest(), b"")
        daemon.wait_for_line('reason="no PROXY header"')

    def test_a_unix_socket(self):
        path = self.directory / "socket"
        daemon = self.serve_proxies(self.proxied(f"unix:{path}", ["unix"]))
        for send in ("send-proxy", "send-proxy-v2"):
            _, address = self.start_haproxy(f"unix@{path}", send)
            self.assert_seen(self.client_of(address))
        self.assertEqual(self.failed_headers(daemon), 0)

    def serve_behind_tls(self, send):
        """Starts a daemon and an HAProxy that ends the TLS of its clients. Returns the daemon, the
        address of HAProxy and the TLS of a client with a certificate."""
        pem = self.directory / "haproxy.pem"
        pem.write_bytes(self.server.certificate.read_bytes() + self.server.key.read_bytes())
        daemon = self.serve_proxies(self.proxied(auth="token"), settings=table("", {
            "auth.tokens": write_tokens(self.directory / "tokens", {"web-1": "tbd_web"})}) +
            table("[[role]]", {"name": "web", "verbs": ["produce", "inspect"], "tokens": ["web-1"],
                               "subjects": ["CN=web 1"]}))
        _, address = self.start_haproxy(
            daemon.addresses[0], f"{SERVER} {send}",
            bind=f"ssl crt {pem} ca-file {self.authority.ca} verify optional")
        certificate = self.authority.issue("web 1", client=True)
        return daemon, address, tls_context(self.authority, certificate)

    def test_the_name_of_a_certificate(self):
        daemon, address, context = self.serve_behind_tls("send-proxy-v2-ssl-cn")
        client = self.client_of(address, context)
        # It gives no role.
        self.assertEqual(client.ask("list-tubes"), "UNAUTHORIZED")
        self.assertIn('tls_name="web 1"', daemon.wait_for_line(" unauthorized "))
        client = self.client_of(address, context)
        self.assertEqual(client.ask("auth tbd_web"), "AUTHENTICATED")
        row, = self.clients(client).values()
        self.assertEqual((row["role"], row["tls-name"]), ("web", "web_1"))
        client = self.client_of(address, tls_context(self.authority))
        self.assertEqual(client.ask("auth tbd_web"), "AUTHENTICATED")
        rows = self.clients(client).values()
        self.assertEqual(sorted(row.get("tls-name", "") for row in rows), ["", "web_1"])

    def test_tls_through_the_proxy(self):
        role = table("[[role]]", {"name": "web", "verbs": ["work", "inspect"],
                                  "subjects": ["CN=web 1"]})
        daemon = self.serve_proxies(
            self.listen(keys={"proxy_protocol": [PROXY], "auth": "mtls"},
                        client_ca=self.authority.ca), settings=role)
        context = tls_context(self.authority, self.authority.issue("web 1", client=True))
        for send in ("send-proxy", "send-proxy-v2"):
            _, address = self.start_haproxy(daemon.addresses[0], f"{SERVER} {send}")
            client = self.client_of(address, context)
            self.assert_seen(client)
            self.assertEqual(self.own(client)["role"], "web")

    def test_health_checks(self):
        """Each check of HAProxy is a connection of its own, here one in 10 ms."""
        daemon = self.serve_proxies()
        asking = self.client_of(self.start_haproxy(daemon.addresses[0],
                                                   f"{SERVER} send-proxy-v2")[1])
        queue = ("  option tcp-check\n  tcp-check connect send-proxy\n"
                 "  tcp-check send list-tube-used\\r\\n\n  tcp-check expect string USING\n")
        for send in ("send-proxy", "send-proxy-v2"):
            for options, passed in (("", "Layer4 check passed"), (queue, "Layer7 check passed")):
                process, _ = self.start_haproxy(
                    daemon.addresses[0], f"{SERVER} {send} check check-send-proxy inter 10ms",
                    options=options)
                process.wait_for_line(passed)
                before = asking.stats()["total-connections"]
                until("more checks",
                      lambda: asking.stats()["total-connections"] > before + 5)
                self.assertFalse(process.lines_with("failed"))
        self.assertEqual((self.failed_headers(daemon), self.refused(daemon)), (0, 0))


if __name__ == "__main__":
    unittest.main()
