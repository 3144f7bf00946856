"""The end of connections: the input before it, and the jobs that the client holds or waits for."""

import os
import pathlib
import socket
import unittest

from harness import DaemonTest, StandingClock, until

WAYS_TO_END = ("close", "reset", "half_close")


class Connections(DaemonTest):
    def waiting(self, daemon, watcher):
        """A client that the server counts as waiting in reserve."""
        client = self.connect(daemon)
        client.send(b"reserve\r\n")
        until("it to wait", lambda: watcher.stats()["current-waiting"] == 1)
        return client

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
            client.close()  # the reply is unread, so the kernel sends a reset
            daemon.thaw()
            until("the connection to be closed", lambda: other.stats()["current-connections"] == 1)
            self.assertEqual(other.stats()["total-jobs"], count)

    def test_half_close_ends_a_wait(self):
        daemon = self.start()
        other = self.connect(daemon)
        client = self.waiting(daemon, other)
        client.half_close()
        self.assertEqual(client.rest(), b"TIMED_OUT\r\n")
        job = other.put()
        self.assertEqual(other.stats()["current-jobs-ready"], 1)
        self.assertEqual(self.connect(daemon).reserve()[0], job)

    def test_commands_sent_before_a_half_close_are_answered(self):
        daemon = self.start()
        client = self.connect(daemon)
        client.send(b"put 0 0 10 1\r\nx\r\n" + b"list-tube-used\r\n" * 5000 +
                    b"reserve\r\nreserve\r\n")
        client.half_close()
        self.assertEqual(client.rest(), b"INSERTED 1\r\n" + b"USING default\r\n" * 5000 +
                         b"RESERVED 1 1\r\nx\r\nTIMED_OUT\r\n")

    def test_a_job_put_after_a_waiting_client_ended_is_given_to_the_next_client(self):
        daemon = self.start()
        other = self.connect(daemon)
        for way in WAYS_TO_END:
            for _ in range(30):
                client = self.waiting(daemon, other)
                getattr(client, way)()
                job = other.put()
                self.assertEqual(self.connect(daemon).reserve(), (job, b"x"))
                # The next client has reserved it.
                self.assertEqual(other.ask(f"delete {job}"), "NOT_FOUND")
                client.close()
                until("no client to wait", lambda: other.stats()["current-waiting"] == 0)

    def test_a_put_in_the_same_tick_as_the_end_of_a_waiting_client(self):
        daemon = self.start()
        other = self.connect(daemon)
        for way in WAYS_TO_END:
            client = self.waiting(daemon, other)
            worker = self.connect(daemon)
            worker.ask("list-tube-used")
            daemon.freeze()
            other.send(b"put 0 0 10 1\r\nx\r\n")
            getattr(client, way)()
            worker.send(b"reserve\r\n")
            daemon.thaw()
            word, job = other.line().split()
            self.assertEqual(word, "INSERTED")
            # It may have got the job; the server releases the job when the connection ends.
            if way == "half_close":
                client.close()
            self.assertEqual(worker.body(), (["RESERVED", job, "1"], b"x"))
            self.assertEqual(worker.ask(f"delete {job}"), "DELETED")

    def test_the_jobs_of_a_connection_that_ends_are_ready_again(self):
        daemon = self.start()
        other = self.connect(daemon)
        for way in WAYS_TO_END:
            for _ in range(100):
                other.put()
            client = self.connect(daemon)
            for _ in range(100):
                client.reserve()
            self.assertEqual(other.stats()["current-jobs-reserved"], 100)
            getattr(client, way)()
            until("the jobs to be ready", lambda: other.stats()["current-jobs-ready"] == 100)
            self.assertEqual(other.stats()["job-timeouts"], 0)
            for _ in range(100):
                other.ask(f"delete {other.reserve()[0]}")

    def test_a_client_that_ends_during_a_large_reply_affects_no_other_client(self):
        daemon = self.start("-z", "8MiB")
        other = self.connect(daemon)
        other.put(b"x" * (8 << 20))
        for way in ("close", "reset") * 10:
            client = self.connect(daemon, receive_buffer=4096)
            client.send(b"peek 1\r\n" * 10)
            client.read(1000)
            getattr(client, way)()
            self.assertEqual(other.ask("list-tube-used"), "USING default")
        until("the connections to be closed", lambda: other.stats()["current-connections"] == 1)

    def test_quit(self):
        client = self.connect(self.start())
        client.send(b"list-tube-used\r\nquit\r\nlist-tube-used\r\n")
        self.assertEqual(client.rest(), b"USING default\r\n")

    def listed(self, client):
        """Each client by its session id, as list-clients shows it."""
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
        # The idle timeout does not end it, since it holds a job, and does not hide how idle it is.
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
        """The column `tr:tm->when` of the daemon's end of a connection; None until the kernel has
        acknowledged all data."""
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            ports = tuple(int(address.split(":")[1], 16) for address in fields[1:3])
            if ports == (local_port, remote_port) and not fields[5].startswith("01"):
                return fields[5]
        return None

    def test_small_replies_are_not_delayed(self):
        # With Nagle's algorithm a reply would wait until the previous reply is acknowledged, and
        # the client's kernel may delay the acknowledgement by 40 ms.
        daemon = self.start()
        client = self.connect(daemon)
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        other = self.connect(daemon)
        for _ in range(50):
            client.send(b"list-tube-used\r\n")
            other.ask("list-tube-used")
            client.send(b"list-tube-used\r\n")
            client.line()
            client.line()


if __name__ == "__main__":
    unittest.main()
