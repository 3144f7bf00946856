"""TLS of clients on the real daemon: versions and protocols, the certificates of both sides,
resumption, the end of streams, and records of all sizes."""

import contextlib
import random
import socket
import ssl
import threading
import time
import unittest

from certificates import Authority, days_from_now
from harness import SANITIZED, SECONDS, Client, tls_context, until
from tls_tests import LOCALHOST, TlsTest

V1_1, V1_2, V1_3 = (getattr(ssl.TLSVersion, f"TLSv1_{minor}") for minor in (1, 2, 3))
BODY = bytes(random.Random(1).randbytes(65_535))
# A hello of SSL 3.0: version, random, no session, one suite, no compression.
HELLO_OF_SSL_3 = (b"\x16\x03\x00\x00\x2d\x01\x00\x00\x29\x03\x00" + bytes(range(32)) +
                  b"\x00\x00\x02\x00\x2f\x01\x00")
ALERT = b"\x15"


class Refusals:
    def assert_refused(self, daemon, *parts, **options):
        """The client is not served; returns the error of the client."""
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

    def test_older_versions_are_refused(self):
        daemon = self.serve()
        context = tls_context(newest=V1_1, oldest=ssl.TLSVersion.TLSv1,
                              ciphers="DEFAULT:@SECLEVEL=0")
        self.assert_refused(daemon, "ALERT_PROTOCOL_VERSION", context=context)
        self.assertIn("unsupported protocol", daemon.wait_for_line("TLS handshake failed"))
        client = Client(daemon.addresses[0])
        self.addCleanup(client.close)
        client.send(HELLO_OF_SSL_3)
        self.assertEqual(client.rest()[:1], ALERT)
        self.assert_serves(daemon)

    def test_a_downgrade_is_refused(self):
        daemon = self.serve()
        output = self.s_client(daemon, "-tls1_2", "-fallback_scsv")
        self.assertIn("inappropriate fallback", output)

    def test_tls_1_3_alone(self):
        daemon = self.serve(self.listen(min_version="1.3"))
        self.assert_refused(daemon, "ALERT_PROTOCOL_VERSION", context=tls_context(newest=V1_2))
        self.assertEqual(self.assert_serves(daemon).tls.version(), "TLSv1.3")

    def test_suites_without_forward_secrecy_are_refused(self):
        daemon = self.serve()
        for ciphers in ("AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256"):
            context = tls_context(newest=V1_2, ciphers=f"{ciphers}:@SECLEVEL=0")
            self.assert_refused(daemon, "HANDSHAKE_FAILURE", context=context)

    def test_alpn(self):
        daemon = self.serve()
        for offered, chosen in (((), None), (("beanstalk",), "beanstalk"),
                                (("h2", "beanstalk"), "beanstalk")):
            client = self.assert_serves(daemon, context=tls_context(alpn=offered))
            self.assertEqual(client.tls.selected_alpn_protocol(), chosen)
        self.assert_refused(daemon, "no application protocol",
                            context=tls_context(alpn=("h2", "http/1.1")))

    def test_renegotiation_is_refused(self):
        daemon = self.serve()
        process = self.start_s_client(daemon, "-tls1_2")
        for text in (b"list-tube-used\r\n", b"R\n"):  # s_client reads R at the front alone
            process.stdin.write(text)
            process.stdin.flush()
            for line in process.stdout:
                if line in (b"USING default\r\n", b"RENEGOTIATING\n"):
                    break
        self.assertIn(b"no renegotiation", process.stdout.read())
        self.assert_serves(daemon)

    def test_a_client_may_update_its_keys(self):
        daemon = self.serve()
        process = self.start_s_client(daemon)
        for key in (b"k", b"K", b"K"):  # K: the server is to update its key as well
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
            # A server logs a few of these lines in a second.
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
        # The file has the intermediate authority alone: it does not trust what else its root signs.
        daemon = self.serve(self.listen(client_ca=between.own.certificate))
        for other in (clients.issue("x", client=True),
                      clients.intermediate("other").issue("x", client=True)):
            self.assert_refused(daemon, context=tls_context(self.authority, other))


