"""Shared by the tests of the PROXY protocol: headers, and daemons behind proxies."""

import re
import socket
import struct

from harness import SECONDS, Client, TlsSocket, http_connection, parse_address
from tls_tests import TlsTest, table

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL = SIGNATURE + b"\x20\x00\x00\x00"
UNKNOWN = b"PROXY UNKNOWN\r\n"
PROXY = "127.0.0.2"  # the machine of the proxies
FOUND = "192.0.2.1:50312"  # the client of line() and binary()


def line(source="192.0.2.1", port=50312):
    """A header of version 1."""
    return f"PROXY TCP4 {source} 198.51.100.9 {port} 11300\r\n".encode()


def field(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


def tls_field(name, verified=True):
    """The field of a client with a certificate."""
    return field(0x20, struct.pack(">BI", 7, 0 if verified else 1) +
                 field(0x21, b"TLSv1.3") + field(0x22, name.encode()))


def binary(*fields, family=0x11, addresses=None, command=1):
    """A header of version 2."""
    if addresses is None:
        addresses = (socket.inet_aton("192.0.2.1") + socket.inet_aton("198.51.100.9") +
                     struct.pack(">HH", 50312, 11300))
    rest = addresses + b"".join(fields)
    return SIGNATURE + struct.pack(">BBH", 0x20 | command, family, len(rest)) + rest


class ProxyClient(Client):
    """A client whose proxy sends `header` and, in the same segment, `after`. `source`: the host of
    the proxy. With `context`, TLS follows the header."""

    def __init__(self, address, header, after=b"", source=PROXY, context=None):
        family, peer = parse_address(address)
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        try:
            if family != socket.AF_UNIX:
                self.socket.bind((source, 0))
            self.socket.connect(peer)
            self.socket.sendall(header + after)
            if context:
                self.socket = TlsSocket(self.socket, context)
        except BaseException:
            self.socket.close()
            raise
        self.input = b""


class ProxyTest(TlsTest):
    def proxied(self, address="127.0.0.1:0", networks=(PROXY,), **keys):
        """Returns a [[listen]] for proxies."""
        return table("[[listen]]", {"address": address, "proxy_protocol": list(networks), **keys})

    def serve_proxies(self, *listeners, settings="", **options):
        """Starts a daemon with these listeners, and with metrics."""
        settings = f'http.listen = "127.0.0.1:0"\n{settings}'
        return self.serve(*(listeners or (self.proxied(),)), settings=settings, **options)

    def connect_by(self, daemon, header, index=0, **options):
        client = ProxyClient(daemon.addresses[index], header, **options)
        self.addCleanup(client.close)
        return client

    def clients(self, asking):
        """Returns what list-clients shows, {id: {column: word}}."""
        asking.send(b"list-clients 0 1000\r\n")
        rows = [row[2:].split(" ") for row in asking.body()[1].decode().splitlines()[1:]]
        columns = [*rows[1], "tls-name"]
        return {int(row[0]): dict(zip(columns, row)) for row in rows[2:]}

    def own(self, client):
        """Returns what list-clients shows of a client that watches only the tube `own`."""
        client.ask("watch own")
        client.ask("ignore default")
        row, = [row for row in self.clients(client).values() if row["watched"] == "own"]
        client.ask("watch default")
        client.ask("ignore own")
        return row

    def metric(self, daemon, series):
        connection = http_connection(daemon.http_addresses[0])
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return int(re.search(rf"^{re.escape(series)} (\d+)$", page, re.M)[1])

    def failed_headers(self, daemon):
        return self.metric(daemon, "tubed_failed_handshakes_total")

    def refused(self, daemon):
        return self.metric(daemon, "tubed_refused_connections_total")

    def assert_serves(self, client):
        self.assertEqual(client.ask("list-tube-used"), "USING default")

    def assert_closed(self, client):
        self.assertEqual(client.rest(), b"")
