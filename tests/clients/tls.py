"""Python's ssl and asyncio against the server at TUBED_TEST_HOST:TUBED_TEST_PORT: puts and
reserves over blocking sockets and over streams."""

import asyncio
import os
import socket
import ssl

HOST, PORT = os.environ["TUBED_TEST_HOST"], int(os.environ["TUBED_TEST_PORT"])
SECONDS = 600  # the last resort against a hang
CONTEXT = ssl.create_default_context(cafile=os.environ["TUBED_TEST_CA"])
BODIES = [os.urandom(size) for size in (0, 1, 100, 16_383, 16_384, 16_385, 65_535)]


def blocking():
    with socket.create_connection((HOST, PORT), timeout=SECONDS) as plain, \
            CONTEXT.wrap_socket(plain, server_hostname="localhost") as server, \
            server.makefile("rb") as replies:
        for body in BODIES:
            server.sendall(b"put 0 0 60 %d\r\n%s\r\nreserve\r\n" % (len(body), body))
            word, job = replies.readline().split()
            assert word == b"INSERTED", word
            assert replies.readline().split() == [b"RESERVED", job, b"%d" % len(body)]
            assert replies.read(len(body) + 2) == body + b"\r\n"
            server.sendall(b"delete %s\r\n" % job)
            assert replies.readline() == b"DELETED\r\n"
        server.sendall(b"quit\r\n")
        assert replies.read() == b""
    print("ok    blocking sockets")


async def worker(jobs, done):
    reader, writer = await asyncio.open_connection(HOST, PORT, ssl=CONTEXT,
                                                   server_hostname="localhost")
    for _ in range(jobs):
        writer.write(b"reserve\r\n")
        _, job, size = (await reader.readline()).split()
        body = await reader.readexactly(int(size) + 2)
        writer.write(b"delete %s\r\n" % job)
        assert await reader.readline() == b"DELETED\r\n"
        done.append(body[:-2])
    writer.close()
    await writer.wait_closed()


async def streams():
    done = []
    workers = [asyncio.create_task(worker(50, done)) for _ in range(4)]
    reader, writer = await asyncio.open_connection(HOST, PORT, ssl=CONTEXT,
                                                   server_hostname="localhost")
    bodies = [os.urandom(at * 300) for at in range(200)]
    for body in bodies:
        writer.write(b"put 0 0 60 %d\r\n%s\r\n" % (len(body), body))
        await writer.drain()
    for _ in bodies:
        assert (await reader.readline()).startswith(b"INSERTED ")
    await asyncio.gather(*workers)
    assert sorted(done) == sorted(bodies)
    writer.close()
    await writer.wait_closed()
    print("ok    streams")


def refused():
    untrusting = ssl.create_default_context()
    for context, name in ((untrusting, "localhost"), (CONTEXT, "other.example")):
        with socket.create_connection((HOST, PORT), timeout=SECONDS) as plain:
            try:
                context.wrap_socket(plain, server_hostname=name)
            except ssl.SSLCertVerificationError:
                continue
            raise AssertionError(f"{name} was accepted")
    print("ok    servers that are not trusted")


blocking()
asyncio.run(streams())
refused()
