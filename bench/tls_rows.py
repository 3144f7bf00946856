"""The rows about TLS: tubed with and without it, and beanstalkd with stunnel in front of it.

A row is a function of the options, as in load_rows.py. The server's processor time includes stunnel's.
"""

import contextlib
import functools
import resource
import signal
import ssl
import subprocess
import sys

import servers
from load_rows import CLIENTS, row
from rounds import Contender, claim, in_rounds, judged, load, medians, run_alternately, table
from servers import harness, tubed
from still_rows import KEPT_DESCRIPTORS
import wire


def make_certificate(folder):
    """A certificate for 127.0.0.1 that has signed itself, and its key, in one file each."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


class Secured(servers.Server):
    """Its clients come by TLS, except for ask()."""

    def __init__(self, command, name, folder, pinned=False):
        super().__init__(command, name, folder, pinned)
        self.certificate, self.key = make_certificate(folder)

    def bench_address(self):
        return ["-s", f"beanstalks://{self.tls_address}", "--ca", self.certificate]


class TlsServer(Secured):
    """tubed with a file of settings: listeners of flags have no TLS."""

    def run(self, command):
        (self.folder / "settings").write_text(
            f'[limits]\nconnections = 30000\njob_memory = "1048576GiB"\n'
            f'[[listen]]\naddress = "127.0.0.1:0"\n'
            f'[[listen]]\naddress = "127.0.0.1:0"\n'
            f'tls = {{ certificate = "{self.certificate}", key = "{self.key}" }}\n',
            encoding="utf-8")
        return harness.Daemon(["--config", str(self.folder / "settings")], listeners=2,
                              command=command)

    @property
    def tls_address(self):
        return self.process.addresses[1]


def tubed_with_tls(options):
    return functools.partial(TlsServer, lambda _: [options.tubed])


class StunnelServer(Secured, servers.Beanstalkd):
    """beanstalkd, and stunnel that terminates the TLS of its clients."""

    stunnel = None

    def start(self):
        super().start()
        settings = self.folder / "stunnel.conf"
        with harness.listening_socket() as listener:
            self.tls_address = "%s:%d" % listener.getsockname()
            settings.write_text(
                f"foreground = yes\npid =\ndebug = err\nsocket = l:TCP_NODELAY=1\n"
                f"socket = r:TCP_NODELAY=1\n[queue]\naccept = {self.tls_address}\n"
                f"connect = {self.address}\ncert = {self.certificate}\nkey = {self.key}\n",
                encoding="utf-8")
            self.stunnel = harness.Process([*self._pin, "stunnel4", str(settings)],
                                           sockets=[listener])
        secured(self).close()

    def cpu_seconds(self):
        return super().cpu_seconds() + self.stunnel.cpu_seconds()

    def stop(self, number=signal.SIGKILL):
        if self.stunnel is not None:
            self.stunnel.kill()
            self.stunnel = None
        super().stop(number)


def beanstalkd_with_stunnel(options):
    return functools.partial(StunnelServer, lambda _: [options.beanstalkd])


def secured(server, source="127.0.0.2"):
    """A connection by TLS."""
    context = ssl.create_default_context(cafile=server.certificate)
    connection = wire.Connection(server.tls_address, source)
    connection.socket = context.wrap_socket(connection.socket, server_hostname="127.0.0.1")
    return connection


STEPS = {"50 clients, 16 puts in flight each": ("put", 16, 1.35),
         "50 clients, one put in flight each": ("put", 1, 1.4),
         "50 clients: put, reserve, delete in turn": ("cycle", 1, 1.4)}


def tls(options):
    plain, secure, stunnel = "tubed", "tubed with TLS", "beanstalkd and stunnel"
    contenders = [Contender(plain, tubed(options)), Contender(secure, tubed_with_tls(options)),
                  Contender(stunnel, beanstalkd_with_stunnel(options))]
    steps = {label: load(options, workload, *CLIENTS, "--in-flight", in_flight)
             for label, (workload, in_flight, _) in STEPS.items()}
    results = run_alternately(options, "tls", contenders, steps)
    tables, claims = [], []
    for label, (_, _, bound) in STEPS.items():
        each = results[label]
        tables.append(table(f"TLS 1.3, {label}", each, ("cpu", "rate", "p50", "p99"), "command"))
        claims.append(claim(f"server CPU a command with TLS, {label}", each[secure], each[plain],
                            "cpu", bound, of="tubed"))
        claims.append(claim(f"server CPU a command with TLS, {label}", each[secure], each[stunnel],
                            "cpu", 0.5, of=stunnel))
    return row("TLS", tables, claims)


def _idle_connections(server, wanted):
    """Returns KiB for each connection."""
    def use_once(connection):
        connection.socket.sendall(b"list-tube-used\r\n")
        if connection.socket.recv(100) != b"USING default\r\n":
            sys.exit(f"{server.name} does not answer")

    with contextlib.ExitStack() as stack:
        # The first connection makes the server allocate its shared memory.
        with secured(server) as first:
            use_once(first)
        before = server.process.resident_bytes()
        for number in range(wanted):
            connection = stack.enter_context(secured(server, f"127.0.0.{2 + number // 5000}"))
            use_once(connection)
        return (server.process.resident_bytes() - before) / wanted / 1024


def tls_idle(options):
    possible = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - KEPT_DESCRIPTORS
    count = min(options.scaled(10_000), possible)
    middle = medians(in_rounds(options, "tls-idle", {"tubed with TLS": tubed_with_tls(options)},
                               lambda server: [_idle_connections(server, count)]))
    figures = {"title": f"{count:,} idle connections by TLS that have sent one command each",
               "columns": ["KiB each"], "keys": ["kib"], "rows": middle}
    claims = [judged("memory a connection with TLS", middle["tubed with TLS"][0], 20, "KiB")]
    return row("idle connections with TLS", [figures], claims)
