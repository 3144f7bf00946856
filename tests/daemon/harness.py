"""Starts servers, waits for them and talks to them, for the tests of all folders.

`Process` starts a program and reads its output in a thread; `Daemon` is a process of tubed, and
start_beanstalkd() returns one of beanstalkd. `Client` is a connection that sends and receives protocol
text, and `TlsClient` one that encrypts it. `DaemonTest` is the base class of the tests: it ends the
daemons and closes the clients that a test has opened. Every wait ends as soon as its condition is true;
SECONDS only ends a test that hangs. The module imports no other module of the tests: the tests of
packages copy it.

$TUBED_PROGRAM names the daemon under test. ctest sets it; to run one file by hand:

  TUBED_PROGRAM=build/dev/src/tubed python3 tests/daemon/limits_test.py
"""

import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

PROGRAM = str(pathlib.Path(os.environ.get("TUBED_PROGRAM", "build/dev/src/tubed")).resolve())
# Under a sanitizer everything is slower, and its own memory makes memory figures useless.
SANITIZED = bool(os.environ.get("TUBED_SANITIZED"))
BEANSTALKD = shutil.which("beanstalkd", path=os.environ["PATH"] + ":/usr/bin:/usr/sbin")
# The last resort against a hang: no machine is so slow or busy that a wait of a test takes ten minutes.
SECONDS = 600


def until(what, condition, seconds=SECONDS):
    """Polls until the result of `condition` is true, and returns that result."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s without success for: {what}")
        time.sleep(0.002)


def passed(moment):
    """A condition for until(): time.monotonic() has reached `moment`."""
    return lambda: time.monotonic() >= moment


class Elapsed:
    """The seconds since an event that happens within a `with` block, such as the reply to a put.

    The event and the moment at which the server computes a figure are known only up to the time that
    the test takes, so all checks compare with an interval. Figures are whole seconds, hence 1."""

    def __enter__(self):
        self.earliest = time.monotonic()
        return self

    def __exit__(self, *_):
        self.latest = time.monotonic()

    def check_left(self, test, requested, figure):
        """Checks the time left, figure(), of a time that began with the event."""
        least = time.monotonic() - self.latest
        left = figure()
        most = time.monotonic() - self.earliest
        test.assertGreaterEqual(left, requested - most - 1)
        test.assertLessEqual(left, requested - least + 1)

    def check_age(self, test, figure):
        """Checks the time since the event, figure()."""
        self.check_left(test, 0, lambda: -figure())


def raise_descriptor_limit(least):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < least:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(least, hard), hard))


def run(*arguments, environment=None, descriptors=None, program=None):
    """Runs a tubed that does not serve until it exits. Returns (exit code, stdout, stderr). A tubed
    that serves is killed."""
    command = [program or PROGRAM, *arguments]
    if descriptors:  # the soft limit
        command = ["sh", "-c", f'ulimit -Sn {descriptors}; exec "$0" "$@"', *command]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True,
            env=os.environ | (environment or {})) as process:
        last_resort = threading.Timer(SECONDS, process.kill)
        last_resort.start()
        errors = []
        for line in process.stderr:
            errors.append(line)
            if " info listening " in line:
                process.kill()
        last_resort.cancel()
        code = process.wait()
        output.seek(0)
        return code, output.read(), "".join(errors)


def preloaded(name, directory):
    """The environment in which the library of NAME.cc is preloaded. $TUBED_NAME is the path of the
    built library; if it is not set, this function builds the library in `directory`."""
    library = os.environ.get(f"TUBED_{name.upper()}")
    if not library:
        library = directory / f"lib{name}.so"
        source = pathlib.Path(__file__).parents[1] / "preload" / f"{name}.cc"
        subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", source, "-o", library], check=True)
    if not pathlib.Path(library).exists():  # the loader only warns
        raise AssertionError(f"{library} is not built")
    return {"LD_PRELOAD": str(library),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


class StandingClock:
    """The monotonic clocks of daemons that are started with `environment` stop at the first
    advance(). Later, a timer of such a daemon expires only when the test advances them."""

    def __init__(self, directory):
        self.directory = directory / "clock"
        self.directory.mkdir()
        self.environment = preloaded("stepped_clock", directory) | {
            "TUBED_CLOCK_DIRECTORY": str(self.directory)}
        self.now = 0

    def advance(self, seconds=0):
        """Sets the clocks ahead by `seconds`, and by up to another second the first time. A daemon that
        sleeps notices it at the end of its sleep, or with the next event."""
        self.now = (self.now or int(time.monotonic()) + 1) + seconds
        new = self.directory / "monotonic.new"
        new.write_text(str(self.now), encoding="utf-8")
        new.rename(self.directory / "monotonic")


def parse_address(text):
    """An address as it is logged, as (family, argument of socket.connect())."""
    if text.startswith("unix:"):
        return socket.AF_UNIX, text[len("unix:"):]
    host, port = text.rsplit(":", 1)
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    return family, (host.strip("[]"), int(port))


def connects(path):
    """Whether a server listens at the unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def held_port(host="127.0.0.1"):
    """A bound socket that holds a free port until it is closed: the kernel gives the port to no
    other process, and a process that names the port can listen there, also several times in turn,
    because all these sockets have SO_REUSEADDR and the holder does not listen."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return holder


def write_tokens(path, tokens):
    """Writes a file of tokens, as auth.tokens names it. `tokens`: each by its name."""
    path.write_text("".join(f"{name} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
                            for name, token in tokens.items()), encoding="utf-8")
    path.chmod(0o600)
    return path


def listening_socket():
    """A socket that listens on a free port of 127.0.0.1, with the options that beanstalkd sets for
    its own: accepted connections inherit them."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setblocking(False)
    return listener


