"""The console and the HTTP API on the service, set up by the commands and settings of the installed
page console.md, and turned off again.

The trial begins and ends with an installed service without tokens and without tubed-http.socket.
"""

import http.client
import json
import pathlib
import re
import threading

from harness import SECONDS, until
from machine import (DOCS, DROP_INS, HTTP, HTTP_SOCKET, UNIT, ask, check_sandbox, equal,
                     http_is_closed, journal, lines_of, paste, reload, show, state, systemctl, true)

HEADING = "Enable it in the service"
DIRECTORY = pathlib.Path("/srv/operator")
SETTINGS = DROP_INS / "console.toml"
TOKENS = pathlib.Path("/etc/tubed/tokens")
API = "/api/v1"


def request(method, path, body=None, **headers):
    """(status, headers, body) of one request. An underscore in the name of a header is a hyphen."""
    connection = http.client.HTTPConnection(HTTP, timeout=SECONDS)
    try:
        connection.request(method, path, body,
                           {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def status_of(*arguments, **headers):
    return request(*arguments, **headers)[0]


def write_settings():
    """Writes the drop-in of the page."""
    text = (DOCS / "console.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {HEADING}\n(.*?)(?=^## )", text, re.M | re.S)[1]
    blocks = re.findall(r"^```toml\n(.*?)^```", section, re.M | re.S)
    equal((len(blocks), section.count(f"`{SETTINGS}`")), (1, 1))
    SETTINGS.write_text(blocks[0], encoding="utf-8")


def check_page():
    """The console is public, and loads nothing from elsewhere."""
    status, headers, page = request("GET", "/")
    equal(status, 200)
    policy = headers["Content-Security-Policy"]
    true("default-src 'none'" in policy and "script-src 'self'" in policy, policy)
    files = re.findall(rb'(?:src|href)="([^"#]+)"', page)
    true(b"console/dygraph.js" in files and len(files) > 10, files)
    for file in files:
        equal((file, status_of("GET", "/" + file.decode())), (file, 200))
    equal(re.findall(rb"https?://", page), [])


def check_access(bearer):
    own = {"Authorization": bearer}
    status, headers, body = request("GET", f"{API}/server")
    equal((status, headers["WWW-Authenticate"]), (401, "Bearer"))
    equal(headers["Content-Type"], "application/problem+json")
    equal(json.loads(body)["reply"], "UNAUTHORIZED")
    equal(status_of("GET", f"{API}/server", Authorization="Bearer " + "x" * 43), 401)
    status, _, body = request("GET", f"{API}/server", **own)
    equal((status, json.loads(body)["current-jobs-ready"]), (200, 0))
    jobs = f"{API}/tubes/mail/jobs"
    equal(status_of("POST", jobs, b"to: ada", **own), 403)
    equal(status_of("POST", jobs, b"to: ada", X_Requested_By="trial", **own,
                    Origin="http://elsewhere.example"), 403)
    equal(status_of("GET", f"{API}/server", **own, Host="elsewhere.example"), 421)
    equal(status_of("GET", "/metrics"), 401)
    equal(status_of("GET", "/metrics", **own), 200)
    for path in ("/healthz", "/readyz"):
        equal((path, status_of("GET", path)), (path, 200))


def put_and_reserve(bearer):
    """A job that is put over HTTP; (its id, the token that holds it)."""
    own = {"Authorization": bearer, "X_Requested_By": "trial"}
    status, _, body = request("POST", f"{API}/tubes/mail/jobs?ttr=600", b"to: ada", **own)
    equal(status, 201)
    job = json.loads(body)["id"]
    equal(request("GET", f"{API}/jobs/{job}/body", **own)[2], b"to: ada")
    status, _, body = request("POST", f"{API}/tubes/mail/reserve", **own)
    equal(status, 201)
    reserved = json.loads(body)
    equal((reserved["id"], reserved["body"]), (job, "to: ada"))
    equal(status_of("GET", f"{API}/reservations/{reserved['token']}", **own), 200)
    return job, reserved["token"]


def restart_while_browsers_connect():
    """No request is refused, because systemd keeps the socket."""
    statuses, over = set(), threading.Event()

    def browse():
        while not over.wait(0.005):
            try:
                statuses.add(status_of("GET", "/"))
            except (http.client.HTTPException, ConnectionResetError) as error:
                # A connection at the moment of the stop may end without an answer.
                statuses.add(f"ended: {type(error).__name__}")
            except OSError as error:
                statuses.add(repr(error))

    thread = threading.Thread(target=browse)
    thread.start()
    try:
        until("an answer", lambda: 200 in statuses)
        before = show("MainPID")
        systemctl("restart", UNIT)
        true(show("MainPID") != before, "not restarted")
        equal(status_of("GET", "/"), 200)
    finally:
        over.set()
        thread.join(SECONDS)
    equal({one for one in statuses if not str(one).startswith("ended: ")}, {200})


def reload_with(level):
    text = SETTINGS.read_text(encoding="utf-8")
    changed = re.sub(r'^api = "\w+"$', f'api = "{level}"', text, count=1, flags=re.M)
    true(changed != text, text)
    SETTINGS.write_text(changed, encoding="utf-8")
    reload()


def the_console_and_its_api():
    equal(systemctl("is-enabled", HTTP_SOCKET, code=None).strip(), "disabled")
    DIRECTORY.mkdir()
    write_settings()
    paste(f"cd {DIRECTORY}\n{lines_of('console.md', HEADING)}")
    equal(state(HTTP_SOCKET), "active")
    token = DIRECTORY / "ada.token"
    equal(oct(token.stat().st_mode & 0o777), "0o600")
    bearer = f"Bearer {token.read_text(encoding='utf-8').strip()}"
    check_page()
    check_access(bearer)
    job, held = put_and_reserve(bearer)
    true(f"listening for HTTP address={HTTP} inherited=http" in journal("-u", UNIT), "not logged")
    check_sandbox()
    restart_while_browsers_connect()
    # The job is in the journal, and the reservation ended with the process.
    own = {"Authorization": bearer, "X_Requested_By": "trial"}
    equal(status_of("GET", f"{API}/reservations/{held}", **own), 404)
    equal(json.loads(request("GET", f"{API}/jobs/{job}", **own)[2])["state"], "ready")
    equal(status_of("DELETE", f"{API}/jobs/{job}", **own), 200)
    reload_with("read")
    equal(status_of("GET", "/"), 200)
    equal(status_of("GET", f"{API}/tubes", **own), 200)
    for path in ("/tubes/mail/jobs", "/tubes/none/kick"):
        equal((path, status_of("POST", API + path, b"x", **own)), (path, 403))
    process = show("MainPID")
    reload_with("off")
    for path in ("/console/main.js", f"{API}/access", f"{API}/server"):
        equal((path, status_of("GET", path, **own)), (path, 404))
    true(b"console" not in request("GET", "/", **own)[2], "the page of the console is served")
    equal((status_of("GET", "/healthz"), show("MainPID")), (200, process))
    SETTINGS.unlink()
    TOKENS.unlink()
    systemctl("disable", "--now", HTTP_SOCKET)
    systemctl("restart", UNIT)
    http_is_closed()
    ask("list-tube-used")
