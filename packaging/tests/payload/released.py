#!/usr/bin/env python3
"""An upgrade from the packages of the last release, and the way back by docs/downgrade.md, under load: with edited
settings and jobs in each state.

released/ has the package of the release. Producers and a worker run and reconnect all the time. Every job whose put
was acknowledged is there afterwards, unless its delete was sent.
"""

import glob
import hashlib
import pathlib
import re

import machine
from harness import Client, as_dict, until
from machine import (CONFIG, LOCAL, SOCKETS, TCP, UNIT, Trials, append, ask, bodies_of_ready_jobs, command_to, equal, journal,
                     lines_of, paste, run, set_in, show, sockets_are_open, state, stats, systemctl, true)
from moving import RetryingClients

PAYLOAD = pathlib.Path.cwd()
machine.DOCS = PAYLOAD / "docs"
PAGE = "downgrade.md"
JOURNAL = pathlib.Path("/var/lib/tubed")
NEWER_JOURNAL = pathlib.Path("/var/lib/tubed.newer")
MINE = "# mine\n"
LOAD = []  # the clients


class Debs:
    """By the commands of the pages."""

    def __init__(self):
        [self.released] = glob.glob("released/tubed_*.deb")
        [self.new] = glob.glob("tubed_*.deb")
        pathlib.Path("/etc/apt/apt.conf.d/90-yes").write_text('APT::Get::Assume-Yes "true";\n', encoding="utf-8")

    def install(self):
        run("dpkg", "-i", self.released)

    def upgrade(self):
        return paste(re.sub(r"\./tubed_\S+\.deb", f"./{self.new}", command_to("upgrade it")))

    def downgrade(self):
        text = (machine.DOCS / PAGE).read_text(encoding="utf-8")
        [command] = re.findall(r"^apt-get install --allow-downgrades .*$", text, re.M)
        return paste(command.replace("./tubed_OLD_amd64.deb", f"./{self.released}"))


class Rpms:
    """By rpm itself: a dnf without repositories does not install them."""

    def __init__(self):
        [self.released] = glob.glob("released/tubed-*.rpm")
        [self.new] = glob.glob("tubed-*.rpm")

    @staticmethod
    def rpm(*arguments):
        return run("rpm", "--force-debian", *arguments)

    def install(self):
        self.rpm("-i", *glob.glob("stub-base-*.rpm"))
        self.rpm("-i", self.released)
        systemctl("start", *SOCKETS)

    def upgrade(self):
        return self.rpm("-U", self.new)

    def downgrade(self):
        return self.rpm("-U", "--oldpackage", self.released)


PACKAGES = Debs() if glob.glob("*.deb") else Rpms()


def clients():
    return LOAD[0]


def more():
    clients().more(200)


def is_released():
    """Whether a server of the release answers: it has no command `capabilities`."""
    return ask("capabilities") == "UNKNOWN_COMMAND"


def formats():
    """The formats of the segments, by the command of the page."""
    return paste(lines_of(PAGE, "Versions of the journal")).split()


def hashes():
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in JOURNAL.glob("journal.*")}


def expect_jobs_and_settings():
    """That each state has its job, and that the server has the edited settings."""
    numbers = stats()
    equal([numbers[f"current-jobs-{each}"] for each in ("delayed", "buried")], [1, 1])
    equal(numbers["max-job-size"], 70000)
    client = Client(TCP)
    client.send(b"stats-tube mail\r\n")
    tube = as_dict(client.body()[1])
    equal((tube["current-jobs-buried"], tube["pause-time-left"] > 0), (1, True))
    client.close()
    true(MINE in CONFIG.read_text(encoding="utf-8"), "the settings were replaced")
    equal(state(), "active")
    sockets_are_open()


def changed_under_load(action, released):
    """`action` replaces the package; no client is refused, and the other version answers. Returns the action's output."""
    more()
    refused, process = clients().refused, show("MainPID")
    output = action()
    until("the restart", lambda: show("MainPID") not in (process, "0"))
    equal(is_released(), released)
    more()
    equal(clients().refused, refused)
    expect_jobs_and_settings()
    return output


# --- The same format

