"""tubed under a service manager that the test implements.

The tests cover sockets that the manager passes by name, messages to the manager, the watchdog, drain
and restart. packaging/tests/nspawn tests the same with systemd.

  TUBED_PROGRAM=build/dev/src/tubed python3 packaging/tests/fake_manager_test.py
"""

import collections
import itertools
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "daemon"))

from harness import (PROGRAM, SANITIZED, SECONDS, Client, DaemonTest, Process,  # noqa: E402
                     StandingClock, run, until)


DRAIN_TIMED_OUT = 79  # the exit code


class Manager:
    """The socket that NOTIFY_SOCKET names, and every message that came, in order."""

    def __init__(self, path):
        """`path` has the format of NOTIFY_SOCKET: with @ in front it is an abstract address."""
        self.path = str(path)
        self.messages = []  # of (when, the sender's process id, {key: value})
        self.changed = threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind("\0" + self.path[1:] if self.path.startswith("@") else self.path)
        self.wake, self.sleep = socket.socketpair()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while self.sleep not in (ready := select.select([self.socket, self.sleep], [], [])[0]):
            if self.socket in ready:
                data, ancillary, _, _ = self.socket.recvmsg(65536, 4096)
                sender = None
                for level, kind, value in ancillary:
                    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                        sender = struct.unpack("iII", value)[0]
                pairs = dict(line.split("=", 1) for line in data.decode().split("\n") if line)
                with self.changed:
                    self.messages.append((time.monotonic(), sender, pairs))
                    self.changed.notify_all()

    def close(self):
        self.wake.close()
        self.reader.join(SECONDS)
        self.socket.close()
        self.sleep.close()

    def count(self):
        with self.changed:
            return len(self.messages)

    def wait_for(self, key, text="", after=0):
        """The first message from the `after`th on whose `key` contains `text`: (index, pairs)."""
        def search():
            for index in range(after, len(self.messages)):
                pairs = self.messages[index][2]
                if key in pairs and text in pairs[key]:
                    return index, pairs
            return None

        with self.changed:
            found = self.changed.wait_for(search, SECONDS)
            if not found:
                raise AssertionError(f"no {key}={text} after {after} of {self.messages[-20:]}")
            return found

    def catch_up(self):
        """Returns when the manager has read all messages sent before."""
        after = self.count()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"CAUGHT_UP=1", self.socket.getsockname())
        self.wait_for("CAUGHT_UP", after=after)

    def times(self, key, after=0):
        with self.changed:
            return [when for when, _, pairs in self.messages[after:] if key in pairs]

    def statuses(self, after=0):
        with self.changed:
            return [pairs["STATUS"] for _, _, pairs in self.messages[after:] if "STATUS" in pairs]


class ManagerTest(DaemonTest):
    numbers = itertools.count()  # of the managers

    def manager(self, path=None):
        manager = Manager(path or self.directory / f"notify{next(self.numbers)}")
        self.addCleanup(manager.close)
        return manager

    def tcp(self, family=socket.AF_INET, host="127.0.0.1"):
        listener = socket.create_server((host, 0), family=family, backlog=4096)
        self.addCleanup(listener.close)
        return listener

    def local(self, name="local.sock"):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.directory / name))
        listener.listen(4096)
        return listener

    def supervise(self, *flags, sockets=(), names=None, manager=None, environment=None,
                  listeners=None):
        """A daemon that got its sockets and NOTIFY_SOCKET from its manager."""
        variables = dict(environment or {})
        if names is not None:
            variables["LISTEN_FDNAMES"] = ":".join(names)
        if manager:
            variables["NOTIFY_SOCKET"] = manager.path
        return self.start(*flags, listen=None, sockets=sockets, environment=variables,
                          listeners=len(sockets) if listeners is None else listeners)

    def serve(self, *flags, **options):
        """A daemon with a TCP socket and a manager that has received READY=1."""
        options.setdefault("sockets", [self.tcp()])
        options.setdefault("names", ["tcp"])
        if "manager" not in options:
            options["manager"] = self.manager()
        daemon = self.supervise(*flags, **options)
        daemon.manager = options["manager"]
        daemon.manager.wait_for("READY", "1")
        return daemon

    def list_tube_used_at(self, address):
        client = Client(address)
        try:
            return client.ask("list-tube-used")
        finally:
            client.close()

    def supervise_refused(self, sockets, names, *flags):
        """Starts a daemon that fails to start: (exit code, its lines on stderr). One that serves is
        ended, with code 0."""
        manager = self.manager()
        daemon = Process([PROGRAM, *flags], sockets=sockets, environment={
            "LISTEN_FDNAMES": ":".join(names), "NOTIFY_SOCKET": manager.path})
        try:
            until("its end", lambda: daemon.process.poll() is not None or manager.times("READY"))
        finally:
            code = daemon.end()
        return code, daemon.lines


def address_of(listener):
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name}"
    host = f"[{name[0]}]" if listener.family == socket.AF_INET6 else name[0]
    return f"{host}:{name[1]}"


