"""The network between the nodes of a test's cluster: proxies that can cut, delay, narrow and reset
links.

Each node has an address of its own for the other nodes, on which a proxy listens. A connection
begins with a frame that names the caller (`Hello`, docs/internals/cluster-protocol.md), so the proxy knows
which two nodes it connects. Each direction is controlled by the link from the sender to the
receiver. One thread runs all proxies of a cluster.

A cut link holds its bytes, as the buffers of a network do, and delivers them when it heals.
heal(reset=True) closes the connections instead.
"""

import collections
import contextlib
import errno
import heapq
import selectors
import socket
import struct
import threading
import time

HELLO = 16  # the type of the frame
HELLO_ADDRESS = 48  # offset of the length of the caller's NAME@HOST:PORT, then the text
NARROW_READ = 1 << 13  # read at a time of a narrow link
MOST_HELD = 1 << 20  # bytes held by a direction of a connection before it stops reading


def caller_of(data):
    """Returns the name of the node that begins a connection with this. None: the frame is
    incomplete; "": it is not a Hello."""
    if len(data) < 4 or len(data) < 4 + struct.unpack_from("<I", data)[0]:
        return None
    if len(data) < HELLO_ADDRESS + 4 or data[9] != HELLO:
        return ""
    length, = struct.unpack_from("<I", data, HELLO_ADDRESS)
    text = data[HELLO_ADDRESS + 4:HELLO_ADDRESS + 4 + length]
    return text.split(b"@")[0].decode("ascii", "replace")


class Direction:
    """The bytes from one end of a connection to the other."""

    def __init__(self, source, target, link):
        self.source, self.target, self.link = source, target, link
        self.held = collections.deque()  # (send time, bytes)
        self.bytes = 0
        self.ended = False


class Pipe:
    """A connection between two nodes, through the proxy."""

    def __init__(self, net, accepted, callee):
        self.net, self.accepted, self.callee = net, accepted, callee
        self.caller = None
        self.dialled = None
        self.hello = b""
        self.directions = ()

    def read_hello(self):
        try:
            data = self.accepted.recv(1 << 16)
        except OSError:
            data = b""
        self.hello += data
        self.caller = caller_of(self.hello)
        if not data or self.caller == "":
            self.close()
        elif self.caller:
            self.connect()

    def connect(self):
        self.dialled = socket.socket()
        self.dialled.setblocking(False)
        self.dialled.connect_ex(self.net.targets[self.callee])
        for stream in (self.accepted, self.dialled):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.directions = (
            Direction(self.accepted, self.dialled, (self.caller, self.callee)),
            Direction(self.dialled, self.accepted, (self.callee, self.caller)))
        self.hold(self.directions[0], self.hello)
        self.watch()

    def hold(self, direction, data):
        due = self.net.due(direction.link, len(data))
        direction.held.append((due, data))
        direction.bytes += len(data)

    def watch(self):
        """Selects the events that each end waits for."""
        if not self.directions:
            return
        now = time.monotonic()
        for incoming, outgoing in (self.directions, self.directions[::-1]):
            events = 0
            if incoming.bytes < MOST_HELD and not incoming.ended:
                events |= selectors.EVENT_READ
            if outgoing.held and outgoing.link not in self.net.cut_links:
                if outgoing.held[0][0] <= now:
                    events |= selectors.EVENT_WRITE
                else:
                    self.net.wake_at(outgoing.held[0][0], self)
            self.net.select(incoming.source, events, self)

    def on_events(self, stream, events):
        if not self.directions:
            self.read_hello()
            return
        incoming, outgoing = self.directions
        if stream is incoming.target:
            incoming, outgoing = outgoing, incoming
        try:
            if events & selectors.EVENT_WRITE:
                self.write(outgoing)
            if events & selectors.EVENT_READ:
                narrow = incoming.link in self.net.rates
                data = incoming.source.recv(NARROW_READ if narrow else 1 << 17)
                if data:
                    self.hold(incoming, data)
                    if len(incoming.held) == 1:
                        self.write(incoming)
                else:
                    incoming.ended = True
            self.pass_end(incoming)
            self.pass_end(outgoing)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        if self.directions:
            self.watch()

    def write(self, direction):
        """Sends the bytes that are due, as far as possible."""
        if direction.link in self.net.cut_links:
            return
        now = time.monotonic()
        while direction.held and direction.held[0][0] <= now:
            due, data = direction.held.popleft()
            try:
                sent = direction.target.send(data)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                if error.errno != errno.ENOTCONN:  # still connecting
                    raise
                sent = 0
            direction.bytes -= sent
            if sent < len(data):
                direction.held.appendleft((due, data[sent:]))
                return

    def pass_end(self, direction):
        """Once the bytes of an ended direction are delivered, closes both: the nodes use no
        half-close."""
        if direction.ended and not direction.held:
            self.close()

    def close(self, reset=False):
        for stream in (self.accepted, self.dialled):
            if stream:
                if reset:
                    with contextlib.suppress(OSError):
                        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                          struct.pack("ii", 1, 0))
                self.net.select(stream, 0, self)
                stream.close()
        self.directions = ()
        self.accepted = self.dialled = None
        self.net.pipes.discard(self)