class Resumption(TlsTest):
    def session_of(self, daemon, context):
        client = self.connect_tls(daemon, context=context)
        client.ask("list-tube-used")  # the ticket of TLS 1.3 comes before the reply
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

    def half_closed(self, daemon, end):
        client = self.connect_tls(daemon)
        client.send(b"put 0 0 10 1\r\nx\r\n" + b"list-tube-used\r\n" * 5000 +
                    b"reserve\r\nreserve\r\n")
        end(client)
        self.assertEqual(client.rest(), b"INSERTED 1\r\n" + b"USING default\r\n" * 5000 +
                         b"RESERVED 1 1\r\nx\r\nTIMED_OUT\r\n")
        self.assertTrue(client.socket.notified)
        # All of it arrives at once, and the job is free again.
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        daemon.freeze()
        client.send(b"reserve\r\nreserve\r\n")
        end(client)
        daemon.thaw()
        self.assertEqual(client.rest(), b"RESERVED 1 1\r\nx\r\nTIMED_OUT\r\n")

    def test_a_half_close_of_tls(self):
        self.half_closed(self.serve(), Client.half_close)

    def test_a_half_close_of_the_socket(self):
        self.half_closed(self.serve(), lambda client: client.socket.plain.shutdown(socket.SHUT_WR))

    def test_a_half_close_ends_a_wait(self):
        daemon = self.serve()
        other = self.connect_tls(daemon)
        for end in (Client.half_close, lambda one: one.socket.plain.shutdown(socket.SHUT_WR)):
            for commands, replies in ((b"reserve\r\n", b"TIMED_OUT\r\n"),
                                      (b"reserve\r\nlist-tube-used\r\nreserve\r\n",
                                       b"TIMED_OUT\r\nUSING default\r\nTIMED_OUT\r\n")):
                client = self.connect_tls(daemon)
                client.send(commands)
                until("the client to wait", lambda: other.stats()["current-waiting"] == 1)
                end(client)
                self.assertEqual(client.rest(), replies)
                self.assertEqual(other.stats()["current-waiting"], 0)

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

    def test_quit(self):
        client = self.connect_tls(self.serve())
        client.send(b"quit\r\n")
        self.assertEqual(client.rest(), b"")
        self.assertTrue(client.socket.notified)

    def test_a_plain_client_at_a_port_of_tls(self):
        daemon = self.serve()
        for text in (b"stats\r\n", b"put 0 0 10 1\r\nx\r\n" * 1000, b"\x16\x03\x01\xff\xff",
                     b"GET / HTTP/1.1\r\n\r\n", bytes(100_000)):
            client = self.connect(daemon)
            with contextlib.suppress(ConnectionError):
                client.send(text)
            if text.startswith(b"\x16"):
                client.half_close()
            self.assertNotIn(b"\r\n", client.rest())
        self.assertEqual(self.connect_tls(daemon).stats()["total-jobs"], 0)

    def test_a_client_of_tls_at_a_plain_port(self):
        daemon = self.start()
        hello = ssl.MemoryBIO()
        with self.assertRaises(ssl.SSLWantReadError):
            tls_context().wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
        client = self.connect(daemon)
        client.send(hello.read())
        client.half_close()
        self.assertNotIn(b"INSERTED", client.rest())
        self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")

    def test_garbage_after_the_handshake(self):
        """It ends that connection, and gives its job back."""
        daemon = self.serve()
        other = self.connect_tls(daemon)
        for garbage in (bytes(100), b"list-tube-used\r\n", b"\x17\x03\x03\x40\xff" + bytes(17_000),
                        b"\x17\x03\x03\x00\x20" + bytes(32), b"\x15\x03\x03\x00\x02\x02\x28",
                        b"\x16\x03\x03\x00\x04\x01\x00\x00\x00"):
            client = self.connect_tls(daemon)
            job = client.put()
            client.reserve()
            client.socket.plain.sendall(garbage)
            self.assertEqual(other.reserve(), (job, b"x"))
            with contextlib.suppress(ssl.SSLError, OSError):
                client.rest()
            self.assertEqual(other.ask(f"delete {job}"), "DELETED")


