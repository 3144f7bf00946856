#!/usr/bin/env python3
"""The repository for dnf on a machine with systemd: the commands of docs/installing.md, an upgrade under
load, the downgrade, other keys, and the removal. The tests of the .rpm cover the service itself."""

import glob
import pathlib
import re
import subprocess

from harness import Client, until
from machine import (SOCKETS, TCP, UNIT, Trials, ask, commands_of_the_page, equal, restart_under_load, run, show,
                     sockets_are_open, state, stats, systemctl, true)

PAYLOAD = pathlib.Path.cwd()
SOURCES = pathlib.Path("/etc/yum.repos.d/tubed.repo")
OLD = PAYLOAD / "release"
# It has both packages: dnf downgrades to one that the repository still has.
NEW = PAYLOAD / "newer"
STRANGE = PAYLOAD / "stranger"
STUB = glob.glob("stub-base-*.rpm")


def dnf(*arguments, code=0):
    return run("dnf", "--assumeyes", "--refresh", *arguments, code=code)


def package(field):
    return run("rpm", "--force-debian", "-q", "--qf", f"%{{{field}}}", "tubed")


def the_commands_of_the_page():
    lines = commands_of_the_page("yum", OLD)
    # Fedora has these directories, this database, and what the stub provides.
    for directory in ("/etc/pki/rpm-gpg", "/etc/yum.repos.d"):
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    pathlib.Path("/etc/rpm").mkdir(exist_ok=True)
    pathlib.Path("/etc/rpm/macros.database").write_text("%_dbpath /var/lib/rpm\n", encoding="utf-8")
    run("rpm", "--force-debian", "-i", *STUB)
    run("bash", "-euo", "pipefail", "-c", lines.replace("dnf install", "dnf --assumeyes install"))
    equal(package("release"), "1")
    # Fedora starts nothing by itself.
    systemctl("start", *SOCKETS)
    sockets_are_open()
    equal(ask("list-tube-used"), "USING default")
    equal(state(), "active")
    equal(stats()["version"].strip('"'), package("version"))
    client = Client(TCP)
    client.put(b"stays")
    client.close()


def use(repository):
    SOURCES.write_text(re.sub("file://.*/yum/", f"file://{repository}/yum/", SOURCES.read_text(encoding="utf-8")),
                       encoding="utf-8")


def changed_under_load(command):
    def change(_):
        before = show("MainPID")
        dnf(command, "tubed")
        until("the restart", lambda: show("MainPID") not in (before, "0"))

    return restart_under_load(1, change)


def an_upgrade_under_load():
    use(NEW)
    summary = changed_under_load("upgrade")
    equal(package("release"), "2")
    return summary


def the_downgrade_under_load():
    summary = changed_under_load("downgrade")
    equal(package("release"), "1")
    sockets_are_open()
    return summary


def a_repository_of_another_key_is_refused():
    use(STRANGE)
    trusted = SOURCES.read_text(encoding="utf-8")
    # With and without the signature of the metadata.
    for text, reason in ((trusted, "Bad GPG signature"),
                         (trusted.replace("repo_gpgcheck=1", "repo_gpgcheck=0"), "they are not correct for this package")):
        SOURCES.write_text(text, encoding="utf-8")
        done = subprocess.run(["dnf", "--assumeyes", "--refresh", "upgrade", "tubed"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        true(re.search(reason, done.stdout), done.stdout)
        equal(package("release"), "1")
    SOURCES.write_text(trusted, encoding="utf-8")
    use(NEW)
    dnf("upgrade", "tubed")
    equal(package("release"), "2")


def removal():
    dnf("remove", "tubed")
    for unit in (*SOCKETS, UNIT):
        equal((unit, state(unit)), (unit, "inactive"))
    equal(run("pgrep", "-x", "tubed", code=1), "")
    true(list(pathlib.Path("/var/lib/tubed").iterdir()), "the removal of the package removed the journal")


Trials().run(the_commands_of_the_page, an_upgrade_under_load, the_downgrade_under_load,
             a_repository_of_another_key_is_refused, removal)
