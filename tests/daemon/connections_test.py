"""Connections in the kernel: the input before a reset, addresses, and keepalive."""

import os
import pathlib
import unittest

from harness import DaemonTest, StandingClock, until


class Connections(DaemonTest):
    def test_a_command_sent_before_a_reset_is_run(self):
        daemon = self.start()
        other = self.connect(daemon)
        for count in range(1, 51):
            client = self.connect(daemon)
            client.send(b"list-tube-used\r\n")
            until("the client to be answered",
                  lambda: other.stats()["cmd-list-tube-used"] == count)
            daemon.freeze()
            client.send(b"put 0 0 10 1\r\nx\r\n")
            client.close()  # with an unread reply, the kernel sends a reset
            daemon.thaw()
            until("the connection to be closed", lambda: other.stats()["current-connections"] == 1)
            self.assertEqual(other.stats()["total-jobs"], count)

    def listed(self, client):
        """Returns the clients listed by list-clients, by session id."""
        client.send(b"list-clients\r\n")
        items = [line[2:].split(" ") for line in client.body()[1].decode().split("\n")[1:-1]]
        self.assertEqual(items[0], ["next", "0"])
        return {int(item[0]): dict(zip(items[1], item)) for item in items[2:]}

    def test_list_clients(self):
        path = self.directory / "socket"
        clock = StandingClock(self.directory)
        daemon = self.start("--listen", f"unix:{path}", "--timeouts-idle", "100s", listeners=2,
                            environment=clock.environment)
        clock.advance()
        first = self.connect(daemon)
        self.assertEqual(len(self.listed(first)), 1)
        local = self.connect(daemon, 1)
        local.ask("use mail")
        local.ask("watch mail")
        local.put(ttr=1000)
        local.reserve()
        own, other = self.listed(first).values()
        host, port = first.socket.getsockname()
        self.assertEqual((own["address"], own["role"], own["used"], own["held"], own["idle"]),
                         (f"{host}:{port}", "-", "default", "0", "0"))
        self.assertEqual(
            (other["address"], other["used"], other["waiting"], other["held"], other["watched"]),
            (f"unix:{os.getuid()}:{os.getpid()}", "mail", "0", "1", "default,mail"))
        # A client with a job has no idle timeout, but its idle time is shown.
        for _ in range(3):
            clock.advance(90)
            self.listed(first)
        until("the time to pass", lambda: self.listed(first)[int(other["id"])]["idle"] == "270")
        local.ask("list-tube-used")
        self.assertEqual(self.listed(first)[int(other["id"])]["idle"], "0")

    def test_keepalive_runs_on_tcp(self):
        daemon = self.start("--tcp-keepalive", "100s")
        client = self.connect(daemon)
        client.ask("list-tube-used")
        port = client.socket.getpeername()[1]
        remote = client.socket.getsockname()[1]
        timer_active = until("its line in /proc/net/tcp", lambda: self.timer_of(port, remote))
        kind, ticks = (int(part, 16) for part in timer_active.split(":"))
        self.assertEqual(kind, 2)  # keepalive
        self.assertIn(ticks, range(95 * 100, 100 * 100 + 1))

    @staticmethod
    def timer_of(local_port, remote_port):
        """Returns the column `tr:tm->when` of the daemon's end of a connection; None until the
        kernel has acknowledged all data."""
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            ports = tuple(int(address.split(":")[1], 16) for address in fields[1:3])
            if ports == (local_port, remote_port) and not fields[5].startswith("01"):
                return fields[5]
        return None

if __name__ == "__main__":
    unittest.main()
