"""Helpers that the payloads share: the service as systemd sees it, clients that connect all the
time, and a line of output for each test."""

import collections
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

from harness import SECONDS, Client, until

TCP = "127.0.0.1:11300"
LOCAL = "unix:/run/tubed/tubed.sock"
UNIT = "tubed.service"
SOCKETS = ("tubed.socket", "tubed-local.socket")
HTTP = "127.0.0.1:11380"
HTTP_SOCKET = "tubed-http.socket"
CONFIG = pathlib.Path("/etc/tubed/tubed.toml")
DROP_INS = pathlib.Path("/etc/tubed/tubed.d")
DOCS = pathlib.Path("/usr/share/doc/tubed/docs")
# Where docs/installing.md says that a release is published.
PUBLISHED = "https://packages.example.org/tubed"
DROP_IN = pathlib.Path("/run/systemd/system/tubed.service.d/test.conf")


def run(*command, code=0):
    """Runs a command to its end and returns its output and errors. `code` None accepts any exit
    code."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def commands_of_the_page(mark, release):
    """The commands after <!-- run: MARK --> in installing.md, for a root that has neither curl nor a
    network: the address of the page is the directory `release`."""
    page = pathlib.Path("installing.md").read_text(encoding="utf-8")
    lines = re.search(rf"<!-- run: {mark} -->\n```text\n(.*?)^```$", page, re.M | re.S)[1]
    equal(lines.count(PUBLISHED), 2)
    lines = re.sub(rf"curl -fsSo (\S+) {PUBLISHED}/(\S+)", rf"cp {release}/\2 \1", lines)
    return lines.replace(PUBLISHED, f"file://{release}")


def systemctl(*arguments, code=0):
    return run("systemctl", *arguments, code=code)


def show(name, unit=UNIT):
    return systemctl("show", "--property", name, "--value", unit).strip()


def state(unit=UNIT):
    return show("ActiveState", unit)


def journal(*arguments):
    run("journalctl", "--sync")
    return run("journalctl", "--output=cat", *arguments, code=None)


def reload():
    """Reloads the service, and waits until the server has, and has told systemd so: systemctl returns
    when the signal is sent."""
    def reloads():
        return journal("-u", UNIT).count("reloaded changed=")

    before = reloads()
    systemctl("reload", UNIT)
    until("the server to reload", lambda: reloads() > before)
    wait_for_state("active")


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r} instead of {expected!r}")


def true(condition, *what):
    if not condition:
        raise AssertionError(*what)


def ask(command, address=TCP):
    client = Client(address)
    try:
        return client.ask(command)
    finally:
        client.close()


def stats(address=TCP):
    client = Client(address)
    try:
        return client.stats()
    finally:
        client.close()


def clients_are_refused():
    for address in (TCP, LOCAL):
        try:
            Client(address).close()
        except (ConnectionRefusedError, FileNotFoundError):
            continue
        raise AssertionError(f"{address} is open")


def lines_of(page, heading):
    """The commands below a heading of the packaged pages."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text,
                        re.MULTILINE | re.DOTALL)
    true(section, f"{page} has no {heading}")
    return "".join(re.findall(r"^```sh\n(.*?)^```", section[2], re.MULTILINE | re.DOTALL))


def command_to(task):
    """The command in the row of the table under "Run the service" of installing.md."""
    text = (DOCS / "installing.md").read_text(encoding="utf-8")
    return re.search(rf"^\| {re.escape(task)} \| `([^`]+)`", text, re.MULTILINE)[1]


def paste(text):
    """Runs lines as if an operator pasted them; returns the output. Each line has to succeed."""
    return run("bash", "-euo", "pipefail", "-c", text)


def wait_for_state(expected, unit=UNIT):
    until(f"{unit} to be {expected}", lambda: state(unit) == expected)


def sockets_are_open():
    for unit in SOCKETS:
        equal(state(unit), "active")


def drop_in(text):
    """Sets properties of the unit temporarily; "" removes them."""
    if text:
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        DROP_IN.write_text(text, encoding="utf-8")
    else:
        DROP_IN.unlink()
    systemctl("daemon-reload")


