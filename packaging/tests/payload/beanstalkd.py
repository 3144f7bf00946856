#!/usr/bin/env python3
"""The move from beanstalkd's package to the .deb, by the commands of docs/installing.md, on a machine where
tubed was never installed and whose clients reconnect all the time."""

import glob
import os
import pathlib
import pwd
import re

from machine import (SOCKETS, TCP, UNIT, Trials, equal, journal, paste, run, state, stats, systemctl, true)
from moving import RetryingClients

PAGE = pathlib.Path("installing.md").read_text(encoding="utf-8")
COMMANDS = re.search(r"<!-- run: move -->\n```sh\n(.*?)^```$", PAGE, re.M | re.S)[1]
[PACKAGE] = glob.glob("tubed_*.deb")
BEANSTALKD = ("beanstalkd.socket", "beanstalkd.service")


def a_beanstalkd_that_keeps_its_jobs():
    with open("/etc/default/beanstalkd", "a", encoding="utf-8") as file:
        file.write('BEANSTALKD_EXTRA="-b /var/lib/beanstalkd"\n')
    systemctl("unmask", *BEANSTALKD)
    systemctl("enable", "--now", *BEANSTALKD)
    equal(stats()["version"].strip('"'), "1.12")
    true(not os.path.exists("/var/lib/tubed"), "the machine has had a tubed")


def the_commands_of_the_page_lose_no_job():
    true(f"../{PACKAGE}\n" in COMMANDS, f"the page does not install {PACKAGE}")
    clients = RetryingClients(TCP)
    clients.more(2000)
    os.mkdir("clone")
    os.chdir("clone")
    output = paste(COMMANDS)
    os.chdir("..")
    true("imported files=" in output, output)
    clients.more(500)
    missing = clients.missing()
    true(not missing, f"{len(missing)} of {len(clients.acknowledged)} acknowledged jobs are missing")
    true(clients.refused > 0, "no client was refused, so none had to retry")
    return (f"{len(clients.acknowledged)} acknowledged, {len(clients.finished)} finished, "
            f"{clients.refused} refusals")


def the_service_owns_what_it_has_imported():
    user = pwd.getpwnam("tubed")
    paths = ["/var/lib/tubed", *glob.glob("/var/lib/tubed/**", recursive=True)]
    true(any("imported/binlog." in path for path in paths), paths)
    for path in paths:
        equal((path, os.stat(path).st_uid), (path, user.pw_uid))
    equal(oct(os.stat("/var/lib/tubed").st_mode & 0o777), "0o750")


def tubed_serves_and_beanstalkd_does_not():
    for unit in (*SOCKETS, UNIT):
        equal((unit, state(unit)), (unit, "active"))
    for unit in BEANSTALKD:
        equal((unit, state(unit)), (unit, "inactive"))
        equal(systemctl("is-enabled", unit, code=None).strip(), "disabled")
    # beanstalkd writes a record in several parts. Its end may come between them, before it acknowledges the put.
    warnings = journal("-u", UNIT, "--priority=warning")
    equal(re.sub(r"^binlog\.\d+ ends at byte \d+ of \d+: .*\n", "", warnings, flags=re.M), "")
    run("dpkg", "--verify", "tubed")


Trials().run(a_beanstalkd_that_keeps_its_jobs, the_commands_of_the_page_lose_no_job,
             the_service_owns_what_it_has_imported, tubed_serves_and_beanstalkd_does_not)
