"""The service with TLS, tokens and roles, set up by the commands, settings and drop-ins of the
installed page tls.md.

The trials run in the order of TRIALS on an installed service without TLS. The first trial makes the
authority and the certificates in DIRECTORY. Each trial begins and ends with the service of the
page's first section: a listener with TLS and tokens at tubed-tls.socket.
"""

import os
import pathlib
import pwd
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request

from harness import SECONDS, Client, until
from machine import (CONFIG, DOCS, DROP_INS, HTTP, HTTP_SOCKET, LOCAL, UNIT, ask, check_sandbox,
                     drop_in, equal, expect_failed_service, journal, lines_of, paste, reload, run,
                     show, sockets_are_open, state, stats, systemctl, true)

SOCKET = "tubed-tls.socket"
NAME = "queue.example.org"
ADDRESS = "127.0.0.1:11301"
URL = f"beanstalks://{NAME}:11301"
DIRECTORY = pathlib.Path("/srv/authority")
FILES = pathlib.Path("/etc/tubed/tls")
SETTINGS = DROP_INS / "tls.toml"
CERTIFICATE = FILES / "certificate.pem"
CREDENTIALS = pathlib.Path("/run/credentials/tubed.service")
SCORE = []  # the exposure of the unit before the first trial


# --- The page

def section(heading):
    text = (DOCS / "tls.md").read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    true(found, f"tls.md has no {heading}")
    return found[2]


def block(kind, heading):
    """The only block of this kind below a heading of the page."""
    found = re.findall(rf"^```{kind}\n(.*?)^```", section(heading), re.M | re.S)
    equal((heading, kind, len(found)), (heading, kind, 1))
    return found[0]


def in_directory(text):
    return paste(f"cd {DIRECTORY}\n{text}")


def commands(heading):
    return in_directory(lines_of("tls.md", heading))


def only(text, *beginnings):
    """The commands of `text` that begin so, each with the lines that continue it."""
    whole = re.findall(r"(?:.*\\\n)*.*\n", text)
    kept = [line for line in whole if line.startswith(beginnings)]
    equal(len(kept), len(beginnings))
    return "".join(kept)


def check_settings(code=0):
    """The check of the page, by its own command."""
    command = lines_of("tls.md", "3. Settings")
    return run("bash", "-c", command, code=code)


def write_settings(text):
    SETTINGS.write_text(text, encoding="utf-8")


def append(text):
    write_settings(SETTINGS.read_text(encoding="utf-8") + text)


def replace_in_settings(old, new, count=1):
    text = SETTINGS.read_text(encoding="utf-8")
    equal((old, text.count(old)), (old, count))
    write_settings(text.replace(old, new))


def reload_refused(reason):
    systemctl("reload", UNIT, code=1)
    output = journal("-u", UNIT, "-n", "20")
    true(reason in output, output)
    equal(state(), "active")


def exposure():
    return re.search(r"[\d.]+ \w+", run("systemd-analyze", "security", UNIT).splitlines()[-1])[0]


# --- Clients

class TlsClient(Client):
    """A client that trusts an authority and, with a token's file, authenticates."""

    def __init__(self, token=None, authority="ca.pem", certificate=None):
        super().__init__(ADDRESS)
        context = ssl.create_default_context(cafile=DIRECTORY / authority)
        if certificate:
            context.load_cert_chain(*(DIRECTORY / name for name in certificate))
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname=NAME)
            if token:
                equal(self.ask(f"auth {token_of(token)}"), "AUTHENTICATED")
        except BaseException:
            self.close()
            raise

    def serial(self):
        return self.socket.getpeercert()["serialNumber"]


def token_of(name):
    return (DIRECTORY / f"{name}.token").read_text(encoding="utf-8").strip()


