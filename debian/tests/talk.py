"""A client of the beanstalk protocol, as small as the tests need it."""

import socket


class Client:
    def __init__(self, address):
        """address: (host, port), or the path of a unix socket."""
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(20)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, 20)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def ask(self, line):
        """The reply's line."""
        self.socket.sendall(line + b"\r\n")
        return self.file.readline().rstrip(b"\r\n")

    def put(self, body):
        """The job's id."""
        return self.number(b"INSERTED", self.ask(b"put 0 0 60 %d\r\n%s" % (len(body), body)))

    def reserve(self):
        """(id, body); fails if no job is ready."""
        words = self.ask(b"reserve-with-timeout 0").split()
        assert words[0] == b"RESERVED", words
        body = self.file.read(int(words[2]) + 2)
        return int(words[1]), body[:-2]

    def delete(self, job):
        reply = self.ask(b"delete %d" % job)
        assert reply == b"DELETED", reply

    @staticmethod
    def number(word, reply):
        words = reply.split()
        assert words[0] == word, reply
        return int(words[1])
