#!/usr/bin/env python3
"""Runs the test of one helper of contrib/test-mode/ with the test framework of its language.

  run.py --server build/dev/src/tubed ruby
  run.py --server build/dev/src/tubed --npm-dir build/dev/tests/clients/npm node

The test finds the server in TUBED. Exits with the exit code of the framework, and with 1 if fewer
tests passed than the file has.
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
CONTRIB = HERE.parents[1] / "contrib" / "test-mode"
SECONDS = 120

sys.path.insert(0, str(HERE.parent / "clients"))
from run_client import install_from_npm  # noqa: E402

# The command, the file with the tests, the pattern of a test, and the pattern of the number of
# passed tests.
LANGUAGES = {
    "ruby": (["ruby"], "tubed_test_test.rb", r"^  def test_", r"^(\d+) runs, .* 0 skips$"),
    "hydroponic": (["ruby"], "hydroponic_test.rb", r"^  def test_", r"^(\d+) runs, .* 0 skips$"),
    "python": (["pytest-3", "-q", "-p", "no:cacheprovider"], "test_tubed_test.py", r"^def test_",
               r"^(\d+) passed"),
    "node": (["node", "--test"], "tubed-test.test.mjs", r"^test\(", r"^# pass (\d+)$"),
    "php": (["phpunit", "--no-configuration", "--do-not-cache-result"], "TubedTestTest.php",
            r"^    public function test", r"^OK \((\d+) tests"),
}


def run(command, **options):
    done = subprocess.run(command, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    print(done.stdout)
    return done.returncode, done.stdout


def run_go(environment):
    """Runs the Go test, in a module that contains the helper and its test as one package."""
    tests = HERE / "tubedtest_test.go"
    with tempfile.TemporaryDirectory(prefix="tubed-go-") as directory:
        for file in (CONTRIB / "tubedtest.go", tests):
            shutil.copy(file, directory)
        pathlib.Path(directory, "go.mod").write_text("module tubedtest\n\ngo 1.19\n",
                                                     encoding="utf-8")
        environment |= {"GOPROXY": "off", "GOFLAGS": "-mod=mod",
                        "GOCACHE": f"{directory}/cache", "GOPATH": f"{directory}/path"}
        code, output = run(["go", "test", "-v"], cwd=directory, env=environment)
    return code, len(re.findall(r"^--- PASS", output, re.M)), tests, r"^func Test"


def run_language(language, environment):
    command, name, beginning, count = LANGUAGES[language]
    file = HERE / name
    code, output = run([*command, str(file)], cwd=HERE, env=environment)
    passed = re.search(count, output, re.M)
    return code, int(passed[1]) if passed else 0, file, beginning


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    parser.add_argument("--npm-dir", type=pathlib.Path)
    parser.add_argument("language", choices=[*LANGUAGES, "go"])
    options = parser.parse_args()
    environment = os.environ | {"TUBED": str(options.server.resolve())}
    if options.npm_dir:
        install_from_npm(options.npm_dir.resolve())
        environment["TUBED_TEST_NPM_DIR"] = str(options.npm_dir.resolve())
    if options.language == "go":
        code, passed, file, beginning = run_go(environment)
    else:
        code, passed, file, beginning = run_language(options.language, environment)
    expected = len(re.findall(beginning, file.read_text(encoding="utf-8"), re.M))
    if code == 0 and passed != expected:
        print(f"run.py: {passed} of {expected} tests of {file.name} passed", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
