"""tubectl with TLS and with tokens."""

import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import unittest

from programs import (BAD_INPUT, DONE, FAILURE, IO, SECONDS, TUBECTL, UNAVAILABLE, USAGE,
                      ScriptedServer, TubectlTest, until)
from tls_front import TlsFront
from certificates import Authority, days_from_now  # tests/daemon is in the path because of programs

TOKEN = "tbd_a-token-of-the-test"
NAMES = ("DNS:localhost", "IP:127.0.0.1")


class TlsTest(TubectlTest):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="tubectl-tls-")
        cls.addClassCleanup(directory.cleanup)
        cls.authority = Authority(directory.name)
        cls.other = Authority(directory.name, "other CA")
        cls.certificate = cls.authority.issue("server", names=NAMES)

    def secured(self, certificate=None, flags=(), **options):
        """Starts a tubed with a TlsFront. A test that uses only its `port` and `address` does not
        depend on how the server gets TLS."""
        front = TlsFront(self.tubed(*flags), certificate or self.certificate, **options)
        self.addCleanup(front.close)
        return front

    def url(self, front):
        return f"beanstalks://localhost:{front.port}"

    def tls(self, front, *arguments, **options):
        return self.tubectl(self.url(front), "--ca", self.authority.ca, *arguments, **options)

    def tls_refused(self, code, front, *arguments, address=None, ca=None):
        return self.refused(code, address or self.url(front), "tubes", "--ca",
                            ca or self.authority.ca, *arguments)

    def token_file(self, text=TOKEN + "\n", mode=0o600):
        path = self.directory / f"token-{len(list(self.directory.iterdir()))}"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path


