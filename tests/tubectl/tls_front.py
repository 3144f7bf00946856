"""TlsFront: TLS in front of a server without TLS, for the tests of clients.

It accepts TLS connections, connects to its server and forwards bytes both ways. It decides how the
replies are cut into records, can answer `auth` in place of the server, and can end a connection
without the end of TLS.
"""

import select
import socket
import ssl
import threading
import time

from harness import SECONDS, parse_address


class TlsFront:
    """`record_bytes`: the most plaintext in a record. `gather`: seconds during which replies of the
    server are collected before they are sent. `tokens`: the accepted tokens; None: the server
    itself answers `auth`. `clients`: a CA from which each client needs a certificate. `truncates`:
    connections end without the end of TLS."""

    def __init__(self, behind, issued, *, record_bytes=1 << 14, gather=0, tokens=None, clients=None,
                 truncates=False, version=None, protocols=("beanstalk",)):
        self.behind = parse_address(behind)
        self.record_bytes, self.gather = record_bytes, gather
        self.tokens, self.truncates = tokens, truncates
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(issued.certificate, issued.key)
        self.context.set_alpn_protocols(list(protocols))
        self.context.sni_callback = lambda _, name, __: self.names.append(name)
        if version:
            self.context.minimum_version = self.context.maximum_version = version
        if clients:
            self.context.load_verify_locations(clients)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.names = []  # received as SNI; None: a client sent no name
        self.protocols = []  # chosen by ALPN
        self.subjects = []  # the common names of client certificates
        self.regular_ends = 0  # connections that the client ended with the end of TLS
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.connections = []
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            self.connections.append(client)
            self.threads.append(threading.Thread(target=self.serve, args=(client,), daemon=True))
            self.threads[-1].start()

    def serve(self, client):
        with client, socket.socket(self.behind[0], socket.SOCK_STREAM) as server:
            client.settimeout(SECONDS)
            server.settimeout(SECONDS)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                server.connect(self.behind[1])
                Session(self, client, server).run()
            except OSError:  # also ssl.SSLError: the client reports the reason
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for client in list(self.connections):
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in list(self.threads):
            thread.join(SECONDS)


class Session:
    """One connection. TLS runs in memory, so the records of a reply are sent together."""

    def __init__(self, front, client, server):
        self.front, self.client, self.server = front, client, server
        self.input, self.output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = front.context.wrap_bio(self.input, self.output, server_side=True)
        self.begun = b""  # an incomplete first line
        self.is_first = front.tokens is not None

    def run(self):
        try:
            self.handshake()
        finally:  # an alert
            self.flush()
        if not self.pass_on():  # bytes that arrived with the end of the handshake
            return
        while True:
            ready, _, _ = select.select([self.client, self.server], [], [])
            if self.client in ready and not (self.receive() and self.pass_on()):
                return
            if self.server in ready and not self.take_replies():
                return

    def handshake(self):
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                if not self.receive():
                    raise OSError("no handshake") from None
        self.front.protocols.append(self.tls.selected_alpn_protocol())
        certificate = self.tls.getpeercert()
        if certificate:
            subject = dict(pair for part in certificate["subject"] for pair in part)
            self.front.subjects.append(subject["commonName"])

    def receive(self):
        data = self.client.recv(1 << 16)
        self.input.write(data)
        return bool(data)

    def flush(self):
        self.client.sendall(self.output.read())

    def pass_on(self):
        """Forwards the commands that have arrived. Returns False if the client has ended the
        connection."""
        while True:
            try:
                data = self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                return True
            except ssl.SSLZeroReturnError:
                data = b""
            if not data:
                self.front.regular_ends += 1
                return False
            if self.is_first:
                data = self.authenticate(data)
            self.server.sendall(data)

    def authenticate(self, data):
        """Removes `auth` from the start of the commands, and answers it."""
        self.begun += data
        if b"\r\n" not in self.begun:
            return b""
        self.is_first = False
        line, rest = self.begun.split(b"\r\n", 1)
        if not line.startswith(b"auth "):
            return self.begun
        accepted = line[len("auth "):].decode() in self.front.tokens
        self.tls.write(b"AUTHENTICATED\r\n" if accepted else b"UNAUTHORIZED\r\n")
        self.flush()
        return rest

    def take_replies(self):
        """Returns False if the server has ended the connection."""
        if self.front.gather:
            time.sleep(self.front.gather)
        data = self.server.recv(1 << 20)
        for at in range(0, len(data), self.front.record_bytes):
            self.tls.write(data[at:at + self.front.record_bytes])
        if not data and not self.front.truncates:
            try:
                self.tls.unwrap()
            except ssl.SSLWantReadError:
                pass
        self.flush()
        return bool(data)
