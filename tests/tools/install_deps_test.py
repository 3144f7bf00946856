#!/usr/bin/env python3
"""tools/install-deps with an apt-get that installs nothing: no service starts meanwhile, and the
output shows what it downloads, adds and enables.

  python3 tests/tools/install_deps_test.py
"""

import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "install-deps"

# Each writes its arguments to the log. apt-get also logs the answer of policy-rc.d, as a package's
# script would get it, and then does what $INSTALLS says. It prints the files to download as the
# real apt-get does.
FAKES = {
    "apt-get": """
if [ "$1 $2" = "-qq --print-uris" ]; then
  printf "%s\\n" "'http://example.org/a.deb' a_1_all.deb 61000000 SHA256:00" \\
    "'http://example.org/b.deb' b_1_all.deb 5100000 SHA256:00" "not a file 77 77"
  exit
fi
case " $* " in
  *" install "*)
    policy=none
    if [ -e "$TUBED_INSTALL_ROOT/usr/sbin/policy-rc.d" ]; then
      "$TUBED_INSTALL_ROOT/usr/sbin/policy-rc.d" redis-server start && policy=0 || policy=$?
    fi
    echo "policy $policy" >>"$LOG"
    echo beanstalkd.service enabled >>"$ENABLED"
    eval "$INSTALLS"
    ;;
esac
""",
    "dpkg-query": 'exit 1',
    "apt-cache": """
if [ -e "$TUBED_INSTALL_ROOT"/etc/apt/sources.list.d/tubed-backports.sources ] && [ -n "$BACKPORTS" ]; then
  echo "libraft-dev | 0.22.1-1~bpo12+1 | http://example.org/debian bookworm-backports/main"
fi
echo "libraft-dev | 0.15.0-1 | http://example.org/debian bookworm/main"
""",
    "systemctl": 'sort -u "$ENABLED"',
    "sudo": 'exec "$@"',
}
SOURCES = """\
Types: deb
# A comment.
URIs: http://example.org/debian
Suites: bookworm bookworm-updates
Components: main
"""