class Sockets(ManagerTest):
    def check(self, sockets, names, *flags):
        daemon = self.supervise(*flags, sockets=sockets, names=names)
        found = {}
        for line in daemon.lines_with("listening"):
            address = re.search(r' address="?([^" ]+)', line)[1]
            name = re.search(r' inherited="?([^" ]*)', line)
            found[address] = name[1] if name else None
        expected = {address_of(each): name for each, name in zip(sockets, names)}
        self.assertEqual(found, expected, daemon.lines)
        for address in expected:
            self.assertEqual(self.list_tube_used_at(address), "USING default")
        return daemon

    def test_by_name_in_both_orders(self):
        tcp, local = self.tcp(), self.local()
        self.end(self.check([tcp, local], ["tcp", "local"]))
        self.end(self.check([local, tcp], ["local", "tcp"]))
        # The manager owns the sockets, so they exist after the end.
        self.assertTrue((self.directory / "local.sock").exists())

    def test_a_socket_for_http_serves_no_queue_clients(self):
        tcp, local = self.tcp(), self.local()
        web, path = self.tcp(), self.local("http.sock")
        mine = str(self.directory / "mine.sock")
        for flags in ((), ("--http-listen", f"unix:{mine}")):
            daemon = self.supervise(*flags, sockets=[web, tcp, path, local],
                                    names=["http", "tcp", "http", "local"], listeners=2)
            self.assertEqual(set(daemon.addresses), {address_of(tcp), address_of(local)})
            self.assertEqual(set(daemon.http_addresses), {address_of(web), address_of(path)})
            for listener in (web, path):
                client = Client(address_of(listener))
                client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertIn(b" 200 OK\r\n", client.rest())
                client.close()
            self.assertEqual(self.list_tube_used_at(address_of(tcp)), "USING default")
            replaced = daemon.lines_with("configured listener replaced")
            self.assertEqual(len(replaced), len(flags) // 2, replaced)
            self.end(daemon)
        # The manager owns the sockets, so they exist after the end; sockets that were not opened
        # leave nothing.
        self.assertTrue((self.directory / "http.sock").exists())
        self.assertFalse(os.path.exists(mine))

    def test_a_single_socket_for_http_replaces_no_listener(self):
        daemon = self.supervise("--listen", "127.0.0.1:0", sockets=[self.tcp()], names=["http"],
                                listeners=1)
        self.assertEqual((len(daemon.addresses), len(daemon.http_addresses)), (1, 1))
        self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")

    def test_several_of_a_kind(self):
        self.check([self.tcp(), self.local("a"), self.tcp(), self.local("b")],
                   ["tcp", "local", "tcp", "local"])

    def test_other_names_are_served_by_their_family(self):
        self.check([self.local(), self.tcp()], ["tubed-extra.socket", "unknown"])

    def test_ipv6(self):
        try:
            listener = self.tcp(socket.AF_INET6, "::1")
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        self.check([listener], ["tcp"])

    def test_many_sockets(self):
        sockets = [self.tcp() for _ in range(12)] + [self.local(f"s{i}") for i in range(12)]
        self.check(sockets, ["tcp"] * 12 + ["local"] * 12)

    def test_descriptors_that_are_not_listening_stream_sockets(self):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        idle = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        near, far = socket.socketpair()
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        file = open(os.devnull, "rb")
        for bad in (udp, idle, near, datagrams, file):
            self.addCleanup(bad.close)
            for sockets, names in (([bad], ["tcp"]), ([self.tcp(), bad], ["tcp", "local"])):
                code, lines = self.supervise_refused(sockets, names)
                self.assertEqual((code, len(lines)), (69, 1), (bad, lines))
                self.assertTrue(lines[0].startswith("tubed: "), lines)
        far.close()

    def test_a_process_id_of_another_process(self):
        listener = self.tcp()
        daemon = self.supervise("--listen", "127.0.0.1:0", sockets=[listener], names=["tcp"],
                                environment={"LISTEN_PID": str(os.getpid())})
        self.assertNotIn(address_of(listener), daemon.addresses)
        self.assertEqual(daemon.lines_with("inherited="), [])
        self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")

    def test_inherited_sockets_replace_configured_listeners_of_their_kind(self):
        tcp, local = self.tcp(), self.local()
        mine = f"unix:{self.directory}/mine.sock"
        daemon = self.supervise("--listen", "127.0.0.1:0", "--listen", mine, sockets=[local],
                                names=["local"], listeners=2)
        self.assertIn(address_of(local), daemon.addresses)
        self.assertFalse((self.directory / "mine.sock").exists())
        line = daemon.wait_for_line("configured listener replaced by inherited sockets")
        self.assertIn(mine, line)
        self.assertIn(" warning ", line)
        for address in daemon.addresses:
            self.assertEqual(self.list_tube_used_at(address), "USING default")
        daemon = self.supervise("--listen", "127.0.0.1:0", "--listen", mine, sockets=[tcp],
                                names=["tcp"], listeners=2)
        self.assertEqual(set(daemon.addresses), {address_of(tcp), mine})
        self.assertIn("127.0.0.1:0", daemon.wait_for_line("configured listener replaced"))

    def test_flags_with_addresses(self):
        """As /etc/default/tubed says."""
        tcp = self.tcp()
        config = self.write_config(f'[[listen]]\naddress = "{address_of(tcp)}"\n')
        daemon = self.supervise("--config", config, "-l", "0.0.0.0", "-p", "11300", sockets=[tcp],
                                names=["tcp"])
        self.assertEqual(daemon.addresses, [address_of(tcp)])
        line = daemon.wait_for_line("configured listener replaced by inherited sockets")
        self.assertIn("0.0.0.0:11300", line)
        code, lines = self.supervise_refused([tcp], ["tcp"], "--config", config, "-p", "11300")
        self.assertEqual((code, len(lines)), (78, 1), lines)
        self.assertIn("-p/--port: ", lines[0])
        self.assertIn("for a service, remove -p from its flags", lines[0])

    def test_a_configured_listener_with_the_same_address(self):
        tcp, local = self.tcp(), self.local()
        config = self.write_config("".join(f'[[listen]]\naddress = "{address_of(each)}"\n'
                                           for each in (tcp, local)))
        daemon = self.check([tcp, local], ["tcp", "local"], "--config", config)
        self.assertEqual(daemon.lines_with("replaced"), [])
        self.assertEqual(daemon.lines_with(" warning "), [])

    # Settings that limit clients: a role, a listener with a role, tokens.
    RESTRICTIONS = ('[[role]]\nname = "reader"\nverbs = ["inspect"]\n',
                    '[[listen]]\naddress = "127.0.0.1:0"\nrole = "reader"\n'
                    '[[role]]\nname = "reader"\nverbs = ["inspect"]\n',
                    'auth.tokens = "{tokens}"\n')

    def restrictions(self):
        tokens = self.directory / "tokens"
        tokens.touch(0o600)
        return [text.format(tokens=tokens) for text in self.RESTRICTIONS]

    def test_an_open_socket_that_no_listener_names(self):
        wide = self.tcp(host="0.0.0.0")
        address = address_of(wide)
        for text in self.restrictions():
            config = self.write_config(text)
            code, lines = self.supervise_refused([wide], ["tcp"], "--config", config)
            self.assertEqual(code, 69, lines)
            self.assertTrue(lines[-1].startswith(
                f"tubed: {address} was passed on, and no [[listen]] has this address: "), lines)
            # Its own listener says who may use it.
            self.write_config(text.replace("127.0.0.1:0", address) if "listen" in text else
                              f'{text}[[listen]]\naddress = "{address}"\n')
            daemon = self.supervise("--config", config, sockets=[wide], names=["tcp"])
            reply = "DENIED" if "role =" in text else "USING x"
            self.assertEqual(self.connect(daemon).ask("use x"), reply)
            self.assertEqual(daemon.lines_with("inherited socket without"), [])
            self.end(daemon)

    def test_a_socket_that_no_listener_names_where_nothing_is_limited(self):
        wide = self.tcp(host="0.0.0.0")
        daemon = self.supervise(sockets=[wide], names=["tcp"])
        self.assertEqual(daemon.lines_with("inherited socket without"), [])
        self.end(daemon)
        config = self.write_config('[[listen]]\naddress = "127.0.0.1:0"\n')
        daemon = self.supervise("--config", config, sockets=[wide], names=["tcp"])
        self.assertIn(address_of(wide), daemon.wait_for_line(
            "warning inherited socket without a [[listen]]: its clients may do everything"))
        # A reload may not limit some clients and leave these as they are.
        self.write_config('[[listen]]\naddress = "127.0.0.1:0"\n' + self.restrictions()[0])
        daemon.signal(signal.SIGHUP)
        self.assertIn("no [[listen]] has this address", daemon.wait_for_line("error not reloaded"))

    def test_a_local_socket_that_no_listener_names(self):
        for listener, name in ((self.tcp(), "tcp"), (self.local(), "local")):
            for text in self.restrictions()[::2]:
                config = self.write_config(text)
                daemon = self.supervise("--config", config, sockets=[listener], names=[name])
                self.assertIn(address_of(listener), daemon.wait_for_line(
                    "warning inherited socket without a [[listen]]"))
                self.assertEqual(self.connect(daemon).ask("use x"), "USING x")
                self.end(daemon)

    def test_a_socket_of_http_has_what_its_authentication_needs(self):
        tokens = self.directory / "tokens"
        tokens.touch(0o600)
        config = self.write_config(f'auth.tokens = "{tokens}"\nhttp.auth = "token"\n')
        code, lines = self.supervise_refused([self.tcp(host="0.0.0.0")], ["http"],
                                             "--config", config, "--listen", "127.0.0.1:0")
        self.assertEqual(code, 69, lines)
        self.assertIn('auth = "token" needs http.tls', lines[-1])
        config = self.write_config('[http]\nauth = "peer"\n[[role]]\nname = "all"\n'
                                   'verbs = ["inspect"]\nusers = ["root"]\n')
        code, lines = self.supervise_refused([self.tcp()], ["http"], "--config", config,
                                             "--listen", "127.0.0.1:0")
        self.assertEqual(code, 69, lines)
        self.assertIn('auth = "peer" needs a unix: address', lines[-1])
        config = self.write_config('http.api = "read"\n')
        daemon = self.supervise("--config", config, "--listen", "127.0.0.1:0",
                                sockets=[self.tcp(host="0.0.0.0")], names=["http"])
        daemon.wait_for_line("warning http.api without http.auth: each machine that can connect")

    def test_systemd_socket_activate(self):
        program = shutil.which("systemd-socket-activate")
        if not program:
            self.skipTest("systemd-socket-activate is not installed")
        path = str(self.directory / "s.sock")
        # systemd-socket-activate refuses port 0. An address that is made of the process id belongs to
        # this process alone.
        number = os.getpid() + (1 << 16)
        tcp = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}:11397"
        activator = Process([program, "-l", path, "-l", tcp, "--fdname=local:tcp", PROGRAM])
        try:
            # The first connection starts the daemon, so the test must not connect to check.
            activator.wait_for_line("Listening on", 2)
            for address, name in (("unix:" + path, "local"), (tcp, "tcp")):
                self.assertEqual(self.list_tube_used_at(address), "USING default")
                activator.wait_for_line(f"listening address={address} inherited={name}")
        finally:
            self.assertEqual(activator.end(), 0, activator.lines)


