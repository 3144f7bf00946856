#!/usr/bin/env python3
"""The .deb on a machine with systemd: from its installation to its purge, under load."""

import glob
import os
import pathlib
import pwd
import re
import signal
import socket
import stat
import subprocess
import time

import console
import tls
from harness import SECONDS, Client, until
from machine import (CONFIG, DROP_INS, LOCAL, SOCKETS, TCP, UNIT, PutLoop, Trials, append, ask, check_http,
                     check_sandbox, clients_are_refused, delete_all, drop_in, enable_http, equal,
                     expect_failed_service, http_is_closed, http_is_enabled_and_answers, journal,
                     journal_starts, lines_of, paste, reload, restart_under_load, run, set_in,
                     show, sockets_are_open, state, stats, systemctl, true, wait_for_state)

FIRST, *NEWER = sorted(glob.glob("tubed_*.deb"), key=lambda name: ("+upgrade" in name, name))
SEEN = CONFIG.with_name("seen")
PAGE = pathlib.Path("/usr/share/doc/tubed/docs/second-instance.md")


def install():
    run("dpkg", "-i", FIRST)
    for unit in (*SOCKETS, UNIT):
        equal((unit, systemctl("is-enabled", unit).strip()), (unit, "enabled"))
        equal((unit, state(unit)), (unit, "active"))
    user = pwd.getpwnam("tubed")
    true(user.pw_shell.endswith("nologin") and user.pw_uid < 1000, user)

    def owner(path):
        status = os.stat(path)
        return (pwd.getpwuid(status.st_uid).pw_name, status.st_gid == user.pw_gid,
                oct(stat.S_IMODE(status.st_mode)))

    equal(owner("/var/lib/tubed"), ("tubed", True, "0o750"))
    equal(owner("/run/tubed"), ("tubed", True, "0o755"))
    equal(owner("/run/tubed/tubed.sock"), ("root", True, "0o660"))
    equal(run("tubed", "--version").split()[:2], ["tubed", run(
        "dpkg-query", "-W", "-f", "${source:Upstream-Version}", "tubed")])
    equal(run("dpkg", "--verify", "tubed"), "")
    # The log of the start: both sockets by name, and no warning or error.
    output = journal("-u", UNIT)
    true("listening address=127.0.0.1:11300 inherited=tcp" in output, output)
    true("listening address=unix:/run/tubed/tubed.sock inherited=local" in output, output)
    equal(journal("-u", UNIT, "-u", SOCKETS[0], "-u", SOCKETS[1], "--priority=warning"), "")


def activation_by_tcp_and_by_unix_socket():
    for address in (TCP, LOCAL):
        systemctl("stop", UNIT)
        equal(state(), "inactive")
        equal(ask("list-tube-used", address), "USING default")
        equal(state(), "active")
    equal(subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", "python3", "-c",
                          "import socket;socket.socket(socket.AF_UNIX)"
                          ".connect('/run/tubed/tubed.sock')"],
                         stderr=subprocess.DEVNULL, check=False).returncode, 1)


def put_reserve_delete_and_the_status_line():
    client = Client(TCP)
    for _ in range(12):
        client.put(b"hello")
    job, body = client.reserve()
    equal(body, b"hello")
    equal(client.ask(f"delete {job}"), "DELETED")
    client.reserve()
    text = "serving: 10 ready jobs, 1 reserved, 1 connections"
    until("the status", lambda: text in systemctl("status", UNIT, code=None))
    shown = systemctl("status", UNIT)
    true("TriggeredBy" in shown and "active (running)" in shown, shown)
    client.close()
    delete_all()


def the_http_socket():
    check_http()


def the_sandbox_as_applied():
    check_sandbox()
    return run("systemd-analyze", "security", UNIT).splitlines()[-1].strip("→ ")


