"""The container image: as docs/containers.md runs it, with podman or with systemd-nspawn.

packaging/tests/container starts this file with a directory that has the image. Each test starts a server
with a volume of its own.
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import pty
import re
import select
import shutil
import stat
import sys
import tomllib
import unittest

sys.dont_write_bytecode = True
import container_engines as engines  # noqa: E402
from container_engines import CONFIG, DATA, HTTP_PORT, PORT, USER, Layout, Page, checked, until  # noqa: E402

WORK = pathlib.Path(sys.argv.pop())
LAYOUT = Layout(WORK / "image")
ENGINE = None  # set when the tests start
SMALL_JOURNAL = ("--journal-max-bytes", "256KiB", "-s", "64KiB", "-z", "1000")
EMULATOR = "qemu-aarch64-static"


class ImageTest(unittest.TestCase):
    """The files of the image, unpacked."""

    @classmethod
    def setUpClass(cls):
        cls.roots = {name: WORK / f"root-{name}" for name in LAYOUT.manifests}
        for name, root in cls.roots.items():
            LAYOUT.unpack(name, root)

    def test_it_has_two_programs_and_no_shell(self):
        for root in self.roots.values():
            programs = sorted(str(path.relative_to(root)) for path in root.rglob("*")
                              if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o111
                              and not re.search(r"/ld-linux-[^/]*\.so|\.so(\.|$)", str(path)))
            self.assertEqual(programs, ["usr/bin/tubectl", "usr/bin/tubed"])
            self.assertEqual(list((root / "usr/sbin").iterdir()), [])

    def test_owners_and_modes(self):
        for root in self.roots.values():
            for path in root.rglob("*"):
                name, status = str(path.relative_to(root)), path.lstat()
                owner = USER if name == DATA[1:] else 0
                self.assertEqual((status.st_uid, status.st_gid), (owner, owner), name)
                self.assertFalse(status.st_mode & (stat.S_ISUID | stat.S_ISGID), name)
                if not path.is_symlink():
                    self.assertEqual(bool(status.st_mode & 0o002), name == "tmp", name)

    def test_no_link_leads_nowhere(self):
        for root in self.roots.values():
            for path in root.rglob("*"):
                if path.is_symlink():
                    target = os.readlink(path)
                    found = root / target[1:] if target.startswith("/") else path.parent / target
                    self.assertTrue(found.exists(), f"{path} -> {target}")

    def test_licenses_and_records_of_its_packages(self):
        for name, root in self.roots.items():
            records = {path.name: path.read_text(encoding="utf-8")
                       for path in (root / "var/lib/dpkg/status.d").iterdir()}
            self.assertIn("libc6", records)
            self.assertIn("tubed", records)
            for package, record in records.items():
                self.assertRegex(record, rf"(?m)^Package: {re.escape(package)}$")
                self.assertRegex(record, r"(?m)^Version: \S+$")
                self.assertRegex(record, rf"(?m)^Architecture: ({name}|all)$")
                text = (root / f"usr/share/doc/{package}/copyright").read_text(encoding="utf-8")
                for license_ in re.findall(r"/usr/share/common-licenses/([A-Z][A-Za-z0-9.-]*[A-Za-z0-9])", text):
                    self.assertTrue((root / f"usr/share/common-licenses/{license_}").exists(), license_)
            release = (root / "etc/os-release").read_text(encoding="utf-8")
            number = re.search(r'^VERSION_ID="(\d+)"$', release, re.M)[1]
            self.assertTrue((root / "etc/debian_version").read_text(encoding="utf-8").startswith(f"{number}."))

    def test_the_settings_are_those_of_the_tree(self):
        tree = (engines.HERE.parent / "container/tubed.toml").read_text(encoding="utf-8")
        for root in self.roots.values():
            self.assertEqual(tomllib.loads((root / CONFIG[1:]).read_text(encoding="utf-8")), tomllib.loads(tree))

    @unittest.skipUnless(shutil.which(EMULATOR) and "arm64" in LAYOUT.manifests, f"{EMULATOR} is missing")
    def test_the_programs_of_arm64(self):
        root = self.roots["arm64"]
        for name in ("tubed", "tubectl"):
            output = checked(EMULATOR, "-L", root, root / f"usr/bin/{name}", "--version")
            self.assertEqual(output.splitlines()[0], f"{name} {LAYOUT.version}")


class ContainerTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(ENGINE.remove_all)
        self.files = WORK / "files"
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir(mode=0o755)
        self.container = None

    def start(self, *flags, **options):
        self.container = ENGINE.start(*flags, **options)
        return self.container

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        self.log = ()
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            print(f"{self.id()}: the log:", *self.log, sep="\n", file=sys.stderr)

    def tearDown(self):
        # Before the container is removed.
        self.log = ENGINE.logs()

    def connect(self):
        client = self.container.connect()
        self.addCleanup(client.close)
        return client

    def write(self, name, text):
        path = self.files / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return path

    def wait_for_log(self, pattern):
        return until(f"a line of the log with {pattern}", lambda: re.search(pattern, self.container.logs()[1]))

    # --- As it is started

    def test_arguments_are_flags(self):
        for flags, text in ((("--version",), f"tubed {LAYOUT.version}\n"), (("--check-config",), ""),
                            (("-z", "1000", "--print-config"), "job_bytes = 1000  # -z")):
            code, output, errors = ENGINE.run(*flags)
            self.assertEqual(code, 0, errors)
            self.assertIn(text, output)
        code, _, errors = ENGINE.run("--no-such-flag")
        self.assertEqual(code, 64, errors)

    def test_rights(self):
        """It has the user of the image, no capabilities, and can write to its volume alone."""
        container = self.start()
        status = dict(re.findall(r"^(\w+):\t(.*)$", container.proc("status"), re.M))
        for kind in ("Uid", "Gid"):
            outside = int(status[kind].split()[0])
            maps = [tuple(map(int, line.split())) for line in container.proc(f"{kind.lower()}_map").splitlines()]
            inside = [first + outside - host for first, host, count in maps if 0 <= outside - host < count]
            self.assertEqual((inside, len(set(status[kind].split()))), ([USER], 1), (status[kind], maps))
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual((name, int(status[name], 16)), (name, 0))
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.assertTrue(status["NSpid"].endswith("\t1"), status["NSpid"])
        mounts = dict(line.split()[4:6] for line in container.proc("mountinfo").splitlines())
        self.assertIn("ro", mounts["/"].split(","))
        writable = {place for place, options in mounts.items() if "rw" in options.split(",")
                    and not re.match("/(dev|proc|run|sys|tmp|var/tmp)(/|$)", place)}
        self.assertEqual(writable, {DATA})
        for flags in (("-b", "/journal"), ("-b", "/etc/tubed"), ("--pid-file", "/tubed.pid")):
            code, _, errors = ENGINE.run(*flags)
            self.assertEqual(code, 73, errors)

    def test_the_log_is_on_standard_error(self):
        self.start()
        self.wait_for_log(r"recovered journal=/var/lib/tubed ")
        output, errors = self.container.logs()
        self.assertEqual(output, "")
        self.assertIn(f" listening address=0.0.0.0:{PORT}\n", errors)
        self.assertIn(f" listening for HTTP address=0.0.0.0:{HTTP_PORT}\n", errors)

    def test_no_shell(self):
        self.start()
        for name in ("sh", "/bin/sh", "ls"):
            self.assertNotEqual(self.container.execute(name)[0], 0)
        self.assertEqual(self.container.execute("tubectl", "--version")[1], f"tubectl {LAYOUT.version}\n")

    def test_http(self):
        self.start()
        self.assertEqual(self.container.fetch("/healthz"), (200, "ok\n"))
        self.assertEqual(self.container.fetch("/readyz"), (200, "ready\n"))
        status, text = self.container.fetch("/metrics")
        self.assertEqual(status, 200)
        self.assertIn("\ntubed_journal_commits_total ", text)

    # --- Settings

    def test_the_settings_of_the_page(self):
        path = self.write("tubed.toml", Page().marked("file: tubed.toml"))
        code, _, errors = ENGINE.run("--check-config", files=[(path, CONFIG)])
        self.assertEqual(code, 0, errors)
        self.start(files=[(path, CONFIG)])
        # The container has this file, and no other that replaces it.
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n[limits]\njob_bytes = 1000\n")
        self.container.kill("HUP")
        until("the new setting", lambda: self.connect().stats()["max-job-size"] == 1000)
        self.write("tubed.toml", "no such = setting")
        code, _, errors = ENGINE.run("--check-config", files=[(path, CONFIG)])
        self.assertEqual(code, 78, errors)

    def test_the_flags_of_kubernetes(self):
        arguments = json.loads(re.search(r"^ +args: (\[.*?\])$", Page().marked("file: tubed.yaml"), re.M | re.S)[1])
        self.assertGreater(len(arguments), 0)
        code, _, errors = ENGINE.run("--check-config", *arguments)
        self.assertEqual(code, 0, errors)

    # --- Stops

    def test_after_kill_9_the_job_is_there(self):
        self.start()
        self.assertEqual(self.container.checked("tubectl", "put", "-t", "mail", "to: ada"), "1\n")
        self.container.kill("KILL")
        self.assertNotEqual(self.container.wait(), 0)
        self.container.start_again()
        client = self.connect()
        self.assertEqual(client.ask("watch mail"), "WATCHING 2")
        self.assertEqual(client.reserve("reserve-with-timeout 0"), (1, b"to: ada"))

    def test_sigusr1_drains_and_sigterm_stops(self):
        self.start()
        client = self.connect()
        client.put()
        self.container.kill("USR1")
        until("the drain", lambda: client.stats()["draining"] == "true")
        client.send(b"put 0 0 60 1\r\nx\r\n")
        self.assertEqual(client.line(), "DRAINING")
        code, _, errors = self.container.execute("tubectl", "put", "x")
        self.assertIn("DRAINING", errors)
        self.assertNotEqual(code, 0)
        self.assertEqual(self.container.checked("tubectl", "health"), "healthy, draining\n")
        self.assertEqual(self.container.check_health(), 0)
        self.assertEqual(self.container.fetch("/readyz"), (503, "draining\n"))
        self.assertEqual(self.container.fetch("/healthz"), (200, "ok\n"))
        self.assertEqual(client.reserve("reserve-with-timeout 0"), (1, b"x"))
        self.container.kill("TERM")
        self.assertEqual(self.container.wait(), 0)
        self.check_orderly_stop(self.container)

    def check_orderly_stop(self, container):
        """The server ended by itself, without a timeout of its own and before SIGKILL of the engine."""
        errors = container.logs()[1]
        self.assertRegex(errors, r" info stopped\n")
        self.assertNotIn("stopped with connections open", errors)

    def test_drain_waits_for_a_reserved_job(self):
        self.start()
        client = self.connect()
        client.put()
        job, _ = client.reserve()
        drain = ("tubectl", "drain", "--wait", "--timeout")
        code, output, errors = self.container.execute(*drain, "0.2")
        self.assertNotEqual(code, 0, output)
        self.assertIn("1 reserved", errors)
        asked = itertools.count(1)

        def queries_of_others():
            return client.stats()["cmd-stats"] - next(asked)

        before = queries_of_others()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            waiting = executor.submit(self.container.execute, *drain, "60")
            # It asks for the statistics once to drain, and then while it waits.
            until("a second query of drain --wait", lambda: queries_of_others() >= before + 3)
            self.assertFalse(waiting.done())
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
            self.assertEqual(waiting.result(engines.SECONDS)[0], 0)

    # --- Health

    def test_a_full_journal_is_unhealthy(self):
        self.start(*SMALL_JOURNAL)
        self.assertEqual(self.container.check_health(), 0)
        client = self.connect()
        jobs, reply = [], ""
        while len(jobs) < 1000:
            client.send(b"put 0 0 60 1000\r\n%s\r\n" % (b"x" * 1000))
            reply = client.line()
            if not reply.startswith("INSERTED "):
                break
            jobs.append(reply.split()[1])
        self.assertGreater(len(jobs), 10)
        self.assertLess(len(jobs), 1000)
        self.assertNotEqual(self.container.check_health(), 0, reply)
        code, _, errors = self.container.execute("tubectl", "health")
        self.assertEqual((code, errors), (1, "tubectl: health: the journal has no space, so puts are refused\n"))
        self.assertEqual(self.container.fetch("/readyz")[0], 503)
        for job in jobs:
            self.assertEqual(client.ask(f"delete {job}"), "DELETED")
        until("a healthy server", lambda: self.container.check_health() == 0)
        client.put()

    def test_health_without_a_server(self):
        self.start()
        code, _, _ = self.container.execute("tubectl", "health", "-s", "127.0.0.1:11399")
        self.assertEqual(code, 69)

    # --- The page

    def test_top_in_a_terminal(self):
        self.start()
        self.container.checked("tubectl", "put", "-t", "mail", "x")
        process, terminal = pty.fork()
        if process == 0:
            os.execvp("env", ["env", *map(str, self.container.command("tubectl", "top", terminal=True))])
        shown = b""

        def shows(text):
            nonlocal shown
            if select.select([terminal], [], [], 0)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError as error:  # it has ended
                    raise AssertionError(f"tubectl top has ended: {shown}") from error
            return text in shown

        until("tubectl top", lambda: shows(b"mail"))
        # It knows the terminal and draws with more than ASCII.
        self.assertIn(b"\x1b[", shown)
        self.assertTrue(any(byte >= 0x80 for byte in shown), shown)
        os.write(terminal, b"q")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)
        os.close(terminal)

    def test_a_mounted_directory(self):
        if ENGINE.name != "podman":
            self.skipTest("the command of the page is for podman")
        ENGINE.paste("mkdir -p jobs && chown --reference=. jobs")
        words = [word.replace(f"tubed:{DATA}", f"./jobs:{DATA}") for word in ENGINE.run_line]
        checked(*words, cwd=ENGINE.home)
        self.assertEqual(ENGINE.podman("wait", "tubed"), "73\n")
        ENGINE.podman("rm", "tubed")
        line = re.search(r"`(podman unshare chown [^`]* )DIRECTORY`", Page().text)[1]
        ENGINE.paste(f"{line} jobs")
        checked(*words, cwd=ENGINE.home)
        self.container = engines.PodmanContainer(ENGINE)
        self.assertEqual(self.container.checked("tubectl", "put", "x"), "1\n")

    def test_the_commands_of_the_page(self):
        if ENGINE.name != "podman":
            self.skipTest("they are those of podman")
        page = Page()
        container = self.start()
        for line in page.lines("podman exec tubed tubectl") + page.lines("podman logs"):
            if " drain" not in line:
                ENGINE.paste(line)
        self.assertIn("mail", container.checked("tubectl", "tubes"))
        self.write("tubed.toml", page.marked("file: tubed.toml"))
        shutil.copy(self.files / "tubed.toml", ENGINE.home)
        line, = page.lines("podman run --rm")
        checked(*ENGINE.adapted(line), cwd=ENGINE.home)
        drain, wait, stop = page.lines("podman kill") + page.lines("podman exec tubed tubectl drain --wait") + \
            page.lines("podman stop")
        ENGINE.paste(drain)
        until("the drain", lambda: self.connect().stats()["draining"] == "true")
        ENGINE.paste(wait)
        ENGINE.paste(stop)
        self.assertEqual(container.inspect("{{.State.ExitCode}}"), "0")
        self.check_orderly_stop(container)


def main():
    global ENGINE
    ENGINE = engines.choose(LAYOUT, WORK, os.environ.get("TUBED_CONTAINER"))
    print(f"the image {LAYOUT.version} with {ENGINE.name}:", flush=True)
    unittest.main()


if __name__ == "__main__":
    main()
