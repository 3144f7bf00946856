"""TLS of clients on the real daemon: versions and protocols, the certificates of both sides,
resumption, streams that are cut off, and much input and output at once. tls_scan_test.py looks for
weak versions and ciphers; tests/loop/tls_test.cc tests records and ends of every kind.
"""

import random
import ssl
import threading
import unittest

from certificates import Authority, days_from_now
from harness import SECONDS, Client, tls_context, until
from tls_tests import LOCALHOST, TlsTest

V1_2, V1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class Refusals:
    def assert_refused(self, daemon, *parts, **options):
        """Checks that the client is not served; returns the client's error."""
        with self.assertRaises((ssl.SSLError, OSError, AssertionError)) as caught:
            # With TLS 1.3 a client learns from its first read that its certificate is refused.
            self.connect_tls(daemon, **options).ask("list-tube-used")
        for part in parts:
            self.assertIn(part, str(caught.exception))
        return caught.exception

    def assert_serves(self, daemon, **options):
        client = self.connect_tls(daemon, **options)
        self.assertEqual(client.ask("list-tube-used"), "USING default")
        return client


class Versions(Refusals, TlsTest):
    def test_tls_1_2_and_1_3(self):
        daemon = self.serve()
        for version, name in ((V1_2, "TLSv1.2"), (V1_3, "TLSv1.3")):
            context = tls_context(self.authority, oldest=version, newest=version)
            client = self.assert_serves(daemon, context=context)
            self.assertEqual(client.tls.version(), name)
            job = client.put(b"body")
            self.assertEqual(client.reserve(), (job, b"body"))
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")

    def test_alpn(self):
        daemon = self.serve()
        for offered, chosen in (((), None), (("beanstalk",), "beanstalk"),
                                (("h2", "beanstalk"), "beanstalk")):
            client = self.assert_serves(daemon, context=tls_context(alpn=offered))
            self.assertEqual(client.tls.selected_alpn_protocol(), chosen)
        self.assert_refused(daemon, "no application protocol",
                            context=tls_context(alpn=("h2", "http/1.1")))

    def test_a_client_may_update_its_keys(self):
        daemon = self.serve()
        process = self.start_s_client(daemon)
        for key in (b"k", b"K", b"K"):  # K: requests that the server update its key as well
            process.stdin.write(key + b"\n")
            process.stdin.flush()
            until("the key", lambda: b"KEYUPDATE" in process.stdout.readline())
            process.stdin.write(b"list-tube-used\r\n")
            process.stdin.flush()
            until("the reply", lambda: process.stdout.readline() == b"USING default\r\n")


class Certificates(Refusals, TlsTest):
    def test_the_name_that_the_client_asks_for_chooses_the_certificate(self):
        one = self.authority.issue("one", names=("DNS:one.example",))
        two = self.authority.issue("two", names=("DNS:two.example", "DNS:*.three.example"))
        daemon = self.serve(self.listen(one, two))
        for name, subject in (("one.example", "one"), ("two.example", "two"),
                              ("TWO.example", "two"), ("a.three.example", "two"),
                              ("a.b.three.example", "one"), ("other.example", "one"),
                              (None, "one")):
            context = tls_context(self.authority)
            context.check_hostname = False
            client = self.assert_serves(daemon, context=context, server_name=name)
            self.assertEqual(dict(client.tls.getpeercert()["subject"][0])["commonName"], subject)

    def test_the_client_verifies_the_certificate(self):
        expired = self.authority.issue("old", names=LOCALHOST, not_after=days_from_now(-1))
        daemon = self.serve(self.listen(), self.listen(expired))
        self.assertIn(str(expired.certificate), daemon.wait_for_line("expired on"))
        context = tls_context(Authority(self.directory, name="other CA"))
        self.assert_refused(daemon, "unable to get local issuer certificate", context=context)
        self.assertIn("unknown ca", daemon.wait_for_line("TLS handshake failed"))
        self.assert_refused(daemon, "certificate has expired", index=1)
        self.assert_refused(daemon, "not valid for 'other.example'", server_name="other.example")
        self.assert_serves(daemon)

    def test_a_chain_of_the_server(self):
        chain = self.authority.intermediate("CA of servers").issue("server", names=LOCALHOST)
        daemon = self.serve(self.listen(chain))
        self.assert_serves(daemon)

    def test_rsa(self):
        daemon = self.serve(self.listen(self.authority.issue("rsa", names=LOCALHOST, key="rsa")))
        for version in (V1_2, V1_3):
            self.assert_serves(daemon, context=tls_context(self.authority, newest=version))

    def test_client_certificates(self):
        clients = Authority(self.directory, name="CA of clients")
        between = clients.intermediate("between")
        good = clients.issue("good", client=True)
        refused = {
            "did not return a certificate": None,
            "self-signed certificate in certificate chain": self.authority.issue(
                "x", client=True),
            "certificate has expired": clients.issue("x", client=True,
                                                     not_after=days_from_now(-1)),
            "certificate is not yet valid": clients.issue("x", client=True, days=20,
                                                          not_before=days_from_now(2)),
            "unsuitable certificate purpose": clients.issue("x"),
        }
        for version in (V1_2, V1_3):
            # A server logs only a few of these lines per second.
            daemon = self.serve(self.listen(client_ca=clients.ca))

            def context(certificate, version=version):
                return tls_context(self.authority, certificate, oldest=version, newest=version)
            for count, (reason, certificate) in enumerate(refused.items(), 1):
                self.assert_refused(daemon, context=context(certificate))
                self.assertIn(reason, daemon.wait_for_line("TLS handshake failed", count))
            self.assert_serves(daemon, context=context(good))
            client = self.assert_serves(daemon, context=context(between.issue("x", client=True)))
            self.assertEqual(client.stats()["total-connections"], 2)

    def test_an_intermediate_authority_of_clients(self):
        clients = Authority(self.directory, name="CA of clients")
        between = clients.intermediate("between")
        worker = between.issue("worker", client=True)
        for authorities in (between.own.certificate, between.ca):
            daemon = self.serve(self.listen(client_ca=authorities))
            self.assert_serves(daemon, context=tls_context(self.authority, worker))
        # The file has only the intermediate authority, so other certificates of its root are not
        # trusted.
        daemon = self.serve(self.listen(client_ca=between.own.certificate))
        for other in (clients.issue("x", client=True),
                      clients.intermediate("other").issue("x", client=True)):
            self.assert_refused(daemon, context=tls_context(self.authority, other))


