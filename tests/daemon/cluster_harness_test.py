"""The tools of the cluster's tests, without a cluster: the network of proxies, and the load on a
single server that is killed."""

import random
import socket
import struct
import threading
import time
import types
import unittest

from cluster_checker import Checker
from cluster_clients import Producer
from cluster_load import Load
from cluster_net import Net, caller_of
from harness import SECONDS, DaemonTest, held_port, until


def hello(name):
    """A frame with the beginning of a Hello."""
    address = name.encode() + b"@127.0.0.1:1"
    rest = struct.pack("<IBB38xI", 0, 1, 16, len(address)) + address + bytes(8)
    return struct.pack("<I", len(rest)) + rest


class Echo:
    """A server that records its input and sends it back."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.streams = []
        self.input = {}
        self.echoed = {}  # bytes, each counted by the thread of its stream
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            self.streams.append(stream)
            self.input[stream] = b""
            self.echoed[stream] = 0
            threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        try:
            while data := stream.recv(1 << 16):
                self.input[stream] += data
                stream.sendall(data)
                self.echoed[stream] += len(data)
        except OSError:
            pass
        stream.close()

    def close(self):
        self.listener.close()
        for stream in self.streams:
            stream.close()


class NetTest(unittest.TestCase):
    def setUp(self):
        self.echo = Echo()
        self.addCleanup(self.echo.close)
        self.net = Net()
        self.addCleanup(self.net.close)
        self.address = self.net.add("b", self.echo.listener.getsockname())

    def dial(self, name):
        host, port = self.address.rsplit(":", 1)
        stream = socket.create_connection((host, int(port)), timeout=SECONDS)
        self.addCleanup(stream.close)
        stream.sendall(hello(name))
        return stream

    def receive(self, stream, count):
        data = b""
        while len(data) < count:
            chunk = stream.recv(count - len(data))
            self.assertTrue(chunk)
            data += chunk
        return data

    def exchange(self, stream, data):
        stream.sendall(data)
        self.assertEqual(self.receive(stream, len(data)), data)

    def greeted(self, name):
        stream = self.dial(name)
        self.assertEqual(self.receive(stream, len(hello(name))), hello(name))
        return stream

    def arrived(self):
        return sum(len(data) for data in self.echo.input.values())

    def echoed(self):
        return sum(self.echo.echoed.values())

    def test_the_name_of_the_caller(self):
        self.assertEqual(caller_of(hello("node-1")), "node-1")
        self.assertEqual(caller_of(hello("node-1") + b"more"), "node-1")
        self.assertIsNone(caller_of(hello("node-1")[:-1]))
        self.assertIsNone(caller_of(b""))
        self.assertEqual(caller_of(struct.pack("<I", 10) + bytes(10)), "")

    def test_bytes_pass_both_ways(self):
        stream = self.greeted("a")
        self.exchange(stream, b"x" * 10)
        self.exchange(stream, random.randbytes(100_000))

    def test_a_cut_holds_one_direction(self):
        stream, other = self.greeted("a"), self.greeted("c")
        before = self.arrived()
        self.net.cut("a", "b")
        stream.sendall(b"held")
        self.exchange(other, b"passes")
        self.assertEqual(self.arrived(), before + 6)
        self.net.heal()
        self.assertEqual(self.receive(stream, 4), b"held")
        before = self.arrived()
        self.net.cut("b", "a")
        stream.sendall(b"answer")
        until("the bytes to arrive", lambda: self.arrived() == before + 6)
        until("the answer to be sent", lambda: self.echoed() == before + 6)
        # The proxy has one thread, so it has received the answer before it forwards the next bytes.
        self.exchange(other, b"passes")
        stream.setblocking(False)
        self.assertRaises(BlockingIOError, stream.recv, 1)
        stream.settimeout(SECONDS)
        self.net.heal()
        self.assertEqual(self.receive(stream, 6), b"answer")

    def test_a_new_connection_is_held_too(self):
        self.net.cut_both("a", "b")
        stream = self.dial("a")
        other = self.greeted("c")
        self.exchange(other, b"passes")
        self.net.heal()
        self.assertEqual(self.receive(stream, len(hello("a"))), hello("a"))

    def test_reset(self):
        stream, other = self.greeted("a"), self.greeted("c")
        self.net.reset("a", "b")
        self.assertRaises(ConnectionResetError, stream.recv, 1)
        self.exchange(other, b"passes")
        self.net.cut("c", "b")
        other.sendall(b"lost")
        self.net.heal(reset=True)
        self.assertRaises(ConnectionResetError, other.recv, 1)

    def test_delay(self):
        stream = self.greeted("a")
        self.net.delay("a", "b", 0.1)
        began = time.monotonic()
        self.exchange(stream, b"late")
        self.assertGreaterEqual(time.monotonic() - began, 0.1)
        self.net.heal()

    def test_a_narrow_link(self):
        stream = self.greeted("a")
        self.net.narrow("a", "b", 100_000)
        began = time.monotonic()
        self.exchange(stream, b"n" * 20_000)
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.net.heal()
        self.assertEqual(self.net.rates, {})

    def test_the_end_of_a_stream_passes(self):
        stream = self.greeted("a")
        self.echo.streams[0].shutdown(socket.SHUT_RDWR)
        self.assertEqual(stream.recv(1), b"")


class PortTest(unittest.TestCase):
    def test_a_held_port_is_for_processes_that_name_it(self):
        with held_port() as holder:
            address = holder.getsockname()
            for _ in range(3):
                self.assertRaises(ConnectionRefusedError, socket.create_connection, address)
                with socket.create_server(address) as listener:
                    socket.create_connection(address).close()
                    listener.accept()[0].close()
            with socket.socket() as other:  # a socket without SO_REUSEADDR
                self.assertRaises(OSError, other.bind, address)


class ClientTest(unittest.TestCase):
    def test_a_producer_looks_at_jobs_of_the_load_only(self):
        """Job 1 may have existed before the load."""
        load = types.SimpleNamespace(checker=Checker(), dice=random.Random(1), recent=[])
        producer = Producer(load, 2)
        looks = []

        def add(kind, detail, wire):
            if kind in ("peek", "stats-job"):
                looks.append(detail)

        for _ in range(100):
            producer.make_batch(add, now=0)
        self.assertEqual(looks, [])
        load.recent.append(7)
        for _ in range(100):
            producer.make_batch(add, now=0)
        self.assertEqual(set(looks), {7})


class LoadTest(DaemonTest):
    def test_a_server_that_is_killed(self):
        """The load judges a single server with a journal, whose reservations end with it."""
        address = f"unix:{self.directory}/socket"
        flags = ("-b", str(self.directory), "-f", "0")
        daemon = self.start(*flags, listen=address)
        load = Load([address], clients=20, think=0, grace=0)
        self.addCleanup(load.close)
        for _ in range(3):
            load.next_put(load.next_put())
            killed = time.monotonic()
            daemon.kill()
            daemon = self.start(*flags, listen=address)
            self.assertGreater(load.next_put(killed), killed)
        report = load.stop()
        self.assertEqual(report["problems"], [])
        for count in ("inserted", "reserved", "deleted", "unanswered"):
            self.assertGreater(report[f"count_{count}"], 0, report)

    def test_a_server_that_loses_jobs_is_found(self):
        address = f"unix:{self.directory}/socket"
        daemon = self.start(listen=address)
        load = Load([address], clients=20, think=0, grace=0)
        self.addCleanup(load.close)
        load.next_put(load.next_put())
        daemon.kill()
        self.start(listen=address)
        load.next_put()
        report = load.stop()
        self.assertGreater(report["problem_count"], 0)


if __name__ == "__main__":
    unittest.main()