class InstallDeps(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-install-deps-")
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name) / "root"
        self.policy = self.root / "usr" / "sbin" / "policy-rc.d"
        self.sources = self.root / "etc" / "apt" / "sources.list.d"
        self.policy.parent.mkdir(parents=True)
        self.sources.mkdir(parents=True)
        (self.sources / "debian.sources").write_text(SOURCES, encoding="utf-8")
        (self.root / "etc" / "os-release").write_text("VERSION_CODENAME=bookworm\n", encoding="utf-8")
        self.log = self.root / "log"
        self.enabled = self.root / "enabled"
        self.log.touch()
        self.enabled.write_text("ssh.service enabled\n", encoding="utf-8")
        programs = pathlib.Path(directory.name) / "programs"
        programs.mkdir()
        for name, text in FAKES.items():
            path = programs / name
            path.write_text(f'#!/bin/sh\necho {name} "$@" >>"$LOG"\n{text}', encoding="utf-8")
            path.chmod(0o755)
        self.environment = {"PATH": f"{programs}:{os.defpath}", "TUBED_INSTALL_ROOT": str(self.root),
                            "LOG": str(self.log), "ENABLED": str(self.enabled), "BACKPORTS": "yes",
                            "INSTALLS": ":"}

    def run_script(self, code=0, what="run", **environment):
        """Returns the output of the script."""
        done = subprocess.run([SCRIPT, what], env=self.environment | environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def logged(self, word):
        """Returns the rest of each line of the log that begins with this word."""
        lines = (line.partition(" ") for line in self.log.read_text(encoding="utf-8").splitlines())
        return [rest for first, _, rest in lines if first == word]

    # --- Services

    def test_no_service_starts_while_packages_are_installed(self):
        self.run_script()
        self.assertEqual(self.logged("policy"), ["101", "101"])  # the packages, and then libraft
        self.assertFalse(self.policy.exists())

    def test_the_policy_ends_when_the_installation_fails(self):
        self.run_script(code=100, INSTALLS="exit 100")
        self.assertEqual(self.logged("policy"), ["101"])
        self.assertFalse(self.policy.exists())

    def test_the_policy_ends_when_the_script_is_interrupted(self):
        for name, code in (("HUP", 129), ("INT", 130), ("TERM", 143)):
            with self.subTest(signal=name):
                # env and sudo have become apt-get, whose parent is the script.
                self.run_script(code=code, INSTALLS=f"kill -{name} $PPID")
                self.assertFalse(self.policy.exists())

    def test_a_policy_that_is_there_is_kept(self):
        self.policy.write_text("#!/bin/sh\nexit 104\n", encoding="utf-8")
        self.policy.chmod(0o755)
        self.run_script()
        self.assertEqual(self.logged("policy"), ["104", "104"])
        self.assertEqual(self.policy.read_text(encoding="utf-8"), "#!/bin/sh\nexit 104\n")

    def test_a_policy_of_a_run_that_was_killed_is_removed(self):
        self.run_script(code=-9, INSTALLS="kill -KILL $PPID")
        self.assertTrue(self.policy.exists())
        self.run_script()
        self.assertEqual(self.logged("policy"), ["101", "101", "101"])
        self.assertFalse(self.policy.exists())

    def test_services_that_start_with_the_machine_are_named(self):
        output = self.run_script()
        self.assertIn("for the next start of this machine: beanstalkd.service\n", output)
        self.assertIn("systemctl disable beanstalkd.service\n", output)
        self.assertNotIn("ssh.service", output)

    # --- Downloads and additions

    def test_the_size_of_the_download_is_printed_before_it(self):
        output = self.run_script(INSTALLS="echo installs")
        size = "install-deps: apt-get downloads 2 packages, 66.1 MB\n"
        self.assertEqual(output.count(size), 2)
        self.assertLess(output.index(size), output.index("installs\n"))

    def test_an_added_source_is_named_with_how_to_remove_it(self):
        output = self.run_script()
        added = self.sources / "tubed-backports.sources"
        self.assertEqual(added.read_text(encoding="utf-8"),
                         SOURCES.replace("# A comment.\n", "").replace("bookworm bookworm-updates",
                                                                       "bookworm-backports"))
        self.assertIn(f"bookworm-backports in {added}\n", output)
        self.assertIn("install --yes --no-install-recommends libraft-dev=0.22.1-1~bpo12+1 "
                      "libraft0=0.22.1-1~bpo12+1", self.logged("apt-get")[-1])
        line = next(line for line in output.splitlines() if "to remove the source" in line)
        command = line.partition(": to remove the source of apt that was added: ")[2]
        subprocess.run(["sh", "-c", command], env=self.environment, check=True)
        self.assertFalse(added.exists())
        self.assertEqual(self.logged("apt-get")[-1], "update")

    def test_a_source_that_does_not_help_is_removed(self):
        output = self.run_script(BACKPORTS="")
        self.assertIn("built without cluster mode\n", output)
        self.assertNotIn("to remove the source", output)
        self.assertEqual(sorted(path.name for path in self.sources.iterdir()), ["debian.sources"])

    def test_an_interruption_names_the_added_source(self):
        added = self.sources / "tubed-backports.sources"
        output = self.run_script(code=130, INSTALLS=f"if [ -e {shlex.quote(str(added))} ]; then "
                                                    "kill -INT $PPID; fi")
        self.assertIn(f"to remove the source of apt that was added: rm {added} && apt-get update", output)
        self.assertFalse(self.policy.exists())

    def test_nothing_is_added_where_nothing_is_missing(self):
        query = pathlib.Path(self.environment["PATH"].partition(":")[0]) / "dpkg-query"
        query.write_text('#!/bin/sh\ncase "$*" in *Version*) echo 0.22.1 ;; *) echo installed ;; esac\n',
                         encoding="utf-8")
        output = self.run_script()
        self.assertEqual(output, "install-deps: everything for 'run' is here\n")
        self.assertEqual(self.logged("apt-get"), [])
        self.assertEqual(sorted(path.name for path in self.sources.iterdir()), ["debian.sources"])
        self.assertFalse(self.policy.exists())

    # --- Packages

    def missing(self, what):
        output = self.run_script(what=what)
        return set(output.partition(f"missing for '{what}': ")[2].partition("\n")[0].split())

    def test_the_packages_of_each_level(self):
        # A command that exists on this machine is not missing.
        run, test, packages, more = (self.missing(what) for what in ("run", "test", "packages", "more"))
        self.assertLess(run, test)
        self.assertLess(run, packages)
        self.assertLess(test | packages, more)
        # Large packages that few tests use.
        for package in ("libclang-rt-14-dev", "php-pda-pheanstalk", "ruby-beaneater", "python3-matplotlib", "haproxy"):
            self.assertNotIn(package, test)
            self.assertIn(package, more)


if __name__ == "__main__":
    unittest.main()
