"""`tubectl drain` and `undrain`: a server that knows the command gets it; a signal is sent to the
server only.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/drain_test.py
"""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from programs import (DONE, FAILURE, NOT_ALLOWED, SECONDS, TIMED_OUT, TUBECTL, UNAVAILABLE, USAGE,
                      ScriptedServer, TubectlTest, until, within)

NOBODY = 65534
DRAINING = ("draining: the server takes no new jobs; "
            "jobs left: 0 ready, 0 reserved, 0 delayed, 0 buried\n")
# A process named tubed that implements the part of the protocol that drain needs. With "announces"
# as its third argument it knows set-caps 256. It has no command drain. After SIGUSR1 it reads the
# next command, sends its second argument, closes, and ends 1.5 s later. With "blind" it closes
# before it reads that command; with "reset" the connection ends with a reset; with "lives" the
# process continues.
FAKE = r"""
import os, signal, socket, struct, sys, time
how, rest, announces = [*sys.argv[1:], ""][:3]
open("/proc/self/comm", "w").write("tubed")
drains = []
signal.signal(signal.SIGUSR1, lambda *_: drains.append(True))
def reply(draining):
    lines = f"---\nhostname: {os.uname().nodename}\npid: {os.getpid()}\nmax-job-memory: 1\n"
    lines += f"draining: {draining}\n"
    return f"OK {len(lines)}\r\n{lines}\r\n".encode()
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(600)
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.settimeout(600)
commands = connection.makefile("rb")
def read_capabilities():
    assert commands.readline() == b"capabilities\r\n"
    if not announces:
        return connection.sendall(b"UNKNOWN_COMMAND\r\n")
    names = b"---\n- set-caps:256\n"
    connection.sendall(b"OK %d\r\n%s\r\n" % (len(names), names))
    return True
def read_questions():
    if read_capabilities():
        assert commands.readline() == b"set-caps 256\r\n"
        connection.sendall(b"OK\r\n")
    read_capabilities()
assert commands.readline() == b"stats\r\n"
if how != "blind":
    connection.sendall(reply("false"))
    read_questions()
    while not drains:
        assert commands.readline() == b"stats\r\n"
        if not drains:
            connection.sendall(reply("false"))
else:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    connection.sendall(reply("false"))
    read_questions()
    signal.sigwait([signal.SIGUSR1])
connection.sendall({"nothing": b"", "half": reply("true")[:40], "no": reply("false"),
                    "yes": reply("true"), "drained": b"DRAINED\r\n"}[rest])
if how == "reset":
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
commands.close()
connection.close()
listener.close()
time.sleep(600 if how == "lives" else 1.5)
"""


def stats_reply(**values):
    lines = (f"{key.replace('_', '-')}: {value}\n" for key, value in values.items())
    block = "---\n" + "".join(lines)
    return f"OK {len(block)}\r\n{block}\r\n".encode()


class Elsewhere:
    """Forwards connections, one at a time, to a server, but replaces the hostname in stats: the
    server seems to run on another machine or in a container."""

    def __init__(self, server):
        host, port = server.rsplit(":", 1)
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.commands = []  # as sent by the client
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        here = os.uname().nodename.encode()
        elsewhere = bytes([here[0] ^ 1]) + here[1:]  # as long as the real name
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # closed
                return
            with client, socket.create_connection(self.server) as server:
                ends = [client, server]
                while ready := select.select(ends, [], [])[0]:
                    if not (data := ready[0].recv(1 << 16)):
                        break
                    if ready[0] is client:
                        self.commands += data.decode().split("\r\n")[:-1]
                        server.sendall(data)
                    else:
                        client.sendall(re.sub(b'(?<=hostname: )("?)' + re.escape(here),
                                              lambda quote: quote[1] + elsewhere, data))

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(SECONDS)


