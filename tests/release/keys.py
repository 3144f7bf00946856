"""Keys of gpg that are made for a test, in a home directory of its own."""

import os
import subprocess
import tempfile
import time
import unittest

from run import run
from signing import Key

# The keys are older than any signature of a test, even one with a date in the past.
MADE = int(time.time()) - 400 * 86400


def make_key(name):
    run("gpg", "--batch", "--passphrase", "", "--faked-system-time", str(MADE), "--quick-generate-key",
        f"{name} <{name}@example.org>", "ed25519", "sign", "never")
    return Key(f"{name}@example.org")


class TestWithKeys(unittest.TestCase):
    """A test case with the keys `key`, of the maintainer, and `other_key`, of a stranger."""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="tubed-gpg-")
        cls.addClassCleanup(cls.home.cleanup)
        os.environ["GNUPGHOME"] = cls.home.name
        cls.addClassCleanup(subprocess.run, ["gpgconf", "--kill", "all"], check=False)
        cls.key, cls.other_key = make_key("maintainer"), make_key("stranger")