class Net:
    """All proxies of a cluster."""

    def __init__(self):
        self.lock = threading.Lock()
        self.selector = selectors.DefaultSelector()
        self.listeners = {}
        self.targets = {}  # nodes: addresses where they listen
        self.pipes = set()
        self.cut_links = set()  # (from, to)
        self.delays = {}
        self.rates = {}  # bytes per second of narrow links
        self.busy_until = {}  # when the last bytes of a narrow link have been sent
        self.wakes, self.wake_number = [], 0
        self.wake_end, self.other_end = socket.socketpair()
        self.other_end.setblocking(False)
        self.selector.register(self.other_end, selectors.EVENT_READ, None)
        self.done = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def add(self, node, target):
        """Listens for a node on any port; returns the address for other nodes."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        with self.changing():
            self.targets[node] = target
            self.listeners[node] = listener
            self.selector.register(listener, selectors.EVENT_READ, node)
        return "%s:%d" % listener.getsockname()

    @contextlib.contextmanager
    def changing(self):
        with self.lock:
            yield
        self.wake_end.send(b"x")

    # --- Faults

    def cut(self, sender, receiver):
        """Holds back everything that `sender` sends to `receiver`."""
        with self.changing():
            self.cut_links.add((sender, receiver))

    def cut_both(self, one, other):
        self.cut(one, other)
        self.cut(other, one)

    def partition(self, *groups):
        for group in groups:
            for other in groups:
                if group is not other:
                    for sender in group:
                        for receiver in other:
                            self.cut(sender, receiver)

    def heal(self, reset=False):
        """Ends all cuts, delays and rates."""
        with self.changing():
            if reset:
                for pipe in [pipe for pipe in self.pipes if pipe.directions and any(
                        direction.link in self.cut_links for direction in pipe.directions)]:
                    pipe.close(reset=True)
            self.cut_links.clear()
            self.delays.clear()
            self.rates.clear()
            self.busy_until.clear()

    def narrow(self, sender, receiver, rate):
        """Lets so many bytes per second pass from `sender` to `receiver`, on all connections."""
        with self.changing():
            self.rates[sender, receiver] = rate

    def delay(self, sender, receiver, seconds):
        with self.changing():
            self.delays[sender, receiver] = seconds

    def delay_all(self, seconds):
        for sender in self.targets:
            for receiver in self.targets:
                if sender != receiver:
                    self.delay(sender, receiver, seconds)

    def reset(self, one, other):
        """Resets the connections between two nodes."""
        with self.changing():
            for pipe in [pipe for pipe in self.pipes if {pipe.caller, pipe.callee} == {one, other}]:
                pipe.close(reset=True)

    def due(self, link, size):
        """Returns when bytes that are sent now on the link arrive."""
        due = time.monotonic()
        if link in self.rates:
            due = max(due, self.busy_until.get(link, 0.0)) + size / self.rates[link]
            self.busy_until[link] = due
        return due + self.delays.get(link, 0.0)

    # --- The thread

    def select(self, stream, events, pipe):
        key = self.selector.get_map().get(stream)
        if key is None:
            if events:
                self.selector.register(stream, events, pipe)
        elif not events:
            self.selector.unregister(stream)
        elif key.events != events:
            self.selector.modify(stream, events, pipe)

    def wake_at(self, when, pipe):
        self.wake_number += 1
        heapq.heappush(self.wakes, (when, self.wake_number, pipe))

    def run(self):
        while not self.done:
            wait = max(0.0, self.wakes[0][0] - time.monotonic()) if self.wakes else None
            ready = self.selector.select(wait)
            with self.lock:
                for key, events in ready:
                    if key.data is None:
                        self.other_end.recv(1 << 12)
                        for pipe in list(self.pipes):
                            pipe.watch()
                    elif isinstance(key.data, str):
                        self.accept(key.fileobj, key.data)
                    elif key.data in self.pipes and key.fileobj.fileno() >= 0:
                        key.data.on_events(key.fileobj, events)
                now = time.monotonic()
                while self.wakes and self.wakes[0][0] <= now:
                    pipe = heapq.heappop(self.wakes)[2]
                    if pipe in self.pipes:
                        pipe.watch()

    def accept(self, listener, node):
        with contextlib.suppress(OSError):
            stream, _ = listener.accept()
            stream.setblocking(False)
            pipe = Pipe(self, stream, node)
            self.pipes.add(pipe)
            self.selector.register(stream, selectors.EVENT_READ, pipe)

    def close(self):
        with self.changing():
            self.done = True
        self.thread.join()
        for pipe in list(self.pipes):
            pipe.close()
        for stream in (*self.listeners.values(), self.wake_end, self.other_end):
            stream.close()
        self.selector.close()