class Drain(TubectlTest):
    def draining(self, server):
        return self.client(server).stats()["draining"]

    def scripted(self, *answers):
        server = ScriptedServer(answers)
        self.addCleanup(server.close)
        return server.address

    def bystander(self):
        """Starts a process other than the server, which SIGUSR1 and SIGUSR2 would end."""
        process = subprocess.Popen(["sleep", "1000"])

        def end():
            self.assertIsNone(process.poll(), "the bystander was signalled")
            process.kill()
            process.wait(SECONDS)
        self.addCleanup(end)
        return process.pid

    def test_drain(self):
        for server in self.servers():
            client = self.client(server)
            for delay in (0, 0, 1000):
                client.put(delay=delay)
            client.reserve()
            left = ("the server takes no new jobs; "
                    "jobs left: 1 ready, 1 reserved, 1 delayed, 0 buried\n")
            self.assertEqual(self.tubectl(server, "drain"), f"draining: {left}")
            # The effect is complete when tubectl exits.
            self.assertEqual(self.draining(server), "true")
            self.assertEqual(self.tubectl(server, "drain"), f"draining already: {left}")
            self.assertEqual(self.tubectl_json(server, "drain"),
                             {"draining": True, "already": True, "current-jobs-ready": 1,
                              "current-jobs-reserved": 1, "current-jobs-delayed": 1,
                              "current-jobs-buried": 0})

    def test_undrain_of_tubed(self):
        server = self.tubed()
        self.assertEqual(self.tubectl(server, "undrain"),
                         "not draining: the server takes jobs as before\n")
        self.tubectl(server, "drain")
        self.assertEqual(self.tubectl(server, "undrain"),
                         "no longer draining: the server takes jobs again\n")
        self.assertEqual(self.draining(server), "false")
        told = self.tubectl_json(server, "undrain")
        self.assertEqual((told["draining"], told["already"]), (False, True))

    def test_undrain_never_kills_beanstalkd(self):
        server = self.beanstalkd()
        self.tubectl(server, "undrain")
        self.tubectl(server, "drain")
        self.assertIn("until it is restarted", self.refused(FAILURE, server, "undrain"))
        self.assertEqual(self.draining(server), "true")

    def test_a_unix_socket(self):
        path = f"unix:{self.directory}/tubed.sock"
        self.start(listen=path)
        self.tubectl(path, "drain")
        self.assertEqual(self.draining(path), "true")

    def test_a_server_that_ends_when_it_is_drained(self):
        daemon = self.start("--drain-exit", "when-empty")
        self.tubectl(daemon.addresses[0], "drain")
        self.assertEqual(daemon.wait(), DONE)

    def fake(self, *arguments, **environment):
        """Starts a FAKE; returns its address."""
        process = subprocess.Popen([sys.executable, "-c", FAKE, *arguments], text=True,
                                   stdout=subprocess.PIPE, env=os.environ | environment)

        def end():
            process.kill()
            process.communicate(timeout=SECONDS)
        self.addCleanup(end)
        return f"127.0.0.1:{within('its port', process.stdout.readline).strip()}"

    def elsewhere(self, server):
        proxy = Elsewhere(server)
        self.addCleanup(proxy.close)
        return proxy

    def test_a_server_elsewhere_gets_the_command(self):
        server = self.tubed()
        proxy = self.elsewhere(server)
        self.client(server).put()
        left = ("the server takes no new jobs; "
                "jobs left: 1 ready, 0 reserved, 0 delayed, 0 buried\n")
        self.assertEqual(self.tubectl(proxy.address, "drain"), f"draining: {left}")
        self.assertEqual(proxy.commands, ["stats", "capabilities", "set-caps 256", "capabilities",
                                          "drain", "stats"])
        self.assertEqual(self.draining(server), "true")
        self.assertEqual(self.tubectl(proxy.address, "drain"), f"draining already: {left}")
        self.assertEqual(self.tubectl(proxy.address, "undrain"),
                         "no longer draining: the server takes jobs again\n")
        self.assertEqual(self.draining(server), "false")
        self.assertEqual(self.tubectl(proxy.address, "undrain"),
                         "not draining: the server takes jobs as before\n")

    def test_a_server_elsewhere_that_ends_when_it_is_drained(self):
        daemon = self.start("--drain-exit", "when-empty")
        shown = self.tubectl(self.elsewhere(daemon.addresses[0]).address, "drain")
        # The server may end before it sends its last reply.
        self.assertIn(shown, (DRAINING, "drained: the server has ended\n"))
        self.assertEqual(daemon.wait(), DONE)

    def test_a_server_of_this_machine_gets_the_command(self):
        server = self.tubed()
        self.tubectl(server, "drain")
        self.tubectl(server, "undrain")
        stats = self.client(server).stats()
        self.assertEqual((stats["cmd-drain"], stats["cmd-undrain"]), (1, 1))

    def test_a_server_of_this_machine_that_denies_the_command_gets_the_signal(self):
        daemon = self.start()
        values = {"hostname": os.uname().nodename, "pid": daemon.pid, "max_job_memory": 5}
        for name, before, after in (("drain", "false", "true"), ("undrain", "true", "false")):
            block = f"---\n- {name}\n"
            known = f"OK {len(block)}\r\n{block}\r\n".encode()
            questions = [known, known] if name == "drain" else [known]
            told = self.tubectl(self.scripted(stats_reply(draining=before, **values), *questions,
                                              b"DENIED\r\n", stats_reply(draining=after, **values)),
                                name)
            self.assertIn("draining", told)
            until(f"the daemon to {name}",
                  lambda wanted=after: self.draining(daemon.addresses[0]) == wanted)

    def test_a_server_elsewhere_that_has_no_command(self):
        stats = stats_reply(max_job_memory=1, draining="false", hostname="elsewhere", pid=1)
        block = b"---\n- capabilities\n- undrain\n"
        for answer in (b"UNKNOWN_COMMAND\r\n", b"OK %d\r\n%s\r\n" % (len(block), block), None):
            told = self.refused(FAILURE, self.scripted(stats, answer), "drain")
            self.assertIn("the server is on elsewhere", told)

    def test_a_server_elsewhere_that_refuses(self):
        stats = stats_reply(max_job_memory=1, draining="false", hostname="elsewhere", pid=1)
        block = b"---\n- drain\n"
        block = b"OK %d\r\n%s\r\n" % (len(block), block)
        told = self.refused(FAILURE, self.scripted(stats, block, block, b"BAD_FORMAT\r\n"),
                            "drain")
        self.assertIn("BAD_FORMAT", told)

    def test_a_server_that_ends_at_any_moment(self):
        """If a server does not announce that it has drained, only its end is known."""
        for how in ("reads", "blind", "reset"):
            for rest in ("nothing", "half", "no", "yes"):
                with self.subTest(how=how, rest=rest):
                    shown = self.tubectl(self.fake(how, rest), "drain")
                    # A reset discards unread data.
                    if rest != "yes" or how == "reset" and shown != DRAINING:
                        self.assertEqual(
                            shown, "the server has ended; whether it had drained is not known\n")
                    else:
                        self.assertEqual(shown, DRAINING)

    def test_a_server_that_says_that_it_has_drained(self):
        for how in ("reads", "blind"):
            self.assertEqual(self.tubectl(self.fake(how, "drained", "announces"), "drain"),
                             "drained: the server has ended\n")
            for rest in ("nothing", "half", "no"):
                with self.subTest(how=how, rest=rest):
                    self.assertEqual(
                        self.refused(FAILURE, self.fake(how, rest, "announces"), "drain"),
                        "tubectl: drain: the server has ended, and had not drained\n")

    def test_sockets_of_systemd_may_start_it_again(self):
        for rest in ("yes", "nothing"):
            code, _, errors = self.run_tubectl(self.fake("reads", rest, LISTEN_FDS="1"), "drain")
            self.assertEqual(code, DONE)
            self.assertRegex(errors, "^tubectl: systemd holds the server's sockets: .*\n$")

    def test_a_server_that_closes_and_lives_on(self):
        told = self.refused(UNAVAILABLE, self.fake("lives", "nothing"), "drain")
        # The kernel resets the connection if the process has not read everything that tubectl sent.
        self.assertRegex(told, r"(closed a connection|Connection reset by peer), "
                               r"and its process has not ended")

    def test_nobody_else_is_signalled(self):
        here = os.uname().nodename
        process = self.bystander()
        tubed = {"max_job_memory": 1, "draining": "false"}
        for values, why in (
                (tubed | {"hostname": here, "pid": process}, "is no tubed here"),
                ({"draining": "false", "hostname": here, "pid": process}, "is no beanstalkd here"),
                (tubed | {"hostname": "elsewhere", "pid": process}, "the server is on elsewhere"),
                (tubed | {"hostname": here, "pid": 0}, "does not report"),
                (tubed | {"hostname": here}, "does not report"),
                (tubed | {"pid": process}, "does not report"),
                ({"max_job_memory": 1, "hostname": here, "pid": process}, "does not report"),
                (tubed | {"hostname": here, "pid": 2**22 + 5}, "is no tubed here"),
                (tubed | {"hostname": here, "pid": 2**32 + process}, "is no tubed here"),
                (tubed | {"hostname": here, "pid": 2**64 - 1}, "is no tubed here")):
            with self.subTest(values=values):
                told = self.refused(FAILURE, self.scripted(stats_reply(**values)), "drain")
                self.assertIn(why, told)
                self.assertIn("SIGUSR1", told)
                if "draining" in values and "max_job_memory" in values:
                    drains = self.scripted(stats_reply(**(values | {"draining": "true"})))
                    told = self.refused(FAILURE, drains, "undrain")
                    self.assertIn("SIGUSR2", told)

    def test_a_beanstalkd_that_looks_like_tubed_is_not_killed(self):
        server = self.beanstalkd()
        stats = self.client(server).stats()
        reply = stats_reply(hostname=stats["hostname"], pid=stats["pid"], draining="true",
                            max_job_memory=5)
        self.refused(FAILURE, self.scripted(reply), "undrain")
        self.assertEqual(self.draining(server), "false")

    @unittest.skipUnless(os.geteuid() == 0, "only root can run it as somebody else")
    def test_the_server_of_another_user(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            program = pathlib.Path(directory, "tubectl")
            shutil.copy(TUBECTL, program)
            daemon = self.start()
            stats = stats_reply(hostname=os.uname().nodename, pid=daemon.pid, draining="false",
                                max_job_memory=5)
            unknown = b"UNKNOWN_COMMAND\r\n"
            server = self.scripted(stats, unknown, unknown)
            done = subprocess.run([program, "drain", "-s", server], user=NOBODY, check=False,
                                  capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, NOT_ALLOWED, done.stderr)
        self.assertRegex(done.stderr, "^tubectl: cannot signal process .* as root .*\n$")
        self.assertEqual(self.draining(daemon.addresses[0]), "false")

    def test_a_server_that_does_not_do_it_in_time(self):
        # The process is a tubed and drains, but another server answers, and never reports that it
        # drains.
        daemon = self.start()
        reply = stats_reply(hostname=os.uname().nodename, pid=daemon.pid, draining="false",
                            max_job_memory=5)
        code, _, errors = self.run_tubectl(self.scripted(*[reply] * 5000), "drain")
        self.assertEqual(code, TIMED_OUT)
        self.assertIn("still says draining: false", errors)

    def test_mistakes_and_no_server(self):
        for name in ("drain", "undrain"):
            self.refused(UNAVAILABLE, f"unix:{self.directory}/nobody", name)
            self.refused(USAGE, f"unix:{self.directory}/nobody", name, "now")


class WaitIdleOfADrain(TubectlTest):
    """Only the server that was busy can become idle."""

    def wait_idle(self, answers, *arguments):
        """Runs wait-idle on a server that sends these answers and then closes. Returns (exit code,
        stdout, stderr)."""
        server = ScriptedServer([*answers, None])
        self.addCleanup(server.close)
        return self.run_tubectl(server.address, "wait-idle", *arguments)

    @staticmethod
    def busy(draining):
        return stats_reply(draining=draining, current_jobs_reserved=1)

    def test_a_server_that_drains_and_ends(self):
        names = b"---\n- set-caps:256\n"
        announces = [b"OK %d\r\n%s\r\n" % (len(names), names), b"OK\r\n"]
        unknown = [b"UNKNOWN_COMMAND\r\n"]
        busy = [self.busy("true")]
        for arguments in ((), ("--held", "--draining")):
            drained = [b"DRAINED\r\n"]
            self.assertEqual(self.wait_idle(busy + announces + drained, *arguments),
                             (DONE, "the server has drained and ended\n", ""))
            for more in ([], busy):
                for known, how in ((announces, "and had not drained"),
                                   (unknown, "and whether it had drained is not known")):
                    code, _, errors = self.wait_idle(busy + known + more, *arguments)
                    self.assertEqual(code, FAILURE)
                    self.assertIn(f"wait-idle: the server has ended, {how}; when it was last seen "
                                  "there were left: ", errors)
                    self.assertIn("1 reserved\n", errors)
        code, _, errors = self.wait_idle([self.busy("false")])
        self.assertEqual(code, UNAVAILABLE, errors)
        code, _, errors = self.wait_idle([self.busy("true"), *unknown, self.busy("false")])
        self.assertEqual(code, FAILURE)
        self.assertIn("the server is not draining", errors)

    def test_a_server_that_was_drained_before(self):
        for nowhere in ("127.0.0.1:1", f"unix:{self.directory}/nobody"):
            self.assertEqual(self.tubectl(nowhere, "wait-idle", "--draining"),
                             "the server has ended\n")
            self.refused(UNAVAILABLE, nowhere, "wait-idle")
        for server in self.servers():
            client = self.client(server)  # keeps the connection of wait-idle from being the first
            self.assertIn("the server is not draining",
                          self.refused(FAILURE, server, "wait-idle", "--draining"))
            self.tubectl(server, "drain")
            self.assertEqual(self.tubectl(server, "wait-idle", "--draining"), "")
            client.close()

    def test_a_server_that_ends_when_its_last_job_is_done(self):
        daemon = self.start("--drain-exit", "when-idle")
        server = daemon.addresses[0]
        client = self.client(server)
        client.put()
        client.reserve()
        self.tubectl(server, "drain")
        process = self.popen(server, "wait-idle", "--held", "--draining")
        until("a look at it", lambda: client.stats()["cmd-set-caps"] == 2)
        client.send(b"delete 1\r\n")
        self.assertEqual(process.wait(SECONDS), DONE)
        self.assertEqual(daemon.wait(), DONE)

    def test_drain_that_waits(self):
        for server in self.servers():
            client = self.client(server)
            client.put()
            client.put()
            client.reserve()
            why = self.refused(TIMED_OUT, server, "drain", "--wait", "--timeout", 0)
            self.assertEqual(why, "tubectl: after 0 s there are left: 1 reserved\n")
            process = self.popen(server, "drain", "--wait", stdout=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(),
                             "draining already: the server takes no new jobs; "
                             "jobs left: 1 ready, 1 reserved, 0 delayed, 0 buried\n")
            self.assertIsNone(process.poll())
            client.ask("delete 1")
            self.assertEqual(process.communicate(timeout=SECONDS)[0], "")
            self.assertEqual(process.returncode, DONE)

    def delete_unseen(self, process, client, daemon):
        """Deletes job 1, which ends the daemon, while the process of tubectl is stopped: its next
        query never finds an idle server, always one that has ended."""
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        client.stats()  # the server has answered what the process had sent before
        client.send(b"delete 1\r\n")
        self.assertEqual(daemon.wait(), DONE)
        process.send_signal(signal.SIGCONT)

    def test_drain_that_waits_for_a_server_that_ends(self):
        daemon = self.start("--drain-exit", "when-idle")
        client = self.client(daemon.addresses[0])
        client.put()
        client.reserve()
        process = self.popen(daemon.addresses[0], "drain", "--wait", stdout=subprocess.PIPE, text=True)
        self.assertRegex(process.stdout.readline(), r"\Adraining: .* 1 reserved,")
        self.delete_unseen(process, client, daemon)
        output, _ = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, output), (DONE, "the server has drained and ended\n"))

    def test_drain_that_waits_in_json(self):
        daemon = self.start("--drain-exit", "when-idle")
        client = self.client(daemon.addresses[0])
        client.put()
        client.reserve()
        process = self.popen(daemon.addresses[0], "drain", "--wait", "--json",
                             stdout=subprocess.PIPE, text=True)
        told = json.loads(process.stdout.readline())
        self.assertEqual((told["draining"], told["current-jobs-reserved"]), (True, 1))
        self.delete_unseen(process, client, daemon)
        output, _ = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, json.loads(output)),
                         (DONE, {"idle": True, "ended": True, "drained": True}))

    def test_drain_that_waits_for_a_server_that_is_stopped(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            daemon = self.start("--drain-exit", "when-idle")
            client = self.client(daemon.addresses[0])
            client.put()
            client.reserve()
            process = self.popen(daemon.addresses[0], "drain", "--wait", stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            self.assertRegex(process.stdout.readline(), r"\Adraining: .* 1 reserved,")
            if number == signal.SIGKILL:
                daemon.expected_code = -number
            daemon.signal(number)
            _, errors = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, FAILURE)
            self.assertIn("tubectl: drain: the server has ended, and had not drained", errors)

    def test_drain_that_waits_for_a_server_that_drain_timeout_ends(self):
        daemon = self.start("--drain-exit", "when-idle", "--drain-timeout", "1ms")
        daemon.expected_code = 79
        client = self.client(daemon.addresses[0])
        client.put()
        client.reserve()
        why = self.refused(FAILURE, daemon.addresses[0], "drain", "--wait")
        self.assertIn("tubectl: drain: the server has ended, and had not drained", why)
        self.assertEqual(daemon.wait(), 79)

    def silent(self, *answers):
        """Starts a server that sends these answers and then nothing; returns its address."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            try:
                while True:
                    connection, _ = listener.accept()
                    self.addCleanup(connection.close)
                    for answer in answers:
                        connection.recv(1 << 16)
                        connection.sendall(answer)
            except OSError:  # closed
                pass
        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def busy_address(self):
        """Returns the address of a server with a full backlog, which accepts no connections."""
        path = str(self.directory / f"busy{len(os.listdir(self.directory))}.sock")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen(0)
        try:
            while True:
                client = socket.socket(socket.AF_UNIX)
                self.addCleanup(client.close)
                client.setblocking(False)
                client.connect(path)
        except BlockingIOError:
            return f"unix:{path}"

    def test_a_server_that_does_not_answer(self):
        silent = self.silent()
        for server in (silent, self.busy_address()):
            for command in (("drain", "--wait"), ("wait-idle",), ("wait-idle", "--draining")):
                why = self.refused(TIMED_OUT, server, *command, "--timeout", 0.2)
                self.assertIn("tubectl: after 0.2 s the server has not answered: ", why)
                if server == silent:
                    self.assertIn("the server was silent for ", why)
                    # 30 s is the wait for an answer without --timeout.
                    self.assertNotIn("silent for 30 s", why)
            self.refused(UNAVAILABLE, server, "health", "--timeout", 0.2)

    def test_a_server_that_does_not_answer_any_more(self):
        unknown = b"UNKNOWN_COMMAND\r\n"
        drains = stats_reply(draining="true", max_job_memory=1, current_jobs_reserved=1)
        server = self.silent(drains, unknown, drains)
        code, _, errors = self.run_tubectl(server, "drain", "--wait", "--timeout", 0.5)
        self.assertEqual(code, TIMED_OUT)
        # On a slow machine the time limit is reached before the first answer.
        self.assertRegex(errors, r"after 0\.5 s (there are left: 1 reserved; the server does not "
                                 r"answer|the server has not answered: .*)\n\Z")

    def test_a_server_that_does_not_answer_after_the_command(self):
        block = b"---\n- drain\n- set-caps:256\n"
        known = b"OK %d\r\n%s\r\n" % (len(block), block)
        daemon = self.start()
        for values in ({"hostname": "elsewhere", "pid": 1},
                       {"hostname": os.uname().nodename, "pid": daemon.pid}):
            with self.subTest(values=values):
                drains = stats_reply(draining="false", max_job_memory=1, **values)
                server = self.silent(drains, known, b"OK\r\n", known, b"DRAINING\r\n")
                why = self.refused(TIMED_OUT, server, "drain", "--wait", "--timeout", 0.5)
                self.assertNotIn("has ended", why)

    def test_drain_that_waits_as_the_first_client(self):
        for _ in range(3):
            output = self.tubectl(self.start().addresses[0], "drain", "--wait")
            self.assertRegex(output, r"\Adraining: .* 0 reserved, .*\n\Z")

    def test_drain_that_waits_for_an_idle_server_that_ends(self):
        for _ in range(3):
            daemon = self.start("--drain-exit", "when-idle")
            output = self.tubectl(daemon.addresses[0], "drain", "--wait")
            # The server ends before or after the next query of tubectl.
            self.assertIn(re.sub(r"\Adraining: .*\n", "", output),
                          ("", "drained: the server has ended\n", "the server has drained and ended\n"))
            self.assertEqual(daemon.wait(), DONE)

    def test_a_server_that_its_own_connection_has_started(self):
        path = self.directory / "activated.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            for arguments in ((), ("--draining",), ("nothing", "--held")):
                process = self.popen(f"unix:{path}", "wait-idle", *arguments,
                                     stderr=subprocess.PIPE, text=True)
                self.assertTrue(select.select([listener], [], [], SECONDS)[0], "no connection came")
                server = self.start(listen=None, sockets=[listener])
                _, errors = process.communicate(timeout=SECONDS)
                self.assertEqual(process.returncode, FAILURE, errors)
                self.assertIn("has only just started, for this connection", errors)
                # This connection did not start the server.
                self.tubectl(f"unix:{path}", "wait-idle")
                self.end(server)


if __name__ == "__main__":
    unittest.main()