class Certificates(TlsTest):
    def test_a_put_and_a_reserve(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version):
                front = self.secured(version=version)
                self.assertEqual(self.tls(front, "put", "hello"), "1\n")
                self.assertEqual(self.tls(front, "reserve", "--delete"), "hello")
                self.assertEqual(front.names, ["localhost"] * 2)
                self.assertEqual(front.protocols, ["beanstalk"] * 2)
                until("the ends of TLS", lambda front=front: front.regular_ends == 2)

    def test_the_option_instead_of_the_url(self):
        front = self.secured()
        self.assertIn("default", self.tubectl(f"localhost:{front.port}", "--tls", "--ca",
                                              self.authority.ca, "tubes"))

    def test_the_ca_in_the_environment(self):
        front = self.secured()
        environment = {"TUBED_CA": str(self.authority.ca)}
        code, _, errors = self.run_tubectl(self.url(front), "tubes", environment=environment)
        self.assertEqual((code, errors), (DONE, ""))
        code, _, errors = self.run_tubectl(self.tubed(), "tubes", environment=environment)
        self.assertEqual((code, errors), (DONE, ""))

    def test_an_rsa_key_and_a_chain(self):
        between = self.authority.intermediate("CA between")
        for certificate in (between.issue("server", names=NAMES),
                            self.authority.issue("server", names=NAMES, key="rsa")):
            self.tls(self.secured(certificate), "tubes")

    def test_an_intermediate_ca(self):
        between = self.authority.intermediate("CA of servers")
        front = self.secured(between.issue("server", names=NAMES))
        self.tubectl(self.url(front), "tubes", "--ca", between.own.certificate)
        # Other certificates of the root are not trusted.
        self.tls_refused(UNAVAILABLE, self.secured(), ca=between.own.certificate)

    def test_another_ca(self):
        front = self.secured()
        self.assertEqual(self.tls_refused(UNAVAILABLE, front, ca=self.other.ca),
                         f"tubectl: the certificate of 127.0.0.1:{front.port} is not signed by a "
                         "trusted CA\n")
        # Without --ca the CAs of the system are trusted.
        self.assertIn("is not signed by a trusted CA",
                      self.refused(UNAVAILABLE, self.url(front), "tubes"))

    def test_dates(self):
        expired = self.authority.issue("server", names=NAMES, not_after=days_from_now(-2))
        front = self.secured(expired)
        date = days_from_now(-2).strftime("%Y-%m-%d")
        self.assertEqual(self.tls_refused(UNAVAILABLE, front),
                         f"tubectl: the certificate of 127.0.0.1:{front.port} has expired "
                         f"({date})\n")
        early = self.authority.issue("server", names=NAMES, not_before=days_from_now(2))
        front = self.secured(early)
        date = days_from_now(2).strftime("%Y-%m-%d")
        self.assertEqual(self.tls_refused(UNAVAILABLE, front),
                         f"tubectl: the certificate of 127.0.0.1:{front.port} is not valid yet "
                         f"(from {date})\n")

    def test_the_name(self):
        front = self.secured(self.authority.issue("localhost", names=("DNS:queue.example.org",)))
        about = f"tubectl: the certificate of 127.0.0.1:{front.port} is not for the "
        self.assertEqual(self.tls_refused(UNAVAILABLE, front), about + "name localhost\n")
        self.assertEqual(self.tls_refused(UNAVAILABLE, front,
                                          address=f"beanstalks://127.0.0.1:{front.port}"),
                         about + "address 127.0.0.1\n")
        self.tls(front, "tubes", "--server-name", "queue.example.org")
        self.assertEqual(front.names[-1], "queue.example.org")
        self.assertEqual(self.tls_refused(UNAVAILABLE, front, "--server-name", "example.org"),
                         about + "name example.org\n")

    def test_an_ip_address(self):
        front = self.secured(self.authority.issue("server", names=("IP:127.0.0.1",)))
        self.tubectl(f"beanstalks://127.0.0.1:{front.port}", "tubes", "--ca", self.authority.ca)
        self.assertEqual(front.names, [None])  # SNI has only names
        self.assertIn("is not for the name localhost", self.tls_refused(UNAVAILABLE, front))

    def test_a_certificate_of_a_client_is_not_one_of_a_server(self):
        front = self.secured(self.authority.issue("server", names=NAMES, client=True))
        self.assertIn("is not for a server", self.tls_refused(UNAVAILABLE, front))

    def test_a_client_certificate(self):
        front = self.secured(clients=self.authority.ca)
        worker = self.authority.issue("worker 1", client=True)
        self.tls(front, "tubes", "--cert", worker.certificate, "--key", worker.key)
        both = self.directory / "both.pem"
        both.write_text(worker.certificate.read_text("ascii") + worker.key.read_text("ascii"),
                        encoding="ascii")
        self.tls(front, "tubes", "--cert", both)
        self.assertEqual(front.subjects, ["worker 1"] * 2)

    def test_a_client_certificate_that_the_server_refuses(self):
        expired = self.authority.issue("old", client=True, not_after=days_from_now(-1))
        stranger = self.other.issue("stranger", client=True)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version):
                front = self.secured(clients=self.authority.ca, version=version)
                for worker, reason in (
                        (None, "(requires a client certificate: use --cert|"
                               r"may require a client certificate \(--cert\))$"),
                        (expired, "refuses the client certificate: it has expired$"),
                        (stranger, "does not trust the CA of the client certificate$")):
                    options = ("--cert", worker.certificate, "--key", worker.key) if worker else ()
                    self.assertRegex(self.tls_refused(UNAVAILABLE, front, *options), reason)

    def test_files_that_are_no_certificates(self):
        text = self.directory / "text"
        text.write_text("hello\n", encoding="utf-8")
        worker = self.authority.issue("worker", client=True)
        another = self.authority.issue("another", client=True)
        server = "beanstalks://127.0.0.1:1"
        for code, options, reason in (
                (IO, ("--ca", "/no/such.pem"),
                 "cannot read /no/such.pem: No such file or directory"),
                (BAD_INPUT, ("--ca", text),
                 f"cannot read the CA certificates in {text}: it has none in PEM"),
                (BAD_INPUT, ("--cert", text),
                 f"cannot read the certificate in {text}: it has none in PEM"),
                (BAD_INPUT, ("--cert", worker.certificate),
                 f"cannot read the key in {worker.certificate}: it has none in PEM"),
                (BAD_INPUT, ("--cert", worker.certificate, "--key", another.key),
                 f"the key in {another.key} is not that of the certificate in "
                 f"{worker.certificate}")):
            self.assertEqual(self.refused(code, server, "tubes", *options),
                             f"tubectl: {reason}\n")

    def test_a_key_with_a_passphrase(self):
        worker = self.authority.issue("worker", client=True)
        locked = self.directory / "locked.key"
        subprocess.run(["openssl", "pkey", "-in", worker.key, "-aes256", "-passout", "pass:secret",
                        "-out", locked], check=True, timeout=SECONDS)
        self.assertIn(f"cannot read the key in {locked}: ",
                      self.refused(BAD_INPUT, "beanstalks://127.0.0.1:1", "tubes", "--cert",
                                   worker.certificate, "--key", locked))

    def test_options_that_need_tls(self):
        for options in (("--ca", "x"), ("--cert", "x"), ("--server-name", "x")):
            self.assertEqual(self.refused(USAGE, "127.0.0.1:1", "tubes", *options),
                             f"tubectl: {options[0]} needs TLS: use --tls, or an address "
                             "beanstalks://HOST; try tubectl tubes --help\n")
        self.assertEqual(self.refused(USAGE, "beanstalks://h", "tubes", "--key", "x"),
                         "tubectl: --key needs --cert; try tubectl tubes --help\n")
        self.assertEqual(self.refused(USAGE, "unix:/x", "tubes", "--tls"),
                         "tubectl: --tls: a unix socket has no TLS; try tubectl tubes --help\n")

    def test_urls(self):
        self.tubectl(f"beanstalk://{self.tubed()}", "tubes")
        for url, reason in (("beanstalks://h/tube", "no path"), ("beanstalk://h:1/", "no path"),
                            ("beanstalks://me:secret@h", "no user"), ("http://h", "scheme")):
            told = self.refused(USAGE, url, "tubes")
            self.assertIn(reason, told)
            self.assertNotIn("secret", told)


