"""The settings of TLS on the real daemon: a reload, the output of --check-config, and TLS listeners
with inherited sockets.
"""

import os
import signal
import socket
import ssl
import unittest

from certificates import Authority, days_from_now, openssl
from harness import PROGRAM, SANITIZED, Client, Process, run, tls_context
from tls_tests import LOCALHOST, Tls, TlsTest, table

CONFIG = 78
CANNOT_LISTEN = 69


def subject(client):
    return dict(client.tls.getpeercert()["subject"][0])["commonName"]


class Reload(TlsTest):
    def not_reloaded(self, daemon, count=1):
        daemon.signal(signal.SIGHUP)
        return daemon.wait_for_line(" error not reloaded ", count)

    def test_a_new_certificate_is_for_new_connections(self):
        daemon = self.serve()
        old = self.connect_tls(daemon)
        job = old.put()
        old.reserve()
        other = Authority(self.directory, name="other CA")
        new = other.issue("new", names=LOCALHOST)
        self.write_config(self.listen(new))
        self.reload(daemon)
        client = self.connect_tls(daemon, context=tls_context(other))
        self.assertEqual(subject(client), "new")
        self.assertEqual(client.stats(f"stats-job {job}")["state"], "reserved")
        self.assertEqual(old.ask(f"delete {job}"), "DELETED")
        old.put(b"y" * 60_000)
        self.assertEqual(client.reserve()[1], b"y" * 60_000)

    def test_the_same_file_with_another_certificate(self):
        """As certbot replaces it."""
        one, two = (self.authority.issue(name, names=LOCALHOST) for name in ("one", "two"))
        daemon = self.serve(self.listen(one))
        self.assertEqual(subject(self.connect_tls(daemon)), "one")
        for old, new in ((one.key, two.key), (one.certificate, two.certificate)):
            os.replace(new, old)
        self.assertEqual(subject(self.connect_tls(daemon)), "one")
        self.assertIn(" changed=listen.tls.certificate ", self.reload(daemon))
        self.assertEqual(subject(self.connect_tls(daemon)), "two")
        self.assertIn(" changed=nothing ", self.reload(daemon, 2))

    def test_authorities_of_clients_that_change_are_named(self):
        file = self.directory / "clients.pem"
        file.write_bytes(self.authority.ca.read_bytes())
        http = table("", {"http.listen": "127.0.0.1:0", "http.tls.certificate": [self.server.certificate],
                          "http.tls.key": [self.server.key], "http.tls.client_ca": file})
        daemon = self.serve(self.listen(), self.listen(client_ca=file), settings=http)
        other = Authority(self.directory, name="other CA")
        file.write_bytes(other.ca.read_bytes())
        self.assertIn(" changed=http.tls.client_ca,listen.tls.client_ca ", self.reload(daemon))
        file.write_bytes(other.ca.read_bytes() + b"\n# no certificate\n")
        self.assertIn(" changed=nothing ", self.reload(daemon, 2))

    def test_after_an_error_everything_stays(self):
        daemon = self.serve(settings="limits.tubes = 50\n")
        one = self.authority.issue("one", names=LOCALHOST)
        two = self.authority.issue("two", names=LOCALHOST)
        for count, (certificate, key, reason) in enumerate((
                (self.directory / "none.pem", one.key, "No such file"),
                (one.certificate, two.key, "not the key of"),
                (one.key, one.key, "no certificate in PEM")), 1):
            text = "limits.tubes = 60\n" + self.listen().replace(
                str(self.server.certificate), str(certificate)).replace(
                    str(self.server.key), str(key))
            self.write_config(text)
            self.assertIn(reason, self.not_reloaded(daemon, count))
            self.assertEqual(subject(self.connect_tls(daemon)), "server")
        self.write_config("limits.tubes = 50\n" + self.listen())
        self.assertIn("changed=nothing", self.reload(daemon))

    def test_client_certificates_and_versions_change(self):
        daemon = self.serve()
        certificate = self.authority.issue("client", client=True)
        for count, keys in enumerate(({"client_ca": self.authority.ca}, {"min_version": "1.3"}), 1):
            self.write_config(self.listen(**keys))
            self.reload(daemon, count)
            context = tls_context(self.authority, certificate)
            self.assertEqual(self.connect_tls(daemon, context=context).ask("list-tube-used"),
                             "USING default")
            with self.assertRaises((OSError, AssertionError)):
                old = tls_context(self.authority, newest=ssl.TLSVersion.TLSv1_2)
                self.connect_tls(daemon, context=old).ask("list-tube-used")

    def test_handshakes_that_are_under_way(self):
        """Handshakes continue with the certificate with which they started."""
        daemon = self.serve()
        slow = Client(daemon.addresses[0])
        self.addCleanup(slow.close)
        slow.send(b"\x16")
        self.connect_tls(daemon).ask("list-tube-used")
        self.write_config(self.listen(self.authority.issue("new", names=LOCALHOST)))
        self.reload(daemon)
        for count in range(2, 30):
            self.reload(daemon, count)
        self.assertEqual(subject(self.connect_tls(daemon)), "new")
        slow.send(b"\x03garbage of a record that is long enough to be refused")
        self.assertNotIn(b"\r\n", slow.rest())

    def test_listeners_of_the_same_address_keep_their_settings(self):
        """With port 0 the kernel chooses a port each time."""
        plain = table("[[listen]]", {"address": "127.0.0.1:0"})
        one = self.authority.issue("one", names=LOCALHOST)
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            kinds = (plain, self.listen(), self.listen(one))
            daemon = self.serve(*(kinds[at] for at in order))
            self.reload(daemon)
            self.assertEqual(self.connect(daemon, order.index(0)).ask("list-tube-used"),
                             "USING default")
            self.assertEqual(subject(self.connect_tls(daemon, order.index(1))), "server")
            self.assertEqual(subject(self.connect_tls(daemon, order.index(2))), "one")

    def test_memory_and_descriptors_after_reloads(self):
        daemon = self.serve()
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        figures = []
        for count in range(1, 201):
            self.reload(daemon, count)
            if count in (50, 200):
                figures.append((self.open_descriptors(daemon), daemon.resident_bytes()))
        self.assertEqual(figures[0][0], figures[1][0])
        if not SANITIZED:
            self.assertLess(figures[1][1] - figures[0][1], 2 << 20)
        self.assertEqual(client.ask("list-tube-used"), "USING default")


