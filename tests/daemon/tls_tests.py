"""Shared by the tests of TLS: an authority with certificates, and settings of listeners."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile

from certificates import Authority, Issued
from harness import SECONDS, DaemonTest, TlsClient, tls_context

LOCALHOST = ("DNS:localhost", "IP:127.0.0.1")


def toml(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    if isinstance(value, int):
        return str(value)
    return f'"{value}"'


def table(name, keys):
    lines = [f"{key} = {toml(value)}\n" for key, value in keys.items()]
    return "".join([f"{name}\n" if name else "", *lines])


@dataclasses.dataclass
class Tls:
    """The TLS settings of a listener."""

    certificates: tuple[Issued, ...]
    others: dict = dataclasses.field(default_factory=dict)

    def keys(self, prefix="tls."):
        return {f"{prefix}certificate": [one.certificate for one in self.certificates],
                f"{prefix}key": [one.key for one in self.certificates],
                **{f"{prefix}{key}": value for key, value in self.others.items()}}


class TlsTest(DaemonTest):
    """The authority and the certificate `server` are made once for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="tubed-certificates-")
        cls.addClassCleanup(directory.cleanup)
        cls.files = pathlib.Path(directory.name)
        cls.authority = Authority(cls.files)
        cls.server = cls.authority.issue("server", names=LOCALHOST)

    def listen(self, *certificates, address="127.0.0.1:0", keys=None, **tls):
        """Returns the text of a [[listen]] with TLS. `tls`: client_ca, min_version; `keys`: other
        keys."""
        settings = Tls(certificates or (self.server,), tls)
        return table("[[listen]]", {"address": address, **(keys or {}), **settings.keys()})

    def serve(self, *listeners, settings="", flags=(), **options):
        """Starts a daemon with these listeners of listen(); by default one with `server`."""
        listeners = listeners or (self.listen(),)
        path = self.write_config(settings + "".join(listeners))
        return self.start("--config", path, *flags, listen=None, listeners=len(listeners),
                          **options)

    def connect_tls(self, daemon, index=0, context=None, **options):
        client = TlsClient(daemon.addresses[index], context or tls_context(self.authority),
                           **options)
        self.addCleanup(client.close)
        return client

    def reload(self, daemon, count=1):
        daemon.signal(signal.SIGHUP)
        return daemon.wait_for_line(" info reloaded ", count)

    def start_s_client(self, daemon, *arguments):
        process = subprocess.Popen(["openssl", "s_client", "-connect", daemon.addresses[0],
                                    "-CAfile", self.authority.ca, *arguments],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(process.communicate, timeout=SECONDS)
        return process

    def open_descriptors(self, daemon):
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))
