"""The quick start of the README: `tools/run`, and then `tubectl` by its name. Nothing is built: a
fake cmake copies the programs that tools/run would build.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/quick_start_test.py
"""

import os
import pathlib
import shutil
import subprocess
import unittest

from programs import SECONDS, TUBECTL, TubectlTest

import harness  # programs has added its folder to the path

RUN = pathlib.Path(__file__).resolve().parents[2] / "tools" / "run"
CMAKE = """#!/bin/sh
[ "$1" = --build ] || exit 0
for word; do
  case $word in
    tubed) mkdir -p build/run/src && ln -s "$TUBED" build/run/src/tubed ;;
    tubectl) mkdir -p build/run/src/tubectl && ln -s "$TUBECTL" build/run/src/tubectl ;;
  esac
done
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class QuickStart(TubectlTest):
    def setUp(self):
        super().setUp()
        # A shell would split this name at the space.
        self.root = self.directory / "a clone"
        write_program(self.root / "tools" / "install-deps", "#!/bin/sh\n")
        write_program(self.root / "bin" / "cmake", CMAKE)
        shutil.copy(RUN, self.root / "tools" / "run")
        self.path = f"{self.root / 'bin'}:{os.defpath}"
        program = harness.PROGRAM
        self.addCleanup(setattr, harness, "PROGRAM", program)
        self.programs = {"TUBED": str(pathlib.Path(program).resolve()), "TUBECTL": TUBECTL}
        harness.PROGRAM = str(self.root / "tools" / "run")

    def test_a_job_is_put_looked_at_and_worked_off(self):
        daemon = self.start(environment={**self.programs, "PATH": self.path})
        line = daemon.lines_with("export PATH=")[0]
        variables = {"PATH": os.defpath, "TUBED_SERVER": daemon.addresses[0]}
        script = (f"{line}\nset -e\ncommand -v tubed\ntubectl put -t mail 'to: ada'\n"
                  "tubectl peek 1\necho\ntubectl work -t mail --exit-when-idle 0 -- wc -c\n")
        done = subprocess.run(["bash", "-c", script], env=variables, text=True, timeout=SECONDS,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split("\n"), [f"{self.root}/build/run/src/tubed", "1",
                                                   "to: ada", "7", ""])


if __name__ == "__main__":
    unittest.main()