def jobs_survive_kill_and_restart():
    client = Client(TCP)
    first, second = client.put(b"first"), client.put(b"second")
    for action in (("kill", "-s", "KILL", UNIT), ("restart", UNIT)):
        before = show("MainPID")
        systemctl(*action)
        until("another process", lambda pid=before: show("MainPID") not in (pid, "0"))
        client.close()
        client = Client(TCP)
        equal(client.stats()["current-jobs-ready"], 2)
    for job, body in ((first, b"first"), (second, b"second")):
        equal(client.reserve(), (job, body))
        equal(client.ask(f"delete {job}"), "DELETED")
    client.close()


def reload_and_a_reload_with_a_mistake():
    before, good = show("MainPID"), CONFIG.read_text(encoding="utf-8")
    set_in("limits", "job_bytes = 77")
    reload()
    equal(stats()["max-job-size"], 77)
    append("nonsense = ")
    systemctl("reload", UNIT, code=1)
    true("tubed.toml:" in journal("-u", UNIT, "-n", "20"), "the reason is not in the journal")
    equal((state(), stats()["max-job-size"]), ("active", 77))
    CONFIG.write_text(good, encoding="utf-8")
    reload()
    equal((show("MainPID"), stats()["max-job-size"]), (before, 65535))


def settings_in_drop_ins():
    """A file of the directory that the package creates changes the service, until it is removed."""
    status = DROP_INS.stat()
    equal((status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)), (0, 0, 0o755))
    equal(run("dpkg", "-S", str(DROP_INS)), f"tubed: {DROP_INS}\n")
    file = DROP_INS / "50-limits.toml"
    file.write_text("[limits]\njob_bytes = 77\n", encoding="utf-8")
    reload()
    equal(stats()["max-job-size"], 77)
    printed = run("tubed", "--config", str(CONFIG), "--print-config")
    true(f"\njob_bytes = 77  # {file}:2\n" in printed, printed)
    file.write_text("[limits]\njob_bytes = 78\nnonsense = ", encoding="utf-8")
    systemctl("reload", UNIT, code=1)
    true(f"{file}:3: " in journal("-u", UNIT, "-n", "20"), "the reason is not in the journal")
    equal((state(), stats()["max-job-size"]), ("active", 77))
    file.unlink()
    reload()
    equal(stats()["max-job-size"], 65535)


def flags_in_etc_default():
    flags("-z 99 -V")
    systemctl("restart", UNIT)
    equal(stats()["max-job-size"], 99)
    flags("")
    systemctl("restart", UNIT)
    equal(stats()["max-job-size"], 65535)


def drain_by_signal_and_back():
    systemctl("kill", "-s", "SIGUSR1", UNIT)
    until("the status", lambda: show("StatusText").startswith("draining: "))
    client = Client(TCP)
    client.send(b"put 0 0 60 1\r\nx\r\n")
    equal(client.line(), "DRAINING")
    client.close()
    systemctl("kill", "-s", "SIGUSR2", UNIT)
    until("the status", lambda: show("StatusText").startswith("serving: "))


def drain_until_idle_and_exit():
    """As before a deploy: no new connections, the workers finish, the process exits."""
    set_in("drain", 'exit = "when-idle"')
    reload()
    client = Client(TCP)
    client.put(b"stays")
    job = client.put(b"is worked on")
    client.reserve()
    systemctl("stop", *SOCKETS)
    equal(state(), "active")
    task = subprocess.Popen(["tubed", "--config", str(CONFIG), "--drain"],
                            stdout=subprocess.DEVNULL)
    until("the status", lambda: show("StatusText").startswith("draining: "))
    equal(task.poll(), None)
    client.send(b"put 0 0 60 1\r\nx\r\n")
    equal(client.line(), "DRAINING")
    equal(client.ask(f"delete {job - 1}"), "DELETED")
    equal(task.wait(SECONDS), 0)
    wait_for_state("inactive")
    equal((show("Result"), show("NRestarts")), ("success", "0"))
    client.close()
    equal(run("tubed", "--config", str(CONFIG), "--drain", code=75).count("\n"), 1)
    systemctl("start", *SOCKETS)
    client = Client(TCP)
    equal(client.reserve(), (job, b"is worked on"))
    equal(client.ask(f"delete {job}"), "DELETED")
    client.close()
    CONFIG.write_text(CONFIG.read_text(encoding="utf-8").replace('exit = "when-idle"\n', ""),
                      encoding="utf-8")
    reload()