class PutLoop:
    """Threads that make a new connection for each put, until they are stopped."""

    def __init__(self, addresses=(TCP, LOCAL)):
        self.counts = collections.Counter()
        self.worst = 0.0
        self.counting = threading.Lock()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(address,), daemon=True)
                        for address in addresses]
        for thread in self.threads:
            thread.start()

    def work(self, address):
        while not self.over.wait(0.001):
            begin = time.monotonic()
            try:
                outcome = self.once(address)
            except (ConnectionRefusedError, FileNotFoundError):
                outcome = "refused"
            except (ConnectionResetError, BrokenPipeError):
                outcome = "reset"
            except OSError as error:
                outcome = type(error).__name__
            with self.counting:
                self.counts[outcome] += 1
                self.worst = max(self.worst, time.monotonic() - begin)

    def once(self, address):
        client = Client(address)
        try:
            return client.try_put()
        finally:
            client.close()

    def more(self, count=50):
        """Waits for that many more answers."""
        goal = self.counts["ok"] + count
        until(f"{count} more answers", lambda: self.counts["ok"] >= goal)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(SECONDS)

    def stop(self, restarts):
        """Stops the threads, checks that no client was refused meanwhile, and returns a text that
        says so."""
        self.end()
        counts = dict(self.counts)
        text = f"{counts}, worst {self.worst * 1000:.0f} ms"
        # A connection that was accepted at the moment of the stop may end without an answer.
        ends = counts.pop("eof", 0)
        true(ends <= restarts * len(self.threads), text)
        equal(list(counts), ["ok"])
        return text


def delete_all():
    """Deletes every ready job of the tube default; returns their number."""
    client = Client(TCP)
    count = 0
    while True:
        client.send(b"reserve-with-timeout 0\r\n")
        line = client.line()
        if line == "TIMED_OUT":
            client.close()
            return count
        client.read(int(line.split()[2]) + 2)
        equal(client.ask(f"delete {line.split()[1]}"), "DELETED")
        count += 1


def bodies_of_ready_jobs(address=TCP):
    """Of the tube default. The jobs are ready again afterwards."""
    client = Client(address)
    found = set()
    while True:
        client.send(b"reserve-with-timeout 0\r\n")
        words = client.line().split()
        if words == ["TIMED_OUT"]:
            client.close()
            return found
        equal(words[0], "RESERVED")
        found.add(client.read(int(words[2]) + 2)[:-2])


def restart_under_load(count, action, address=(TCP, LOCAL)):
    """`action(i)` restarts the service each time; all acknowledged puts are present afterwards."""
    delete_all()
    loop = PutLoop(address)
    for i in range(count):
        loop.more()
        before = show("MainPID")
        action(i)
        true(show("MainPID") != before, "the service was not restarted")
    loop.more()
    text = loop.stop(count)
    kept = delete_all()
    true(kept >= loop.counts["ok"], f"the server has {kept} jobs", text)
    return text


