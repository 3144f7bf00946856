"""The effects of SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT and SIGPIPE: reload, drain and stop."""

import signal
import socket
import threading
import time
import unittest

from harness import SECONDS, DaemonTest, StandingClock, until

MIB = 1 << 20


class Reload(DaemonTest):
    def setUp(self):
        super().setUp()
        self.config = self.write_config('[limits]\njob_bytes = 100\n[log]\nlevel = "info"\n')
        self.daemon = self.start("--config", self.config)
        self.client = self.connect(self.daemon)
        self.assertEqual(self.client.stats()["max-job-size"], 100)

    def reload(self, text, line="reloaded", count=1):
        self.write_config(text)
        self.daemon.signal(signal.SIGHUP)
        return self.daemon.wait_for_line(line, count)

    def test_limits_and_log_level(self):
        line = self.reload('[limits]\njob_bytes = 200\nconnections = 2\n[log]\nlevel = "debug"\n')
        for key in ("limits.job_bytes", "limits.connections", "log.level"):
            self.assertIn(key, line)
        self.assertEqual(self.client.stats()["max-job-size"], 200)
        self.client.put(b"x" * 200)
        second = self.connect(self.daemon)
        self.assertEqual(second.ask("list-tube-used"), "USING default")
        self.daemon.wait_for_line(" debug connected")
        self.assertEqual(self.connect(self.daemon).rest(), b"OUT_OF_MEMORY\r\n")
        self.assertEqual(self.daemon.lines_with("needs a restart"), [])

    def test_every_kind_of_limit(self):
        self.client.ask("watch a")
        self.client.ask("use b")
        self.reload('[limits]\ntubes = 1\nwatches = 1\nline_bytes = 300\n')
        self.assertEqual(self.client.ask("watch c"), "OUT_OF_MEMORY")
        self.assertEqual(self.client.ask("use c"), "OUT_OF_MEMORY")
        self.assertEqual(self.client.ask("use b"), "USING b")  # existing tubes stay
        self.assertEqual(self.client.ask("x" * 290), "UNKNOWN_COMMAND")
        self.assertEqual(self.client.stats()["max-job-size"], 65535)  # no longer in the file

    def test_settings_that_need_a_restart_are_logged(self):
        line = self.reload('[tcp]\nbacklog = 7\n[[listen]]\naddress = "127.0.0.1:1"\n'
                           '[limits]\njob_bytes = 300\n', "needs a restart")
        self.assertIn("tcp.backlog", line)
        self.assertNotIn("job_bytes", line)
        self.assertEqual(self.client.stats()["max-job-size"], 300)
        self.assertEqual(self.connect(self.daemon).ask("list-tube-used"), "USING default")

    def test_a_flag_takes_precedence_after_a_reload(self):
        config = self.write_config('[limits]\njob_bytes = 100\n')
        daemon = self.start("--config", config, "-z", "150")
        client = self.connect(daemon)
        self.write_config('[limits]\njob_bytes = 200\nconnections = 9\n')
        daemon.signal(signal.SIGHUP)
        self.assertNotIn("job_bytes", daemon.wait_for_line("reloaded"))
        self.assertEqual(client.stats()["max-job-size"], 150)

    def test_a_reload_without_changes_is_logged(self):
        self.daemon.signal(signal.SIGHUP)
        line = self.daemon.wait_for_line(" info reloaded")
        self.assertIn(" changed=nothing ", line)
        # The line also covers a change of the file with the service's flags.
        self.assertIn("flags and the environment are read only at a start", line)
        self.assertEqual(self.daemon.lines_with("needs a restart"), [])

    def test_a_bad_file_changes_nothing(self):
        for count, bad in enumerate(('[limits]\njob_bytes = 200\nconnections = 0\n', 'job_bytes = {',
                                     '[limits]\njob_bytes = "many"\n'), 1):
            line = self.reload(bad, "not reloaded", count)
            self.assertIn(self.config, line)
            self.assertEqual(self.client.stats()["max-job-size"], 100)
        self.assertEqual(self.daemon.lines_with(" info reloaded"), [])

    def test_a_client_reloads(self):
        self.write_config('[limits]\njob_bytes = 200\n[tcp]\nbacklog = 7\n')
        other = self.connect(self.daemon)
        self.assertEqual(other.stats("reload"), {"changed": "[limits.job_bytes]",
                                           "needs-restart": "[tcp.backlog]"})
        self.assertEqual(self.client.stats()["max-job-size"], 200)
        self.assertIn(" changed=limits.job_bytes ", self.daemon.wait_for_line(" info reloaded "))
        self.assertEqual(other.stats("reload"), {"changed": "[]", "needs-restart": "[tcp.backlog]"})
        # What a client can repeat is not logged again.
        self.daemon.wait_for_two_ticks()
        self.assertEqual(len(self.daemon.lines_with("needs a restart")), 1)

    def test_a_bad_file_is_answered_with_its_mistake(self):
        self.write_config('[limits]\njob_bytes = 200\nconnections = 0\n')
        reply = self.client.ask("reload")
        self.assertEqual(reply, f"NOT_RELOADED {self.config}:3: limits.connections: 0 is below the "
                                "minimum of 1")
        self.assertIn("limits.connections", self.daemon.wait_for_line(" error not reloaded "))
        self.assertEqual(self.client.stats()["max-job-size"], 100)
        self.write_config('[limits]\njob_bytes = 200\n')
        self.assertEqual(self.client.stats("reload")["changed"], "[limits.job_bytes]")

    def test_clients_and_a_signal_at_once(self):
        """All input arrives in one tick, and the reloads are one."""
        clients = [self.connect(self.daemon) for _ in range(20)]
        for client in clients:
            client.ask("list-tube-used")
        self.write_config('[limits]\njob_bytes = 200\n')
        self.daemon.freeze()
        for client in clients:
            client.send(b"reload\r\nuse a\r\n")
        self.daemon.signal(signal.SIGHUP)
        self.daemon.thaw()
        answers = []
        for client in clients:
            answers.append(client.reply_to_stats()["changed"])
            self.assertEqual(client.line(), "USING a")
        self.assertIn("[limits.job_bytes]", answers)
        self.assertLessEqual(set(answers), {"[limits.job_bytes]", "[]"})
        self.daemon.wait_for_two_ticks()
        self.assertEqual(len(self.daemon.lines_with(" changed=limits.job_bytes ")), 1)

    def test_a_client_that_leaves_before_the_answer(self):
        """The reload happens, and another client with its session gets no answer of it."""
        self.write_config('[limits]\njob_bytes = 200\n')
        leaving = self.connect(self.daemon)
        leaving.ask("list-tube-used")
        self.daemon.freeze()
        leaving.send(b"reload\r\n")
        leaving.close()
        self.daemon.thaw()
        self.daemon.wait_for_line(" changed=limits.job_bytes ")
        self.assertEqual(self.connect(self.daemon).ask("list-tube-used"), "USING default")
        self.assertEqual(self.client.stats()["max-job-size"], 200)

    def test_many_reloads_by_clients_do_not_fill_the_log(self):
        clock = StandingClock(self.directory)
        daemon = self.start(environment=clock.environment)
        client = self.connect(daemon)
        client.ask("list-tube-used")
        clock.advance()
        for _ in range(100):
            self.assertEqual(client.stats("reload"), {"changed": "[]", "needs-restart": "[]"})
        self.assertLessEqual(len(daemon.lines_with(" info reloaded ")), 10)

    def test_a_server_without_a_file_reads_the_files_of_its_flags(self):
        daemon = self.start()
        self.assertEqual(self.connect(daemon).stats("reload"), {"changed": "[]", "needs-restart": "[]"})

    def test_idle_timeout(self):
        self.reload('[timeouts]\nidle = "100ms"\n')
        self.assertEqual(self.client.rest(), b"")


