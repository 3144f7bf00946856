#!/usr/bin/env python3
"""The repository for apt on a machine with systemd: the commands of docs/installing.md and of
README.md, an upgrade under load, the downgrade, and the removal. The tests of the .deb cover the service itself."""

import os
import pathlib
import re
import subprocess

from harness import Client
from machine import (SOCKETS, TCP, UNIT, Trials, ask, commands_of_the_page, equal, restart_under_load, run, show,
                     sockets_are_open, state, stats, true)

PAYLOAD = pathlib.Path.cwd()
SUITE = re.search("VERSION_CODENAME=(.*)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))[1]
SOURCES = pathlib.Path("/etc/apt/sources.list.d/tubed.list")
OLD = PAYLOAD / "release"
NEW = PAYLOAD / "newer"


def apt_get(*arguments, code=0):
    return run("apt-get", "-q", "--yes", *arguments, code=code)


def version():
    return run("dpkg-query", "-W", "-f", "${Version}", "tubed")


def the_commands_of_the_page():
    lines = commands_of_the_page("repository", OLD).replace("bookworm", SUITE)
    pathlib.Path("/etc/apt/sources.list").unlink(missing_ok=True)
    run("bash", "-euo", "pipefail", "-c", lines.replace("apt-get install", "apt-get install --yes"))
    equal(SOURCES.read_text(encoding="utf-8").split()[2], f"file://{OLD}/apt")
    true(re.fullmatch(r"\d+\.\d+\.\d+-1~deb\d\d", version()), version())
    equal(state(), "active")
    sockets_are_open()
    equal(ask("list-tube-used"), "USING default")
    client = Client(TCP)
    client.put(b"stays")
    client.close()


def the_service_commands_of_the_readme():
    readme = (PAYLOAD / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(systemctl status.*?)^```$", readme, re.M | re.S)[1]
    equal([line.split()[1] for line in block.splitlines()], ["status", "reload"])
    before = show("MainPID")
    for line in block.splitlines():
        run("bash", "-c", line)
    equal((state(), show("MainPID")), ("active", before))


def use(repository):
    SOURCES.write_text(SOURCES.read_text(encoding="utf-8").replace(str(OLD), str(repository)).replace(
        str(NEW), str(repository)), encoding="utf-8")
    return apt_get("update")


def an_upgrade_under_load():
    before = version()
    use(NEW)
    summary = restart_under_load(1, lambda _: apt_get("upgrade"))
    true(version() == f"{before}+upgrade1", version())
    return summary


def the_downgrade_of_the_page():
    use(OLD)
    old = version().removesuffix("+upgrade1")
    apt_get("install", "--allow-downgrades", f"tubed={old}")
    equal(version(), old)
    equal(state(), "active")
    equal(stats()["version"].strip('"').split("-")[0], old.split("-")[0])


def a_repository_of_another_key_is_refused():
    key = pathlib.Path("/etc/apt/keyrings/tubed.asc")
    trusted = key.read_bytes()
    key.write_bytes((PAYLOAD / "stranger.asc").read_bytes())
    done = subprocess.run(["apt-get", "update", "-o", "APT::Update::Error-Mode=any"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # As gpgv says it, and as sqv of Debian 13.
    true(done.returncode != 0 and re.search("NO_PUBKEY|Missing key", done.stdout), done.stdout)
    key.write_bytes(trusted)
    apt_get("update")


def purge():
    apt_get("purge", "tubed")
    for unit in (*SOCKETS, UNIT):
        true(state(unit) in ("inactive", "failed"), unit)
    equal(run("pgrep", "-x", "tubed", code=1), "")
    true(not os.path.exists("/etc/tubed"), "the settings are there")


Trials().run(the_commands_of_the_page, the_service_commands_of_the_readme, an_upgrade_under_load,
             the_downgrade_of_the_page, a_repository_of_another_key_is_refused, purge)