class Resumption(TlsTest):
    def session_of(self, daemon, context):
        client = self.connect_tls(daemon, context=context)
        client.ask("list-tube-used")  # the ticket of TLS 1.3 precedes the reply
        self.assertFalse(client.tls.session_reused)
        session = client.tls.session
        client.half_close()
        client.rest()
        return session

    def is_resumed(self, daemon, context, session):
        client = self.connect_tls(daemon, context=context, session=session)
        self.assertEqual(client.ask("list-tube-used"), "USING default")
        return client.tls.session_reused

    def test_tickets(self):
        daemon = self.serve()
        for version in (V1_2, V1_3):
            context = tls_context(self.authority, oldest=version, newest=version)
            session = self.session_of(daemon, context)
            self.assertTrue(session.has_ticket)
            self.assertTrue(self.is_resumed(daemon, context, session))
            self.reload(daemon, version - V1_2 + 1)
            self.assertFalse(self.is_resumed(daemon, context, session))

    def test_clients_with_certificates_do_not_resume(self):
        daemon = self.serve(self.listen(client_ca=self.authority.ca))
        certificate = self.authority.issue("client", client=True)
        for version in (V1_2, V1_3):
            context = tls_context(self.authority, certificate, oldest=version, newest=version)
            session = self.session_of(daemon, context)
            self.assertFalse(session.has_ticket if session else False)
            if session:
                self.assertFalse(self.is_resumed(daemon, context, session))

    def test_a_ticket_is_good_for_its_own_listener_alone(self):
        daemon = self.serve(self.listen(), self.listen())
        context = tls_context(self.authority)
        session = self.session_of(daemon, context)
        client = self.connect_tls(daemon, 1, context=context, session=session)
        self.assertEqual(client.ask("list-tube-used"), "USING default")
        self.assertFalse(client.tls.session_reused)


class Ends(TlsTest):
    def test_a_stream_that_is_cut_off_gives_the_job_back(self):
        daemon = self.serve()
        other = self.connect_tls(daemon)
        for end in (Client.close, Client.reset):
            client = self.connect_tls(daemon)
            job = client.put()
            self.assertEqual(client.reserve(), (job, b"x"))
            client.send(b"put 0 0 9 100\r\nunfinished")
            end(client)
            self.assertEqual(other.reserve(), (job, b"x"))
            self.assertEqual(other.ask(f"delete {job}"), "DELETED")
        self.assertEqual(other.stats()["total-jobs"], 2)

    def test_a_half_close_in_the_same_piece_as_a_wait(self):
        daemon = self.serve()
        for _ in range(20):
            client = self.connect_tls(daemon)
            client.ask("list-tube-used")
            daemon.freeze()
            client.send(b"reserve\r\nlist-tube-used\r\n")
            client.half_close()
            daemon.thaw()
            self.assertEqual(client.rest(), b"TIMED_OUT\r\nUSING default\r\n")

class Records(TlsTest):
    def test_a_record_that_never_ends_costs_nothing(self):
        daemon = self.serve()
        other = self.connect_tls(daemon)
        clients = [self.connect_tls(daemon) for _ in range(20)]
        for client in clients:
            record, = client.socket.encrypt(b"put 0 0 10 10000\r\n" + bytes(10_000) + b"\r\n")
            client.socket.plain.sendall(record[:-1])
            client.rest_of_record = record[-1:]
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        # A daemon that repeatedly tried to read the rest would never sleep.
        until("the daemon to sleep", lambda: daemon.status_field("State").startswith("S"))
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        for client in clients:
            client.socket.plain.sendall(client.rest_of_record)
            self.assertTrue(client.line().startswith("INSERTED "))

    def test_a_reader_and_a_writer_of_much(self):
        """Both directions at once, with pieces of all sizes."""
        daemon = self.serve()
        client = self.connect_tls(daemon)
        bodies = [random.Random(at).randbytes((at * 977) % 65_000) for at in range(300)]
        commands = b"".join(b"put 0 0 100 %d\r\n%s\r\npeek %d\r\n" % (len(body), body, job)
                            for job, body in enumerate(bodies, 1))
        sender = threading.Thread(target=client.send, args=(commands,))
        sender.start()
        for job, body in enumerate(bodies, 1):
            self.assertEqual(client.line(), f"INSERTED {job}")
            self.assertTrue(client.body() == (["FOUND", str(job), str(len(body))], body), job)
        sender.join(SECONDS)


if __name__ == "__main__":
    unittest.main()