class Peers(TlsTest):
    def test_tls_to_a_server_without(self):
        """The server answers immediately, because the handshake contains a line end."""
        self.assertEqual(self.refused(UNAVAILABLE, self.tubed(), "tubes", "--tls"),
                         "tubectl: the server does not speak TLS\n")

    def test_a_server_with_tls_and_a_client_without(self):
        front = self.secured()
        self.assertEqual(self.refused(UNAVAILABLE, front.address, "tubes"),
                         "tubectl: the server closed a connection without an answer; if it speaks "
                         "TLS, use --tls\n")
        alert = ScriptedServer([b"\x15\x03\x01\x00\x02\x02\x46"])
        self.addCleanup(alert.close)
        self.assertEqual(self.refused(UNAVAILABLE, alert.address, "tubes"),
                         "tubectl: the server speaks TLS: use --tls\n")

    def test_an_old_version(self):
        done = subprocess.run(["openssl", "ciphers", "-tls1_1", "-s", "DEFAULT@SECLEVEL=0"],
                              capture_output=True, check=False, text=True, timeout=SECONDS)
        if not done.stdout.strip():
            self.skipTest("this OpenSSL has no TLS 1.1")
        process = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-tls1_1", "-cert",
             self.certificate.certificate, "-key", self.certificate.key, "-cipher",
             "DEFAULT@SECLEVEL=0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = ""
            while not (found := re.match(r"ACCEPT 127\.0\.0\.1:(\d+)", port)):
                port = process.stdout.readline()
                self.assertTrue(port, "openssl s_server ended")
            self.assertEqual(self.refused(UNAVAILABLE, f"beanstalks://localhost:{found[1]}",
                                          "tubes", "--ca", self.authority.ca),
                             "tubectl: the server does not speak TLS 1.2 or later\n")
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)

    def test_a_server_that_hangs_up_during_the_handshake(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            process = self.popen(f"beanstalks://127.0.0.1:{listener.getsockname()[1]}", "tubes",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            client, _ = listener.accept()
            client.recv(1 << 16)
            client.close()
            _, errors = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, errors), (
            UNAVAILABLE, b"tubectl: the server closed the connection during the TLS handshake\n"))

    def test_the_end_of_a_connection(self):
        for truncates, reason in ((False, "the server closed a connection"),
                                  (True, "the server closed a connection without the end of TLS")):
            with self.subTest(truncates=truncates):
                front = self.secured(truncates=truncates)
                process = self.popen(self.url(front), "reserve", "--ca", self.authority.ca,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                until("the handshake", lambda front=front: front.protocols)
                client = self.client(self.daemons[-1].addresses[0])
                until("the reserve", lambda c=client: c.stats()["current-waiting"] == 1)
                self.daemons[-1].end()
                _, errors = process.communicate(timeout=SECONDS)
                self.assertEqual((process.returncode, errors.decode()),
                                 (UNAVAILABLE, f"tubectl: {reason}\n"))


class Records(TlsTest):
    """Replies are cut into records at arbitrary places."""

    def test_bodies_both_ways(self):
        body = bytes(range(256)) * 255
        for record_bytes in (1, 5, 1000, 1 << 14):
            with self.subTest(record_bytes=record_bytes):
                front = self.secured(record_bytes=record_bytes)
                job = self.tls(front, "put", "-f", "-", stdin=body).strip()
                code, _, errors = self.run_tubectl(self.url(front), "peek", job, "--json", "--ca",
                                                   self.authority.ca)
                self.assertEqual((code, errors), (DONE, ""))
                process = self.popen(self.url(front), "reserve", "--delete", "--ca",
                                     self.authority.ca, stdout=subprocess.PIPE)
                output, _ = process.communicate(timeout=SECONDS)
                self.assertEqual(output, body)

    def test_many_jobs_out_and_in(self):
        for record_bytes, gather in ((1, 0), (100, 0), (1 << 14, 0.01)):
            with self.subTest(record_bytes=record_bytes):
                front = self.secured(record_bytes=record_bytes, gather=gather)
                count = 2000 if record_bytes > 1 else 200
                lines = "".join(json.dumps({"body": "x" * (i % 300), "tube": "mail"}) + "\n"
                                for i in range(count)).encode()
                self.tls(front, "import", "-", stdin=lines)
                exported = self.tls(front, "export", "-t", "mail")
                self.assertEqual([len(json.loads(line)["body"]) for line in exported.splitlines()],
                                 [i % 300 for i in range(count)])
                self.tls(front, "move", "mail", "post")
                self.assertEqual(json.loads(self.tls(front, "tubes", "post", "--interval", "0",
                                                     "--json"))["ready"], count)

    def test_work(self):
        """Many replies arrive in one record, and the socket shows only the first."""
        for record_bytes, gather in ((1, 0), (1 << 14, 0.02)):
            with self.subTest(record_bytes=record_bytes):
                front = self.secured(record_bytes=record_bytes, gather=gather)
                for options in (("-j", "1"), ("-j", "20"), ("-j", "40", "--batch", "40")):
                    self.tls(front, "put", "--lines", stdin=b"job\n" * 100)
                    code, _, errors = self.run_tubectl(
                        self.url(front), "work", "--ca", self.authority.ca, *options,
                        "--exit-when-idle", "1", "--", "true")
                    self.assertEqual((code, errors), (DONE, ""))
                    self.assertEqual(self.tls(front, "stats", "default", "--json").count(
                        '"current-jobs-ready":0'), 1)

    def test_bench(self):
        for record_bytes, gather in ((7, 0), (1 << 14, 0.01)):
            front = self.secured(record_bytes=record_bytes, gather=gather)
            for workload, *options in (("pipe", "--producers", "3", "--consumers", "5"),
                                       ("cycle", "--in-flight", "50"),
                                       ("put", "--in-flight", "500"),
                                       ("reserve", "--in-flight", "500", "--no-fill")):
                with self.subTest(record_bytes=record_bytes, workload=workload):
                    report = json.loads(self.tls(front, "bench", workload, "--jobs", "1000",
                                                 "--json", *options))
                    self.assertGreaterEqual(report["all"], 1000)

    def test_bench_with_large_jobs(self):
        front = self.secured(record_bytes=1 << 14)
        self.tls(front, "bench", "put", "--jobs", "300", "--body", "60000", "--in-flight", "50")
        self.tls(front, "bench", "reserve", "--jobs", "300", "--no-fill", "--in-flight", "50")

    def test_top(self):
        front = self.secured()
        self.assertIn("default", self.tls(front, "top", "--once", "--interval", "0.1"))


class Tokens(TlsTest):
    def test_a_token_that_is_accepted(self):
        front = self.secured(tokens={TOKEN})
        path = self.token_file()
        self.tls(front, "tubes", "--token-file", path)
        self.tls(front, "tubes", "--token-file", self.token_file(TOKEN))
        self.tls(front, "put", "x", "--token-file", path)
        code, _, errors = self.run_tubectl(self.url(front), "reserve", "--ca", self.authority.ca,
                                           environment={"TUBED_TOKEN_FILE": str(path)})
        self.assertEqual((code, errors), (DONE, ""))

    def test_tokens_that_are_not(self):
        for server, reason in ((self.secured(tokens={"another"}),
                                "the server does not accept the token"),
                               (self.secured(), "the server takes no tokens")):
            for command in (("tubes",), ("top", "--once"), ("work", "--", "true"),
                            ("export",), ("wait-idle",)):
                self.assertEqual(
                    self.refused(UNAVAILABLE, self.url(server), *command[:1], "--ca",
                                 self.authority.ca, "--token-file", self.token_file(),
                                 *command[1:]), f"tubectl: {reason}\n")

    def test_without_tls(self):
        server = ScriptedServer([b"AUTHENTICATED\r\n", b"INSERTED 7\r\n"])
        self.addCleanup(server.close)
        self.assertEqual(self.tubectl(server.address, "put", "x", "--token-file",
                                      self.token_file()), "7\n")
        self.assertEqual(server.commands[0], f"auth {TOKEN}")

    def test_files_that_have_none(self):
        long = "x" * 218
        for text, reason in (("", "it is empty"), ("\n", "it is empty"),
                             ("a\nb\n", "it has more than one line"),
                             ("a b\n", "it has white space"), ("a\tb", "it has white space"),
                             ("a\r\n", "it has white space"), ("é", "not printable ASCII"),
                             (long, "its line is longer than 217 bytes")):
            told = self.refused(BAD_INPUT, "127.0.0.1:1", "tubes", "--token-file",
                                self.token_file(text))
            self.assertIn(f"has no token: {reason}" if "it" in reason else reason, told)
        open_to_all = self.token_file(mode=0o604)
        self.assertEqual(self.refused(BAD_INPUT, "127.0.0.1:1", "tubes", "--token-file",
                                      open_to_all),
                         f"tubectl: the token in {open_to_all} is open to other users: chmod o= "
                         f"{open_to_all}\n")
        self.assertIn("No such file", self.refused(BAD_INPUT, "127.0.0.1:1", "tubes",
                                                   "--token-file", "/no/such/token"))
        # The group may read the file, as for a service.
        group = self.token_file(mode=0o640)
        self.tls(self.secured(tokens={TOKEN}), "tubes", "--token-file", group)

    def test_a_token_is_not_shown(self):
        front = self.secured(tokens={TOKEN})
        self.tls(front, "put", "x")
        found = self.directory / "found"
        path = self.token_file()
        self.tls(front, "work", "--token-file", path, "-j", "1", "--count", "1", "--quiet", "--",
                 "sh", "-c", f"env >{found}; tr '\\0' ' ' <\"/proc/$PPID/cmdline\" >>{found}; "
                 f"cat >/dev/null")
        text = found.read_text(encoding="utf-8")
        self.assertIn("TUBED_JOB_ID", text)
        self.assertNotIn(TOKEN, text)

    def test_a_server_that_requires_a_token(self):
        for command in (("put", "x"), ("tubes",), ("work", "--", "true")):
            server = ScriptedServer([b"UNAUTHORIZED\r\n", None])
            self.addCleanup(server.close)
            self.assertIn("the server requires a token: use --token-file (UNAUTHORIZED)",
                          self.run_tubectl(server.address, *command)[2])

    def test_work_connects_again_with_its_token(self):
        front = self.secured(tokens={TOKEN})
        process = self.popen(self.url(front), "work", "--ca", self.authority.ca, "--token-file",
                             self.token_file(), "--exit-when-idle", "20", "--count", "1", "--",
                             "true", stderr=subprocess.PIPE)
        until("a connection", lambda: front.protocols)
        client = self.client(self.daemons[-1].addresses[0])
        until("the reserve", lambda: client.stats()["current-waiting"] == 1)
        front.connections[0].shutdown(socket.SHUT_RDWR)
        until("another connection", lambda: len(front.protocols) > 1)
        client.put()
        _, errors = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, DONE, errors)

    def test_what_a_role_may_not(self):
        path = self.token_file()
        job = str(pathlib.Path(self.directory, "jobs.jsonl"))
        pathlib.Path(job).write_text('{"body":"one"}\n', encoding="utf-8")
        for command in (("put", "x"), ("reserve",), ("delete", "1"), ("release", "1"),
                        ("bury", "1"), ("kick", "1"), ("kick", "-t", "mail", "5"),
                        ("wait", "1"), ("tubes",), ("stats",),
                        ("stats", "mail"), ("list", "mail"), ("peek", "1"),
                        ("peek", "--ready"), ("job", "1"), ("pause", "mail", "5"),
                        ("policy", "mail"), ("policy", "mail", "ttl", "5"), ("drain",),
                        ("wait-idle",), ("clear", "-y", "mail"), ("export",), ("import", job),
                        ("bench", "put", "--jobs", "1", "--clients", "1"), ("top", "--once"),
                        ("work", "--", "true")):
            with self.subTest(command=command):
                server = ScriptedServer([b"AUTHENTICATED\r\n"] + [b"DENIED\r\n"] * 50)
                code, _, errors = self.run_tubectl(server.address, command[0], "--token-file",
                                                   path, *command[1:])
                server.close()
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn("the role of this client does not permit it (DENIED)", errors)
                self.assertIn(code, (FAILURE, UNAVAILABLE), errors)