def tubectl(*arguments, token=None, code=0, **environment):
    """tubectl at the address for TLS; returns its output and errors."""
    variables = os.environ | {"TUBED_SERVER": URL, "TUBED_CA": "ca.pem"} | environment
    flags = ["--token-file", f"{token}.token"] if token else []
    done = subprocess.run(["tubectl", *flags, *arguments], cwd=DIRECTORY, env=variables, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    if (done.returncode == 0) != (code == 0):
        raise AssertionError(f"tubectl {arguments}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def put_and_work(body="to: ada"):
    """A job goes from the producer's role to the worker's."""
    tubectl("put", "-t", "mail.out", body, token="web-1")
    equal(tubectl("reserve", "-t", "mail.out", "--timeout", "5", "--delete", token="worker-1")
          .splitlines()[-1], body)


def serial_on_disk():
    return run("openssl", "x509", "-in", str(CERTIFICATE), "-noout", "-serial").strip()[7:]


def new_certificate(days=825):
    """Signs a further certificate of the server, with the command of the page, and installs it."""
    lines = only(lines_of("tls.md", "1. Certificates"), "openssl x509 -req -in server.csr",
                 "install -m 0644 server.pem")
    true(lines.count("-days 825 ") == 1, lines)
    in_directory(lines.replace("-days 825 ", f"-days {days} "))


# --- Trials

def a_tls_socket_without_settings_stops_the_start():
    SCORE.append(exposure())
    equal((state(SOCKET), systemctl("is-enabled", SOCKET, code=None).strip()),
          ("inactive", "disabled"))
    systemctl("enable", SOCKET)
    systemctl("restart", UNIT, code=1)
    expect_failed_service(69, "0.0.0.0:11301 was passed on as the socket tls, and no [[listen]] "
                              "with tls has this address")
    systemctl("disable", SOCKET)
    systemctl("start", UNIT)
    sockets_are_open()
    equal(state(SOCKET), "inactive")


def a_service_with_tls_and_two_roles_by_its_page():
    with open("/etc/hosts", "a", encoding="utf-8") as hosts:
        hosts.write(f"127.0.0.1 {NAME}\n")
    DIRECTORY.mkdir(mode=0o700)
    commands("1. Certificates")
    commands("2. Tokens")
    status = os.stat(FILES / "key.pem")
    equal((pwd.getpwuid(status.st_uid).pw_name, oct(status.st_mode & 0o777)), ("tubed", "0o400"))
    true(f"`{SETTINGS}`" in section("3. Settings"), "the page names another file")
    write_settings(block("toml", "3. Settings"))
    equal(check_settings(), "")
    mistakes_by_the_page()
    equal(check_settings(), "")
    commands("4. The socket")
    sockets_are_open()
    equal(state(SOCKET), "active")
    output = journal("-u", UNIT)
    true("listening address=0.0.0.0:11301 inherited=tls" in output, output)


def mistakes_by_the_page():
    """Each line that the page shows for --check-config: two errors, and a warning."""
    errors, token = re.findall(r"^```\n(tubed: .*?)^```", section("3. Settings"), re.M | re.S)
    mode, pair = errors.splitlines(keepends=True)
    key, tokens = FILES / "key.pem", FILES.parent / "tokens"
    key.chmod(0o644)
    equal(check_settings(78), mode)
    key.chmod(0o400)
    good = key.read_bytes()
    key.write_bytes((DIRECTORY / "client.key").read_bytes())
    equal(check_settings(78), pair)
    key.write_bytes(good)
    good = tokens.read_bytes()
    in_directory("tubectl token new web-2 --token-file web-2.token >> /etc/tubed/tokens")
    equal(check_settings(), token)
    tokens.write_bytes(good)


def clients_of_both_roles():
    equal(commands("5. Clients").split()[-1], "7")
    equal(tubectl("reserve", "-t", "mail.out", "--timeout", "0", token="worker-1", code=1).count("to: ada"), 0)
    program = block("python", "5. Clients") + "print(server.version())\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=DIRECTORY, text=True, timeout=SECONDS,
                          stdout=subprocess.PIPE, check=True)
    equal(done.stdout, "TLSv1.3\n")
    put_and_work()


def clients_that_are_refused():
    def refused(reason, *arguments, **others):
        output = tubectl(*arguments, code=1, **others)
        true(reason in output, output)

    put, reserve = ("put", "-t", "mail.out", "x"), ("reserve", "-t", "mail.out", "--timeout", "0")
    refused("DENIED", *put, token="worker-1")
    refused("DENIED", *reserve, token="web-1")
    refused("DENIED", "put", "-t", "other", "x", token="web-1")
    refused("UNAUTHORIZED", *put)
    (DIRECTORY / "wrong.token").write_text("x" * 43 + "\n", encoding="utf-8")
    (DIRECTORY / "wrong.token").chmod(0o600)
    refused("the server does not accept the token", *put, token="wrong")
    in_directory("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 "
                 "-subj '/CN=queue CA' -keyout other.key -out other.pem")
    refused("certificate", *put, token="web-1", TUBED_CA="other.pem")
    # Not a byte for a client that speaks the protocol without TLS.
    plain = Client(ADDRESS)
    plain.send(b"list-tube-used\r\n")
    equal(plain.rest(), b"")
    plain.close()
    run("journalctl", "--sync")
    output = paste(re.search(r"`(journalctl [^`]*)`", section("6. What can go wrong"))[1])
    for line in ("denied", "unauthorized", "TLS handshake failed"):
        true(line in output, line, output)
    equal(ask("list-tube-used"), "USING default")


def the_sandbox_with_tls():
    check_sandbox()
    equal(exposure(), SCORE[0])
    return SCORE[0]


def a_reload_with_another_certificate():
    before, process = serial_on_disk(), show("MainPID")
    client = TlsClient("web-1")
    equal(client.serial(), before)
    equal(client.ask("use mail.out"), "USING mail.out")
    new_certificate()
    reload()
    after = serial_on_disk()
    true(after != before, before)
    equal(served_serial(), after)
    client.put(b"of an open connection")
    equal(show("MainPID"), process)
    # Half of a pair and a damaged file do not replace the pair in use.
    good = CERTIFICATE.read_bytes()
    in_directory("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 "
                 f"-subj /CN={NAME} -keyout half.key -out {CERTIFICATE}")
    reason = f"{FILES}/key.pem: not the key of {CERTIFICATE}"
    equal(check_settings(78), f"tubed: {reason}\n")
    reload_refused(reason)
    CERTIFICATE.write_bytes(good[:200])
    reload_refused(f"{CERTIFICATE}: no certificate in PEM")
    equal(served_serial(), after)
    # A signal that comes past the check of the unit is refused by the server.
    systemctl("kill", "--kill-whom=main", "-s", "HUP", UNIT)
    until("the line", lambda: "not reloaded" in journal("-u", UNIT, "-n", "5"))
    equal(served_serial(), after)
    client.put(b"again")
    # As at a start, an expired certificate is a warning.
    new_certificate(days=-1)
    reload()
    output = journal("-u", UNIT, "-n", "20")
    true(f"{CERTIFICATE}: expired on " in output, output)
    new_certificate()
    reload()
    equal(served_serial(), serial_on_disk())
    client.close()
    worker = TlsClient("worker-1")
    equal(worker.ask("watch mail.out"), "WATCHING 2")
    equal(worker.ask("ignore default"), "WATCHING 1")
    for body in (b"of an open connection", b"again"):
        job, found = worker.reserve()
        equal((found, worker.ask(f"delete {job}")), (body, "DELETED"))
    worker.close()


def served_serial():
    client = TlsClient()
    try:
        return client.serial()
    finally:
        client.close()


def a_removed_token_and_its_clients():
    web, worker = TlsClient("web-1"), TlsClient("worker-1")
    tokens = FILES.parent / "tokens"
    good = tokens.read_text(encoding="utf-8")
    replace_in_settings('\ntokens = ["web-1"]\n', "\ntokens = []\n")
    tokens.write_text(re.sub("^web-1 .*\n", "", good, flags=re.M), encoding="utf-8")
    equal(web.ask("use mail.out"), "USING mail.out")
    reload()
    output = journal("-u", UNIT, "-n", "20")
    true("role web: it names no client, and no listener has it" in output, output)
    equal(web.rest(), b"")
    true(worker.ask("watch mail.out").startswith("WATCHING "), "the other role's client")
    output = tubectl("put", "-t", "mail.out", "x", token="web-1", code=1)
    true("does not accept the token" in output, output)
    replace_in_settings("\ntokens = []\n", '\ntokens = ["web-1"]\n')
    tokens.write_text(good, encoding="utf-8")
    reload()
    put_and_work()
    web.close()
    worker.close()


def clients_with_certificates():
    shutil.copy(DIRECTORY / "ca.pem", FILES / "ca.pem")
    good = SETTINGS.read_text(encoding="utf-8")
    listener = block("toml", "Certificates of clients").split("[[role]]", maxsplit=1)
    changed = re.sub(r"\[\[listen\]\]\naddress = \"0\.0\.0\.0:11301\"\n.*?\n\n", listener[0], good,
                     flags=re.S)
    subjects = re.search(r"^subjects = .*\n", listener[1], re.M)[0]
    tokens = '\ntokens = ["worker-1"]\n'
    true(changed != good and tokens in changed, changed)
    write_settings(changed.replace(tokens, tokens + subjects))
    reload()
    output = commands("Certificates of clients")
    true("subject=CN=worker 1\n" in output and "current-jobs-ready" in output, output)
    try:
        client = TlsClient()
        rest = client.rest()
        client.close()
        raise AssertionError(f"a client without a certificate is served: {rest!r}")
    except (ssl.SSLError, ConnectionResetError):
        pass
    client = TlsClient(certificate=("server.pem", "server.key"))
    equal(client.rest(), b"UNAUTHORIZED\r\n")
    client.close()
    write_settings(good)
    reload()
    TlsClient("web-1").close()


def a_deploy_hook_of_certbot():
    lineage = pathlib.Path("/etc/letsencrypt/live") / NAME
    lineage.mkdir(parents=True)
    lines = lines_of("tls.md", "1. Certificates")
    in_directory(only(lines, "openssl x509 -req -in server.csr"))
    shutil.copy(DIRECTORY / "server.pem", lineage / "fullchain.pem")
    shutil.copy(DIRECTORY / "server.key", lineage / "privkey.pem")
    hook = DIRECTORY / "hook"
    hook.write_text(block("sh", "Certificates of Let's Encrypt"), encoding="utf-8")
    hook.chmod(0o755)
    before = served_serial()
    run("env", "RENEWED_LINEAGE=/etc/letsencrypt/live/another", str(hook))
    equal(serial_on_disk(), before)
    run("env", f"RENEWED_LINEAGE={lineage}", str(hook))
    true(serial_on_disk() != before, before)
    until("the new certificate", lambda: served_serial() == serial_on_disk())


def users_of_the_machine():
    good = CONFIG.read_text(encoding="utf-8")
    for user in ("ada", "eve"):
        run("useradd", "--system", user)
    for user in ("ada", "eve", "www-data"):
        run("usermod", "-aG", "tubed", user)
    listener, roles = re.fullmatch(r"(.*?\n)\n(\[\[role\]\].*)",
                                   block("toml", "Users of the machine"), re.S).groups()
    plain = listener.replace('auth = "peer"\n', "")
    true(plain in good and plain != listener, listener)
    CONFIG.write_text(good.replace(plain, listener) + "\n" + roles, encoding="utf-8")

    def expect(text, user, *arguments):
        output = run("runuser", "-u", user, "--", "tubectl", "-s", LOCAL, *arguments, code=None)
        true(text in output, user, arguments, output)

    # Without the drop-in, the sandbox hides all users but root.
    systemctl("restart", UNIT)
    output = journal("-u", UNIT, "-n", "20")
    true("does not see the users of its clients; see PrivateUsers=" in output, output)
    expect("current-jobs-ready", "root", "stats")
    for user in ("ada", "www-data", "eve"):
        expect("UNAUTHORIZED", user, "stats")
    drop_in(block("ini", "Users of the machine"))
    systemctl("restart", UNIT)
    for user in ("root", "ada"):
        expect("current-jobs-ready", user, "stats")
    expect("\n", "www-data", "put", "-t", "site", "x")
    expect("DENIED", "www-data", "stats")
    expect("UNAUTHORIZED", "eve", "stats")
    expect("1", "ada", "clear", "--yes", "site")
    put_and_work()
    CONFIG.write_text(good, encoding="utf-8")
    drop_in("")
    systemctl("restart", UNIT)


def a_key_that_only_root_can_read():
    good = SETTINGS.read_text(encoding="utf-8")
    heading = "Keys that only root can read"
    drop = block("ini", heading)
    key, tokens = (pathlib.Path(path) for path in re.findall(r"^LoadCredential=\S+?:(.*)$", drop,
                                                             re.M))
    keys = dict(re.findall(r"`(key|tokens) = \"([^\"]*)\"`", section(heading)))
    equal(sorted(keys), ["key", "tokens"])
    for setting, old, new in (("key", FILES / "key.pem", key),
                              ("tokens", FILES.parent / "tokens", tokens)):
        run("install", "-D", "-m", "0600", str(old), str(new))
        replace_in_settings(f'{setting} = "{old}"', f'{setting} = "{keys[setting]}"')
    (FILES / "key.pem").rename(DIRECTORY / "key.pem")
    drop_in(drop)
    systemctl("restart", UNIT)
    put_and_work()
    check_sandbox()
    equal(exposure(), SCORE[0])
    # The check of a reload sees the files that the server sees.
    before = served_serial()
    new_certificate()
    reload()
    equal(served_serial(), serial_on_disk())
    true(served_serial() != before, before)
    put_and_work()
    append("nonsense = ")
    reload_refused("tls.toml:")
    write_settings(SETTINGS.read_text(encoding="utf-8").replace("nonsense = ", ""))
    # Without one of the files the service stays stopped, and clients are refused.
    away = key.with_suffix(".away")
    key.rename(away)
    systemctl("restart", UNIT, code=1)
    expect_failed_service(243, "")
    shown = systemctl("status", UNIT, code=None)
    true("status=243/CREDENTIALS" in shown, shown)
    output = journal("-u", UNIT, "-n", "20")
    true("exit code 243: sockets closed" in output, output)
    equal(state(SOCKET), "inactive")
    away.rename(key)
    systemctl("start", UNIT)
    sockets_are_open()
    put_and_work()
    (DIRECTORY / "key.pem").rename(FILES / "key.pem")
    write_settings(good)
    drop_in("")
    systemctl("restart", UNIT)
    put_and_work()


def metrics_with_tls():
    good = SETTINGS.read_text(encoding="utf-8")
    shutil.copy(DIRECTORY / "ca.pem", FILES / "prometheus.pem")
    append("\n" + block("toml", "HTTP with TLS"))
    equal(check_settings(), "")
    enabled = systemctl("is-enabled", HTTP_SOCKET, code=None).strip()
    systemctl("enable", HTTP_SOCKET)
    systemctl("restart", UNIT)
    context = ssl.create_default_context(cafile=DIRECTORY / "ca.pem")
    context.check_hostname = False  # the page's certificate has no address

    def fetch_metrics():
        with urllib.request.urlopen(f"https://{HTTP}/metrics", timeout=SECONDS,
                                    context=context) as answer:
            return answer.read().decode()

    try:
        fetch_metrics()
        raise AssertionError("a client without a certificate is served")
    except OSError:
        pass
    context.load_cert_chain(DIRECTORY / "client.pem", DIRECTORY / "client.key")
    page = fetch_metrics()
    expiry = re.search(r"^tubed_tls_certificate_expiry_seconds (\S+)$", page, re.M)
    true(expiry, page)
    text = run("openssl", "x509", "-in", str(CERTIFICATE), "-noout", "-enddate")
    equal(float(expiry[1]), ssl.cert_time_to_seconds(text.strip().removeprefix("notAfter=")))
    write_settings(good)
    if enabled != "enabled":
        systemctl("disable", "--now", HTTP_SOCKET)
    systemctl("restart", UNIT)


TRIALS = (
    a_tls_socket_without_settings_stops_the_start, a_service_with_tls_and_two_roles_by_its_page,
    clients_of_both_roles, clients_that_are_refused, the_sandbox_with_tls,
    a_reload_with_another_certificate, a_removed_token_and_its_clients, clients_with_certificates,
    a_deploy_hook_of_certbot, users_of_the_machine, a_key_that_only_root_can_read,
    metrics_with_tls)