class Records(TlsTest):
    def sizes(self):
        generator = random.Random(2)
        yield from ((1,), (2,), (3,), (1000,), (16_383,), (16_384,), (1, 16_384))
        for _ in range(10):
            yield [generator.choice((1, 2, 7, 1000, 5000, 16_384)) for _ in range(97)]

    def test_records_of_every_size(self):
        """Pipelined commands with a large body, cut into records and these into pieces."""
        daemon = self.serve()
        command = b"put 0 0 100 65535\r\n" + BODY + b"\r\nreserve\r\nlist-tube-used\r\n"
        generator = random.Random(3)
        for count, sizes in enumerate(self.sizes(), 1):
            client = self.connect_tls(daemon)
            client.socket.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = b"".join(client.socket.encrypt(command, sizes))
            while stream:
                length = generator.choice((1, 5, 100, 16_400, 1 << 20))
                client.socket.plain.sendall(stream[:length])
                stream = stream[length:]
            self.assertEqual(client.line(), f"INSERTED {count}")
            self.assertEqual(client.body(), (["RESERVED", str(count), "65535"], BODY))
            self.assertEqual(client.line(), "USING default")
            self.assertEqual(client.ask(f"delete {count}"), "DELETED")
            client.close()

    def test_every_cut_of_a_short_stream(self):
        """A record of each command; the stream arrives in two pieces, cut everywhere."""
        daemon = self.serve()
        for cut in range(0, 130, 1 if not SANITIZED else 7):
            client = self.connect_tls(daemon, context=tls_context())
            client.socket.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = b"".join(client.socket.encrypt(b"put 0 0 10 1\r\nx\r\nlist-tube-used\r\n",
                                                    (14, 1, 2, 16)))
            self.assertLess(len(stream), 130)
            client.socket.plain.sendall(stream[:cut])
            client.socket.plain.sendall(stream[cut:])
            self.assertTrue(client.line().startswith("INSERTED "))
            self.assertEqual(client.line(), "USING default")
            client.close()

    def test_many_small_records_at_once(self):
        """Commands in a record each, many more than the server reads at once, in one tick."""
        daemon = self.serve()
        client = self.connect_tls(daemon)
        client.ask("list-tube-used")
        stream = b"".join(client.socket.encrypt(b"list-tube-used\r\n" * 20_000, (16,)))
        daemon.freeze()
        sender = threading.Thread(target=client.socket.plain.sendall, args=(stream,))
        sender.start()
        daemon.thaw()
        self.assertEqual(client.read(20_000 * 15), b"USING default\r\n" * 20_000)
        sender.join(SECONDS)

    def test_a_record_that_never_ends_costs_nothing(self):
        daemon = self.serve()
        other = self.connect_tls(daemon)
        clients = [self.connect_tls(daemon) for _ in range(20)]
        for client in clients:
            record, = client.socket.encrypt(b"put 0 0 10 10000\r\n" + bytes(10_000) + b"\r\n")
            client.socket.plain.sendall(record[:-1])
            client.rest_of_record = record[-1:]
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        # A daemon that tried to read the rest again and again would never sleep.
        until("the daemon to sleep", lambda: daemon.status_field("State").startswith("S"))
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        for client in clients:
            client.socket.plain.sendall(client.rest_of_record)
            self.assertTrue(client.line().startswith("INSERTED "))

    def test_a_slow_reader_gets_every_byte(self):
        """More than the kernel buffers, so that the server writes parts of records."""
        size, count = 500_000, 100
        daemon = self.serve(settings=f"limits.job_bytes = {size}\n")
        bodies = [random.Random(seed).randbytes(size) for seed in range(5)]
        producer = self.connect_tls(daemon)
        for body in bodies:
            producer.put(body)
        for version in (V1_2, V1_3):
            client = self.connect_tls(daemon, context=tls_context(newest=version),
                                      receive_buffer=4096)
            commands = b"".join(b"peek %d\r\n" % (1 + at % len(bodies)) for at in range(count))
            client.send(commands)
            # Others are served meanwhile.
            self.assertEqual(producer.ask("list-tube-used"), "USING default")
            client.read(1000)
            client.input = b""
            rest = size + len(b"FOUND 1 500000\r\n\r\n") - 1000
            self.assertEqual(client.read(rest), bodies[0][-rest + 2:] + b"\r\n")
            for at in range(1, count):
                words, body = client.body()
                self.assertEqual(words[1], str(1 + at % len(bodies)))
                self.assertTrue(body == bodies[at % len(bodies)], at)

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
