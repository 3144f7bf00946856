#!/usr/bin/env python3
"""Pastes the commands of pages into a shell, as an operator does: the blocks of tools/pasted.py in their order, each
line as printed. A line that fails fails the test.

A page has one shell, on a machine of its own. Where sections are alternatives, a new machine begins at a heading:
see MACHINES. What a page takes for granted, such as the installed package or a beanstalkd with jobs, is the scene of
the machine. A file that the page tells to write is written. A command at the end of a block that serves is left
running, and stopped when the page starts the next server, or says "stop the server".

  pages.py --list       the machines: NAME, and "network" if it downloads packages
  pages.py MACHINE      runs on such a machine
"""

import collections
import glob
import os
import pathlib
import re
import socket
import subprocess
import sys

import pasted
from harness import Client, until
from machine import SOCKETS, TCP, UNIT, run, systemctl

SECONDS = 3600  # a build on a slow machine
WORK = pathlib.Path.home() / "operator"
BEANSTALKD = ("beanstalkd.socket", "beanstalkd.service")
# Matches the last command of a block if it runs until it is stopped.
SERVES = re.compile(r"(?:tools/run|tubed|beanstalkd)"
                    r"(?: (?!.*--(?:backup|check|cluster-|drain|dump|print-config|salvage|version)).*)?")


# --- Scenes: what the reader of a page has

def package():
    [found] = glob.glob("/payload/tubed_*.deb")
    return pathlib.Path(found)


def service():
    """The packaged service with a few jobs."""
    run("dpkg", "-i", str(package()))
    for directory in (WORK, WORK.parent):
        os.symlink(package(), directory / package().name)
    put_jobs(Client(TCP))


def put_jobs(client):
    client.ask("use mail")
    for number in range(10):
        client.put(b"to: customer %d" % number, delay=3600 if number == 9 else 0)
    client.ask("watch mail")
    client.ask(f"bury {client.reserve()[0]} 0")
    client.close()


def service_with_its_api():
    """Job 42 is that of the page."""
    service()
    client = Client(TCP)
    for number in range(11, 43):
        client.put(b"to: customer %d" % number)
    client.close()
    pathlib.Path("/etc/tubed/tubed.d/console.toml").write_text('[http]\napi = "full"\n', encoding="utf-8")
    systemctl("enable", "tubed-http.socket")
    systemctl("restart", UNIT)


def service_with_a_policy_and_a_beanstalkd():
    service()
    run("tubectl", "policy", "mail", "max-attempts", "5")
    subprocess.Popen(["beanstalkd", "-l", "127.0.0.1", "-p", "11301"])
    until("beanstalkd", lambda: listens(11301))


def service_with_events_in_its_log():
    """A role, with a command that is logged and one that is refused."""
    service()
    pathlib.Path("/etc/tubed/tokens").write_text(run("tubectl", "token", "new", "web-1", "--token-file", "t"))
    run("chown", "tubed:", "/etc/tubed/tokens")
    run("chmod", "0600", "/etc/tubed/tokens")
    pathlib.Path("/etc/tubed/tubed.d/roles.toml").write_text(
        '[auth]\ntokens = "/etc/tubed/tokens"\n\n[[role]]\nname = "web"\nverbs = ["admin"]\ntokens = ["web-1"]\n')
    settings = pathlib.Path("/etc/tubed/tubed.toml")
    address = f'address = "{TCP}"\n'
    settings.write_text(settings.read_text(encoding="utf-8").replace(address, address + 'auth = "token"\n'))
    systemctl("reload", UNIT)
    client = Client(TCP)
    until("the role", lambda: authenticated(client))
    client.ask("pause-tube mail 0")
    client.ask("put 0 0 60 1\r\nx")
    client.close()


def authenticated(client):
    return client.ask(f"auth {pathlib.Path('t').read_text(encoding='utf-8').strip()}") == "AUTHENTICATED"


def debians_beanstalkd():
    """Debian's beanstalkd with jobs in its binlogs."""
    with open("/etc/default/beanstalkd", "a", encoding="utf-8") as file:
        file.write('BEANSTALKD_EXTRA="-b /var/lib/beanstalkd"\n')
    systemctl("unmask", *BEANSTALKD)
    systemctl("enable", "--now", *BEANSTALKD)
    put_jobs(Client(TCP))
    os.symlink(package(), WORK.parent / package().name)


