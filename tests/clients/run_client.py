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
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))

import harness  # noqa: E402
from harness import SECONDS, Daemon, parse_address, start_beanstalkd  # noqa: E402

INTERPRETERS = {".rb": "ruby", ".php": "php", ".mjs": "node"}


def check(claim, holds):
    if not holds:
        raise AssertionError(claim)
    print(f"ok    {claim}")


def start_tubed(program):
    harness.PROGRAM = program
    return Daemon(["--listen", "127.0.0.1:0"])


STARTERS = {"tubed": start_tubed, "beanstalkd": lambda program: start_beanstalkd(program=program)}


def end(server):
    """Ends the server. Fails if it had ended already, or if its exit code reports an error."""
    died = server.process.poll()
    code = server.end()
    if died is not None or code != server.expected_code:
        raise AssertionError(f"the server ended with {code}")


def install_from_npm(directory, source=None):
    """Installs the packages that package.json pins into `directory`, unless they are installed.
    `source`: another file of that format."""
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
    # No lock file, because it would contain the registry of this machine.
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
               "--ignore-scripts", "--no-update-notifier", "--prefer-offline"]
    try:
        done = subprocess.run(command, cwd=directory, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AssertionError(f"npm install: {error}") from None
    if done.returncode != 0:
        raise AssertionError(f"npm install ended with {done.returncode}:\n{done.stdout}")


def run_client(script, address, npm_dir):
    environment = os.environ | {"TUBED_TEST_HOST": address[0], "TUBED_TEST_PORT": str(address[1])}
    if npm_dir:
        environment["TUBED_TEST_NPM_DIR"] = str(npm_dir)
    try:
        command = [INTERPRETERS[script.suffix], str(script)]
        return subprocess.run(command, env=environment, timeout=SECONDS, check=False,
                              stdin=subprocess.DEVNULL).returncode
    except OSError as error:
        raise AssertionError(f"{script.name}: {error}") from None
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{script.name} did not end within {SECONDS} s") from None


def run(options):
    if options.npm_dir:
        install_from_npm(options.npm_dir)
    path = str(pathlib.Path(options.server).resolve())
    server = STARTERS[options.kind or pathlib.Path(path).name](path)
    problems = []
    try:
        code = run_client(options.script, parse_address(server.addresses[0])[1], options.npm_dir)
    except AssertionError as problem:
        code = 1
        problems.append(problem)
    try:
        end(server)
    except AssertionError as problem:
        problems.append(problem)
    for problem in problems:
        print(f"run_client: {problem}", file=sys.stderr)
    if problems or code != 0:
        print("run_client: the server's last lines:", *server.lines[-40:], sep="\n  ",
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
    except (AssertionError, OSError) as error:
        print(f"run_client: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