class Notify(ManagerTest):
    def test_path_and_abstract(self):
        for path in (self.directory / "n", f"@tubed-test-{os.getpid()}-{id(self)}"):
            manager = self.manager(path)
            daemon = self.serve(manager=manager)
            index, pairs = manager.wait_for("READY", "1")
            self.assertTrue(pairs["STATUS"].startswith("serving: 0 ready jobs"), pairs)
            self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")
            daemon.signal(signal.SIGTERM)
            manager.wait_for("STOPPING", "1", after=index + 1)
            self.assertEqual(daemon.wait(), 0)
            # NotifyAccess=main drops all others.
            self.assertEqual({sender for _, sender, _ in manager.messages}, {daemon.pid})
            self.assertEqual(len(manager.times("READY")), 1)
            self.assertEqual(len(manager.times("STOPPING")), 1)
            self.assertEqual(manager.times("WATCHDOG"), [])

    def test_a_notify_socket_that_does_not_exist(self):
        for path in (str(self.directory / "no" / "such"), "@tubed-test-nobody", "nonsense", ""):
            daemon = self.supervise("--listen", "127.0.0.1:0", listeners=1,
                                    environment={"NOTIFY_SOCKET": path})
            self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")

    def test_ready_is_sent_after_recovery(self):
        journal = self.directory / "journal"
        journal.mkdir()
        count = 20_000 if SANITIZED else 200_000
        first = self.start("-b", str(journal), "-F")
        self.connect(first).put_many(count)
        self.end(first)
        listener, manager = self.tcp(), self.manager()
        # Meanwhile the connection waits in the kernel's queue.
        client = Client(address_of(listener))
        self.addCleanup(client.close)
        client.send(b"list-tube-used\r\n")
        daemon = self.supervise("-b", str(journal), sockets=[listener], names=["tcp"],
                                manager=manager)
        self.assertEqual(client.line(), "USING default")
        index, pairs = manager.wait_for("READY", "1")
        self.assertTrue(pairs["STATUS"].startswith(f"serving: {count} ready jobs"), pairs)
        before = [pairs for _, _, pairs in manager.messages[:index]]
        self.assertTrue(all(pairs.get("STATUS", "recovering").startswith("recovering")
                            for pairs in before), before)
        self.assertEqual(manager.wait_for("READY", "1")[0], index)
        self.assertEqual(client.stats()["current-jobs-ready"], count)

    def test_a_start_that_fails_is_never_ready(self):
        manager = self.manager()
        code, _, errors = run("--listen", "127.0.0.1:0", "-b", str(self.directory / "none"),
                              environment={"NOTIFY_SOCKET": manager.path})
        self.assertEqual(code, 73, errors)
        self.assertEqual(manager.times("READY"), [])

    def test_status_counts_jobs_and_connections(self):
        daemon = self.serve()
        clients = [self.connect(daemon) for _ in range(3)]
        for _ in range(12):
            clients[0].put()
        for client in clients:
            client.ask("list-tube-used")
        index, _ = daemon.manager.wait_for(
            "STATUS", "serving: 12 ready jobs, 0 reserved, 3 connections")
        clients[2].close()
        clients[0].ask("delete 1")
        clients[0].reserve()
        daemon.manager.wait_for("STATUS", "serving: 10 ready jobs, 1 reserved, 2 connections",
                                after=index)

    def test_status_shows_that_puts_are_refused(self):
        journal = self.directory / "journal"
        journal.mkdir()
        for flags, reason in ((("--limits-job-memory", "1MiB"), "limits.job_memory is reached"),
                              (("-b", str(journal), "-s", "65536", "-z", "4096", "-F",
                                "--journal-max-bytes", "262144"), "the journal has no space")):
            # With a watchdog the daemon reports its status more often.
            daemon = self.serve(*flags, environment={"WATCHDOG_USEC": "1000000"})
            client = self.connect(daemon)
            jobs = 0
            while client.ask("put 0 0 60 4096\r\n" + "x" * 4096) != "OUT_OF_MEMORY":
                jobs += 1
            text = f"refusing puts, {reason}: {jobs} ready jobs"
            index, _ = daemon.manager.wait_for("STATUS", text)
            for job in range(1, jobs + 1):
                self.assertEqual(client.ask(f"delete {job}"), "DELETED")
            daemon.manager.wait_for("STATUS", "serving: 0 ready jobs", after=index)

    def test_status_is_sent_once_a_second_at_most_and_only_when_it_changes(self):
        clock = StandingClock(self.directory)
        daemon = self.serve(environment=clock.environment)
        clock.advance()
        client = self.connect(daemon)

        def pass_seconds(count):
            """Each second has ticks before and after it, and changes nothing."""
            for _ in range(count):
                clock.advance(1)
                for _ in range(2):
                    client.ask("list-tube-used")

        begin, seconds = daemon.manager.count(), 20
        for _ in range(seconds):
            for _ in range(10):
                client.put()
            pass_seconds(1)
        daemon.manager.catch_up()
        sent = len(daemon.manager.statuses(after=begin))
        self.assertGreater(sent, 1, "the status kept changing, and was not sent")
        self.assertLessEqual(sent, seconds)
        pass_seconds(5)  # the daemon checks every five seconds at least
        last, _ = daemon.manager.wait_for("STATUS", f"serving: {10 * seconds} ready jobs", after=begin)
        pass_seconds(30)
        daemon.manager.catch_up()
        self.assertEqual(daemon.manager.statuses(after=last + 1), [])
        statuses = daemon.manager.statuses()
        self.assertTrue(all(a != b for a, b in zip(statuses, statuses[1:])), statuses)

    def test_reload(self):
        config = self.write_config("[limits]\njob_bytes = 100\n")
        daemon = self.serve("--config", config)
        client = self.connect(daemon)
        for text, line, size in (("[limits]\njob_bytes = 200\n", " info reloaded", 200),
                                 ("[limits]\njob_bytes = 0x\n", "not reloaded", 200),
                                 ("[limits]\njob_bytes = 300\n", " info reloaded", 300)):
            begin = daemon.manager.count()
            self.write_config(text)
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            daemon.signal(signal.SIGHUP)
            index, pairs = daemon.manager.wait_for("RELOADING", "1", after=begin)
            late = int(pairs["MONOTONIC_USEC"]) - now
            self.assertTrue(0 <= late < SECONDS * 1_000_000, late)
            _, pairs = daemon.manager.wait_for("READY", "1", after=index + 1)
            self.assertIn("serving: 0 ready jobs", pairs["STATUS"])
            self.assertEqual("not reloaded" in pairs["STATUS"], "not" in line)
            daemon.wait_for_line(line)
            self.assertEqual(client.stats()["max-job-size"], size)
        self.assertEqual(len(daemon.manager.times("RELOADING")), 3)
        self.assertEqual(len(daemon.manager.times("READY")), 4)


    def test_an_address_that_a_unit_sets(self):
        config = self.write_config("")
        daemon = self.serve("--config", config)
        self.write_config('[http]\nlisten = "127.0.0.1:0"\n[tcp]\nbacklog = 7\n'
                          '[[listen]]\naddress = "127.0.0.1:1"\n')
        daemon.signal(signal.SIGHUP)
        line = daemon.wait_for_line("needs a restart")
        self.assertIn("settings=tcp.backlog", line)
        for setting, command in (("listen", "systemctl edit tubed.socket"),
                                 ("http.listen", "systemctl enable tubed-http.socket")):
            line = daemon.wait_for_line(f"the address is set in a unit setting={setting} ")
            self.assertIn(f'to_change="{command}"', line)