class Drain(DaemonTest):
    def test_a_client_drains_and_the_log_names_it(self):
        daemon = self.start()
        client = self.connect(daemon)
        self.assertEqual(client.ask("drain"), "DRAINING")
        self.assertEqual(client.stats()["draining"], "true")
        self.assertIn("session=", daemon.wait_for_line(" info draining"))
        daemon.signal(signal.SIGUSR2)
        until("the drain to end", lambda: client.stats()["draining"] == "false")
        self.assertNotIn("session=", daemon.wait_for_line(" info not draining"))

    def test_a_drain_by_a_client_ends_the_server_after_its_reply(self):
        daemon = self.start("--drain-exit", "when-empty")
        client = self.connect(daemon)
        self.assertEqual(client.ask("drain"), "DRAINING")
        self.assertEqual(client.rest(), b"")
        self.assertEqual(daemon.wait(), 0)

class Stop(DaemonTest):
    def test_stops_without_clients(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start()
            daemon.signal(number)
            self.assertEqual(daemon.wait(), 0)

    def test_a_released_job_is_not_given_to_a_client_that_is_closed_as_well(self):
        daemon = self.start()
        holder, *waiting = (self.connect(daemon) for _ in range(5))
        job = holder.put()
        self.assertEqual(holder.reserve()[0], job)
        for client in waiting:
            client.send(b"reserve\r\n")
        until("the clients to wait", lambda: holder.stats()["current-waiting"] == 4)
        daemon.signal(signal.SIGTERM)
        for client in waiting:
            self.assertEqual(client.rest(), b"")
        self.assertEqual(daemon.wait(), 0)

    def test_unread_input_does_not_destroy_replies(self):
        # When a connection with unread input is closed, the kernel resets it. A reset destroys the
        # replies that the client has not received yet.
        daemon = self.start("--timeouts-shutdown", "1h")
        client = self.connect(daemon, receive_buffer=65536)
        job = client.put(b"x" * 2000)
        count = 60_000
        sender = threading.Thread(target=client.send, args=(b"peek %d\r\n" % job * count,))
        sender.start()
        reply = b"FOUND %d 2000\r\n" % job + b"x" * 2000 + b"\r\n"
        self.assertEqual(client.read(len(reply)), reply)
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        length = 0
        while chunk := client.socket.recv(1 << 18):  # a reset would be an exception
            length += len(chunk)
        self.assertEqual(length % len(reply), 0)
        self.assertLess(length, (count - 1) * len(reply))
        sender.join(SECONDS)
        client.close()
        self.assertEqual(daemon.wait(), 0)

    def test_large_replies_are_sent_completely(self):
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "1h")
        client = self.connect(daemon, receive_buffer=MIB)
        client.put(b"x" * 8 * MIB)
        client.send(b"peek 1\r\n" * 4)
        client.read(1000)
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        rest = client.rest()
        reply = len(b"FOUND 1 8388608\r\n") + 8 * MIB + 2
        # The four commands were sent together, so all were read before the stop.
        self.assertEqual(len(rest), 4 * reply - 1000)
        self.assertEqual(daemon.wait(), 0)

    def test_a_stop_waits_for_a_client_that_does_not_read_and_refuses_new_connections(self):
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "500ms")
        self.unread_reply(daemon)
        begin = time.monotonic()
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        # The listener is closed in the tick in which the line is logged.
        until("connections to be refused", lambda: self.is_refused(daemon))
        self.assertEqual(daemon.wait(), 0)
        self.assertGreater(time.monotonic() - begin, 0.45)
        daemon.wait_for_line("stopped with connections open")

    def test_the_second_signal_stops_immediately(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "1h")
            self.unread_reply(daemon)
            daemon.signal(number)
            daemon.wait_for_line("stopping")
            daemon.signal(number)
            self.assertEqual(daemon.wait(), 0)

    def test_a_drain_that_ends_is_not_the_first_signal(self):
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "1h", "--drain-exit", "when-idle")
        client = self.unread_reply(daemon)
        daemon.signal(signal.SIGUSR1)
        daemon.wait_for_line("stopping")
        daemon.signal(signal.SIGTERM)
        client.rest()
        client.close()
        self.assertEqual(daemon.wait(), 0)
        self.assertFalse(daemon.lines_with("asked again"))

    def test_drains_and_reloads_during_a_stop_have_no_effect(self):
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "1h", "--drain-exit", "when-empty",
                            "--drain-timeout", "1ms")
        client = self.unread_reply(daemon)
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        for number in (signal.SIGUSR1, signal.SIGHUP):
            daemon.signal(number)
        client.rest()
        client.close()
        self.assertEqual(daemon.wait(), 0)
        for line in ("draining", "reloaded", "connections open"):
            self.assertFalse(daemon.lines_with(line))

    def test_a_client_that_reloads_while_the_server_drains_or_stops(self):
        config = self.write_config('[drain]\nexit = "never"\n')
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        self.assertEqual(client.ask("drain"), "DRAINING")
        self.assertEqual(client.stats("reload")["changed"], "[]")
        self.write_config('[drain]\nexit = "when-empty"\n')
        # The reload ends the drain, and with it the server, after the answer.
        self.assertEqual(client.stats("reload")["changed"], "[drain.exit]")
        self.assertEqual(client.rest(), b"")
        self.assertEqual(daemon.wait(), 0)
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "1h")
        slow, late = self.unread_reply(daemon), self.connect(daemon)
        late.ask("list-tube-used")
        daemon.freeze()
        daemon.signal(signal.SIGTERM)
        late.send(b"reload\r\n")
        daemon.thaw()
        # The signal or the command may come first.
        reply = late.rest()
        self.assertTrue(reply == b"NOT_RELOADED the server is stopping\r\n" or
                        reply.startswith(b"OK "), reply)
        slow.rest()
        slow.close()
        self.assertEqual(daemon.wait(), 0)

    def test_clients_that_have_just_connected_are_answered(self):
        clock = StandingClock(self.directory)
        daemon = self.start(environment=clock.environment)
        clients = [self.connect(daemon) for _ in range(5)]
        until("the connections to be accepted",
              lambda: clients[0].stats()["current-connections"] == 5)
        clock.advance()  # the server's wait for their first commands does not expire
        clients[0].ask("list-tube-used")
        daemon.signal(signal.SIGTERM)
        daemon.wait_for_line("stopping")
        self.assertEqual(clients[0].rest(), b"")
        for client in clients[1:]:
            client.send(b"list-tube-used\r\n")
            self.assertEqual(client.rest(), b"USING default\r\n")
        self.assertEqual(daemon.wait(), 0)

    def test_signals_after_the_stop_do_not_change_the_exit_code(self):
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
            daemon = self.start("--timeouts-shutdown", "1h")
            self.connect(daemon).put_many(100_000)  # the exit takes a while to free them
            daemon.signal(signal.SIGTERM)
            daemon.wait_for_line(" stopped")
            while daemon.process.poll() is None:
                daemon.signal(number)
            self.assertEqual(daemon.wait(), 0, number)

    def test_a_shutdown_timeout_of_zero(self):
        clock = StandingClock(self.directory)
        daemon = self.start("-z", "8MiB", "--timeouts-shutdown", "0", environment=clock.environment)
        self.unread_reply(daemon)
        clock.advance()  # no time passes: a timeout that is not zero never expires
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)

    def is_refused(self, daemon):
        try:
            self.connect(daemon)
            return False
        except ConnectionRefusedError:
            return True


class BrokenPipe(DaemonTest):
    def test_never_ends_the_daemon(self):
        daemon = self.start("-z", "8MiB")
        other = self.connect(daemon)
        other.put(b"x" * 8 * MIB)
        for _ in range(20):
            client = self.connect(daemon, receive_buffer=4096)
            client.send(b"peek 1\r\n")
            client.read(100)
            client.socket.shutdown(socket.SHUT_RDWR)
            client.close()
        daemon.signal(signal.SIGPIPE)
        self.assertEqual(other.ask("list-tube-used"), "USING default")
        until("the connections to be closed", lambda: other.stats()["current-connections"] == 1)


if __name__ == "__main__":
    unittest.main()