def program_and_debians_beanstalkd():
    run("dpkg", "-i", str(package()))
    systemctl("disable", "--now", *SOCKETS, UNIT)
    debians_beanstalkd()


def two_servers():
    program_and_debians_beanstalkd()
    subprocess.Popen(["tubed", "-l", "127.0.0.1", "-p", "11301"])
    until("tubed", lambda: listens(11301))


def clone():
    """The sources in the current directory."""
    os.rmdir(WORK)
    os.rename("/payload/clone", WORK)
    os.chdir(WORK)
    run("apt-get", "update")
    run("apt-get", "install", "netcat-openbsd")


Machine = collections.namedtuple("Machine", "name network scene parts")
# Parts of pages: (page, the heading at which it begins, that at which it ends).
MACHINES = [Machine(*row) for row in (
    ("clone", True, clone, [("docs/console.md", None, "Enable it in the service"),
                            ("README.md", None, "Run it as a service"), ("README.md", "Talk to it", None),
                            ("docs/installing.md", "From the sources", "Elsewhere")]),
    ("installing-elsewhere", True, clone, [("docs/installing.md", "Elsewhere", "Drain a host")]),
    ("draining", False, service, [("docs/installing.md", "Drain a host", "Deploy over two hosts")]),
    ("deploying", False, service, [("docs/installing.md", "Deploy over two hosts", "Other addresses")]),
    ("installing", False, service, [("README.md", "Run it as a service", "Talk to it"),
                                    ("docs/installing.md", "Other addresses", "Coming from beanstalkd's package")]),
    ("installing-for-beanstalkd", False, debians_beanstalkd,
     [("docs/installing.md", "Coming from beanstalkd's package", None)]),
    ("migrating", False, program_and_debians_beanstalkd,
     [("docs/migrating-from-beanstalkd.md", None, "Moving without a stop")]),
    ("migrating-without-a-stop", False, two_servers,
     [("docs/migrating-from-beanstalkd.md", "Moving without a stop", None),
      ("docs/migrating-from-forks.md", None, None)]),
    ("downgrade", False, service_with_a_policy_and_a_beanstalkd, [("docs/downgrade.md", None, None)]),
    ("security", False, service_with_events_in_its_log, [("docs/security.md", None, None)]),
    ("console", False, service, [("docs/console.md", "Enable it in the service", None)]),
    *((pathlib.Path(page).stem, False, service, [(page, None, None)]) for page in (
        "docs/tls.md", "docs/operating-the-journal.md", "docs/second-instance.md", "docs/metrics.md")),
    ("troubleshooting", False, service_with_its_api, [("docs/troubleshooting.md", None, None)]),
    ("concepts", False, service, [(f"docs/{page}.md", None, None) for page in ("concepts", "workers", "sizing")]),
)]


def prepare():
    """What every machine has: an answer to the questions of apt-get, and the addresses and the name of the examples."""
    pathlib.Path("/etc/apt/apt.conf.d/90-yes").write_text('APT::Get::Assume-Yes "true";\n', encoding="utf-8")
    run("ip", "link", "set", "lo", "up")
    for address in ("10.0.0.1", "10.0.0.5"):
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    with open("/etc/hosts", "a", encoding="utf-8") as hosts:
        hosts.write("127.0.0.1 queue.example.org\n")
    # The kernel of a container may not have AppArmor; packaging/tests/units_test parses the profile.
    parser = pathlib.Path("/usr/local/sbin/apparmor_parser")
    parser.write_text('#!/bin/sh\n[ "$1" = -r ] && [ -e "$2" ]\n', encoding="utf-8")
    parser.chmod(0o755)
    WORK.mkdir()
    os.chdir(WORK)


# --- The shell

def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Failure(Exception):
    pass