class Upgrade(ManagerTest):
    """The script of the packages and the reload of the unit, for a server that works."""

    SYSTEMD = pathlib.Path(__file__).resolve().parents[1] / "systemd"
    UNIT = "tubed.service"
    WARNED = '[[role]]\nname = "web"\nverbs = ["produce"]\n'
    REFUSED = "[limits]\njob_bytes = 0x\n"

    def setUp(self):
        super().setUp()
        # A copy, which an upgrade replaces while it runs.
        self.program = self.directory / "tubed"
        self.install()
        self.config = self.write_config("")
        self.daemon = self.start("--config", self.config, command=[str(self.program)])
        unit = (self.SYSTEMD / self.UNIT).read_text(encoding="utf-8")
        commands = [line.removeprefix("ExecReload=").replace("/usr/bin/tubed", str(self.program))
                    .replace("/etc/tubed/tubed.toml", self.config)
                    for line in unit.splitlines() if line.startswith("ExecReload=")]
        self.assertEqual(len(commands), 2, commands)
        (self.directory / "bin").mkdir()
        self.systemctl = self.directory / "bin" / "systemctl"
        self.systemctl.write_text(
            "#!/bin/sh\nset -e\ncase $* in\n"
            f"  'show --property=MainPID --value {self.UNIT}') echo $MAINPID ;;\n"
            f"  'show --property=ActiveState --value {self.UNIT}') echo active ;;\n"
            f"  'reload {self.UNIT}')\n    " + "\n    ".join(commands) + " ;;\n"
            "  *) exit 99 ;;\nesac\n", encoding="utf-8")
        self.systemctl.chmod(0o755)
        self.environment = os.environ | {"MAINPID": str(self.daemon.pid), "TUBED_OPTIONS": "",
                                         "PATH": f"{self.systemctl.parent}:{os.environ['PATH']}"}

    def install(self):
        new = self.program.with_suffix(".new")
        shutil.copy(PROGRAM, new)
        new.replace(self.program)

    def run_command(self, *command):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS, check=False, text=True,
                              env=self.environment)
        return done.returncode, done.stdout

    def reload(self):
        return self.run_command(str(self.systemctl), "reload", self.UNIT)

    def upgrade(self):
        self.install()
        return self.run_command("sh", str(self.SYSTEMD / "restart-upgraded"), self.UNIT, "echo",
                                "restart")

    def test_warnings_refuse_neither_a_reload_nor_an_upgrade(self):
        self.write_config(self.WARNED)
        warning = "role web: it names no client, and no listener has it"
        code, output = self.reload()
        self.assertEqual((code, output), (0, f"tubed: warning: {warning}\n"))
        self.daemon.wait_for_line(" info reloaded ")
        self.assertIn(warning, self.daemon.wait_for_line(" warning check the access files "))
        self.assertEqual(self.upgrade(), (0, f"tubed: warning: {warning}\nrestart\n"))

    def test_errors_refuse_both(self):
        self.write_config(self.REFUSED)
        error = f"tubed: {self.config}:2: "
        code, output = self.reload()
        self.assertEqual((code, output.count("\n"), output.startswith(error)), (78, 1, True), output)
        code, output = self.upgrade()
        first, *others = output.splitlines()
        self.assertTrue(first.startswith(error), output)
        self.assertEqual((code, others), (0, [
            f"tubed: the new version does not accept the settings: see journalctl -u {self.UNIT}",
            "tubed: the old process still serves; correct the settings, then: "
            f"systemctl restart {self.UNIT}"]))
        self.write_config("")
        self.assertEqual(self.reload(), (0, ""))
        self.daemon.wait_for_line(" info reloaded ")
        self.assertEqual(self.daemon.lines_with("not reloaded"), [])  # the server has had no signal
        self.assertEqual(self.connect(self.daemon).ask("list-tube-used"), "USING default")


