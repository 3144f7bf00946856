#!/usr/bin/env python3
"""Starts servers, fills them, and runs a script that looks at their console in headless Chromium.

  run_console.py --npm-dir build/dev/tests/console/npm tests/console/views.mjs
  run_console.py --npm-dir … tests/console/actions.mjs --only 'keyboard'
  run_console.py --npm-dir … --fill empty tests/console/tasks.mjs
  run_console.py --npm-dir … --fill pictures tests/console/pictures.mjs --out docs/pictures
  run_console.py --npm-dir … --fill still tests/console/looks.mjs --out tests/console/looks

The server under test is $TUBED_PROGRAM, as for the tests of tests/daemon. By default it serves 300 tubes
and 4,000 jobs, among them hostile names and bodies; two small servers differ in http.auth and
http.api. The script gets addresses and ids as JSON in TUBED_CONSOLE, and controls the servers by
requests to `control`:

  POST /kill     kills the full server with SIGKILL, and returns when it has ended
  POST /start    starts it again, with the same addresses and the same journal
  POST /load?N   starts a process that changes N tubes each second
  POST /shop     the same, as the producers and workers of a shop do
  POST /idle     ends that process

A script ends with 0 if all its tests have passed.
"""

import argparse
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "clients"), str(HERE.parent / "daemon"), str(HERE)]
from harness import Client, Daemon, parse_address, write_tokens  # noqa: E402
from run_client import install_from_npm  # noqa: E402
import fill  # noqa: E402

TOKENS = {name: f"tbd_token-of-{name}" for name in ("ops", "watcher", "producer", "mailer")}
TITLE = "<b>prod</b> – a title with as many bytes as it may have, " + "x" * 5
ROLES = """
[[role]]
name = "ops"
verbs = ["produce", "work", "inspect", "admin"]
tokens = ["ops"]

[[role]]
name = "watcher"
verbs = ["inspect"]
tokens = ["watcher"]

[[role]]
name = "producer"
verbs = ["produce"]
tokens = ["producer"]

[[role]]
name = "mailer"
verbs = ["produce", "work", "inspect", "admin"]
tubes = ["mail*"]
tokens = ["mailer"]
"""


class Full:
    """The server with all tubes, which can be killed and restarted at the same addresses."""

    def __init__(self, directory, is_still):
        journal = directory / "journal"
        journal.mkdir()
        self.flags = ["--http-api", "full"]
        if is_still:  # its clock is moved by command
            self.flags += ["--test-mode", "--no-stdin", "--log-level", "info"]
        else:
            self.flags += ["--journal-directory", str(journal),
                           "--limits-job-bytes", str(fill.MAX_JOB_BYTES),
                           "--http-max-tubes", str(2 * fill.CROWD)]
        self.clients = []
        self.daemon = self.serve("127.0.0.1:0", "127.0.0.1:0")

    def serve(self, address, http_address):
        return Daemon(["--listen", address, "--http-listen", http_address, *self.flags])

    def kill(self):
        for client in self.clients:
            client.close()
        self.clients.clear()
        self.daemon.kill()

    def start(self):
        self.daemon = self.serve(self.daemon.addresses[0], self.daemon.http_addresses[0])


class Load:
    """The process that changes the full server's jobs, if it runs."""

    def __init__(self, full):
        self.full = full
        self.process = None

    def start(self, script, *arguments):
        self.stop()
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), self.full.daemon.addresses[0], *arguments],
            stdin=subprocess.DEVNULL)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None


def token_settings(directory):
    """Returns the flags of a server whose clients authenticate with TOKENS."""
    tokens = write_tokens(directory / "tokens", TOKENS)
    path = directory / "tubed.toml"
    path.write_text(f'http.api = "full"\nhttp.auth = "token"\nauth.tokens = "{tokens}"\n'
                    f'http.title = "{TITLE}"\nhttp.color = "#ffd000"\n{ROLES}', encoding="utf-8")
    return ["--config", str(path)]


def control_server(actions):
    """Answers POST /NAME?ARGUMENT after calling `actions["/NAME"]` with the argument."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            path, _, argument = self.path.partition("?")
            try:
                actions[path](argument)
                self.send_response(204)
            except Exception as error:  # pylint: disable=broad-except
                print(f"run_console: {self.path}: {error}", file=sys.stderr)
                self.send_response(500)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def url(daemon):
    return f"http://{daemon.http_addresses[0]}/"


def run(options, arguments):
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="tubed-console-", ignore_cleanup_errors=True)))
        full = Full(directory, options.fill == "still")
        stack.callback(lambda: full.daemon.end())  # the latest daemon
        facts = getattr(fill, options.fill)(full)
        small = {}
        for name, flags in (("token", token_settings(directory)), ("read", ["--http-api", "read",
                                                       "--http-color", "purple"])):
            daemon = Daemon(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *flags])
            stack.callback(daemon.end)
            with contextlib.closing(Client(daemon.addresses[0])) as client:
                fill.small(client)
            small[name] = url(daemon)
        load = Load(full)
        stack.callback(load.stop)
        control = control_server({
            "/kill": lambda _: full.kill(), "/start": lambda _: full.start(),
            "/load": lambda tubes: load.start("load.py", tubes),
            "/shop": lambda _: load.start("shop.py"), "/idle": lambda _: load.stop()})
        stack.callback(control.server_close)
        stack.callback(control.shutdown)
        host, port = parse_address(full.daemon.addresses[0])[1]
        variables = {
            "npm": str(options.npm_dir), "directory": str(directory),
            "failures": str(options.npm_dir.parent / "failures"),
            "control": f"http://127.0.0.1:{control.server_address[1]}",
            "queue": {"host": host, "port": port}, "tokens": TOKENS, "title": TITLE,
            "urls": {"full": url(full.daemon), **small}, "facts": facts}
        command = ["node", str(options.script), *arguments]
        code = subprocess.run(command, env=os.environ | {"TUBED_CONSOLE": json.dumps(variables)},
                              stdin=subprocess.DEVNULL, check=False).returncode
        if code != 0:
            print("run_console: the server's last lines:", *full.daemon.lines[-20:], sep="\n  ",
                  file=sys.stderr)
        return code


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npm-dir", type=pathlib.Path, required=True,
                        help="where npm packages are installed")
    parser.add_argument("--fill", choices=["several", "crowd", "empty", "pictures", "still"],
                        default="several",
                        help="what the server has: 300 tubes, 10,000 tubes, nothing, the tubes of the pictures, or "
                             "a few tubes whose clock stands still")
    parser.add_argument("--install", action="store_true", help="only install the npm packages")
    parser.add_argument("script", type=pathlib.Path, nargs="?")
    options, arguments = parser.parse_known_args()
    options.npm_dir = options.npm_dir.resolve()
    install_from_npm(options.npm_dir, HERE / "package.json")
    if options.install:
        return 0
    if not options.script:
        parser.error("no script is named")
    options.script = options.script.resolve()
    return run(options, arguments)


if __name__ == "__main__":
    sys.exit(main())