class NewTokens(TubectlTest):
    def token(self, *arguments, **options):
        return self.tubectl("127.0.0.1:1", "token", *arguments, **options)

    def test_a_token_on_standard_output(self):
        first, second = self.token("new", "worker-1").splitlines()
        token = re.fullmatch(r"token: (tbd_[A-Za-z0-9_-]{43})", first)[1]
        line = re.fullmatch(r"line for auth.tokens: (worker-1 sha256:[0-9a-f]{64})", second)[1]
        self.assertEqual(self.token("hash", "worker-1", stdin=token.encode()), line + "\n")
        done = subprocess.run(["sha256sum"], input=token.encode(), capture_output=True, check=True)
        self.assertEqual(line.split(":")[1], done.stdout.decode().split()[0])
        self.assertNotEqual(self.token("new", "worker-1").splitlines()[0], first)

    def test_a_token_in_a_file(self):
        path = self.directory / "new.token"
        # The variable names the token of a connection, not the file of a new token.
        code, output, errors = self.run_tubectl("127.0.0.1:1", "token", "new", "a.b@c_d-e",
                                                "--token-file", path,
                                                environment={"TUBED_TOKEN_FILE": "/no/such"})
        self.assertEqual((code, errors), (DONE, ""))
        self.assertRegex(output, r"^a\.b@c_d-e sha256:[0-9a-f]{64}\n$")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        text = path.read_text(encoding="ascii")
        self.assertRegex(text, r"^tbd_[A-Za-z0-9_-]{43}\n$")
        self.assertEqual(self.token("hash", "a.b@c_d-e", "--token-file", path), output)
        self.assertEqual(self.refused(IO, "127.0.0.1:1", "token", "new", "x", "--token-file", path),
                         f"tubectl: cannot create {path}: File exists\n")
        self.assertEqual(path.read_text(encoding="ascii"), text)

    def test_json(self):
        made = json.loads(self.token("new", "w", "--json"))
        self.assertEqual(sorted(made), ["hash", "name", "token"])
        hashed = json.loads(self.token("hash", "w", "--json", stdin=made["token"].encode()))
        self.assertEqual(hashed, {"name": "w", "hash": made["hash"]})
        path = self.directory / "json.token"
        self.assertEqual(sorted(json.loads(self.token("new", "w", "--json", "--token-file", path))),
                         ["hash", "name"])

    def test_names(self):
        self.token("new", "x" * 64)
        for name in ("", "x" * 65, "a b", "a/b", "é", "a:b"):
            self.assertIn("is no name", self.refused(USAGE, "127.0.0.1:1", "token", "new", name))
        self.refused(USAGE, "127.0.0.1:1", "token", "list", "x")
        self.refused(USAGE, "127.0.0.1:1", "token", "new")

    def test_what_is_no_token(self):
        self.assertIn("standard input has no token: it is empty",
                      self.refused(BAD_INPUT, "127.0.0.1:1", "token", "hash", "x"))

    def test_without_a_home_and_an_environment(self):
        done = subprocess.run([TUBECTL, "token", "new", "x"], env={}, check=True,
                              capture_output=True, timeout=SECONDS)
        self.assertTrue(done.stdout.startswith(b"token: tbd_"))


if __name__ == "__main__":
    os.environ.pop("TUBED_TOKEN_FILE", None)
    unittest.main()
