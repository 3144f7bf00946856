#!/usr/bin/env python3
"""Starts a server on a free loopback port, runs one real client against it, and stops the server.

  run_client.py --server build/dev/src/tubed tests/clients/beaneater.rb
  run_client.py --server /usr/bin/beanstalkd tests/clients/pheanstalk.php
  run_client.py --server … --npm-dir build/dev/tests/clients/npm tests/clients/jackd.mjs

The client finds the server in TUBED_TEST_HOST and TUBED_TEST_PORT. Exits with the client's exit
code, or 1 if the server did not start, crashed, or did not stop at the signal.

beanstalkd 1.12 sometimes fails the checks of an expired TTR: about once in 25 times it loses
the timer and leaves the job reserved. In tubed that is a failure.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

INTERPRETERS = {".rb": "ruby", ".php": "php", ".mjs": "node"}
# The last resort against a hang: the start and the end of a server, an installation, a client.
SECONDS = 600


class Failure(Exception):
    pass


class Server:
    """One server process. Its stderr is kept, and shown if something failed."""

    def __init__(self, command, **options):
        self.log = []
        self.address = None
        self.listening_or_ended = threading.Event()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **options)
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for raw in self.process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            self.log.append(line)
            found = re.search(r"\baddress=\"?(127\.0\.0\.1):(\d+)", line)
            if "listening" in line and found:
                self.address = found[1], int(found[2])
                self.listening_or_ended.set()
        self.listening_or_ended.set()

    def wait_for_address(self):
        self.listening_or_ended.wait(SECONDS)
        if not self.address:
            raise Failure(f"the server ended, or did not log its address within "
                          f"{SECONDS} s")
        return self.address

    def end(self):
        """Ends this process and no other; fails if it had ended already or does not end."""
        died = self.process.poll()
        if died is not None:
            self.reader.join(SECONDS)
            raise Failure(f"the server ended by itself with {died}")
        self.process.terminate()
        try:
            code = self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"the server did not end within {SECONDS} s of SIGTERM") from None
        finally:
            self.reader.join(SECONDS)
        if code not in (0, -signal.SIGTERM):  # the report of a sanitizer, or an assertion
            raise Failure(f"the server ended with {code}")


def start_tubed(path, directory):
    server = Server([path, "--listen", "127.0.0.1:0"], cwd=directory)
    return server, server.wait_for_address


# beanstalkd cannot choose a free port, but accepts a listening socket as systemd passes it: as
# descriptor 3, with LISTEN_PID naming the receiving process.
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def start_beanstalkd(path, directory):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        server = Server([sys.executable, "-c", HAND_OVER, str(listener.fileno()), path],
                        cwd=directory, pass_fds=(listener.fileno(),))
    return server, lambda: address


STARTERS = {"tubed": start_tubed, "beanstalkd": start_beanstalkd}


def install_from_npm(directory, source=None):
    """Installs the packages that package.json pins into `directory`, unless they are installed.
    `source`: another file of that name."""
    source = source or pathlib.Path(__file__).with_name("package.json")
    pinned = json.loads(source.read_text())["dependencies"]

    def installed(name):
        try:
            package = directory / "node_modules" / name / "package.json"
            return json.loads(package.read_text())["version"]
        except (OSError, ValueError, KeyError):
            return None

    if all(installed(name) == version for name, version in pinned.items()):
        return
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, directory)
    # No lock file: it would contain the registry that this machine happens to use.
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
               "--ignore-scripts", "--no-update-notifier", "--prefer-offline"]
    try:
        done = subprocess.run(command, cwd=directory, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"npm install: {error}") from None
    if done.returncode != 0:
        raise Failure(f"npm install ended with {done.returncode}:\n{done.stdout}")


def run_client(script, address, npm_dir):
    environment = os.environ | {"TUBED_TEST_HOST": address[0], "TUBED_TEST_PORT": str(address[1])}
    if npm_dir:
        environment["TUBED_TEST_NPM_DIR"] = str(npm_dir)
    try:
        command = [INTERPRETERS[script.suffix], str(script)]
        return subprocess.run(command, env=environment, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL).returncode
    except OSError as error:
        raise Failure(f"{script.name}: {error}") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"{script.name} did not end within {SECONDS} s") from None


def run(options):
    if options.npm_dir:
        install_from_npm(options.npm_dir)
    with tempfile.TemporaryDirectory(prefix="tubed-client-") as directory:
        path = str(pathlib.Path(options.server).resolve())
        server, address = STARTERS[options.kind or pathlib.Path(path).name](path, directory)
        problems = []
        try:
            code = run_client(options.script, address(), options.npm_dir)
        except Failure as problem:
            code = 1
            problems.append(problem)
        finally:
            try:
                server.end()
            except Failure as problem:
                problems.append(problem)
    for problem in problems:
        print(f"run_client: {problem}", file=sys.stderr)
    if problems or code != 0:
        print("run_client: the server's last lines:", *server.log[-40:], sep="\n  ",
              file=sys.stderr)
    if problems:
        return 1
    return code if code >= 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the server's program")
    parser.add_argument("--kind", choices=sorted(STARTERS),
                        help="the kind of the server (default: its file name)")
    parser.add_argument("--npm-dir", type=pathlib.Path, help="where npm packages are installed")
    parser.add_argument("script", type=pathlib.Path)
    options = parser.parse_args()
    if not options.kind and pathlib.Path(options.server).name not in STARTERS:
        parser.error("--kind is needed to know how to start this server")
    if options.script.suffix not in INTERPRETERS:
        parser.error(f"no interpreter known for {options.script.name}")
    if options.npm_dir:
        options.npm_dir = options.npm_dir.resolve()
    options.script = options.script.resolve()
    try:
        return run(options)
    except (Failure, OSError) as error:
        print(f"run_client: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