class CheckConfig(TlsTest):
    def check(self, text):
        """Returns the error of --check-config, a single line; None if it finds none."""
        code, output, errors = run("--config", self.write_config(text), "--check-config")
        self.assertEqual(output, "")
        if code == 0:
            self.assertEqual(errors, "")
            return None
        self.assertEqual((code, errors.count("\n")), (CONFIG, 1), errors)
        # A start refuses the same settings.
        started, _, log = run("--config", self.write_config(text))
        self.assertEqual((started, log.splitlines()[-1] + "\n"), (CONFIG, errors), log)
        return errors.removeprefix("tubed: ").rstrip("\n")

    def warnings(self, text, *flags):
        """Returns the warnings of --check-config. A start, which serves, logs the same in this
        order."""
        path = self.write_config(text)
        code, output, errors = run("--config", path, *flags, "--check-config")
        self.assertEqual((code, output), (0, ""), errors)
        begin = "tubed: warning: "
        lines = errors.splitlines()
        self.assertTrue(all(line.startswith(begin) for line in lines), errors)
        found = [line.removeprefix(begin) for line in lines]
        daemon = self.start("--config", path, *flags, listen=None)
        logged = [line for line in daemon.lines_with(" warning ") if "descriptors" not in line]
        self.assertEqual(len(logged), len(found), logged)
        for line, warning in zip(logged, found):
            self.assertIn(warning.replace('"', '\\"'), line)
        self.end(daemon)
        return found

    def check_files(self, certificate, key, **others):
        keys = {"address": "127.0.0.1:0", "tls.certificate": [certificate], "tls.key": [key]}
        return self.check(table("[[listen]]", keys | {f"tls.{key}": value
                                                      for key, value in others.items()}))

    def make(self, name, *sources):
        path = self.directory / name
        path.write_bytes(b"".join(source if isinstance(source, bytes) else source.read_bytes()
                                  for source in sources))
        path.chmod(0o600)
        return path

    def test_good_settings(self):
        chain = self.authority.intermediate("good CA").issue("server", names=LOCALHOST)
        together = self.make("together.pem", self.server.certificate, self.server.key)
        self.assertIsNone(self.check(self.listen()))
        self.assertIsNone(self.check(self.listen(chain, client_ca=self.authority.ca)))
        self.assertIsNone(self.check(table("[[listen]]", {
            "address": "127.0.0.1:0", "tls.certificate": together})))
        self.assertIsNone(self.check(table("", {
            "http.listen": "127.0.0.1:0", **Tls((self.server,)).keys("http.tls.")})))

    def test_files_that_cannot_be_used(self):
        """Some examples; tests/loop/tls_test.cc has the others."""
        certificate, key = self.server.certificate, self.server.key
        secret = self.directory / "secret.key"
        openssl("pkey", "-in", key, "-aes256", "-passout", "pass:word", "-out", secret)
        secret.chmod(0o600)
        public = self.make("public.key", key)
        public.chmod(0o644)
        chain = self.authority.intermediate("CA of a chain").issue("server")
        parts = chain.certificate.read_bytes().split(b"-----BEGIN")
        wrong_order = self.make("order.pem", self.server.certificate,
                                *(b"-----BEGIN" + part for part in parts[1:]))
        rsa = self.authority.issue("rsa", key="rsa")
        for arguments, others, error in (
                ((certificate, public), {}, f"{public}: others may use this secret (mode 0644): "
                                            f"chmod g-w,o= {public}"),
                ((certificate, rsa.key), {}, f"{rsa.key}: not the key of {certificate}"),
                ((certificate, secret), {},
                 f"{secret}: no private key without a passphrase in PEM (bad decrypt)"),
                ((wrong_order, key), {},
                 f"{wrong_order}: the chain is out of order: after the server's certificate comes "
                 "that of its issuer"),
                ((certificate, key), {"client_ca": key}, f"{key}: no certificate in PEM")):
            with self.subTest(error):
                self.assertEqual(self.check_files(*arguments, **others), error)

    def test_dates(self):
        expired = self.authority.issue("x", not_after=days_from_now(-1))
        early = self.authority.issue("x", not_before=days_from_now(1), days=3)
        warning, = self.warnings(self.listen(expired))
        self.assertRegex(warning, rf"^{expired.certificate}: expired on [-\d]+ [:\d]+ UTC$")
        warning, = self.warnings(self.listen(early))
        self.assertRegex(warning, rf"^{early.certificate}: not valid before [-\d]+ [:\d]+ UTC$")

    def test_roles_and_listeners_that_do_not_match(self):
        plain = table("[[listen]]", {"address": "127.0.0.1:0"})
        local = table("[[listen]]", {"address": f"unix:{self.directory / 'socket'}", "auth": "peer"})
        users = table("[[role]]", {"name": "local", "verbs": ["produce"], "users": ["root"]})
        path, tokens = self.tokens(f"web-1 sha256:{'0' * 64}\n")
        for text, *expected in (
                (plain + table("[[role]]", {"name": "web", "verbs": ["produce"]}),
                 "role web: it names no client, and no listener has it"),
                (plain + users, 'role local: users or groups, and no listener has auth = "peer"'),
                (local, 'auth = "peer", and no role has users or groups'),
                (tokens + plain, f"{path}: token web-1: no role names it",
                 'auth.tokens, and no listener has auth = "token"'),
                (local + users,)):
            with self.subTest(text):
                self.assertEqual(self.warnings(text), expected)
        self.assertEqual(self.warnings(local, "-n"), [
            "-n: ignored: compaction is automatic", 'auth = "peer", and no role has users or groups'])

    def tokens(self, text, mode=0o600):
        path = self.make("tokens", text.encode())
        path.chmod(mode)
        return path, table("", {"auth.tokens": path})

    def test_tokens_and_roles(self):
        """Two mistakes; tests/server/access_test.cc has the others."""
        role = table("[[role]]", {"name": "web", "verbs": ["produce"], "tokens": ["web-1"]})
        path, settings = self.tokens("# a comment\n\nweb-1 Xw7vR2mN\n")
        self.assertEqual(self.check(settings + self.listen(keys={"auth": "token"}) + role),
                         f"{path}:3: expected NAME sha256: and 64 hexadecimal digits")
        self.assertEqual(self.check(role.replace("tokens", "users")), "role web: no user web-1")


