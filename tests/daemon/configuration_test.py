"""The command line and the settings file of the real program. tests/config tests each setting; this
test covers main(): precedence, messages and exit codes.
"""

import os
import shutil
import signal
import unittest

from harness import DaemonTest, run, until

USAGE = 64
CONFIG = 78


def without_comments(text):
    """Lines of --print-config without the origins."""
    return [line.split("  # ")[0] for line in text.splitlines() if not line.startswith("# ")]


class Configuration(DaemonTest):
    def check_one_line(self, result, code, *parts):
        self.assertEqual(result[0], code, result)
        self.assertEqual(result[1], "")
        self.assertEqual(len(result[2].splitlines()), 1, result[2])
        for part in ("tubed: ", *parts):
            self.assertIn(part, result[2])

    def test_a_good_file(self):
        config = self.write_config('[limits]\nconnections = 7\n')
        self.assertEqual(run("--config", config, "--check-config"), (0, "", ""))

    def test_a_bad_file(self):
        config = self.write_config('[limits]\n\nconnections = 0\n')
        self.check_one_line(run("--config", config, "--check-config"), CONFIG,
                            f"{config}:3: limits.connections: ")
        self.check_one_line(run("--config", config), CONFIG, f"{config}:3: limits.connections: ")

    def test_an_unknown_key(self):
        config = self.write_config('[limits]\nconections = 5\n')
        self.check_one_line(run("--config", config, "--check-config"), CONFIG, f"{config}:2: ",
                            "conections", "connections")

    def test_a_cluster(self):
        config = self.write_config('[cluster]\nlisten = "127.0.0.1"\n')
        self.check_one_line(run("--config", config, "--check-config"), CONFIG,
                            f"{config}:2: cluster.listen: ")
        self.check_one_line(run("--config", config, "-b/j", "--cluster-leave"), CONFIG, "cluster")
        self.check_one_line(run("--config", config, "--cluster-recover"), USAGE,
                            "--i-accept-the-loss")
        self.check_one_line(run("--cluster-bootstrap"), USAGE, "--cluster-name")

    def test_no_file(self):
        config = str(self.directory / "none.toml")
        self.check_one_line(run("--config", config, "--check-config"), CONFIG, config)

    def drop_in(self, name, text):
        """Writes a drop-in of the file of write_config()."""
        directory = self.directory / "tubed.d"
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
        return str(directory / name)

    def reload(self, daemon, logged):
        """Reloads, and waits for a line that was not logged before."""
        before = sum(logged in line for line in daemon.lines)
        daemon.signal(signal.SIGHUP)
        until(f"another line {logged!r}",
              lambda: sum(logged in line for line in daemon.lines) > before)

    def test_drop_ins_and_their_reload(self):
        config = self.write_config("[limits]\njob_bytes = 10\nconnections = 50\n")
        self.drop_in("20.toml", "[limits]\njob_bytes = 20\n")
        self.drop_in("10.toml", "[limits]\njob_bytes = 30\n")
        daemon = self.start("--config", config)
        client = self.connect(daemon)
        self.assertEqual(client.stats()["max-job-size"], 20)
        self.drop_in("20.toml", "[limits]\njob_bytes = 40\n")
        self.reload(daemon, "reloaded changed=limits.job_bytes")
        self.assertEqual(client.stats()["max-job-size"], 40)
        # All or nothing: the good file has a change as well.
        self.drop_in("10.toml", "[limits]\nconnections = 60\n")
        wrong = self.drop_in("20.toml", "[limits]\njob_bytes = 50\ntubes = 0\n")
        self.reload(daemon, f"{wrong}:3: limits.tubes: ")
        self.assertEqual(client.stats()["max-job-size"], 40)
        os.unlink(wrong)
        self.reload(daemon, "reloaded changed=limits.connections,limits.job_bytes")
        self.assertEqual(client.stats()["max-job-size"], 10)
        shutil.rmtree(self.directory / "tubed.d")
        self.reload(daemon, "reloaded changed=limits.connections")

    def test_a_mistake_in_a_drop_in(self):
        config = self.write_config("[limits]\nconnections = 7\n")
        file = self.drop_in("x.toml", "\n[limits]\nconnections = 0\n")
        self.check_one_line(run("--config", config, "--check-config"), CONFIG,
                            f"{file}:3: limits.connections: ")
        self.check_one_line(run("--config", config), CONFIG, f"{file}:3: limits.connections: ")

    def test_printed_settings_have_their_origins(self):
        config = self.write_config("[limits]\ntubes = 7\n")
        file = self.drop_in("x.toml", "[limits]\nconnections = 5\n")
        code, printed, errors = run("--config", config, "-z", "9", "--print-config")
        self.assertEqual((code, errors), (0, ""))
        lines = printed.splitlines()
        self.assertEqual(lines[:2], [f"# Read: {config}", f"# Read: {file}"])
        for line in (f"tubes = 7  # {config}:2", f"connections = 5  # {file}:2",
                     "job_bytes = 9  # -z/--limits-job-bytes", "watches = 1000000  # the default",
                     "[[listen]]  # the default"):
            self.assertIn(line, lines)

    def test_printed_settings_can_be_read(self):
        flags = ("-z", "1MiB", "--timeouts-idle", "90s", "--log-level", "debug", "-l", "[::1]:0",
                 "-l", f"unix:{self.directory}/socket", "--tcp-keepalive", "5m")
        code, printed, errors = run(*flags, "--print-config")
        self.assertEqual((code, errors), (0, ""))
        code, again, errors = run("--config", self.write_config(printed), "--print-config")
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(without_comments(again), without_comments(printed))
        self.assertIn('job_bytes = "1MiB"', printed)

    def test_flags_win_over_the_file(self):
        config = self.write_config('[limits]\njob_bytes = 10\nconnections = 5\n'
                                   '[[listen]]\naddress = "127.0.0.1:1"\n')
        daemon = self.start("--config", config, "-z", "20")
        client = self.connect(daemon)
        self.assertEqual(client.stats()["max-job-size"], 20)

    def test_an_unknown_flag(self):
        self.check_one_line(run("--limits-conections", "5"), USAGE, "--limits-conections")
        self.check_one_line(run("-x"), USAGE, "-x")
        self.check_one_line(run("file"), USAGE, "file")

    def test_a_bad_value(self):
        self.check_one_line(run("-z", "0"), CONFIG, "-z")
        self.check_one_line(run("-p", "70000"), CONFIG, "70000")
        self.check_one_line(run("-l", "unix:" + "/x" * 100), CONFIG, "-l", "path")

    def test_one_listener_twice(self):
        self.check_one_line(run("-l", "127.0.0.1:7000", "-l", "127.0.0.1:7000"), CONFIG,
                            "127.0.0.1:7000")

    def test_the_journal(self):
        code, printed, errors = run("-b", "jobs", "-F", "-f", "20", "-s", "1048576",
                                    "--print-config")
        self.assertEqual((code, errors), (0, ""))
        for line in ('directory = "jobs"', 'sync = "20ms"', 'segment_size = "1MiB"'):
            self.assertIn(line, printed)
        self.check_one_line(run("-b", ""), CONFIG, "-b", "empty")
        self.check_one_line(run("-b", str(self.directory), "-s", "10"), CONFIG, "-s", "4KiB")
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_task_and_its_journal(self):
        self.check_one_line(run("--backup", "x"), USAGE, "--backup", "-b")
        self.check_one_line(run("--dump", "x", "--check", "y"), USAGE, "only one task")
        config = self.write_config('[journal]\n')
        self.check_one_line(run("--salvage", "x", "--config", config), CONFIG, config,
                            "journal.directory")

    def test_a_flag_without_effect_is_logged(self):
        daemon = self.start("-c", "-n")
        for flag in ("-c", "-n"):
            self.assertIn(" warning ", daemon.wait_for_line(f"{flag}: ignored"))

    def test_verbose(self):
        self.assertIn('level = "debug"', run("-V", "--print-config")[1])
        self.assertIn('level = "debug"', run("-VVV", "--print-config")[1])
        self.assertIn('level = "warning"', run("--log-level", "error", "-V", "--print-config")[1])
        daemon = self.start("-V")
        self.connect(daemon).ask("list-tube-used")
        daemon.wait_for_line(" debug connected")

    def test_help(self):
        for flag in ("-h", "--help"):
            code, text, errors = run(flag)
            self.assertEqual((code, errors), (0, ""))
            for word in ("--listen", "--limits-connections", "-z"):
                self.assertIn(word, text)

    def test_version(self):
        for flag in ("-v", "--version"):
            code, text, errors = run(flag)
            self.assertEqual((code, errors), (0, ""))
            self.assertRegex(text, r"^tubed \d+\.\d+(\.\d+)?\n"
                             r"cluster: (libraft 0\.22\.\d+|not built in)\n$")
        client = self.connect(self.start())
        self.assertEqual(client.stats()["version"].strip('"'), text.split()[1])


if __name__ == "__main__":
    unittest.main()