class Shell:
    """A shell that is given a block at a time."""

    LOOP = 'while read -r block <&3; do source "$block" </dev/null; echo >&4; done'

    def __init__(self):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        self.output = open("/payload.progress.shell", "w+b")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f"exec 3<&{orders} 4>&{answers}; {self.LOOP}"],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, pass_fds=(orders, answers))
        os.close(orders)
        os.close(answers)
        self.server = None
        self.count = 0

    def paste(self, text):
        """Runs the text, and returns its output."""
        self.count += 1
        file = pathlib.Path(f"/tmp/pages.{self.count}")
        file.write_text(text, encoding="utf-8")
        begin = self.output.seek(0, os.SEEK_END)
        os.write(self.orders, f"{file}\n".encode())
        answered = os.read(self.answers, 1)
        self.output.seek(begin)
        output = self.output.read().decode(errors="replace")
        if not answered:
            raise Failure(f"exit code {self.process.wait()}\n{output}")
        return output

    def run_block(self, text):
        *first, last = re.sub(r"\\\n", "", text.rstrip("\n")).split("\n")
        last = re.sub(r" +#.*", "", last)
        if not SERVES.fullmatch(last):
            return self.paste(text)
        self.stop_server()
        last_in_background = f"{last} >/payload.progress.server 2>&1 &"
        self.server = int(self.paste("\n".join([*first, last_in_background, "echo $!"])).split()[-1])
        port = int((re.findall(r"-l \S+:(\d+)", last) or ["11300"])[0])
        until(last, lambda: listens(port) or not self.is_served(), SECONDS)
        if not self.is_served():
            raise Failure(pathlib.Path("/payload.progress.server").read_text(encoding="utf-8")[-5000:])
        return ""

    def is_served(self):
        """Whether the server runs. A process that has ended is a zombie until the shell waits for it."""
        status = pathlib.Path(f"/proc/{self.server}/stat").read_text(encoding="utf-8")
        return status.rsplit(") ", 1)[1][0] != "Z"

    def stop_server(self):
        if self.server:
            self.paste(f"kill {self.server}; wait {self.server} || true")
            self.server = None

    def run_console(self, text):
        """Runs each command with the lines that are typed into it, and compares its output, except the numbers."""
        for command, rest in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            typed = "".join(f"{line[2:]}\n" for line in rest.splitlines() if line.startswith("> "))
            expected = [line for line in rest.splitlines() if not line.startswith("> ")]
            if typed:
                command = f"{command} <<'END OF WHAT IS TYPED'\n{typed}END OF WHAT IS TYPED\n"
            output = self.paste(command).splitlines()
            if shape(output) != shape(expected):
                raise Failure("\n".join([f"{command} prints", *output, "and on the page", *expected]))


def shape(lines):
    return [re.sub(r"[\d.]+", "N", re.sub(r"\s+", " ", line)).strip() for line in lines]


# --- The pages

def part_of(page, begin, end):
    """The blocks of a page from the heading `begin` to the heading `end`, each of a section that has blocks."""
    blocks = list(pasted.blocks_of(pathlib.Path("/payload/tree", page).read_text(encoding="utf-8")))

    def first(heading):
        return next(i for i, block in enumerate(blocks) if heading in block.headings)

    return blocks[first(begin) if begin else 0:first(end) if end else len(blocks)]


def write(name, block):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    if block.is_script():
        path.chmod(0o755)
    if name.startswith("/etc/systemd/"):
        systemctl("daemon-reload")


def run_machine(machine):
    prepare()
    machine.scene()
    shell = Shell()
    done = 0
    for page, begin, end in machine.parts:
        for block in part_of(page, begin, end):
            name = block.names_file()
            try:
                if name and (block.is_script() or block.language not in pasted.SHELL):
                    write(name, block)
                    continue
                if re.search("[Ss]top the server", block.paragraph):
                    shell.stop_server()
                if block.language == "sh":
                    shell.run_block(block.text)
                elif block.language == "console":
                    shell.run_console(block.text)
                else:
                    continue
            except Failure as failure:
                print(f"FAILED: {page}:{block.line}\n{block.text}{failure}")
                print(run("journalctl", "-n", "30", "--no-pager", code=None))
                return 1
            done += 1
    shell.stop_server()
    if machine.name == "clone" and "cluster: libraft" not in run("tubed", "--version"):
        print("FAILED: the program is built without cluster mode")
        return 1
    print(f"  {machine.name}: {done} blocks of {', '.join(page for page, _, _ in machine.parts)}")
    return 0


def main():
    if sys.argv[1:] == ["--list"]:
        for machine in MACHINES:
            print(machine.name, "network" if machine.network else "")
        return 0
    name = pathlib.Path("/payload/machine").read_text(encoding="utf-8").strip()
    return run_machine(next(machine for machine in MACHINES if machine.name == name))


if __name__ == "__main__":
    sys.exit(main())