# Replaces the work of systemd between fork and exec: moves the descriptors of $0 to 3 and up, and
# exports the id of the process, which exec keeps. A variable that the test has set stays.
LAUNCHER = """
for given in $0; do exec {moved}<&$given-; all+=($moved); done
for number in ${!all[@]}; do eval "exec $((3 + number))<&${all[number]}-"; done
export LISTEN_PID=${LISTEN_PID-$$} WATCHDOG_PID=${WATCHDOG_PID-$$}
((!${#all[@]})) || export LISTEN_FDS=${LISTEN_FDS-${#all[@]}}
exec "$@"
"""


class Process:
    """A process. A thread reads its output into `lines`, and the process never blocks on writing: its
    stderr, and with `stdout` also its standard output. `sockets`: listening sockets that it gets as
    systemd passes them, for a server that cannot choose a free port."""

    ending = False  # it has had SIGTERM from end()
    returned = 0  # the lines that next_line() has returned

    def __init__(self, command, environment=None, sockets=None, stdout=False, **options):
        self.expected_code = 0  # the exit code that the test expects
        self.lines = []
        self.log_ended = False  # when no process has the log open
        self.changed = threading.Condition()
        if sockets is not None:
            options["pass_fds"] = [each.fileno() for each in sockets]
            descriptors = " ".join(map(str, options["pass_fds"]))
            command = ["bash", "-c", LAUNCHER, descriptors, *command]
        read_end, write_end = os.pipe()
        status = os.fstat(write_end)
        self.stderr_name = f"{status.st_dev}:{status.st_ino}"
        variables = os.environ | {key: value.replace("STDERR", self.stderr_name)
                                  for key, value in (environment or {}).items()}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=write_end,
                                        stdout=write_end if stdout else subprocess.DEVNULL,
                                        env=variables, **options)
        os.close(write_end)
        self.reader = threading.Thread(target=self.read_log, args=(read_end,), daemon=True)
        self.reader.start()

    def read_log(self, descriptor):
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                with self.changed:
                    self.lines.append(line.rstrip("\n"))
                    self.take(self.lines[-1])
                    self.changed.notify_all()
        with self.changed:
            self.log_ended = True
            self.changed.notify_all()

    def take(self, line):
        """Called for each line of the log."""

    @property
    def pid(self):
        return self.process.pid

    def lines_with(self, text):
        with self.changed:
            return [line for line in self.lines if text in line]

    def wait_for_line(self, text, count=1):
        """Waits for the `count`th line that contains `text`, and returns it. Fails at once if the log
        has ended without it."""
        def found_or_ended():
            return len(self.lines_with(text)) >= count or self.log_ended
        with self.changed:
            self.changed.wait_for(found_or_ended, SECONDS)
        found = self.lines_with(text)
        if len(found) < count:
            raise AssertionError(f"{len(found)} log lines with {text!r}, not {count}; the log has "
                                 f"{'ended' if self.log_ended else f'been read for {SECONDS} s'}")
        return found[count - 1]

    def next_line(self):
        """Waits for the line after the last that it returned, and returns it."""
        self.returned += 1
        with self.changed:
            self.changed.wait_for(lambda: len(self.lines) >= self.returned or self.log_ended, SECONDS)
        assert len(self.lines) >= self.returned, f"no line after {self.lines[-5:]}"
        return self.lines[self.returned - 1]

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """Stops the process until thaw(). All input that is sent meanwhile arrives in one tick."""
        self.signal(signal.SIGSTOP)
        until("the process to stop", lambda: self.status_field("State").startswith("T"))

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """Kills the process with SIGKILL, like a crash."""
        self.expected_code = -signal.SIGKILL
        self.process.kill()
        self.wait()

    def wait(self, seconds=SECONDS):
        """Waits until the process has exited; returns the exit code."""
        code = self.process.wait(seconds)
        self.reader.join(SECONDS)
        return code

    def ask_to_end(self):
        """Sends SIGTERM, but only once: a second signal lets the process stop before its journal is
        written."""
        if self.process.poll() is None and not self.ending:
            self.ending = True
            self.thaw()
            self.process.terminate()

    def end(self):
        """Ends the process with SIGTERM, and with SIGKILL if it does not exit within SECONDS.
        Returns the exit code, which differs from 0 after a failed assertion or a leak."""
        if self.process.poll() is None:
            self.ask_to_end()
            try:
                return self.wait()
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.wait()

    # --- Figures of the kernel about the process

    def status_field(self, name):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return re.search(rf"^{name}:\s*(.*)$", text, re.MULTILINE)[1]

    def resident_bytes(self):
        return int(self.status_field("VmRSS").split()[0]) * 1024

    def cpu_seconds(self):
        """User and system time of all threads, also of those that have ended."""
        return time.clock_gettime(~self.pid << 3 | 2)  # as clock_getcpuclockid(3) makes it


