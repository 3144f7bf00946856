"""How soon the console paints, and how long its longest tasks are while 10,000 tubes change each second.

tests/console/figures.mjs takes the figures in headless Chromium. The baseline is a planted task of a second.
"""

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NPM = os.environ.get("TUBED_NPM_DIR") or ROOT / "build/measure/npm"


class Console(unittest.TestCase):
    def test_the_console(self):
        scripts = ROOT / "tests/console"
        done = subprocess.run([sys.executable, scripts / "run_console.py", "--npm-dir", NPM, "--fill", "crowd",
                               scripts / "figures.mjs"], check=False)
        self.assertEqual(done.returncode, 0, "not measured")


if __name__ == "__main__":
    unittest.main()
