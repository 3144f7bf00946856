#!/usr/bin/env python3
"""An operator's day, by the commands of the pages: the move from Debian's beanstalkd, TLS with two roles, a restart, a
deploy and an upgrade over edited settings, a backup, damage and a rescue, a restore.

Producers and a worker run from the move to the backup and reconnect all the time. Every job whose put was acknowledged
is there afterwards, unless its delete was sent. The damage loses the one job whose record it hits.
"""

import glob
import os
import pathlib
import re

import machine
from harness import Client
from machine import (CONFIG, SOCKETS, TCP, UNIT, Trials, bodies_of_ready_jobs, command_to, equal, journal, lines_of,
                     paste, run, show, sockets_are_open, state, stats, systemctl, true)
from moving import RetryingClients

PAYLOAD = pathlib.Path.cwd()
machine.DOCS = PAYLOAD / "docs"  # also for tls
import tls  # noqa: E402  pylint: disable=wrong-import-position

PAGE = (machine.DOCS / "installing.md").read_text(encoding="utf-8")
JOURNAL_PAGE = "operating-the-journal.md"
FIRST, *NEWER = sorted(glob.glob("tubed_*.deb"), key=lambda name: ("+upgrade" in name, name))
BEANSTALKD = ("beanstalkd.socket", "beanstalkd.service")
LOAD = []  # the clients
MINE = "# mine\n"


def clients():
    return LOAD[0]


def more():
    clients().more(200)


# --- The morning

def a_beanstalkd_that_keeps_its_jobs():
    with open("/etc/default/beanstalkd", "a", encoding="utf-8") as file:
        file.write('BEANSTALKD_EXTRA="-b /var/lib/beanstalkd"\n')
    systemctl("unmask", *BEANSTALKD)
    systemctl("enable", "--now", *BEANSTALKD)
    pathlib.Path("/etc/apt/apt.conf.d/90-yes").write_text('APT::Get::Assume-Yes "true";\n', encoding="utf-8")
    LOAD.append(RetryingClients(TCP))
    more()


def the_move_from_beanstalkd():
    os.mkdir("clone")
    output = paste("cd clone\n" + re.search(r"<!-- run: move -->\n```sh\n(.*?)^```$", PAGE, re.M | re.S)[1])
    true("imported files=" in output, output)
    more()


def tls_and_two_roles():
    tls.a_service_with_tls_and_two_roles_by_its_page()
    tls.clients_of_both_roles()
    more()


def a_restart():
    before = show("MainPID")
    paste(command_to("restart it"))
    true(show("MainPID") != before, "not restarted")
    more()


def settings_of_the_operator():
    """A drop-in of the page, and an edited conffile."""
    drain = re.search(r"`(/etc/\S+/drain\.toml)`:\n\n```toml\n(.*?)^```$", PAGE, re.M | re.S)
    pathlib.Path(drain[1]).write_text(drain[2], encoding="utf-8")
    CONFIG.write_text(CONFIG.read_text(encoding="utf-8") + MINE, encoding="utf-8")
    paste("systemctl reload tubed")


def expect_version(suffix):
    true(suffix in run("dpkg-query", "-W", "tubed"), "not upgraded")
    true(CONFIG.read_text(encoding="utf-8").endswith(MINE), "the settings are replaced")
    equal(state(), "active")
    sockets_are_open()
    more()
    tls.put_and_work()


def a_deploy_that_drains():
    refused = clients().refused
    text = lines_of("installing.md", "Deploy over two hosts")
    true(text.count(FIRST) == 1, text)
    output = paste(text.replace(FIRST, NEWER[0]))
    true("has ended, drained: " in output, output)
    true(clients().refused > refused, "no client was refused while the service was stopped")
    expect_version("+upgrade1")


def an_upgrade():
    command = command_to("upgrade it")
    true(FIRST in command, command)
    paste(command.replace(FIRST, NEWER[1]))
    expect_version("+upgrade2")


# --- The afternoon

IN_COPY = set()


def a_backup_under_load():
    acknowledged = set(clients().acknowledged)
    paste(lines_of(JOURNAL_PAGE, "Back up the service"))
    IN_COPY.update(acknowledged - clients().finished - clients().uncertain)
    more()


def every_job_is_there():
    text = clients().expect_all()
    equal(stats()["current-jobs-ready"], 0)
    return text


def damage_and_a_rescue():
    bodies = {b"job number %d of the afternoon" % number for number in range(20)}
    damaged = b"job number 7 of the afternoon"
    client = Client(TCP)
    for body in sorted(bodies):
        client.put(body)
    client.close()
    systemctl("stop", "tubed*.socket", UNIT)
    [segment] = [path for path in glob.glob("/var/lib/tubed/journal.*") if damaged in pathlib.Path(path).read_bytes()]
    with open(segment, "r+b") as file:
        place = file.read().index(damaged)
        file.seek(place)
        file.write(bytes(byte ^ 0xFF for byte in damaged))
    systemctl("start", UNIT, code=1)
    equal((state(), show("ExecMainStatus")), ("failed", "73"))
    true(os.path.basename(segment) in journal("-u", UNIT, "-n", "20"), "the file is not named")
    output = paste(lines_of(JOURNAL_PAGE, "Rescue the service's journal"))
    sockets_are_open()
    equal(bodies_of_ready_jobs(), bodies - {damaged})
    return output.splitlines()[-1]


def a_restore():
    """The jobs of the backup are there; those of the afternoon are in the old journal."""
    output = paste(lines_of(JOURNAL_PAGE, "Restore the service"))
    true("recovered" in output, output)
    sockets_are_open()
    missing = IN_COPY - bodies_of_ready_jobs()
    true(IN_COPY and not missing, f"{len(missing)} of {len(IN_COPY)} jobs are missing")
    # --dump shows sizes, not bodies: of the 19 jobs that the rescue has left, nine have a number of one digit.
    dump = run("tubed", "--dump", "/var/lib/tubed.before")
    equal([dump.count(f" bytes={size} ") for size in (29, 30)], [9, 10])
    tls.put_and_work()
    return f"{len(IN_COPY)} jobs"


def no_unit_has_failed():
    equal(systemctl("--failed", "--no-legend"), "")
    for unit in (*SOCKETS, UNIT):
        equal((unit, state(unit)), (unit, "active"))


Trials().run(a_beanstalkd_that_keeps_its_jobs, the_move_from_beanstalkd, tls_and_two_roles, a_restart,
             settings_of_the_operator, a_deploy_that_drains, an_upgrade, a_backup_under_load, every_job_is_there,
             damage_and_a_rescue, a_restore, no_unit_has_failed)
