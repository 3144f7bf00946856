"""Signatures by one key of gpg, and their verification without the maintainer's keyring."""

import pathlib
import re
import tempfile

from run import Problem, run


class Key:
    """A secret key of gpg: its fingerprint, or whatever names exactly one key."""

    def __init__(self, name):
        listed = run("gpg", "--batch", "--with-colons", "--list-secret-keys", name)
        found = re.findall(r"^sec:.*\n(?:grp:.*\n)?fpr:+([0-9A-F]{40}):", listed, re.MULTILINE)
        if len(found) != 1:
            raise Problem(f"--key {name}: {len(found)} secret keys have this name")
        self.fingerprint = found[0]

    def export(self, path):
        """The public key, which users install."""
        path.write_text(run("gpg", "--batch", "--armor", "--export-options", "export-minimal", "--export",
                            self.fingerprint), encoding="utf-8")

    def sign(self, how, source, target):
        """`how`: --clearsign, or --detach-sign, which is armored too."""
        run("gpg", "--batch", "--yes", "--armor", "--digest-algo", "SHA512", "--local-user",
            self.fingerprint, "--output", target, how, source)


def verify(public_key, *arguments):
    """Verifies as gpgv does: SIGNATURE FILE, or a clear-signed FILE; raises a Problem."""
    with tempfile.TemporaryDirectory() as directory:
        ring = pathlib.Path(directory) / "ring"
        run("gpg", "--batch", "--homedir", directory, "--dearmor", "--output", ring, public_key)
        run("gpgv", "--keyring", ring, *arguments)