def the_release_with_edited_settings():
    PACKAGES.install()
    set_in("limits", "job_bytes = 70000")
    append(MINE)
    systemctl("restart", UNIT)
    equal(is_released(), True)
    LOAD.append(RetryingClients(TCP))
    client = Client(TCP)
    client.put(b"delayed", delay=86400)
    client.ask("use mail")
    client.put(b"buried")
    client.ask("watch mail")
    client.ask("ignore default")
    client.send(b"reserve\r\n")
    words, _ = client.body()
    equal(client.ask(f"bury {words[1]} 0"), "BURIED")
    client.put(b"waits for the end of the pause")
    equal(client.ask("pause-tube mail 86400"), "PAUSED")
    client.close()
    expect_jobs_and_settings()
    more()


def the_workaround_of_an_advisory():
    """TUBED-2026-1 in SECURITY.md."""
    settings = CONFIG.read_text(encoding="utf-8")
    listener = '[[listen]]\naddress = "127.0.0.1:11300"\n'
    true(listener in settings, settings)
    CONFIG.write_text(settings.replace(listener, ""), encoding="utf-8")
    paste("systemctl disable --now tubed.socket\nsystemctl restart tubed")
    equal(ask("list-tube-used", LOCAL), "USING default")
    clients().meet_a_refusal()
    CONFIG.write_text(settings, encoding="utf-8")
    paste("systemctl stop tubed\nsystemctl enable --now tubed.socket\nsystemctl start tubed")
    more()


def a_crash_of_the_release():
    systemctl("kill", "--signal", "KILL", UNIT)
    more()
    expect_jobs_and_settings()


def an_upgrade():
    output = changed_under_load(PACKAGES.upgrade, released=False)
    if isinstance(PACKAGES, Debs):
        true("was edited" in output, output)
    equal(set(formats()), {"1"})


def the_way_back():
    changed_under_load(PACKAGES.downgrade, released=True)
    equal(set(formats()), {"1"})


# --- What the release does not know

def a_setting_that_the_release_refuses():
    changed_under_load(PACKAGES.upgrade, released=False)
    edited = CONFIG.read_text(encoding="utf-8")
    set_in("limits", "handshakes = 100")
    paste("systemctl reload tubed")
    PACKAGES.downgrade()
    until("the refusal", lambda: "handshakes" in journal("-u", UNIT))
    equal(show("ExecMainStatus"), "78")
    CONFIG.write_text(edited, encoding="utf-8")
    paste("systemctl restart tubed")
    equal(is_released(), True)
    more()
    expect_jobs_and_settings()


def a_journal_that_the_release_refuses():
    changed_under_load(PACKAGES.upgrade, released=False)
    client = Client(TCP)
    client.ask("use mail")
    client.send(b"put 0 0 60 6 idp:once\r\nunique\r\n")
    true(client.line().startswith("INSERTED"), "not put")
    client.close()
    true("2" in formats(), "no segment has format 2")
    systemctl("stop", "tubed*.socket", UNIT)
    before = hashes()
    PACKAGES.downgrade()
    systemctl("start", *SOCKETS, UNIT, code=None)
    until("the refusal", lambda: "version 2" in journal("-u", UNIT))
    equal(show("ExecMainStatus"), "73")
    [name] = set(re.findall(r"journal\.\d+", journal("-u", UNIT, "-g", "version 2", "-n", "1")))
    true(name in before, f"{name} is no segment")
    equal(hashes(), before)
    systemctl("stop", "tubed*.socket", UNIT)
    PACKAGES.upgrade()
    systemctl("start", *SOCKETS)
    more()
    expect_jobs_and_settings()


# --- Through a file

def every_job_is_there():
    return clients().expect_all()


def the_way_back_through_a_file():
    bodies = {b"before the downgrade %d" % number for number in range(100)}
    client = Client(TCP)
    for body in sorted(bodies):
        client.put(body)
    client.close()
    before, after = re.fullmatch(r"(.*)(systemctl start .*^tubectl import [^\n]*\n).*", lines_of(PAGE, "Through a file"),
                                 re.M | re.S).groups()
    paste(before)
    PACKAGES.downgrade()
    paste(after)
    equal(is_released(), True)
    equal(bodies_of_ready_jobs(), bodies)
    numbers = stats()
    equal([numbers[f"current-jobs-{each}"] for each in ("delayed", "buried")], [1, 1])
    true(NEWER_JOURNAL.exists(), "the newer journal is not kept")


def no_unit_has_failed():
    equal(systemctl("--failed", "--no-legend"), "")


Trials().run(the_release_with_edited_settings, the_workaround_of_an_advisory, a_crash_of_the_release, an_upgrade, the_way_back,
             a_setting_that_the_release_refuses, a_journal_that_the_release_refuses, every_job_is_there,
             the_way_back_through_a_file, no_unit_has_failed)
