#!/usr/bin/env python3
"""Runs the programs of docs/testing.md unchanged, each next to a copy of its helper.

The page marks a program with a comment before its block: <!-- program: NAME --> is run, <!-- not
run: NAME --> is not.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "clients"))
from run_client import install_from_npm  # noqa: E402

PROGRAM = re.compile(r"^<!-- (program|not run): (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```(?:python|ruby|php|js|go)$", re.M)
# The command for a suffix, and its output if one test has passed.
RUNNERS = {".py": (["pytest-3", "-q", "-p", "no:cacheprovider"], r"^1 passed"),
           ".rb": (["ruby"], r"^1 runs, 1 assertions, 0 failures, 0 errors, 0 skips$"),
           ".mjs": (["node", "--test"], r"^# pass 1$"),
           ".php": (["phpunit", "--no-configuration", "--do-not-cache-result"], r"^OK \(1 test")}
SECONDS = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    parser.add_argument("--npm-dir", required=True, type=pathlib.Path)
    options = parser.parse_args()
    install_from_npm(options.npm_dir.resolve())
    environment = os.environ | {"TUBED": str(options.server.resolve())}
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    programs = PROGRAM.findall(text)
    passed = len(FENCE.findall(text)) == len(programs)
    if not passed:
        print("FAIL  a program of the page is not marked")
    for mark, name, code in programs:
        if mark != "program":
            continue
        with tempfile.TemporaryDirectory(prefix="tubed-testing-") as directory:
            for helper in (ROOT / "contrib" / "test-mode").iterdir():
                shutil.copy(helper, directory)
            os.symlink(options.npm_dir.resolve() / "node_modules", f"{directory}/node_modules")
            pathlib.Path(directory, name).write_text(code, encoding="utf-8")
            command, success = RUNNERS[pathlib.Path(name).suffix]
            done = subprocess.run([*command, name], cwd=directory, env=environment, check=False,
                                  timeout=SECONDS, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        good = done.returncode == 0 and re.search(success, done.stdout, re.M) is not None
        print(f"{'ok   ' if good else 'FAIL '} {name}" + ("" if good else f"\n{done.stdout}"))
        passed = passed and good
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