class Inherited(TlsTest):
    def setUp(self):
        super().setUp()
        self.sockets = []

    def bind(self, path=None):
        """Makes a listening socket to pass on; returns its address as written in the settings."""
        one = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.addCleanup(one.close)
        one.bind(str(path) if path else ("127.0.0.1", 0))
        one.listen()
        self.sockets.append(one)
        return f"unix:{path}" if path else "%s:%d" % one.getsockname()

    def start_with_sockets(self, text):
        """Starts a daemon that gets the sockets of bind()."""
        names = ":".join(["clients"] * len(self.sockets))
        return self.start("--config", self.write_config(text), listen=None, sockets=self.sockets,
                          listeners=len(self.sockets), environment={"LISTEN_FDNAMES": names})

    def refused(self, text, reason, names=None):
        names = ":".join(names or ["clients"] * len(self.sockets))
        process = Process([PROGRAM, "--config", self.write_config(text)], sockets=self.sockets,
                          environment={"LISTEN_FDNAMES": names})
        self.assertEqual(process.wait(), CANNOT_LISTEN, process.lines)
        self.assertIn(f"tubed: {reason}", "\n".join(process.lines))

    def test_a_socket_of_the_same_address_speaks_tls(self):
        tcp, local = self.bind(), self.bind(self.directory / "socket")
        daemon = self.start_with_sockets(self.listen(address=tcp) +
                                         table("[[listen]]", {"address": local}))
        self.assertEqual(daemon.addresses, [tcp, local])
        self.assertEqual(self.connect_tls(daemon).ask("list-tube-used"), "USING default")
        self.assertEqual(self.connect(daemon, 1).ask("list-tube-used"), "USING default")
        plain = self.connect(daemon)
        plain.send(b"stats\r\n")
        self.assertNotIn(b"OK", plain.rest())
        # The settings of an inherited socket are reloaded as well.
        new = self.authority.issue("new", names=LOCALHOST)
        self.write_config(self.listen(new, address=tcp) +
                          table("[[listen]]", {"address": local}))
        self.reload(daemon)
        self.assertEqual(subject(self.connect_tls(daemon)), "new")
        self.assertEqual(self.connect(daemon, 1).ask("list-tube-used"), "USING default")

    def test_a_listener_that_is_not_passed_on(self):
        other, tcp = self.bind(), self.bind()
        self.sockets.pop()
        for text in (self.listen(address=tcp),
                     table("[[listen]]", {"address": tcp, "role": "all"}) +
                     table("[[role]]", {"name": "all", "verbs": ["produce"]}),
                     table("[[listen]]", {"address": tcp, "proxy_protocol": "10.0.0.0/8"})):
            self.refused(text, f"{tcp} has tls, auth, role or proxy_protocol and is not among the "
                               f"sockets that were passed on ({other})")

    def test_the_socket_for_tls_without_settings(self):
        tcp = self.bind()
        for text in ("", table("[[listen]]", {"address": tcp})):
            self.refused(text, f"{tcp} was passed on as the socket tls, and no [[listen]] with tls",
                         names=["tls"])


if __name__ == "__main__":
    unittest.main()
