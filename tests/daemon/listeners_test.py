"""Listening on several addresses, on unix sockets and on addresses in use; and the change to
another user.
"""

import contextlib
import grp
import os
import pathlib
import socket
import stat
import subprocess
import sys
import unittest

import without_network
from harness import PROGRAM, SECONDS, DaemonTest, run

CANNOT_LISTEN = 69


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


@unittest.skipUnless(without_network.SYSTEM_CALL, "no filter for this machine")
class WithoutNetwork(DaemonTest):
    """A service that gets its sockets from systemd, and may not open any."""

    def refusal(self, *flags, code=CANNOT_LISTEN):
        done = subprocess.run([sys.executable, without_network.__file__, PROGRAM, *flags],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                              check=False, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.splitlines()[-1]

    def test_a_tcp_socket_is_missing(self):
        self.assertEqual(
            self.refusal("--listen", "127.0.0.1:0"),
            "tubed: 127.0.0.1:0 is not among the sockets that systemd has passed on, and the "
            "service may open none itself: see systemctl status tubed.socket")

    def test_a_node_of_a_cluster(self):
        if "not built in" in run("--version")[1]:
            self.skipTest("cluster mode is not built in")
        flags = ("--listen", f"unix:{self.directory}/socket", "-b", str(self.directory),
                 "--cluster-name", "a", "--cluster-listen", "127.0.0.1")
        reason = "tubed: cluster.name: this service has no network: see CLUSTER MODE in tubed(8)"
        self.assertEqual(self.refusal(*flags), reason)
        # A reload of the service begins with this check in the same sandbox, which fails as well.
        self.assertEqual(self.refusal(*flags, "--check-config", code=78), reason)
        self.assertEqual(run(*flags, "--check-config"), (0, "", ""))
        self.assertEqual(list(self.directory.iterdir()), [])


class Listeners(DaemonTest):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "socket"

    def check_serves(self, daemon, index=0):
        self.assertEqual(self.connect(daemon, index).ask("list-tube-used"), "USING default")

    def check_refused(self, address, *parts):
        code, output, errors = run("--listen", address)
        self.assertEqual(code, CANNOT_LISTEN)
        self.assertEqual(output, "")
        lines = [line for line in errors.splitlines() if line.startswith("tubed: ")]
        self.assertEqual(len(lines), 1, errors)
        for part in parts:
            self.assertIn(part, lines[0])

    def test_several_at_once_share_one_queue(self):
        addresses = ["127.0.0.1:0", "127.0.0.1:0", f"unix:{self.path}"]
        if has_ipv6():
            addresses.append("[::1]:0")
        else:
            print("no ::1 here")
        flags = [part for address in addresses[1:] for part in ("--listen", address)]
        daemon = self.start(*flags, listen=addresses[0], listeners=len(addresses))
        clients = [self.connect(daemon, index) for index in range(len(addresses))]
        for number, client in enumerate(clients, 1):
            self.assertEqual(client.put(b"%d" % number), number)
        for number, client in enumerate(reversed(clients), 1):
            self.assertEqual(client.reserve(), (number, b"%d" % number))

    def test_mode_and_group(self):
        entry = next(entry for entry in grp.getgrall()
                     if entry.gr_gid in os.getgroups() or os.geteuid() == 0 and entry.gr_gid)
        config = self.write_config(f'[[listen]]\naddress = "unix:{self.path}"\nmode = "0620"\n'
                                   f'group = "{entry.gr_name}"\n')
        daemon = self.start("--config", config, listen=None)
        status = self.path.stat()
        self.assertTrue(stat.S_ISSOCK(status.st_mode))
        self.assertEqual(stat.S_IMODE(status.st_mode), 0o620)
        self.assertEqual(status.st_gid, entry.gr_gid)
        self.check_serves(daemon)

    def test_the_socket_of_a_killed_daemon_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as bound_only:  # as if killed between bind and listen
            bound_only.bind(str(self.path))
        self.check_serves(self.start(listen=f"unix:{self.path}"))

    def test_a_socket_that_a_server_uses_is_not_replaced(self):
        daemon = self.start(listen=f"unix:{self.path}")
        self.check_refused(f"unix:{self.path}", f"unix:{self.path}", "another server")
        self.check_serves(daemon)

    def test_the_path_is_removed_at_the_end(self):
        daemon = self.start(listen=f"unix:{self.path}")
        self.assertTrue(self.path.exists())
        self.assertEqual(daemon.end(), 0)
        self.assertFalse(self.path.exists())

    def test_an_abstract_socket_is_refused_with_a_hint(self):
        self.check_refused("unix:@tubed", "unix:@tubed: no abstract socket is opened", "unix:./@tubed",
                           "ListenStream=@tubed")
        self.check_serves(self.start(listen=f"unix:{self.directory}/@tubed"))

    def test_two_daemons_on_one_port(self):
        daemon = self.start()
        self.check_refused(daemon.addresses[0], daemon.addresses[0], "in use")
        self.check_serves(daemon)

    def test_a_port_in_use_is_refused_before_the_journal_is_touched(self):
        daemon = self.start()
        journal = self.directory / "journal"
        journal.mkdir()
        code, _, errors = run("--listen", daemon.addresses[0], "-b", str(journal))
        self.assertEqual(code, CANNOT_LISTEN, errors)
        self.assertEqual(list(journal.iterdir()), [])

    def test_no_listener_opens_when_one_cannot(self):
        daemon = self.start()
        code, _, errors = run("--listen", f"unix:{self.path}", "--listen", daemon.addresses[0])
        self.assertEqual(code, CANNOT_LISTEN, errors)
        self.assertFalse(self.path.exists())

    def test_a_port_is_free_again_at_once(self):
        daemon = self.start()
        address = daemon.addresses[0]
        client = self.connect(daemon)
        client.ask("list-tube-used")
        self.assertEqual(daemon.end(), 0)  # the daemon's sockets remain in TIME_WAIT
        self.check_serves(self.start(listen=address))

class Privileges(DaemonTest):
    def test_an_unknown_user(self):
        path = self.directory / "socket"
        flags = ("--listen", f"unix:{path}", "-u", "no-such-user")
        refused = "tubed: no user no-such-user\n"
        self.assertEqual(run(*flags), (77, "", refused))
        self.assertEqual(run(*flags, "--check-config"), (78, "", refused))
        self.assertFalse(path.exists())

    def test_the_daemon_becomes_the_user_permanently(self):
        if os.geteuid() != 0:
            print("not root: cannot become another user")
            self.skipTest("not root")
        self.directory.chmod(0o755)
        daemon = self.start("-u", "nobody")
        users = pathlib.Path("/etc/passwd").read_text(encoding="utf-8")
        entry = next(line for line in users.splitlines() if line.startswith("nobody:"))
        uid, gid = entry.split(":")[2:4]
        self.assertEqual(daemon.status_field("Uid").split(), [uid] * 4)
        self.assertEqual(daemon.status_field("Gid").split(), [gid] * 4)
        self.assertNotIn("0", daemon.status_field("Groups").split())
        self.assertEqual(int(daemon.status_field("CapEff"), 16), 0)
        self.assertEqual(self.connect(daemon).ask("list-tube-used"), "USING default")

    def test_a_symbolic_link_in_the_place_of_a_socket_is_not_followed(self):
        """The daemon runs as root, in a directory that another user may write. That user replaces
        the socket with a symbolic link as soon as it exists."""
        if os.geteuid() != 0:
            self.skipTest("not root")
        path, trap, precious = (self.directory / name for name in ("socket", "trap", "precious"))
        precious.write_text("precious", encoding="utf-8")
        precious.chmod(0o600)
        group = next(entry.gr_name for entry in grp.getgrall() if entry.gr_gid)
        config = self.write_config(f'[[listen]]\naddress = "unix:{path}"\nmode = "0666"\n'
                                   f'group = "{group}"\n')
        swapped = 0
        for _ in range(12):
            trap.symlink_to(precious)
            process = subprocess.Popen([PROGRAM, "--config", config, "-u", "nobody"],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                while process.poll() is None and not os.path.lexists(path):
                    pass
                with contextlib.suppress(FileNotFoundError):
                    os.rename(trap, path)
                    swapped += 1
                for line in process.stderr:  # until the daemon serves or has exited
                    if "listening" in line:
                        break
            finally:
                process.terminate()
                process.communicate(timeout=SECONDS)
            trap.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            status = precious.stat()
            self.assertEqual((stat.S_IMODE(status.st_mode), status.st_gid), (0o600, 0))
        self.assertGreater(swapped, 0)


if __name__ == "__main__":
    unittest.main()
