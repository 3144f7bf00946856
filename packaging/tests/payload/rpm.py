#!/usr/bin/env python3
"""The .rpm on a machine with systemd: installation, upgrades under load, removal. The tests of the
.deb cover the service itself."""

import glob
import os
import pwd

from harness import Client, until
from machine import (CONFIG, LOCAL, SOCKETS, TCP, UNIT, Trials, ask, check_http, check_sandbox,
                     enable_http, equal, http_is_closed, http_is_enabled_and_answers, journal,
                     restart_under_load, run, show, sockets_are_open, state, stats, systemctl, true)

STUB = glob.glob("stub-base-*.rpm")
FIRST, *NEWER = sorted(glob.glob("tubed-[0-9]*.rpm"))


def rpm(*arguments):
    return run("rpm", "--force-debian", *arguments)


def install():
    rpm("-i", *STUB)
    rpm("-i", FIRST)
    true(pwd.getpwnam("tubed").pw_uid < 1000, "not a system user")
    for unit in (*SOCKETS, UNIT):
        equal((unit, systemctl("is-enabled", unit).strip()), (unit, "enabled"))
    # Fedora starts nothing by itself.
    systemctl("start", *SOCKETS)
    sockets_are_open()
    equal(state(), "inactive")
    equal(rpm("-V", "tubed"), "")


def activation_by_tcp_and_by_unix_socket():
    for address in (TCP, LOCAL):
        systemctl("stop", UNIT)
        equal(ask("list-tube-used", address), "USING default")
        equal(state(), "active")
    logged = journal("-u", UNIT)
    true("inherited=tcp" in logged and "inherited=local" in logged, logged)


def the_http_socket():
    check_http()


def the_sandbox_as_applied():
    check_sandbox()


def flags_in_etc_sysconfig():
    with open("/etc/sysconfig/tubed", "a", encoding="utf-8") as flags:
        flags.write('TUBED_OPTIONS="-z 99"\n')
    systemctl("restart", UNIT)
    equal(stats()["max-job-size"], 99)


def two_upgrades_under_a_connect_loop():
    text = CONFIG.read_text(encoding="utf-8") + "# mine\n"
    CONFIG.write_text(text, encoding="utf-8")
    # The state lasts from here to the removal.
    enable_http()

    def upgrade(i):
        before = show("MainPID")
        rpm("-U", NEWER[i])
        until("the restart", lambda: show("MainPID") not in (before, "0"))

    summary = restart_under_load(2, upgrade)
    equal(CONFIG.read_text(encoding="utf-8"), text)
    equal(stats()["max-job-size"], 99)
    equal(rpm("-q", "--qf", "%{release}", "tubed"), "3")
    for unit in (*SOCKETS, UNIT):
        equal((unit, systemctl("is-enabled", unit).strip()), (unit, "enabled"))
    http_is_enabled_and_answers()
    return summary


def no_unit_has_failed():
    equal(systemctl("--failed", "--no-legend"), "")


def removal():
    client = Client(TCP)
    client.put(b"stays")
    client.close()
    rpm("-e", "tubed")
    for unit in (*SOCKETS, UNIT):
        equal((unit, state(unit)), (unit, "inactive"))
    equal(run("pgrep", "-x", "tubed", code=1), "")
    equal(run("ss", "-Hltn", "sport = :11300"), "")
    http_is_closed()
    true(not os.path.exists("/run/tubed/tubed.sock"), "the unix socket still exists")
    true(os.listdir("/var/lib/tubed"), "the removal of the package removed the journal")
    # Edited files stay, under a name that shows it.
    true(os.path.exists(f"{CONFIG}.rpmsave"), "the removal of the package removed the settings")
    true(not os.path.exists("/usr/lib/systemd/system/tubed.service"), "the unit still exists")


Trials().run(
    install, activation_by_tcp_and_by_unix_socket, the_http_socket,
    the_sandbox_as_applied, flags_in_etc_sysconfig,
    two_upgrades_under_a_connect_loop, no_unit_has_failed, removal)