class Daemon(Process):
    """A tubed that serves."""

    def __init__(self, flags, descriptors=None, file_bytes=None, listeners=1, command=None,
                 **options):
        self.addresses = []
        self.http_addresses = []  # logged before the others
        command = [*(command or [PROGRAM]), *flags]
        if descriptors:  # the hard and the soft limit
            command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$0" "$@"', *command]
        if file_bytes:  # POSIX counts in blocks of 512
            command = ["sh", "-c", f'ulimit -f {file_bytes // 512}; exec "$0" "$@"', *command]
        super().__init__(command, **options)
        self.wait_for_listeners(listeners)

    def take(self, line):
        found = re.search(r'listening( for HTTP)?.*address"?[=:]"?([^" ]+)', line)
        if found:
            (self.http_addresses if found[1] else self.addresses).append(found[2])

    def wait_for_listeners(self, count):
        def listening_or_ended():
            return len(self.addresses) >= count or self.log_ended
        with self.changed:
            self.changed.wait_for(listening_or_ended, SECONDS)
        if len(self.addresses) < count:
            self.end()
            raise AssertionError(f"the daemon ended, or did not open {count} listeners within "
                                 f"{SECONDS} s: {self.lines}")

    def wait_for_two_ticks(self):
        """Waits until the server has done all that it could do when this was called."""
        for _ in range(2):
            count = len(self.lines_with("not draining"))
            self.signal(signal.SIGUSR2)
            self.wait_for_line("not draining", count + 1)