def drain_exit(value):
    """Sets or removes drain.exit, and reloads the service."""
    line = 'exit = "when-idle"\n'
    if value:
        set_in("drain", line.rstrip("\n"))
    else:
        CONFIG.write_text(CONFIG.read_text(encoding="utf-8").replace(line, ""), encoding="utf-8")
    reload()


def serves_again(job, body):
    """After `systemctl start`: the job that stayed exists, and puts are accepted."""
    sockets_are_open()
    client = Client(TCP)
    equal(client.reserve(), (job, body))
    equal(client.ask(f"delete {job}"), "DELETED")
    client.put()
    client.close()
    delete_all()


def a_drained_service_stays_drained():
    """Clients connect all the time without starting the server again."""
    delete_all()
    drain_exit("when-idle")
    client = Client(TCP)
    job = client.put(b"held")
    client.reserve()
    loop = PutLoop()
    loop.more(10)
    task = subprocess.Popen(["tubed", "--config", str(CONFIG), "--drain"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    draining = "answered b'DRAINING\\r\\n'"
    until("puts to be refused", lambda: loop.counts[draining] >= 10)
    equal(task.poll(), None)
    equal(client.ask(f"release {job} 0 0"), "RELEASED")
    lines = task.communicate(timeout=SECONDS)[0].splitlines()
    equal(task.returncode, 0)
    equal(lines[2:], [
        "Its sockets are closed, so clients are refused. To serve again: systemctl start " + UNIT])
    ended = re.fullmatch(re.escape(UNIT) + r" has ended, drained: (\d+) ready jobs, 0 delayed, "
                         r"0 buried stay in the journal\.", lines[1])
    true(ended, lines)
    kept = int(ended[1])
    # A thread may count its last put after another thread was refused.
    until("each job to be counted", lambda: loop.counts["ok"] + 1 == kept)
    before = loop.counts["refused"]
    until("refusals", lambda: loop.counts["refused"] > before + 200)
    loop.end()
    for unit in (UNIT, *SOCKETS):
        equal((unit, state(unit)), (unit, "inactive"))
    true(show("StatusText").startswith("drained: "), show("StatusText"))
    true("drained: sockets closed" in journal("-u", UNIT, "-n", "10"), "not in the journal")
    systemctl("start", UNIT)
    equal(delete_all(), kept)
    sockets_are_open()
    drain_exit("")


def a_drain_warns_of_open_sockets_and_restarts():
    """Three cases: a unit that closes no sockets, a server that serves again, and a stop."""
    drain_exit("when-idle")
    drop_in("[Service]\nExecStopPost=\n")
    output = run("tubed", "--config", str(CONFIG), "--drain")
    for unit in SOCKETS:
        true(f"warning: {unit} is open" in output, output)
    drop_in("[Service]\nExecStopPost=\nRestart=always\nRestartSec=0\n")
    ask("list-tube-used")
    output = run("tubed", "--config", str(CONFIG), "--drain", code=75)
    true(f"{UNIT} has ended and was started again" in output, output)
    drop_in("")
    wait_for_state("active")
    client = Client(TCP)
    client.put(b"held")
    client.reserve()
    task = subprocess.Popen(["tubed", "--config", str(CONFIG), "--drain"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until("the status", lambda: show("StatusText").startswith("draining: "))
    systemctl("stop", UNIT)
    true("was stopped before it had drained" in task.communicate(timeout=SECONDS)[0], "not reported")
    equal(task.returncode, 75)
    client.close()
    systemctl("start", UNIT)
    delete_all()
    drain_exit("")


def a_drain_that_is_cancelled_or_times_out():
    """The second is no failure of the service, which stays stopped."""
    delete_all()
    drain_exit("when-idle")
    client = Client(TCP)
    client.put(b"held")
    client.reserve()
    task = subprocess.Popen(["tubed", "--config", str(CONFIG), "--drain"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    true(task.stdout.readline().startswith("The server drains: "), "does not drain")
    systemctl("kill", "--kill-whom=main", "-s", "SIGUSR2", UNIT)
    true("drain mode was ended" in task.communicate(timeout=SECONDS)[0], "not reported")
    equal(task.returncode, 75)
    timeout = 'timeout = "1ms"'
    set_in("drain", timeout)
    reload()
    output = run("tubed", "--config", str(CONFIG), "--drain", code=79)
    true("drain.timeout is over, 1 jobs interrupted: 1 ready jobs" in output, output)
    wait_for_state("inactive")
    equal((show("Result"), show("ExecMainStatus"), show("NRestarts")), ("success", "79", "0"))
    clients_are_refused()
    client.close()
    CONFIG.write_text(CONFIG.read_text(encoding="utf-8").replace(timeout + "\n", ""), encoding="utf-8")
    systemctl("start", UNIT)
    equal(delete_all(), 1)
    drain_exit("")


def the_lines_of_a_deploy_as_documented():
    delete_all()
    client = Client(TCP)
    job = client.put(b"stays")
    client.close()
    drain_exit("when-idle")
    paste(lines_of("installing.md", "Drain a host"))
    clients_are_refused()
    systemctl("start", UNIT)
    text = lines_of("installing.md", "Deploy over two hosts")
    package = os.path.basename(FIRST)
    true(text.count(package) == 1, text)
    output = paste(text.replace(package, NEWER[0]))
    true('"serving: 1 ready jobs' in output, output)
    true("upgrade1" in run("dpkg-query", "-W", "tubed"), "not upgraded")
    serves_again(job, b"stays")
    drain_exit("")


def the_lines_of_a_backup_and_a_restore_as_documented():
    delete_all()
    client = Client(TCP)
    job = client.put(b"in the copy")
    page = "operating-the-journal.md"
    paste(lines_of(page, "Back up the service"))
    client.put(b"after it")
    client.close()
    output = paste(lines_of(page, "Restore the service"))
    true("jobs=1 " in output, output)
    serves_again(job, b"in the copy")


def the_lines_of_a_rescue_as_documented():
    client = Client(TCP)
    client.put(b"is damaged")
    job = client.put(b"is rescued")
    client.close()
    systemctl("stop", *SOCKETS, UNIT)
    segment = max(glob.glob("/var/lib/tubed/journal.*"))
    with open(segment, "r+b") as file:
        file.seek(file.read().index(b"is damaged"))
        file.write(b"IS DAMAGED")
    systemctl("start", UNIT, code=1)
    equal((state(), show("ExecMainStatus")), ("failed", "73"))
    output = paste(lines_of("operating-the-journal.md", "Rescue the service's journal"))
    true("journal." in output, output)
    serves_again(job, b"is rescued")


def five_restarts_under_a_connect_loop():
    return restart_under_load(5, lambda _: systemctl("restart", UNIT))


def two_upgrades_under_a_connect_loop():
    text = CONFIG.read_text(encoding="utf-8")
    CONFIG.write_text(text + "# mine\n", encoding="utf-8")
    # The state lasts from here to the removal.
    enable_http()
    output = restart_under_load(2, lambda i: run("dpkg", "-i", NEWER[i]))
    equal(CONFIG.read_text(encoding="utf-8"), text + "# mine\n")
    true("upgrade2" in run("dpkg-query", "-W", "tubed"), "not the newest")
    for unit in (*SOCKETS, UNIT):
        equal((unit, systemctl("is-enabled", unit).strip()), (unit, "enabled"))
    http_is_enabled_and_answers()
    return output


def a_stuck_server_is_killed_by_the_watchdog():
    drop_in("[Service]\nWatchdogSec=2s\nTimeoutAbortSec=5s\nLimitCORE=0\n")
    systemctl("restart", UNIT)
    restarts, process = int(show("NRestarts")), int(show("MainPID"))
    client = Client(TCP)
    kept = client.put(b"kept")
    client.close()
    os.kill(process, signal.SIGSTOP)
    begin = time.monotonic()
    # This connection waits in the kernel's queue until a server serves again.
    client = Client(TCP)
    equal(client.reserve()[1], b"kept")
    seconds = time.monotonic() - begin
    # The service detects that the machine was not restarted: ids continue without a gap.
    equal(client.put(b"next"), kept + 1)
    client.ask("delete 1")
    client.close()
    equal(int(show("NRestarts")), restarts + 1)
    true("Watchdog timeout" in journal("-u", UNIT, "-n", "50"), "the watchdog did not do it")
    sockets_are_open()
    drop_in("")
    systemctl("restart", UNIT)
    delete_all()
    return f"back after {seconds:.1f} s"


def crash_loop(cause_fault, remove_fault):
    """A client that waits during the whole test; the number of starts meanwhile, within a second.
    """
    systemctl("stop", UNIT)
    cause_fault()
    systemctl("reset-failed", UNIT)
    begin, first = time.monotonic(), journal_starts()
    client = Client(TCP)
    client.send(b"list-tube-used\r\n")
    # More often than systemd's own limit of five starts allows.
    until("six restarts", lambda: int(show("NRestarts")) >= 6)
    rate = (journal_starts() - first) / (time.monotonic() - begin)
    sockets_are_open()
    remove_fault()
    equal(client.line(), "USING default")
    client.close()
    sockets_are_open()
    true(rate < 3, f"{rate:.1f} starts a second")
    return f"{rate:.1f} starts a second"


def a_crash_loop_keeps_the_sockets_open():
    return crash_loop(
        lambda: drop_in("[Service]\nExecStart=\nExecStart=/bin/false\nRestartSec=500ms\n"),
        lambda: drop_in(""))


def flags(text):
    pathlib.Path("/etc/default/tubed").write_text(f'TUBED_OPTIONS="{text}"\n', encoding="utf-8")


def faults_that_need_an_operator_close_the_sockets():
    good = CONFIG.read_text(encoding="utf-8")
    for code, reason, cause_fault in (
            (78, "tubed.toml:", lambda: append("nonsense = ")),
            (64, "--nonsense", lambda: flags("--nonsense")),
            (73, "/srv/none", lambda: flags("-b /srv/none")),
            (77, "nobody", lambda: flags("-u nobody")),
            (69, "see systemctl status tubed-http.socket",
             lambda: set_in("http", 'listen = "127.0.0.1:11380"'))):
        cause_fault()
        systemctl("restart", UNIT, code=1)
        expect_failed_service(code, reason)
        CONFIG.write_text(good, encoding="utf-8")
        flags("")
        systemctl("start", UNIT)
        sockets_are_open()
        equal(ask("list-tube-used"), "USING default")


def a_port_in_use():
    systemctl("stop", *SOCKETS, UNIT)
    with socket.create_server(("127.0.0.1", 11300)):
        systemctl("start", UNIT, code=1)
        wait_for_state("failed")
        output = journal("-u", UNIT, "--priority=err", "-n", "5")
        true("see systemctl status tubed.socket" in output, output)
        output = systemctl("status", SOCKETS[0], code=None)
        # A helper of systemd logs the reason, and journalctl may not show the log of a helper that
        # exits at once.
        true("Address already in use" in output
             or "Failed to receive listening socket" in output, output)
        equal(state(SOCKETS[1]), "inactive")
    systemctl("start", UNIT)
    sockets_are_open()
    equal(ask("list-tube-used"), "USING default")


def a_socket_unit_that_is_disabled():
    systemctl("stop", *SOCKETS, UNIT)
    systemctl("disable", SOCKETS[1])
    systemctl("start", UNIT, code=1)
    output = journal("-u", UNIT, "--priority=err", "-n", "5")
    true("see systemctl status tubed-local.socket" in output, output)
    systemctl("enable", SOCKETS[1])
    systemctl("start", UNIT)
    sockets_are_open()


def a_connection_that_meets_such_a_fault_is_closed():
    systemctl("stop", UNIT)
    flags("--nonsense")
    client = Client(TCP)
    client.send(b"list-tube-used\r\n")
    equal(client.rest(), b"")
    client.close()
    expect_failed_service(64, "--nonsense")
    flags("")
    systemctl("start", UNIT)
    sockets_are_open()


def an_upgrade_that_meets_such_a_fault():
    good = CONFIG.read_text(encoding="utf-8")
    append("nonsense = ")
    process = show("MainPID")
    output = run("dpkg", "-i", NEWER[1])
    true("the new version does not accept the settings" in output, output)
    equal((state(), show("MainPID")), ("active", process))
    true("tubed.toml:" in journal("-u", UNIT, "-n", "20"), "the reason is not in the journal")
    equal(ask("list-tube-used"), "USING default")
    CONFIG.write_text(good, encoding="utf-8")
    systemctl("restart", UNIT)
    true(show("MainPID") != process, "not restarted")
    sockets_are_open()
    equal(ask("list-tube-used"), "USING default")


def stop_and_start_all_units():
    loop = PutLoop()
    loop.more(10)
    systemctl("stop", *SOCKETS, UNIT)
    # Tests the loop itself: it notices that no process listens.
    until("a refusal", lambda: loop.counts["refused"] > 0)
    loop.end()
    true(not os.path.exists("/run/tubed/tubed.sock"), "the unix socket still exists")
    try:
        Client(TCP)
        raise AssertionError("a process listens")
    except ConnectionRefusedError:
        pass
    systemctl("start", *SOCKETS)
    equal(ask("list-tube-used"), "USING default")
    delete_all()


def a_second_instance_by_its_page():
    """Runs the commands of the installed page. The second instance has a port, a directory and a
    user of its own."""
    text = PAGE.read_text(encoding="utf-8")
    for task in ("make", "use", "remove"):
        blocks = re.findall(rf"^<!-- run: {task} -->\n```sh\n(.*?)^```$", text, re.M | re.S)
        true(blocks, f"the page has no commands to {task} it")
        run("bash", "-c", "set -e\n" + "".join(blocks))
        equal((task, state("mailq.service")), (task, "inactive" if task == "remove" else "active"))
        equal(state(), "active")
    true(not os.path.exists("/var/lib/mailq"), "its journal still exists")
    equal(run("ss", "-Hltn", "sport = :11301"), "")


def the_tests_of_the_package():
    for test in ("smoke", "activation"):
        run(f"debian-tests/{test}")


def no_unit_has_failed():
    equal(systemctl("--failed", "--no-legend"), "")
    units = journal("--priority=warning", "_PID=1")
    bad = [line for line in units.splitlines()
           if re.search(r"Unknown key|Failed to parse|tubed.*(deprecat|ignor)", line)]
    equal(bad, [])


def removal_under_load_keeps_data():
    client = Client(TCP)
    client.put(b"stays")
    client.close()
    loop = PutLoop()
    loop.more(20)
    run("dpkg", "-r", "tubed")
    loop.end()
    for unit in (*SOCKETS, UNIT):
        true(state(unit) in ("inactive", "failed"), unit)
    equal(run("pgrep", "-x", "tubed", code=1), "")
    equal(run("ss", "-Hltn", "( sport = :11300 or sport = :11301 )"), "")
    http_is_closed()
    true(not os.path.exists("/run/tubed/tubed.sock"), "the unix socket still exists")
    true(os.listdir("/var/lib/tubed"), "the removal of the package removed the journal")
    true(CONFIG.exists(), "the removal of the package removed the settings")
    run("dpkg", "-i", FIRST)
    client = Client(TCP)
    equal(client.reserve()[1], b"stays")
    client.close()
    tls.put_and_work()


def an_installation_beside_another_server():
    run("dpkg", "-r", "tubed")
    with socket.create_server(("127.0.0.1", 11300)):
        run("dpkg", "-i", FIRST)
        equal(state(), "failed")
        output = journal("-u", UNIT, "--priority=err", "-n", "5")
        true("see systemctl status tubed.socket" in output, output)
    systemctl("start", UNIT)
    sockets_are_open()
    equal(ask("list-tube-used"), "USING default")


def purge():
    run("dpkg", "-P", "tubed")
    for path in ("/var/lib/tubed", "/etc/tubed", "/run/tubed", "/etc/default/tubed"):
        true(not os.path.exists(path), path)
    pwd.getpwnam("tubed")
    left = run("find", "/etc/systemd", "/var/lib/systemd", "/usr/lib/systemd", "-name", "*tubed*",
               "!", "-path", "*/sysusers*")
    equal(left, "")
    equal(run("pgrep", "-x", "tubed", code=1), "")


def recorded_hash():
    """Of the conffile, as dpkg has it."""
    text = run("dpkg-query", "-W", "-f", "${Conffiles}", "tubed")
    return re.search(rf" {CONFIG} ([0-9a-f]+)\n", text + "\n")[1]


def an_upgrade_from_a_conffile_with_all_settings():
    """Of 2.0.0. run() has no terminal. An edited file is kept, and any other is replaced."""
    shipped = CONFIG.with_name("tubed.toml.dpkg-dist")
    run("dpkg", "-i", FIRST)
    short, old_hash = CONFIG.read_text(encoding="utf-8"), recorded_hash()
    run("dpkg", "-P", "tubed")
    run("dpkg", "-i", "older.deb")
    true(recorded_hash() != old_hash, "the same conffile")
    run("dpkg", "-i", FIRST)
    equal((CONFIG.read_text(encoding="utf-8"), shipped.exists()), (short, False))
    run("dpkg", "-P", "tubed")
    run("dpkg", "-i", "older.deb")
    set_in("limits", "job_bytes = 77")
    edited = CONFIG.read_text(encoding="utf-8")
    output = run("dpkg", "-i", FIRST)
    true("was edited" in output and "***" not in output, output)
    equal(CONFIG.read_text(encoding="utf-8"), edited)
    equal(shipped.read_text(encoding="utf-8"), short)
    equal((recorded_hash(), run("dpkg-divert", "--list", "*tubed*")), (old_hash, ""))
    equal((state(), stats()["max-job-size"]), ("active", 77))
    for package in NEWER:
        run("dpkg", "-i", package)
        equal(CONFIG.read_text(encoding="utf-8"), edited)
    # A package that was removed, and not purged, is the same case.
    run("dpkg", "-P", "tubed")
    run("dpkg", "-i", "older.deb")
    CONFIG.write_text(edited, encoding="utf-8")
    run("dpkg", "-r", "tubed")
    run("dpkg", "-i", FIRST)
    equal((CONFIG.read_text(encoding="utf-8"), stats()["max-job-size"]), (edited, 77))
    purge()
    true(not shipped.exists(), "the new file is still there")


Trials().run(
    install, activation_by_tcp_and_by_unix_socket, put_reserve_delete_and_the_status_line,
    the_http_socket, console.the_console_and_its_api, the_sandbox_as_applied,
    a_second_instance_by_its_page, jobs_survive_kill_and_restart, reload_and_a_reload_with_a_mistake,
    settings_in_drop_ins, flags_in_etc_default, drain_by_signal_and_back, drain_until_idle_and_exit,
    a_drained_service_stays_drained, a_drain_warns_of_open_sockets_and_restarts,
    a_drain_that_is_cancelled_or_times_out,
    the_lines_of_a_deploy_as_documented, the_lines_of_a_backup_and_a_restore_as_documented,
    the_lines_of_a_rescue_as_documented,
    faults_that_need_an_operator_close_the_sockets, a_port_in_use,
    a_socket_unit_that_is_disabled, a_connection_that_meets_such_a_fault_is_closed,
    five_restarts_under_a_connect_loop, two_upgrades_under_a_connect_loop,
    a_stuck_server_is_killed_by_the_watchdog, a_crash_loop_keeps_the_sockets_open,
    an_upgrade_that_meets_such_a_fault,
    stop_and_start_all_units, the_tests_of_the_package, an_installation_beside_another_server,
    *tls.TRIALS, no_unit_has_failed, removal_under_load_keeps_data, purge,
    an_upgrade_from_a_conffile_with_all_settings)
