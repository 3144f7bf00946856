"""Signatures by one key of gpg, and their verification without the maintainer's keyring."""

import pathlib
import re
import tempfile
import time

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

    def sign(self, how, source, target, until=None):
        """`how`: --clearsign, or --detach-sign, which is armored too. `until`: when the signature expires,
        in seconds since 1970."""
        expires = [] if until is None else ["--default-sig-expire", f"seconds={until - int(time.time())}"]
        run("gpg", "--batch", "--yes", "--armor", "--digest-algo", "SHA512", *expires, "--local-user",
            self.fingerprint, "--output", target, how, source)

    def sign_rpm(self, path, gpg="/usr/bin/gpg"):
        """Signs the header of an .rpm, which has the digest of its contents."""
        run("rpmsign", "--define", f"_gpg_name {self.fingerprint}", "--define", f"__gpg {gpg}",
            "--define", "_gpg_digest_algo sha512", "--addsign", path)


def verify(public_key, *arguments):
    """Verifies as gpgv does: SIGNATURE FILE, or a clear-signed FILE; raises a Problem. Returns when the
    signature expires, in seconds since 1970, or None."""
    with tempfile.TemporaryDirectory() as directory:
        ring = pathlib.Path(directory) / "ring"
        run("gpg", "--batch", "--homedir", directory, "--dearmor", "--output", ring, public_key)
        status = run("gpgv", "--status-fd", "1", "--keyring", ring, *arguments)
    expires = int(re.search(r"^\[GNUPG:\] VALIDSIG \w+ \S+ \d+ (\d+) ", status, re.M)[1])
    return expires or None