def check_sandbox():
    """The limits and the sandbox of the unit, as the kernel reports them."""
    ask("list-tube-used")
    process = show("MainPID")
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal((name, int(fields[name], 16)), (name, 0))
    equal((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"))
    true("0" not in fields["Uid"].split(), fields["Uid"])
    for kind in ("mnt", "net", "user", "ipc"):
        true(os.readlink(f"/proc/{process}/ns/{kind}") != os.readlink(f"/proc/1/ns/{kind}"), kind)
    # The writable mounts are the service's own directories and file systems in memory, nothing
    # else. /run is excluded: systemd 252 does not change it in a container, and a check below tests
    # the permissions there.
    writable = set()
    mounts = pathlib.Path(f"/proc/{process}/mountinfo").read_text(encoding="utf-8")
    for line in mounts.splitlines():
        place, options = line.split()[4:6]
        if "rw" in options.split(",") and not re.match("/(dev|proc|run)(/|$)", place):
            writable.add(place)
    equal(writable, {"/tmp", "/var/tmp", "/var/lib/tubed"})
    places = ["/", "/boot", "/etc", "/etc/tubed", "/home", "/opt", "/root", "/run", "/srv", "/usr",
              "/usr/bin", "/var", "/var/lib", "/var/lib/tubed", "/run/tubed"]
    output = run("nsenter", "-t", process, "-m", "setpriv", "--reuid=tubed", "--regid=tubed",
               "--clear-groups", "sh", "-c", 'for i; do test -w "$i" && echo "$i"; done; true',
               "sh", *places)
    equal(output.split(), ["/var/lib/tubed", "/run/tubed"])
    table = pathlib.Path(f"/proc/{process}/net/tcp").read_text(encoding="utf-8")
    # only the table's heading: the process cannot open TCP sockets
    equal(len(table.splitlines()), 1)
    equal(re.findall(r"^  \w+:", pathlib.Path(f"/proc/{process}/net/dev").read_text(
        encoding="utf-8"), re.MULTILINE), [])


def fetch(path):
    """(status, body) of a page of the HTTP socket."""
    try:
        with urllib.request.urlopen(f"http://{HTTP}{path}", timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def enable_http():
    # systemd opens a socket only while its service is stopped.
    systemctl("enable", HTTP_SOCKET)
    systemctl("restart", UNIT)


def http_is_enabled_and_answers():
    equal(systemctl("is-enabled", HTTP_SOCKET).strip(), "enabled")
    equal(state(HTTP_SOCKET), "active")
    equal(fetch("/readyz"), (200, "ready\n"))


def http_is_closed():
    equal(state(HTTP_SOCKET), "inactive")
    equal(run("ss", "-Hltn", "sport = :11380"), "")


def check_http():
    """The third socket: disabled as installed, then enabled, then disabled again."""
    equal(systemctl("is-enabled", HTTP_SOCKET, code=None).strip(), "disabled")
    equal(state(HTTP_SOCKET), "inactive")
    try:
        fetch("/healthz")
        raise AssertionError("a server answers before the socket is enabled")
    except urllib.error.URLError:
        pass
    enable_http()
    sockets_are_open()
    equal(fetch("/healthz"), (200, "ok\n"))
    systemctl("stop", UNIT)
    # A request starts the server like any connection.
    equal(fetch("/healthz"), (200, "ok\n"))
    equal(fetch("/readyz"), (200, "ready\n"))
    equal(state(), "active")
    status, page = fetch("/metrics")
    equal(status, 200)
    true("\ntubed_journal_commits_total " in page and 'tube="default"' in page, page)
    resident = re.findall(r"^tubed_resident_memory_bytes (\d+)$", page, re.MULTILINE)
    true(len(resident) == 1 and int(resident[0]) > 0, resident)
    true(f"listening for HTTP address={HTTP} inherited=http" in journal("-u", UNIT), "not logged")
    ask("list-tube-used")
    check_sandbox()
    systemctl("kill", "--kill-whom=main", "-s", "SIGUSR1", UNIT)
    until("the drain", lambda: fetch("/readyz") == (503, "draining\n"))
    systemctl("restart", UNIT)
    equal(fetch("/readyz"), (200, "ready\n"))
    systemctl("disable", "--now", HTTP_SOCKET)
    systemctl("restart", UNIT)
    ask("list-tube-used")


def append(text):
    CONFIG.write_text(CONFIG.read_text(encoding="utf-8") + text, encoding="utf-8")


def set_in(table, line):
    """Adds a line at the beginning of a table of the settings, and the table if it is missing."""
    text, heading = CONFIG.read_text(encoding="utf-8"), f"\n[{table}]\n"
    if heading not in text:
        text += heading
    CONFIG.write_text(text.replace(heading, f"{heading}{line}\n", 1), encoding="utf-8")


def journal_starts():
    return len(re.findall(r"^Starting tubed", journal("-u", UNIT), re.MULTILINE))


def expect_failed_service(code, reason):
    """Expects one start, refused clients, and no further start while clients connect."""
    wait_for_state("failed")
    for unit in SOCKETS:
        until(unit, lambda unit=unit: state(unit) in ("inactive", "failed"))
    equal(show("ExecMainStatus"), str(code))
    output = journal("-u", UNIT, "--priority=err", "-n", "5")
    true(reason in output, output)
    true(UNIT in systemctl("--failed", "--no-legend"), "not among the failed units")
    starts = journal_starts()
    loop = PutLoop()
    until("200 refusals", lambda: loop.counts["refused"] >= 200)
    loop.end()
    equal(list(loop.counts), ["refused"])
    equal(journal_starts(), starts)
    clients_are_refused()


def logs():
    return systemctl("status", "--lines=0", UNIT, *SOCKETS, code=None) + journal(
        "--lines=60", "--output=short-monotonic", "-u", "tubed*")


class Trials:
    """Runs the given functions, prints a line for each, and stops at the first failure with explain()."""

    def __init__(self, explain=logs):
        self.explain = explain

    def run(self, *trials):
        for trial in trials:
            name = trial.__name__.replace("_", " ")
            begin = time.monotonic()
            try:
                detail = trial()
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc(file=sys.stdout)
                print(f"FAILED: {name}")
                print(self.explain())
                sys.exit(1)
            print(f"  {name}: {time.monotonic() - begin:.1f} s" + (f"; {detail}" if detail else ""))