class Watchdog(ManagerTest):
    LIMIT = 4  # seconds between two pings, at most

    def setUp(self):
        super().setUp()
        self.clock = StandingClock(self.directory)

    def watched(self, **more):
        """A daemon whose clock stands: it pings once for each half of LIMIT that the test adds."""
        daemon = self.serve(environment={"WATCHDOG_USEC": str(self.LIMIT * 1_000_000),
                                         **self.clock.environment, **more})
        self.clock.advance()
        # Pings of the time before the clock stood come no later than these replies.
        client = self.connect(daemon)
        for _ in range(2):
            client.ask("list-tube-used")
        client.close()
        daemon.manager.catch_up()
        return daemon

    def expect_pings(self, daemon, count, accepts=True):
        """`accepts`: the daemon answers new clients, and so need not sleep to the end of its sleep."""
        for _ in range(count):
            before = len(daemon.manager.times("WATCHDOG"))
            self.clock.advance(self.LIMIT // 2)
            if accepts:
                self.list_tube_used_at(daemon.addresses[0])
            until("a ping", lambda before=before: len(daemon.manager.times("WATCHDOG")) > before)
            daemon.manager.catch_up()
            self.assertEqual(len(daemon.manager.times("WATCHDOG")), before + 1)

    def test_pings_continue_under_load(self):
        daemon = self.watched()
        stop = threading.Event()
        self.rounds = 0

        def load():
            client = self.connect(daemon)
            while not stop.is_set():
                client.pump(b"put 0 0 60 1\r\nx\r\nreserve\r\n" * 500, 1500)
                self.rounds += 1
                client.close()
                client = self.connect(daemon)

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            self.expect_pings(daemon, 10)
        finally:
            stop.set()
            for thread in threads:
                thread.join(SECONDS)
        self.assertEqual({sender for _, sender, pairs in daemon.manager.messages
                          if "CAUGHT_UP" not in pairs}, {daemon.pid})

    def test_an_idle_server_pings_and_a_stopped_server_does_not(self):
        daemon, other = self.watched(), self.watched()
        self.expect_pings(daemon, 3)
        daemon.freeze()
        before = len(daemon.manager.times("WATCHDOG"))
        self.expect_pings(other, 6)
        daemon.manager.catch_up()
        self.assertEqual(len(daemon.manager.times("WATCHDOG")), before)
        daemon.thaw()
        until("a ping", lambda: len(daemon.manager.times("WATCHDOG")) > before)

    def test_pings_continue_during_a_drain_and_a_stop(self):
        daemon = self.watched()
        daemon.signal(signal.SIGUSR1)
        daemon.manager.wait_for("STATUS", "draining")
        self.expect_pings(daemon, 3)
        client = self.unread(daemon)
        index = daemon.manager.count()
        daemon.signal(signal.SIGTERM)
        daemon.manager.wait_for("STOPPING", "1", after=index)
        self.expect_pings(daemon, 3, accepts=False)
        client.close()
        self.assertEqual(daemon.wait(), 0)

    def unread(self, daemon):
        client = self.connect(daemon, receive_buffer=4096)
        client.send(b"stats\r\n" * 9000)  # some megabytes, more than the kernel buffers
        client.read(100)
        return client

    def test_a_process_id_of_another_process(self):
        daemon = self.watched(WATCHDOG_PID=str(os.getpid()))
        other = self.watched()
        self.expect_pings(other, 4)
        self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")
        daemon.manager.catch_up()
        self.assertEqual(daemon.manager.times("WATCHDOG"), [])


class Drain(ManagerTest):
    def drain(self, daemon):
        daemon.signal(signal.SIGUSR1)
        return daemon.manager.wait_for("STATUS", "draining")

    def test_a_drain_begins_and_ends(self):
        daemon = self.serve()
        client = self.connect(daemon)
        client.put()
        index, pairs = self.drain(daemon)
        self.assertRegex(pairs["STATUS"], "^draining: 1 ready job")
        daemon.signal(signal.SIGUSR2)
        daemon.manager.wait_for("STATUS", "serving: 1 ready job", after=index)
        client.put()

    def pass_a_second(self, daemon):
        """Timers of the server that end within a second have ended."""
        client = self.connect(daemon)
        client.ask("watch nothing")
        client.ask("ignore default")
        self.assertEqual(client.ask("reserve-with-timeout 1"), "TIMED_OUT")

    def test_never(self):
        daemon = self.serve("--drain-exit", "never", "--drain-timeout", "100ms")
        self.drain(daemon)
        self.pass_a_second(daemon)  # the timeout counts only if the drain may end
        self.assertEqual(self.list_tube_used_at(daemon.addresses[0]), "USING default")

    def test_when_idle(self):
        daemon = self.serve("--drain-exit", "when-idle")
        client = self.connect(daemon)
        client.put(b"stays")
        client.put()
        job, _ = client.reserve()
        self.drain(daemon)
        self.assertEqual(client.stats()["current-jobs-reserved"], 1)
        self.assertEqual(client.ask(f"touch {job}"), "TOUCHED")
        client.send(b"put 0 0 60 1\r\nx\r\n")
        self.assertEqual(client.line(), "DRAINING")
        self.assertIsNone(daemon.process.poll())
        self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        self.assertEqual(client.rest(), b"")
        self.assertEqual(daemon.wait(), 0)
        daemon.manager.wait_for("STOPPING", "1")

    def test_when_idle_and_nothing_to_wait_for(self):
        daemon = self.serve("--drain-exit", "when-idle")
        self.connect(daemon).put()
        daemon.signal(signal.SIGUSR1)
        self.assertEqual(daemon.wait(), 0)
        daemon.manager.wait_for("STOPPING", "1")

    def test_when_idle_ends_with_the_connection_of_the_last_worker(self):
        daemon = self.serve("--drain-exit", "when-idle")
        client = self.connect(daemon)
        client.put()
        client.reserve()
        self.drain(daemon)
        client.close()
        self.assertEqual(daemon.wait(), 0)

    def test_when_empty(self):
        daemon = self.serve("--drain-exit", "when-empty")
        client = self.connect(daemon)
        ready, buried = client.put(), client.put(priority=1)
        delayed = client.put(delay=1000)
        self.drain(daemon)
        self.assertEqual(client.reserve()[0], ready)
        self.assertEqual(client.ask(f"delete {ready}"), "DELETED")
        self.assertEqual(client.reserve()[0], buried)
        self.assertEqual(client.ask(f"bury {buried} 0"), "BURIED")
        self.assertEqual(client.ask(f"delete {delayed}"), "DELETED")
        self.assertEqual(client.stats()["current-jobs-buried"], 1)
        self.assertEqual(client.ask(f"delete {buried}"), "DELETED")
        self.assertEqual(client.rest(), b"")
        self.assertEqual(daemon.wait(), 0)

    def test_the_timeout_ends_the_drain_and_the_journal_keeps_the_jobs(self):
        journal = self.directory / "journal"
        journal.mkdir()
        daemon = self.serve("-b", str(journal), "--drain-exit", "when-empty", "--drain-timeout",
                            "300ms")
        client = self.connect(daemon)
        client.put()
        client.put()
        client.reserve()
        begin = time.monotonic()
        self.drain(daemon)
        self.assertEqual(client.rest(), b"")
        daemon.expected_code = DRAIN_TIMED_OUT
        self.assertEqual(daemon.wait(), DRAIN_TIMED_OUT)
        self.assertGreater(time.monotonic() - begin, 0.25)
        again = self.start("-b", str(journal))
        self.assertEqual(self.connect(again).stats()["current-jobs-ready"], 2)

    def test_no_timeout(self):
        daemon = self.serve("--drain-exit", "when-idle", "--drain-timeout", "0")
        client = self.connect(daemon)
        job = client.put()
        client.reserve()
        self.drain(daemon)
        self.pass_a_second(daemon)
        self.assertEqual(client.ask(f"release {job} 0 0"), "RELEASED")
        self.assertEqual(daemon.wait(), 0)

    def last_status(self, daemon, code=0):
        daemon.expected_code = code
        self.assertEqual(daemon.wait(), code)
        daemon.manager.catch_up()
        return daemon.manager.statuses()[-1]

    def test_the_last_status_counts_the_remaining_jobs(self):
        journal = self.directory / "journal"
        journal.mkdir()
        for flags, end in (((), "are lost"), (("-b", str(journal)), "stay in the journal")):
            daemon = self.serve("--drain-exit", "when-idle", *flags)
            client = self.connect(daemon)
            for delay in (0, 0, 1000):
                client.put(delay=delay)
            job, _ = client.reserve()
            self.assertEqual(client.ask(f"bury {job} 0"), "BURIED")
            daemon.signal(signal.SIGUSR1)
            self.assertEqual(self.last_status(daemon),
                             f"drained: 1 ready jobs, 1 delayed, 1 buried {end}")

    def test_after_the_timeout_the_last_status_counts_the_interrupted_jobs(self):
        daemon = self.serve("--drain-exit", "when-empty", "--drain-timeout", "100ms")
        client = self.connect(daemon)
        client.put()
        client.reserve()
        daemon.signal(signal.SIGUSR1)
        self.assertEqual(self.last_status(daemon, DRAIN_TIMED_OUT),
                         "drain.timeout is over, 1 jobs interrupted: "
                         "1 ready jobs, 0 delayed, 0 buried are lost")

    def test_a_stop_during_a_drain_is_no_drain(self):
        daemon = self.serve("--drain-exit", "when-empty")
        self.connect(daemon).put()
        self.drain(daemon)
        daemon.signal(signal.SIGTERM)
        self.assertRegex(self.last_status(daemon), "^stopped: ")

    def test_sigusr2_cancels_a_drain(self):
        clock = StandingClock(self.directory)
        daemon = self.serve("--drain-exit", "when-idle", "--drain-timeout", "400ms",
                            environment=clock.environment)
        clock.advance()
        client = self.connect(daemon)
        job = client.put()
        client.reserve()
        index, _ = self.drain(daemon)
        daemon.signal(signal.SIGUSR2)
        daemon.manager.wait_for("STATUS", "serving", after=index)
        self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        clock.advance(2)
        for _ in range(2):  # the timeout would end the server in the tick of either
            client.put()


DRAINS = ("The server drains: it refuses puts, and it gives out no jobs and ends once no job is "
          "reserved, or after drain.timeout.\n")


class DrainTask(ManagerTest):
    """`tubed --drain`, which finds the server by the setting pid_file."""

    def setUp(self):
        super().setUp()
        self.pid_file = self.directory / "tubed.pid"

    def wait_for_pid(self, daemon):
        until("the file", lambda: self.pid_file.exists()
              and self.pid_file.read_text(encoding="ascii") == f"{daemon.pid}\n")

    def config(self, end, more=""):
        return self.write_config(
            f'pid_file = "{self.pid_file}"\n[drain]\nexit = "{end}"\n{more}')

    def start_task(self, config):
        """`tubed --drain`, which runs while the server drains."""
        task = subprocess.Popen([PROGRAM, "--config", config, "--drain"], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

        def end():
            task.kill()
            task.communicate(timeout=SECONDS)
        self.addCleanup(end)
        return task

    def test_the_file_exists_while_the_server_runs(self):
        daemon = self.start("--config", self.config("never"))
        self.wait_for_pid(daemon)
        self.end(daemon)
        self.assertFalse(self.pid_file.exists())

    def test_returns_at_once_if_the_drain_never_ends(self):
        config = self.config("never")
        daemon = self.start("--config", config)
        self.wait_for_pid(daemon)
        code, output, errors = run("--config", config, "--drain")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(output, "The server drains: it refuses puts, and drain.exit is "
                                 "\"never\", so it does not end.\n")
        client = self.connect(daemon)
        # The task has waited until the server drains.
        self.assertEqual(client.stats()["draining"], "true")

    def test_waits_for_the_end_of_the_server(self):
        config = self.config("when-idle")
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        job = client.put()
        client.reserve()
        task = self.start_task(config)
        self.assertEqual(task.stdout.readline(), DRAINS)
        self.assertIsNone(task.poll())
        self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        self.assertEqual(task.communicate(timeout=SECONDS),
                         ("The server has ended, drained: no job is left.\n", ""))
        self.assertEqual(task.returncode, 0)
        self.assertEqual(daemon.wait(), 0)

    def test_a_backlog_interrupts_no_worker(self):
        config = self.config("when-idle")
        daemon = self.start("--config", config)
        busy, idle = self.connect(daemon), self.connect(daemon)
        job = busy.put()
        busy.put()
        busy.reserve()
        task = self.start_task(config)
        self.assertEqual(task.stdout.readline(), DRAINS)
        self.assertEqual(idle.ask("reserve-with-timeout 0"), "TIMED_OUT")
        idle.send(b"reserve\r\n")
        self.assertEqual(busy.ask(f"touch {job}"), "TOUCHED")
        self.assertEqual(busy.ask(f"delete {job}"), "DELETED")
        self.assertEqual(idle.rest(), b"")
        self.assertEqual(task.communicate(timeout=SECONDS)[0],
                         "The server has ended, drained: "
                         "1 ready jobs, 0 delayed, 0 buried are lost.\n")
        self.assertEqual((task.returncode, daemon.wait()), (0, 0))

    def test_the_timeout_has_an_exit_code_of_its_own(self):
        config = self.config("when-idle", 'timeout = "1ms"\n')
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        client.put()
        client.reserve()
        task = self.start_task(config)
        _, errors = task.communicate(timeout=SECONDS)
        self.assertEqual(task.returncode, DRAIN_TIMED_OUT)
        daemon.expected_code = DRAIN_TIMED_OUT
        self.assertEqual(errors, "tubed: The server has ended before it had drained: drain.timeout "
                                 "is over, 1 jobs interrupted: 1 ready jobs, 0 delayed, 0 buried "
                                 "are lost\n")
        self.assertEqual(daemon.wait(), DRAIN_TIMED_OUT)
        self.assertIn("interrupted=1", daemon.wait_for_line("drain.timeout is over"))
        self.assertFalse(self.pid_file.exists())

    def test_ends_when_the_drain_is_cancelled(self):
        config = self.config("when-idle")
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        client.put()
        client.reserve()
        task = self.start_task(config)
        self.assertEqual(task.stdout.readline(), DRAINS)
        daemon.signal(signal.SIGUSR2)
        output, errors = task.communicate(timeout=SECONDS)
        self.assertEqual((task.returncode, output), (75, ""))
        self.assertEqual(errors, "tubed: drain mode was ended by SIGUSR2 or undrain: the server "
                                 "takes puts again\n")
        client.put()

    def test_a_server_that_is_stopped_has_not_drained(self):
        config = self.config("when-idle")
        for number, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
            daemon = self.start("--config", config)
            client = self.connect(daemon)
            client.put()
            client.reserve()
            task = self.start_task(config)
            self.assertEqual(task.stdout.readline(), DRAINS)
            daemon.expected_code = code
            daemon.signal(number)
            output, errors = task.communicate(timeout=SECONDS)
            self.assertEqual((task.returncode, output), (75, ""))
            self.assertEqual(errors, "tubed: The server was stopped before it had drained\n")
            self.assertEqual(daemon.wait(), code)

    def start_old_server(self):
        """A process that has the pid file of a tubed 2.0.0. It prints "drains" at SIGUSR1, and ends with its
        input."""
        program = ("import fcntl, os, signal, sys\n"
                   "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'drains\\n'))\n"
                   "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)\n"
                   "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                   "os.write(file, b'%d\\n' % os.getpid())\n"
                   "print('serves', flush=True)\n"
                   "os.read(0, 1)\n"
                   "os.unlink(sys.argv[1])\n")
        server = subprocess.Popen([sys.executable, "-I", "-S", "-c", program, str(self.pid_file)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def end():
            server.kill()
            server.wait(SECONDS)
            server.stdin.close()
            server.stdout.close()
        self.addCleanup(end)
        self.assertEqual(server.stdout.readline(), "serves\n")
        return server

    def test_a_server_of_2_0_0_does_not_report_its_state(self):
        signalled = "The server, a tubed 2.0.0, has SIGUSR1, and does not report whether it drains.\n"
        server = self.start_old_server()
        self.assertEqual(run("--config", self.config("never"), "--drain"), (0, signalled, ""))
        self.assertEqual(server.stdout.readline(), "drains\n")
        self.assertIsNone(server.poll())
        task = self.start_task(self.config("when-idle"))
        self.assertEqual(task.stdout.readline(), signalled)
        self.assertEqual(server.stdout.readline(), "drains\n")
        self.assertIsNone(task.poll())
        server.stdin.close()
        self.assertEqual(task.communicate(timeout=SECONDS),
                         ("The server has ended; whether it had drained is not known.\n", ""))
        self.assertEqual((task.returncode, server.wait(SECONDS)), (0, 0))

    def refused(self, config):
        code, _, errors = run("--config", config, "--drain")
        self.assertEqual(code, 75, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertTrue(errors.startswith("tubed: "), errors)

    def test_no_such_server(self):
        config = self.config("when-idle")
        self.refused(config)
        self.pid_file.write_text("nonsense\n", encoding="ascii")
        self.refused(config)
        self.pid_file.write_text("", encoding="ascii")
        self.refused(config)
        ended = subprocess.Popen(["true"])
        ended.wait(SECONDS)
        self.pid_file.write_text(f"{ended.pid}\n", encoding="ascii")
        self.refused(config)

    def test_a_file_left_by_a_crash_signals_no_other_process(self):
        config = self.config("when-idle")
        daemon = self.start("--config", config)
        self.wait_for_pid(daemon)
        daemon.kill()
        # Another process has got the process id, and SIGUSR1 would end it.
        other = subprocess.Popen(["sleep", str(10 * SECONDS)])
        try:
            self.pid_file.write_text(f"{other.pid}\n", encoding="ascii")
            self.refused(config)
            self.assertIsNone(other.poll())
        finally:
            other.kill()
            other.wait()

    def test_a_new_server_replaces_the_file_of_a_crashed_server(self):
        config = self.config("never")
        daemon = self.start("--config", config)
        self.wait_for_pid(daemon)
        daemon.kill()
        daemon = self.start("--config", config)
        self.wait_for_pid(daemon)


class PutLoop(threading.Thread):
    """Makes a new connection for each put until it is stopped."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address = address
        self.counts = collections.Counter()
        self.worst = 0.0
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            self.counts[self.once()] += 1
            self.worst = max(self.worst, time.monotonic() - begin)

    def once(self):
        try:
            client = Client(self.address)
        except ConnectionRefusedError:
            return "refused"
        try:
            return client.try_put()
        except (ConnectionResetError, BrokenPipeError):
            return "reset"
        finally:
            client.close()

    def stop(self):
        self.over.set()
        self.join(SECONDS)
        return dict(self.counts)


class Restart(ManagerTest):
    """The listening sockets stay open when the process ends, and no client that connects notices.
    """

    def test_under_a_connect_loop(self):
        journal = self.directory / "journal"
        journal.mkdir()
        listeners = [self.tcp(), self.local()]
        options = dict(sockets=listeners, names=["tcp", "local"])
        flags = ("-b", str(journal), "--timeouts-shutdown", "1h")
        daemon = self.serve(*flags, **options)
        loops = [PutLoop(address_of(each)) for each in listeners for _ in range(2)]
        rounds = 5
        for _ in range(rounds):
            enough = sum(h.counts["ok"] for h in loops) + 100
            until("some puts", lambda: sum(h.counts["ok"] for h in loops) >= enough)
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(), 0)
            daemon = self.supervise(*flags, **options)
        counts = sum((h.counts for h in loops if h.stop() is not None), collections.Counter())
        print(f"{self.id()}: {dict(counts)},",
              f"worst {max(h.worst for h in loops) * 1000:.0f} ms", file=sys.stderr)
        self.assertEqual((counts["refused"], counts["reset"]), (0, 0), counts)
        self.assertEqual(counts.keys() - {"ok", "eof", "refused", "reset"}, set(), counts)
        # A connection that was accepted just before the end may be closed unanswered.
        self.assertLessEqual(counts["eof"], rounds * len(loops), counts)
        client = self.connect(daemon)
        self.assertGreaterEqual(client.stats()["current-jobs-ready"], counts["ok"])

    def slow_to_stop(self, **options):
        """A daemon with a client that does not read its replies: (daemon, that client)."""
        daemon = self.serve("-z", "8MiB", "--timeouts-shutdown", "1h", **options)
        return daemon, self.unread_reply(daemon)

    def test_connections_after_sigterm_are_answered_by_the_next_process(self):
        listeners = [self.tcp(), self.local()]
        first, slow = self.slow_to_stop(sockets=listeners, names=["tcp", "local"])
        first.signal(signal.SIGTERM)
        first.wait_for_line("stopping")
        late = [Client(address_of(each)) for each in listeners for _ in range(20)]
        for client in late:
            self.addCleanup(client.close)
            client.send(b"put 0 0 60 4\r\nlate\r\n")
        slow.close()
        self.assertEqual(first.wait(), 0)
        self.supervise(sockets=listeners, names=["tcp", "local"])
        # The first server had the job 1; the next server has answered all of these.
        self.assertEqual(sorted(client.line() for client in late),
                         sorted(f"INSERTED {job}" for job in range(1, len(late) + 1)))

    def test_waiting_clients_are_closed_last(self):
        daemon, slow = self.slow_to_stop(environment={"WATCHDOG_USEC": "200000"})
        idle, waiting = self.connect(daemon), self.connect(daemon)
        idle.ask("list-tube-used")
        waiting.send(b"watch nothing\r\nignore default\r\nreserve\r\n")
        until("the client to wait", lambda: idle.stats()["current-waiting"] == 1)
        daemon.signal(signal.SIGTERM)
        self.assertEqual(idle.rest(), b"")
        self.assertEqual([waiting.line(), waiting.line()], ["WATCHING 2", "WATCHING 1"])
        # Each ping is of a later tick, in which the client could be closed.
        index, _ = daemon.manager.wait_for("STOPPING", "1")
        until("pings", lambda: len(daemon.manager.times("WATCHDOG", after=index)) >= 3)
        self.assertEqual(select.select([waiting.socket], [], [], 0)[0], [])
        slow.close()
        self.assertEqual(waiting.rest(), b"")
        self.assertEqual(daemon.wait(), 0)

    def test_two_daemons_share_the_sockets(self):
        """An operator starts a daemon by hand at the same moment: neither blocks the other."""
        listener = self.tcp()
        daemons = [self.supervise(sockets=[listener], names=["tcp"]) for _ in range(2)]
        clients = [Client(address_of(listener)) for _ in range(200)]
        for client in clients:
            self.addCleanup(client.close)
            self.assertEqual(client.ask("list-tube-used"), "USING default")
        for daemon in daemons:
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(), 0)


def setUpModule():
    if "without systemd" in run("--version")[1]:
        raise unittest.SkipTest("this tubed was built with TUBED_SYSTEMD=OFF")


if __name__ == "__main__":
    unittest.main()