def start_beanstalkd(*flags, path=None, program=None):
    """A Process of beanstalkd that listens: at the unix socket `path`, or at a free port of 127.0.0.1.
    Its `addresses` has the address. It is ended by SIGTERM, which it does not handle."""
    command = [program or BEANSTALKD, *flags]
    assert command[0], "Debian's beanstalkd is needed"
    if path:
        server = Process([*command, "-l", f"unix:{path}"])
        server.addresses = [f"unix:{path}"]
        until("beanstalkd to listen", lambda: connects(path) or server.process.poll() is not None)
    else:
        with listening_socket() as listener:
            server = Process(command, sockets=[listener])
            server.addresses = ["%s:%d" % listener.getsockname()]
    server.expected_code = -signal.SIGTERM
    return server


def http_connection(address, context=None):
    """A connection to HOST:PORT or unix:PATH; with `context` by TLS."""
    family, peer = parse_address(address)
    if family == socket.AF_UNIX:
        return UnixHttp(peer)
    if context:
        return http.client.HTTPSConnection(*peer, timeout=SECONDS, context=context)
    return http.client.HTTPConnection(*peer, timeout=SECONDS)


class UnixHttp(http.client.HTTPConnection):
    def __init__(self, path, seconds=SECONDS):
        super().__init__("localhost", timeout=seconds)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def http_request(path, method, target, body=None):
    """An exchange with a unix socket; returns (status, text)."""
    with contextlib.closing(UnixHttp(path)) as connection:
        connection.request(method, target, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"} if body is not None else {})
        response = connection.getresponse()
        return response.status, response.read().decode()


def parse_reply(data, begin):
    """The reply at `begin`: (its words, its body or None, its end); None if it is incomplete."""
    end = data.find(b"\r\n", begin)
    if end < 0:
        return None
    words = bytes(data[begin:end]).split()
    if not words or words[0] not in (b"RESERVED", b"FOUND", b"OK"):
        return words, None, end + 2
    body_end = end + 2 + int(words[-1])
    if len(data) < body_end + 2:
        return None
    return words, bytes(data[end + 2:body_end]), body_end + 2


def pairs_of(block):
    """The body of a reply to stats: numbers as int, and strings as they are, with their quotes."""
    pairs = (line.split(": ", 1) for line in block.decode().splitlines()[1:])
    return {key: int(value) if value.isdecimal() else value for key, value in pairs}


def as_dict(block):
    """As pairs_of(), without the quotes."""
    return {key: value.strip('"') if isinstance(value, str) else value
            for key, value in pairs_of(block).items()}


class Client:
    """A connection that sends and receives protocol text; the test can read every byte."""

    def __init__(self, address, receive_buffer=None):
        family, self.peer = parse_address(address)
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        if receive_buffer:  # set before connect(), which fixes the largest window
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect(self.peer)
        except OSError:
            self.socket.close()
            raise
        self.input = b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """Reads more input; false at the end of the stream."""
        try:
            chunk = self.socket.recv(1 << 18)
        except TimeoutError:
            raise AssertionError(f"no reply within {self.socket.gettimeout()} s; "
                                 f"the input ends with {self.input[-200:]!r}") from None
        self.input += chunk
        return bool(chunk)

    def line(self):
        while b"\r\n" not in self.input:
            if not self.receive():
                raise AssertionError(f"the stream ended after {self.input!r}")
        line, self.input = self.input.split(b"\r\n", 1)
        return line.decode()

    def read(self, count):
        if len(self.input) < count:
            pieces, have = [self.input], len(self.input)
            while have < count:
                chunk = self.socket.recv(min(count - have, 1 << 20))
                if not chunk:
                    raise AssertionError(f"the stream ended {count - have} bytes too early")
                pieces.append(chunk)
                have += len(chunk)
            self.input = b"".join(pieces)
        data, self.input = self.input[:count], self.input[count:]
        return data

    def rest(self):
        """Reads up to the end of the stream, or to a reset, and returns the input."""
        pieces, self.input = [self.input], b""
        try:
            while chunk := self.socket.recv(1 << 18):
                pieces.append(chunk)
        except (ConnectionResetError, BrokenPipeError):
            pass
        return b"".join(pieces)

    def ask(self, command):
        self.send(command.encode() + b"\r\n")
        return self.line()

    def body(self):
        """Reads a reply that has a body; returns (its words, the body)."""
        words = self.line().split()
        return words, self.body_after(words)

    def body_after(self, words):
        """Reads the body of a reply whose line has these words."""
        if words[0] not in ("RESERVED", "FOUND", "OK"):
            raise AssertionError(f"not a reply with a body: {words}")
        return self.read(int(words[-1]) + 2)[:-2]

    def put(self, body=b"x", priority=0, delay=0, ttr=100):
        self.send(b"put %d %d %d %d\r\n%s\r\n" % (priority, delay, ttr, len(body), body))
        word, job = self.line().split()
        assert word == "INSERTED", word
        return int(job)

    def try_put(self):
        """A put of a new client, on a server that may exit: "ok", "eof", or the other reply."""
        self.send(b"put 0 0 60 1\r\nx\r\n")
        while b"\n" not in self.input and self.receive():
            pass
        if not self.input:
            return "eof"
        return "ok" if self.input.startswith(b"INSERTED ") else f"answered {self.input!r}"

    def reserve(self, command="reserve"):
        self.send(command.encode() + b"\r\n")
        words, body = self.body()
        return int(words[1]), body

    def stats(self, command="stats"):
        self.send(command.encode() + b"\r\n")
        return self.reply_to_stats()

    def stats_if_found(self, command):
        self.send(command.encode() + b"\r\n")
        words = self.line().split()
        return None if words == ["NOT_FOUND"] else pairs_of(self.body_after(words))

    def reply_to_stats(self):
        return pairs_of(self.body()[1])

    def pump(self, data, lines):
        """Sends `data` and meanwhile reads replies of `lines` lines; returns the last line."""
        assert not self.input
        sender = threading.Thread(target=self.send, args=(data,))
        sender.start()
        last = b""
        while lines > 0:
            chunk = self.socket.recv(1 << 18)
            if not chunk:
                raise AssertionError(f"the stream ended {lines} lines too early")
            lines -= chunk.count(b"\n")
            last = (last + chunk)[-200:]
        sender.join(SECONDS)
        assert lines == 0 and last.endswith(b"\r\n"), last
        return last.decode().split("\r\n")[-2]

    def put_many(self, count, delay=0, ttr=100_000, size=1):
        """Pipelines `count` puts of equal jobs; returns the last reply."""
        line = b"put 0 %d %d %d\r\n%s\r\n" % (delay, ttr, size, b"x" * size)
        return self.pump(line * count, count)

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with a reset instead of an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.socket.close()


def tls_context(authority=None, certificate=None, oldest=ssl.TLSVersion.TLSv1_2,
                newest=ssl.TLSVersion.TLSv1_3, alpn=(), ciphers=None):
    """The TLS of a client. Without `authority`, whose certificates it trusts, it verifies nothing.
    `certificate`: its own, as Authority.issue() returns it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority:
        context.load_verify_locations(authority.ca)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate.certificate, certificate.key)
    with warnings.catch_warnings():  # of versions that are deprecated
        warnings.simplefilter("ignore")
        context.minimum_version, context.maximum_version = oldest, newest
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if ciphers:
        context.set_ciphers(ciphers)
    return context


class TlsSocket:
    """TLS over a connected socket, with the methods of a socket that Client uses. The test sees the
    bytes of the records, and can end the output of TLS alone. One thread
    may send while another receives."""

    RECORD_BYTES = 1 << 14

    def __init__(self, plain, context, server_name="localhost", session=None):
        self.plain = plain
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=server_name,
                                    session=session)
        self.lock, self.sending = threading.Lock(), threading.Lock()
        self.notified = False  # close_notify has arrived
        self.decrypted = b""  # input that arrived before the output of TLS was ended
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                self.fill()
            except ssl.SSLError:
                self.flush()  # the alert
                raise
        self.flush()

    def __getattr__(self, name):
        return getattr(self.plain, name)

    def flush(self):
        if self.outgoing.pending:
            with self.sending:
                self.plain.sendall(self.outgoing.read())

    def fill(self):
        if data := self.plain.recv(1 << 18):
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def recv(self, count):
        """Decrypted input; b"" at the end of the stream, after which `notified` says whether the
        server has announced it."""
        while True:
            try:
                with self.lock:
                    if self.decrypted:
                        data, self.decrypted = self.decrypted[:count], self.decrypted[count:]
                        return data
                    data = self.tls.read(count)
                    self.notified = self.notified or not data
                    return data
            except ssl.SSLWantReadError:
                self.flush()
                self.fill()
            except ssl.SSLZeroReturnError:
                self.notified = True
                return b""
            except ssl.SSLEOFError:
                return b""

    def encrypt(self, data, sizes=(RECORD_BYTES,)):
        """The records of `data`, of these sizes in turn."""
        records, size = [], itertools.cycle(sizes)
        while data:
            count = next(size)
            with self.lock:
                self.tls.write(data[:count])
                records.append(self.outgoing.read())
            data = data[count:]
        return records

    def sendall(self, data):
        for begin in range(0, len(data), self.RECORD_BYTES):
            record, = self.encrypt(data[begin:begin + self.RECORD_BYTES])
            with self.sending:
                self.plain.sendall(record)

    def shutdown(self, how):
        """Sends close_notify; the socket stays open in both directions."""
        assert how == socket.SHUT_WR
        with self.lock, contextlib.suppress(ssl.SSLWantReadError):
            while data := self.tls.read(1 << 18):  # unwrap() may find none
                self.decrypted += data
        with self.lock, contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.flush()


class TlsClient(Client):
    """A client of a listener with TLS. `context` is of tls_context()."""

    def __init__(self, address, context, server_name="localhost", session=None, **options):
        super().__init__(address, **options)
        try:
            self.socket = TlsSocket(self.socket, context, server_name, session)
        except BaseException:
            self.socket.close()
            raise

    @property
    def tls(self):
        return self.socket.tls


class DaemonTest(unittest.TestCase):
    """Ends each server that a test starts, and prints its log when the test fails."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-daemon-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.daemons = []

    def start(self, *flags, listen="127.0.0.1:0", **options):
        listen_flags = ["--listen", listen] if listen else []
        daemon = Daemon([*listen_flags, *flags], **options)
        self.daemons.append(daemon)
        self.addCleanup(self.end, daemon)
        return daemon

    def start_beanstalkd(self, *flags, **options):
        server = start_beanstalkd(*flags, **options)
        self.daemons.append(server)
        self.addCleanup(self.end, server)
        return server

    def end(self, daemon):
        self.assertEqual(daemon.end(), daemon.expected_code, daemon.lines[-20:])

    def start_refused(self, code, *flags, **options):
        """Starts a daemon that exits with `code` before it serves; returns its error message, the
        only line on stderr that is not a log line."""
        got, _, errors = run("--listen", "127.0.0.1:0", *flags, **options)
        lines = [line for line in errors.splitlines() if line.startswith("tubed: ")]
        self.assertEqual((got, len(lines)), (code, 1), errors)
        self.assertNotIn(" info listening", errors)
        self.assertEqual(errors.splitlines()[-1], lines[0])
        return lines[0]

    def write_config(self, text):
        path = self.directory / "tubed.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def connect(self, daemon, index=0, **options):
        client = Client(daemon.addresses[index], **options)
        self.addCleanup(client.close)
        return client

    def unread_reply(self, daemon):
        """A client that does not read its replies, which are larger than the kernel's buffers. The
        daemon must accept jobs of 8 MiB."""
        other = self.connect(daemon)
        other.put(b"x" * 8 * (1 << 20))
        client = self.connect(daemon, receive_buffer=4096)
        client.send(b"peek 1\r\npeek 1\r\n")
        client.read(100)
        other.close()
        return client

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            for daemon in self.daemons:
                print(f"{self.id()}: the daemon's last lines:", *daemon.lines[-20:], sep="\n  ",
                      file=sys.stderr)
