#!/usr/bin/env python3
"""Many connections send random commands to the real tubed, which must answer each with a reply of its row
and must never exit on its own.

    cmake --preset asan && cmake --build --preset asan --target tubed
    TUBED_PROGRAM=build/asan/src/tubed tests/fuzz/fuzz_connections.py --commands 10000000 --seed 1

The grammar is docs/reference/commands.md, which is generated from the command table: every command with every
argument and tag, every reply with its form. An argument type without a generator ends the run at once. 8 to 16
clients, on listeners without a role, with a role and with tokens, pipeline the commands, split them at random
bytes, mutate some, half-close, close and reset connections, and read slowly. Some bursts of several clients
arrive in one tick, because the server is stopped meanwhile (SIGSTOP).

A run consists of lives of about 20,000 commands. Most lives have a journal, which the next life reads. During a
life settings, tokens and roles are reloaded, and drain mode begins and ends. Lives end alternately with SIGKILL
and with SIGTERM, after which the exit code must be 0.

A run fails if the server exits, is reported by a sanitizer, does not start again, or sends anything other than
a reply of the command's row. It then prints the seed, the last commands of each client and the log. The commands
follow from the seed, except for ids, which come from the server's replies.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import re
import select
import signal
import socket
import string
import struct
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "daemon"))
sys.dont_write_bytecode = True

import harness  # noqa: E402

LINE_BYTES = 224
JOB_BYTES = 8192
LIFE_COMMANDS = 20_000
CLIENTS = (8, 16)
MOST_PENDING = 24
MOST_UNSENT = 1 << 16
FAMILIES = ("produce", "work", "inspect", "admin")
TUBES = ("default", "a", "b", "c", "mail.x", "mail.y", "1.0", "n" * 200)
NAMES = ("g", "h", "i", "k" * 40)
TOKENS = {"all": "tbd_all", "some": "tbd_some", "mail": "tbd_mail"}
UNKNOWN_TOKEN = "tbd_wrong"
BODIES = (0, 1, 1, 1, 5, 100, 100, 3000, JOB_BYTES, JOB_BYTES + 1, 20_000)
NUMBERS = (0, 1, 2, 3, 10, 1000, 1024, 2**32 - 1)
TIMES = ("0", "0", "0", "0", "1ms", "2ms", "20ms", "1", "2", "100", "4294967295")
TTRS = ("0", "1", "1ms", "20ms", *("100",) * 6)
SHORT_TIMES = ("0", "1ms", "5ms", "30ms", "200ms", "1")
# The values of each key of a policy; `-` removes the value of any key.
POLICIES = {
    "max-attempts": ("0", "1", "3"), "max-timeouts": ("0", "1"), "max-releases": ("0", "2"),
    "dead": ("bury", "delete", "mail.y", "a"), "backoff": ("1", "1:10", "0:0", "10:300:3"),
    "ttl": ("0", "1", "100"), "expired": ("delete", "bury", "b"), "max-jobs": ("0", "5", "100"),
    "max-reserved": ("0", "1", "10"), "rate": ("0", "1/1", "1000/1"), "min-ttr": ("0", "1"),
    "default-ttr": ("0", "10"), "keep": ("0", "1")}
# How often a command is sent, relative to 2 for other commands.
WEIGHTS = {
    "put": 20, "put-in-tube": 10, "reserve": 0.5, "reserve-with-abort": 1, "reserve-with-timeout": 8,
    "reserve-job": 3, "reserve-batch": 6, "delete": 6, "release": 6, "bury": 5, "watch": 4, "wait": 3,
    "set-caps": 2, "delete-force": 2, "quit": 0.1, "drain": 0.1, "undrain": 1, "reload": 0.2, "truncate": 0.5,
    "flush-tube": 1, "delete-batch": 1, "auth": 0.5, "pause-tube": 0.5, "tube-policy": 1,
    "list-tubes": 0.5, "stats": 0.5, "capabilities": 0.2, "list-clients": 0.5}
WORDS = {"<state>": "READY|DELAYED|RESERVED|BURIED|DELETED",
         "<tube>": r"[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}", "<mode>": "[a-z-]+", "<reason>": ".+"}


class Failure(Exception):
    pass


# --- The grammar

class Command:
    """A command of the reference: its arguments as (name, type, may be missing), and its replies."""

    def __init__(self, section):
        self.name = section.split("\n", 1)[0]
        usage = re.search(r"^```\n(.*?)\n```$", section, re.M | re.S)[1]
        # In their order on the line.
        self.arguments = [(name, text, f"[{name}]" in usage)
                          for name, text in re.findall(r"^- `(<.*?>)`: (.*)$", section, re.M)]
        self.replies = re.findall(r"^\| `(.+?)` \|", section, re.M)
        self.regex = "|".join(map(regex_of, self.replies))


def regex_of(reply):
    """The regular expression of a reply; its group `bytes…` is the length of the body that follows."""
    parts = []
    for word in reply.split(" "):
        optional = word.startswith("[")
        word = word.strip("[]")
        if word == "<bytes>":
            part = "(?P<bytes>[0-9]+)"
        elif word.startswith("<"):
            part = f"(?:{WORDS.get(word, '[0-9]+')})"
        else:
            part = re.escape(word)
        parts.append(f"(?: {part})?" if optional else f" {part}")
    text = "".join(parts).removeprefix(" ")
    # The tube, after `set-caps 1`.
    if reply.startswith(("RESERVED ", "FOUND ")):
        text += f"(?: {WORDS['<tube>']})?"
    return text


def compiled(*regexes):
    """Matches if one of the expressions matches. Each `bytes` gets a unique name."""
    number = iter(range(10_000))
    text = re.sub(r"\?P<bytes>", lambda _: f"?P<bytes{next(number)}>", "|".join(filter(None, regexes)))
    return re.compile(text.encode())


def read_grammar():
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    return [Command(section) for section in page.split("\n## ")[1:]]


MALFORMED = "BAD_FORMAT|UNKNOWN_COMMAND"
# After a body without its line end: if the put was refused, the rest is a separate line.
MAYBE_UNKNOWN = object()
OF_HTTP = re.compile(b"UNKNOWN_COMMAND|UNAUTHORIZED")
BATCHED = compiled(regex_of("RESERVED <id> <bytes>"))
CLOSING = ("quit", "http")


class Patterns:
    """The replies that a command may get."""

    def __init__(self, grammar):
        self.by_name = {}
        everything = "|".join(filter(None, (command.regex for command in grammar)))
        refusals = "DENIED|UNAUTHORIZED|OUT_OF_MEMORY|NOT_FOUND"
        for command in grammar:
            long = "BAD_FORMAT"
            self.by_name[command.name] = {
                False: compiled(command.regex), True: compiled(command.regex, refusals),
                "long": compiled(command.regex, refusals, long)}
        self.by_name["auth"][False] = compiled("UNKNOWN_COMMAND")
        self.by_name["auth"][True] = compiled("AUTHENTICATED|UNAUTHORIZED|OUT_OF_MEMORY|UNKNOWN_COMMAND")
        self.malformed = compiled(MALFORMED, "UNAUTHORIZED|DENIED|JOB_TOO_BIG")
        self.any = compiled(everything, refusals, MALFORMED)
        self.nothing = re.compile(b"UNAUTHORIZED")

    def of(self, name, line, is_limited):
        # `list-jobs TUBE next` accepts only 0 as its starting place, and no filters.
        may_be_malformed = len(line) > LINE_BYTES - 2 or b" next " in line
        return self.by_name[name]["long" if may_be_malformed else is_limited]


class Writer:
    """Makes the lines of random commands."""

    def __init__(self, seed, grammar):
        self.random = random.Random(seed)
        self.ids = collections.deque([1], maxlen=60)
        self.held = ()  # by the client that the next line is for
        self.commands = {command.name: command for command in grammar}
        self.names = list(self.commands)
        unknown = set(WEIGHTS) - set(self.names)
        if unknown:
            raise Failure(f"the reference has no command {sorted(unknown)}")
        self.cumulative = []
        total = 0
        for name in self.names:
            total += WEIGHTS.get(name, 2)
            self.cumulative.append(total)
        self.makers = {
            "integer < 2^32": lambda: str(self.random.choice(NUMBERS)),
            "integer < 2^64": lambda: str(self.id()),
            "integer from 1 to 1000": lambda: str(self.random.choice((1, 1, 2, 3, 10, 1000))),
            "integer from 1 to 9999": lambda: str(self.random.choice((1, 2, 9999))),
            "seconds, integer < 2^32": lambda: self.random.choice(("0",) * 9 + ("1",)),
            "seconds, integer < 2^32, or milliseconds as 500ms": lambda: self.random.choice(TIMES),
            "tube name, 1 to 200 bytes": self.tube,
            "1 to 1000 ids, with spaces between": lambda: " ".join(
                str(self.id()) for _ in range(self.random.choice((1, 2, 3, 20, 1000)))),
            "1 to 217 bytes without white space and control characters":
                lambda: self.random.choice((*TOKENS.values(), *TOKENS.values(), UNKNOWN_TOKEN)),
            "key of a policy, and its value or -": self.policy,
            "priority and delay, integers < 2^32; the delay also as 500ms":
                lambda: f"{self.random.choice(NUMBERS)} {self.random.choice(TIMES)}",
            "bytes, integer < 2^32": self.size,
        }
        for command in grammar:
            for _, text, _ in command.arguments:
                if text.startswith("words with spaces between: "):
                    names = set(re.findall(r"([a-z]+):<", text))
                    if names != {"idp", "con", "grp", "aft", "max", "ttl"}:
                        raise Failure(f"tags without a generator: {sorted(names)}")
                    self.makers[text] = self.tags
                elif text.startswith("filters with a space between: "):
                    names = set(re.findall(r"[:,] ([a-z]+)[:<>]", text))
                    if names != {"body", "age", "pri", "failures", "tag"}:
                        raise Failure(f"filters without a generator: {sorted(names)}")
                    self.makers[text] = self.filters
                elif text.startswith("one of: "):
                    words = text.removeprefix("one of: ").split()
                    self.makers[text] = lambda words=words: self.random.choice(words)
                elif text not in self.makers:
                    raise Failure(f"no generator for an argument: {text}")
        self.bytes = 0  # of the body of the last line

    def id(self):
        if self.held and self.random.random() < 0.6:
            return self.held[-1] if self.random.random() < 0.6 else self.random.choice(self.held)
        if self.random.random() < 0.03:
            return self.random.choice((0, 1, 2**64 - 1))
        return self.random.choice(self.ids)

    def tube(self):
        # The long name is rare.
        return self.random.choice(TUBES if self.random.random() < 0.1 else TUBES[:-1])

    def size(self):
        self.bytes = self.random.choice(BODIES if self.random.random() < 0.2 else BODIES[:6])
        return str(self.bytes)

    def policy(self):
        key = self.random.choice(tuple(POLICIES))
        return f"{key} {self.random.choice((*POLICIES[key], '-'))}"

    def tags(self):
        choose = self.random.choice
        tags = {
            "idp": lambda: choose(NAMES) + choose(("", "", ":0", ":1", ":100")),
            "con": lambda: choose(NAMES) + choose(("", ":1", ":2", ":10")),
            "grp": lambda: choose(NAMES), "aft": lambda: choose(NAMES),
            "max": lambda: choose("0123") + choose(("", ":bury", ":delete", ":a", ":mail.y")),
            "ttl": lambda: choose(("0", "1", "2", "100"))}
        chosen = self.random.sample(tuple(tags), choose((1, 1, 1, 2, 3, 6)))
        return " ".join(f"{name}:{tags[name]()}" for name in chosen)

    def filters(self):
        choose = self.random.choice
        filters = {
            "body": lambda: ":" + choose(("x", "b", "%00", "a%20b", "%78" * 200, "\xc3")),
            "age": lambda: choose("<>") + str(choose(NUMBERS)),
            "pri": lambda: choose("<>") + str(choose(NUMBERS)),
            "failures": lambda: ">" + str(choose(NUMBERS)),
            "tag": lambda: ":" + choose(("idp:", "con:", "grp:")) + choose(NAMES)}
        names = [choose(tuple(filters)) for _ in range(choose((1, 1, 1, 2, 3, 6)))]
        if names.count("body") > 1:
            names = ["body"]
        return " ".join(name + filters[name]() for name in names)

    def line(self):
        """(name, line) of a random command. `self.bytes` is the size of its body."""
        name = self.random.choices(self.names, cum_weights=self.cumulative)[0]
        words = [name]
        for argument, text, may_be_missing in self.commands[name].arguments:
            if may_be_missing and self.random.random() < 0.5:
                break
            if argument == "<ttr>":
                words.append(self.random.choice(TTRS))
            elif name in ("pause-tube", "wait", "reserve-batch") and text.startswith("seconds"):
                words.append(self.random.choice(SHORT_TIMES))
            else:
                words.append(self.makers[text]())
        return name, " ".join(words).encode()

    def mutated(self, line):
        """The line with one byte or word changed: still one line, and not a put, whose body would follow."""
        at = self.random.randrange(len(line) + 1)
        kind = self.random.randrange(5)
        if kind == 0:
            line = line[:at] + bytes([self.random.randrange(256)]) + line[at:]
        elif kind == 1:
            line = line[:at] + line[at + 1:]
        elif kind == 2:
            words = line.split(b" ")
            words[self.random.randrange(len(words))] = self.random.choice(
                (b"", b"-1", b"4294967296", b"18446744073709551616", b"x", b"-", b"1 1", b"\0", b"\xff" * 9))
            line = b" ".join(words)
        elif kind == 3:
            line += b" " * self.random.randrange(1, 300)
        else:
            line = line[:at]
        if b"\r\n" in line + b"\n" or line.startswith((b"put", b"quit")) or b"HTTP" in line:
            return b"x"
        return line


# --- The clients

class Peer:
    """A connection, with its unsent bytes and the replies that it awaits."""

    def __init__(self, fuzz, number, listener):
        self.fuzz = fuzz
        self.number = number
        self.listener = listener  # 0: no role, 1: a role, 2: tokens
        self.unsent = bytearray()
        self.input = bytearray()
        self.expected = collections.deque()  # patterns
        self.sent = collections.deque(maxlen=30)
        self.held = collections.deque(maxlen=8)
        self.body = -1  # bytes of the body that comes next
        self.batch = 0  # jobs of a batch that come next
        self.slow_steps = 0
        self.lines = 0  # received
        self.refused = False
        self.writes = True  # neither half-closed nor has sent a quit
        family, address = harness.parse_address(fuzz.daemon.addresses[listener])
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.socket.connect(address)
        except OSError as error:
            self.socket.close()
            raise Failure(f"no connection to the server: {error}") from None
        self.socket.setblocking(False)
        fuzz.poll.register(self.socket, select.POLLIN)
        fuzz.by_descriptor[self.socket.fileno()] = self

    def add(self, name, data, pattern):
        self.unsent += data
        self.expected.append(pattern)
        self.sent.append(data[:300])
        if name in CLOSING:
            self.writes = False

    def send(self, count):
        """Sends at most `count` of the bytes."""
        try:
            del self.unsent[:self.socket.send(self.unsent[:count])]
        except BlockingIOError:
            pass
        except OSError:  # the server has closed
            self.unsent.clear()
            self.writes = False

    def receive(self):
        """Reads and checks replies; false at the end of the stream."""
        try:
            chunk = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.input += chunk
        self.parse()
        return bool(chunk)

    def parse(self):
        data, at = self.input, 0
        while True:
            if self.body >= 0:
                end = at + self.body
                if len(data) < end + 2:
                    break
                if data[end:end + 2] != b"\r\n":
                    raise self.failure(f"a body ends with {bytes(data[end - 20:end + 20])!r}")
                at, self.body = end + 2, -1
                if not self.batch:
                    self.expected.popleft()
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > 1000:
                    raise self.failure(f"a line without an end: {bytes(data[at:at + 300])!r}")
                break
            self.on_line(bytes(data[at:end]))
            at = end + 2
        del data[:at]

    def on_line(self, line):
        self.lines += 1
        if self.refused:
            return
        if self.batch:
            pattern = BATCHED
            self.batch -= 1
        elif self.expected:
            if self.expected[0] is MAYBE_UNKNOWN:
                self.expected.popleft()
                if line == b"UNKNOWN_COMMAND":
                    return
            pattern = self.expected[0]
        else:
            if self.lines == 1 and line == b"OUT_OF_MEMORY":
                return
            raise self.failure(f"a reply to nothing: {line[:300]!r}")
        found = pattern.fullmatch(line)
        if not found:
            if self.lines == 1 and line == b"OUT_OF_MEMORY":
                self.refused = True  # one connection too many; the server closes it
                return
            raise self.failure(f"{line[:300]!r} is no reply to the command; the form is {pattern.pattern[:600]}")
        self.fuzz.replies[line.split(b" ", 1)[0]] += 1
        if found.lastgroup:
            self.body = int(found[found.lastgroup])
            if line.startswith(b"RESERVED "):
                self.learn(self.held, line)
            return
        if line.startswith(b"RESERVED_BATCH "):
            self.batch = int(line.split()[1])
            if self.batch:
                # The last body ends the command.
                return
        elif line.startswith(b"INSERTED "):
            self.learn(self.fuzz.writer.ids, line)
        self.expected.popleft()

    def failure(self, text):
        return Failure(f"client {self.number}: {text}")

    @staticmethod
    def learn(ids, line):
        ids.append(int(line.split()[1]))

    def half_close(self):
        self.writes = False
        self.unsent.clear()
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self, with_reset=False):
        self.fuzz.poll.unregister(self.socket)
        del self.fuzz.by_descriptor[self.socket.fileno()]
        if with_reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# --- The server and its lives

def role(name, verbs, **keys):
    lines = [f'name = "{name}"', f"verbs = {list(verbs)}", *(f"{key} = {value}" for key, value in keys.items())]
    return "\n[[role]]\n" + "\n".join(lines).replace("'", '"') + "\n"


class Fuzz:
    def __init__(self, seed, commands, directory):
        self.directory = directory
        self.grammar = read_grammar()
        self.patterns = Patterns(self.grammar)
        self.writer = Writer(seed, self.grammar)
        self.random = self.writer.random
        self.left = commands
        self.done = 0
        self.replies = collections.Counter()
        self.lives = collections.Counter()
        self.peers = []
        self.daemon = None

    def write_settings(self, journal, is_start):
        """Writes random settings and tokens. Those that a reload cannot change are the same in a life; some
        reloads find a mistake, and keep the old settings."""
        choose = self.random.choice
        tokens = dict(TOKENS)
        if not is_start and self.random.random() < 0.2:
            del tokens[choose(tuple(tokens))]
        # The server may be reading the files for an earlier reload, so they are replaced whole.
        path = self.directory / "tokens"
        os.replace(harness.write_tokens(self.directory / "tokens.new", tokens), path)
        text = "".join((
            f'[journal]\ndirectory = "{journal or ""}"\nsegment_size = "64KiB"\n',
            f'sync = "{choose(("never", "50ms", "always", "1ms"))}"\n',
            f"[limits]\njob_bytes = {JOB_BYTES}\nline_bytes = {LINE_BYTES}\n",
            f"tubes = {choose((6, 100, 100_000))}\njob_memory = {choose((1 << 20, 4 << 20, 4 << 20))}\n",
            f"policies = {choose((0, 5, 1000))}\nclient_watches = {choose((3, 1000))}\n",
            f"watches = {choose((10, 1000))}\noutput_bytes = {choose((1 << 16, 1 << 20))}\n",
            f"output_memory = {choose((1 << 20, 1 << 24))}\ninput_memory = {choose((1 << 20, 1 << 28))}\n",
            f"work_per_turn = {choose((1, 3, 100, 1000))}\nconnections = {choose((12, 1000, 1000, 1000))}\n",
            f'[timeouts]\nstall = "1s"\nshutdown = "1s"\n[auth]\ntokens = "{path}"\n',
            f"[http]\nmax_tubes = {choose((0, 3, 1000))}\ntube_linger = {choose((0, 1))}\n"))
        if self.random.random() < 0.5:
            text += f'[[policy]]\ntubes = "{choose(("mail.*", "a", "*"))}"\n'
            for key in self.random.sample(tuple(POLICIES), 3):
                value = choose(POLICIES[key])
                text += f"{key} = {value}\n" if value.isdecimal() else f'{key} = "{value}"\n'
        for number, keys in enumerate(("", 'role = "limited"\n', 'auth = "token"\n')):
            text += f'[[listen]]\naddress = "unix:{self.directory}/{number}.sock"\n{keys}'
        some = self.random.sample(FAMILIES, choose((2, 3, 4)))
        text += role("limited", some, tubes=["mail.*", "a", "default"], max_tubes=choose((3, 1000)))
        text += role("all", FAMILIES, tokens=["all"])
        text += role("some", choose((("work", "produce"), ("inspect", "admin"))), tokens=["some"],
                     max_job_bytes=1000, max_put_rate=choose((1, 100)), max_connections=choose((1, 100)))
        text += role("mail", FAMILIES, tubes=["mail.*"], tokens=["mail"], max_job_memory=1 << 19)
        if not is_start and self.random.random() < 0.1:
            text += "nonsense = 1\n"
        written = self.directory / "tubed.toml.new"
        written.write_text(text, encoding="utf-8")
        os.replace(written, self.directory / "tubed.toml")

    # A life

    def run(self):
        journal = self.directory / "journal"
        journal.mkdir()
        while self.left > 0:
            kept = journal if self.random.random() < 0.85 else None
            self.write_settings(kept, is_start=True)
            self.poll = select.poll()
            self.by_descriptor = {}
            try:
                self.daemon = harness.Daemon(["--config", str(self.directory / "tubed.toml")], listeners=3)
            except AssertionError as error:
                raise Failure(f"no start: {error}") from None
            self.check_policies()
            self.peers = [self.new_peer(i) for i in range(self.random.randint(*CLIENTS))]
            end = self.left - self.random.randint(1, 2 * LIFE_COMMANDS)
            while self.left > max(0, end):
                self.step(kept)
            self.end_life()
            if sum(self.lives.values()) % 10 == 0:
                print(f"{self.done} commands, {sum(self.replies.values())} replies", flush=True)

    def check_that_it_answers(self):
        try:
            client = harness.Client(self.daemon.addresses[0])
            # The server has reached its limit of connections, and has closed this connection after its answer.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send(b"list-tube-used\r\n")
            reply = client.line()
            client.close()
        except (OSError, AssertionError) as error:
            raise Failure(f"the server does not answer: {error}") from None
        if reply not in ("USING default", "OUT_OF_MEMORY"):
            raise Failure(f"the server answers {reply!r}")

    def check_policies(self):
        try:
            client = harness.Client(self.daemon.addresses[0])
            policy = client.stats("tube-policy default")
            client.close()
        except (OSError, AssertionError) as error:
            raise Failure(f"no reply after the start: {error}") from None
        unknown = {key for key in policy if not key.endswith("-from")} - set(POLICIES)
        if unknown:
            raise Failure(f"policies without values to send: {sorted(unknown)}")

    def new_peer(self, number):
        peer = Peer(self, number, self.random.choice((0, 0, 0, 0, 1, 2, 2)))
        if peer.listener == 2 and self.random.random() < 0.9:
            token = self.random.choice((*TOKENS.values(), TOKENS["all"]))
            peer.add("auth", f"auth {token}\r\n".encode(), self.patterns.of("auth", b"", True))
        return peer

    def replace(self, peer, **options):
        peer.close(**options)
        self.peers[self.peers.index(peer)] = self.new_peer(peer.number)

    def step(self, journal):
        chance = self.random.random()
        if chance < 0.1:
            self.burst()
        elif chance < 0.1005:
            self.write_settings(journal, is_start=False)
            self.daemon.signal(signal.SIGHUP)
        elif chance < 0.101:
            self.daemon.signal(self.random.choice((signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR2)))
        else:
            peer = self.random.choice(self.peers)
            self.talk(peer)
            self.send(peer)
        self.receive()
        if self.daemon.process.poll() is not None:
            raise Failure(f"the server has ended with {self.daemon.wait()}")

    def burst(self):
        """The bytes of several clients arrive while the server is stopped, and one tick reads them all."""
        peers = self.random.sample(self.peers, self.random.randint(2, 6))
        for peer in peers:
            self.talk(peer)
        self.daemon.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.daemon.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        peers = [peer for peer in peers if peer in self.peers]
        for peer in peers:
            peer.send(MOST_UNSENT)
        if peers and self.random.random() < 0.05:
            self.replace(self.random.choice(peers), with_reset=self.random.random() < 0.5)
        self.daemon.thaw()

    def talk(self, peer):
        """Queues commands for the client, or ends its connection."""
        if not peer.writes or len(peer.expected) >= MOST_PENDING or len(peer.unsent) > MOST_UNSENT:
            if self.random.random() < 0.02:
                self.replace(peer, with_reset=self.random.random() < 0.5)
            return
        chance = self.random.random()
        if chance < 0.002:
            peer.half_close()
        elif chance < 0.005:
            self.replace(peer, with_reset=self.random.random() < 0.5)
        elif chance < 0.007:
            peer.slow_steps = 300
            self.poll.modify(peer.socket, 0)
        for _ in range(self.random.choice((1, 1, 2, 3, 5, 12))):
            if peer.socket.fileno() < 0 or not peer.writes:
                return
            self.add_command(peer)

    def add_command(self, peer):
        writer, patterns, chance = self.writer, self.patterns, self.random.random()
        writer.held = peer.held
        name, line = writer.line()
        is_limited = peer.listener > 0
        pattern = patterns.of(name, line.split(b" idp:")[0], is_limited)
        if name in ("put", "put-in-tube"):
            body = bytes([self.random.choice(b"xyz\r\n")]) * writer.bytes + b"\r\n"
            if chance < 0.01:
                # EXPECTED_CRLF; the server resumes after the next line end.
                body = b"x" * writer.bytes + b"??\r\n"
            elif chance < 0.02:
                line, pattern = line.replace(b" ", b" x", 1), patterns.any
            peer.add(name, line + b"\r\n" + body, pattern)
            if body.endswith(b"??\r\n"):
                peer.expected.append(MAYBE_UNKNOWN)
                peer.add("list-tube-used", b"list-tube-used\r\n", patterns.of("list-tube-used", b"", is_limited))
        elif chance < 0.02:
            peer.add("mutated", writer.mutated(line) + b"\r\n", patterns.any)
        elif chance < 0.0202:
            peer.add("http", b"POST /jobs HTTP/1.1\r\n", OF_HTTP)
        else:
            peer.add(name, line + b"\r\n", patterns.nothing if name == "quit" else pattern)
        self.left -= 1
        self.done += 1

    def send(self, peer):
        # Whole commands, or up to a random byte, after the rest of earlier commands.
        if peer.unsent:
            peer.send(self.random.choice((MOST_UNSENT, MOST_UNSENT, self.random.randint(1, len(peer.unsent)))))

    def receive(self):
        waiting = all(len(peer.expected) >= MOST_PENDING or not peer.writes for peer in self.peers)
        for descriptor, _ in self.poll.poll(5 if waiting else 0):
            peer = self.by_descriptor[descriptor]
            if not peer.slow_steps and not peer.receive():
                self.replace(peer)
        for peer in self.peers:
            if peer.slow_steps:
                peer.slow_steps -= 1
                if not peer.slow_steps:
                    self.poll.modify(peer.socket, select.POLLIN)
            elif peer.unsent and self.random.random() < 0.2:
                self.send(peer)

    def end_life(self):
        self.check_that_it_answers()
        how = ("SIGKILL", "SIGTERM")[sum(self.lives.values()) % 2]
        self.lives[how] += 1
        if how == "SIGKILL":
            self.daemon.kill()
        else:
            code = self.daemon.end()
            if code:
                raise Failure(f"the server has ended with {code} after SIGTERM")
        for peer in self.peers:
            peer.close()
        self.peers = []
        self.check_log()

    def check_log(self):
        for text in ("Sanitizer", "runtime error:", "assertion failed"):
            if self.daemon.lines_with(text):
                raise Failure(f"the log has {text!r}")

    def explain(self):
        """Prints the last commands of each client and the log."""
        for peer in self.peers:
            print(f"client {peer.number} of listener {peer.listener}, {len(peer.expected)} replies awaited, "
                  f"{len(peer.unsent)} bytes unsent:")
            for data in peer.sent:
                print(f"    {data[:200]!r}")
        if self.daemon:
            if self.daemon.process.poll() is None:
                self.daemon.kill()
            print("the log:", *(f"    {line}" for line in self.daemon.lines[-80:]), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--commands", type=int, default=50_000)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.commands} commands, {harness.PROGRAM}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tubed-fuzz-") as directory:
        fuzz = None
        try:
            fuzz = Fuzz(options.seed, options.commands, pathlib.Path(directory))
            fuzz.run()
        except Failure as failure:
            if fuzz:
                fuzz.explain()
            print(f"FAILED with --seed {options.seed}, after {fuzz.done if fuzz else 0} commands: {failure}")
            return 1
        finally:
            if fuzz and fuzz.daemon and fuzz.daemon.process.poll() is None:
                fuzz.daemon.kill()
    seconds = time.monotonic() - begun
    print(f"{fuzz.done} commands, {sum(fuzz.replies.values())} replies, {dict(fuzz.lives)} in {seconds:.0f} s")
    missing = {reply.split()[0] for command in fuzz.grammar for reply in command.replies} - {
        word.decode() for word in fuzz.replies}
    print("replies that did not occur:", *sorted(missing))
    print(*(f"{word.decode()} {count}" for word, count in fuzz.replies.most_common()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
