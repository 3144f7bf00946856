"""tools/releasing/yum_repository.py on packages without programs: the faults that its check finds, and the
repositories that dnf refuses. Also the libraries that a package may require, which tools/releasing/rpms.py
checks.

dnf installs into an empty directory, with a cache, a log and a database of its own, from a file: URL, so
it changes nothing on this machine. Each test of a refusal first installs from the same repository
before it is changed.
"""

import gzip
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "releasing")]
import compare  # noqa: E402
import rpms  # noqa: E402
import yum_repository  # noqa: E402
from keys import TestWithKeys  # noqa: E402
from run import run, sha256  # noqa: E402

DAYS = 30
NOW = int(time.time())
ARCHITECTURES = ("x86_64", "aarch64")
MACHINE = os.uname().machine
# The message of dnf for each fault of the metadata's signature.
BAD = "Bad GPG signature"
SPEC = """Name: tubed
Version: {version}
Release: 1
Summary: nothing
License: MIT
{requires}
%description
Nothing.
%install
install -D -m 644 /dev/null %{{buildroot}}/usr/share/tubed/{version}
%files
/usr/share/tubed
"""


def make_package(directory, version, architecture, *requires):
    tree = directory / f"{version}-{architecture}"
    tree.mkdir()
    lines = "\n".join(f"Requires: {each}" for each in requires)
    (tree / "tubed.spec").write_text(SPEC.format(version=version, requires=lines), encoding="utf-8")
    run("rpmbuild", "-bb", "--nodeps", "--dbpath", tree / "database", "--target", architecture,
        "--define", f"_topdir {tree}", "--define", "debug_package %{nil}", tree / "tubed.spec")
    return next(tree.glob("RPMS/*/*.rpm"))


# Replaces gpg: the signature has numbers of 32 and SHORT bytes. gpg omits the leading zeros of a
# number, so one of 128 signatures is shorter than the others.
SHORTENING_GPG = """#!/usr/bin/python3
import pathlib, struct, subprocess, sys
subprocess.run(["/usr/bin/gpg", *sys.argv[1:]], check=True)
if "-sbo" in sys.argv:
    file = pathlib.Path(sys.argv[sys.argv.index("-sbo") + 1])
    packet = file.read_bytes()
    assert packet[0] == 0x88 and packet[1] == len(packet) - 2, packet[:2]
    body = packet[2:]
    end = 4
    for _ in ("hashed", "not hashed"):
        end += 2 + struct.unpack_from(">H", body, end)[0]
    body = body[:end + 2]  # with the first bytes of the hash
    for length in 32, SHORT:
        body += struct.pack(">H", 8 * length) + length * bytes([255])
    file.write_bytes(bytes([0x88, len(body)]) + body)
"""


def signature_lengths(package):
    """Returns the size of each signature of an .rpm, by its tag."""
    data = package.read_bytes()
    count = struct.unpack_from(">I", data, 96 + 8)[0]
    entries = [struct.unpack_from(">4I", data, 96 + 16 + 16 * index) for index in range(count)]
    return {tag: size for tag, _, _, size in entries if tag in (267, 268, 1002, 1005)}


class Dnf:
    """dnf with directories of its own."""

    def __init__(self, directory, repository, key):
        self.directory = directory
        for name in ("root", "repos", "home", "cachedir", "persistdir", "logdir"):
            (directory / name).mkdir(parents=True)
        (directory / "dnf.conf").touch()
        (directory / "repos/tubed.repo").write_text(
            f"[tubed]\nname=tubed\nbaseurl=file://{repository}/$basearch\ngpgcheck=1\nrepo_gpgcheck=1\n"
            f"gpgkey=file://{key}\n", encoding="utf-8")

    def __call__(self, *arguments):
        """Returns (exit code, output and errors)."""
        options = [f"--setopt={name}={self.directory}/{name}" for name in ("cachedir", "persistdir", "logdir")]
        # dnf works only as root, even here.
        as_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
        done = subprocess.run([*as_root, "dnf", f"--config={self.directory}/dnf.conf", "--releasever=1",
                               f"--installroot={self.directory}/root", f"--setopt=reposdir={self.directory}/repos",
                               *options, "--noplugins", "--assumeyes", *arguments],
                              check=False, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.directory,
                              env=os.environ | {"HOME": str(self.directory / "home"), "LC_ALL": "C.UTF-8"})
        return done.returncode, done.stdout

    def installed(self):
        """Returns the installed version, or None."""
        found = list(self.directory.glob("root/usr/share/tubed/*"))
        return found[0].name if found else None


class YumTest(TestWithKeys):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.packages = tempfile.TemporaryDirectory(prefix="tubed-yum-")
        cls.addClassCleanup(cls.packages.cleanup)
        directory = pathlib.Path(cls.packages.name)
        cls.older = make_package(directory, "1.0.0", MACHINE)
        cls.unsigned = [make_package(directory, "2.0.0", each) for each in ARCHITECTURES]
        cls.trusted = directory / "trusted.asc"
        cls.key.export(cls.trusted)
        cls.fine = directory / "fine"
        yum_repository.add(cls.fine, cls.unsigned)
        yum_repository.index(cls.fine, NOW, DAYS, cls.key)

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-yum-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.repository = self.directory / "repository"
        # Keeps the times of the files, which are a part of the metadata.
        shutil.copytree(self.fine, self.repository)
        self.mine = self.repository / MACHINE
        self.package = next(self.mine.glob("Packages/*.rpm"))
        self.repomd = self.mine / "repodata/repomd.xml"
        self.attempts = 0

    def faults(self, now=NOW + 60):
        return list(yum_repository.check(self.repository, self.trusted, now))

    def dnf(self):
        self.attempts += 1
        return Dnf(self.directory / f"dnf-{self.attempts}", self.repository, self.trusted)

    def installs(self, expected="2.0.0"):
        dnf = self.dnf()
        code, text = dnf("install", "tubed")
        self.assertEqual((code, dnf.installed()), (0, expected), text)

    def refused(self, reason):
        dnf = self.dnf()
        code, text = dnf("install", "tubed")
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, reason)
        self.assertIsNone(dnf.installed())

    def write_metadata(self):
        """Writes and signs the metadata of the packages."""
        yum_repository.write_metadata(self.mine, NOW)
        self.sign_metadata(self.key)

    def sign_metadata(self, key):
        key.sign("--detach-sign", self.repomd, self.repomd.with_name("repomd.xml.asc"), NOW + DAYS * 86400)

    # --- A correct repository

    def test_dnf_installs_from_it(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(sorted(each.name for each in self.repository.iterdir()), sorted(ARCHITECTURES))
        self.installs()

    def test_an_older_package_is_added(self):
        yum_repository.add(self.repository, [self.older])
        yum_repository.index(self.repository, NOW, DAYS, self.key)
        self.assertEqual(self.faults(), [])
        dnf = self.dnf()
        for command, expected in (("install", "2.0.0"), ("downgrade", "1.0.0"), ("upgrade", "2.0.0")):
            code, text = dnf(command, "tubed")
            self.assertEqual((code, dnf.installed()), (0, expected), text)

    def test_the_same_input_gives_the_same_bytes(self):
        before = {path: sha256(path) for path in sorted(self.repository.rglob("*")) if path.is_file()}
        for path in self.repository.rglob("*.rpm"):
            os.utime(path)
        yum_repository.index(self.repository, NOW, DAYS, self.key)
        changed = {path.name for path, hashed in before.items() if sha256(path) != hashed}
        self.assertLessEqual(changed, {"repomd.xml.asc"})

    def test_it_is_renewed(self):
        later = NOW + (DAYS + 1) * 86400
        packages = {path: path.read_bytes() for path in self.repository.rglob("*.rpm")}
        self.assertEqual(len(packages), 2)
        self.assertEqual([fault.split(":")[:2] for fault in self.faults(later)],
                         [[each, f" valid until {time.strftime('%Y-%m-%d %H', time.gmtime(NOW + DAYS * 86400))}"]
                          for each in sorted(ARCHITECTURES)])
        yum_repository.index(self.repository, later, DAYS, self.key)
        self.assertEqual(self.faults(later), [])
        self.assertEqual({path: path.read_bytes() for path in self.repository.rglob("*.rpm")}, packages)
        self.installs()

    def test_signatures_are_not_compared(self):
        yum_repository.index(self.repository, NOW - 60, DAYS + 1, self.other_key)
        self.assertNotEqual(self.package.read_bytes(), next(self.fine.glob(f"{MACHINE}/*/*.rpm")).read_bytes())
        self.assertEqual(compare.compare(self.fine, self.repository), [])
        data = self.package.read_bytes()
        for other in self.older.read_bytes(), data[:-1] + bytes([data[-1] ^ 1]):
            self.package.write_bytes(other)
            self.assertEqual(compare.compare(self.fine, self.repository),
                             [f"{MACHINE}/Packages/{self.package.name}: not the same bytes"])

    def test_signatures_of_two_lengths_are_not_compared(self):
        """rpmsign reserves a different amount of space when it removes a shorter signature."""
        unsigned = self.unsigned[ARCHITECTURES.index(MACHINE)]
        releases, lengths = [], []
        for short in 32, 31:
            gpg = self.directory / f"gpg-{short}"
            gpg.write_text(SHORTENING_GPG.replace("SHORT", str(short)), encoding="utf-8")
            gpg.chmod(0o755)
            release = self.directory / f"release-{short}"
            release.mkdir()
            package = release / "tubed.rpm"
            shutil.copy(unsigned, package)
            self.key.sign_rpm(package, gpg)
            releases.append(release)
            lengths.append(signature_lengths(package))
        self.assertEqual(list(lengths[0]), [267])
        self.assertEqual(lengths[1], {267: lengths[0][267] - 1})
        self.assertEqual(compare.compare(*releases), [])
        # Every part except the signatures is compared: the lead, the header and the payload.
        package = releases[1] / "tubed.rpm"
        data = package.read_bytes()
        header = data.index(bytes.fromhex("8eade801"), 96 + 4)
        for changed in 10, header + 20, len(data) - 1:
            package.write_bytes(data[:changed] + bytes([data[changed] ^ 1]) + data[changed + 1:])
            self.assertEqual(compare.compare(*releases), ["tubed.rpm: not the same bytes"], changed)
        # Truncated files, even within the signature, differ from the complete file.
        for length in 0, 50, 100, 200, header, len(data) - 1:
            package.write_bytes(data[:length])
            self.assertEqual(compare.compare(*releases), ["tubed.rpm: not the same bytes"], length)

    # --- Repositories that must not be trusted

    def test_a_package_that_is_signed_with_another_key(self):
        self.installs()
        self.other_key.sign_rpm(self.package)
        self.write_metadata()
        self.assertRegex("\n".join(self.faults()), r"(?s)^\S+\.rpm: .*Signature, key ID \w+: NOKEY")
        self.refused(r"Public key for tubed\S+ is not installed")

    def test_a_package_without_a_signature(self):
        self.installs()
        shutil.copy(self.unsigned[ARCHITECTURES.index(MACHINE)], self.package)
        self.write_metadata()
        self.assertRegex("\n".join(self.faults()), r"(?s)^\S+\.rpm: .*Header DSA signature: NOTFOUND")
        self.refused(r"Package tubed\S+ is not signed")

    def test_a_package_with_other_bytes(self):
        self.installs()
        before = self.package.read_bytes()
        self.package.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        self.assertIn(f"{MACHINE}/Packages/{self.package.name}: not the file that primary.xml names", self.faults())
        self.refused("incorrect checksum")
        # The same with metadata that names the package.
        self.write_metadata()
        self.assertRegex("\n".join(self.faults()), r"(?s)^\S+\.rpm: .*Payload SHA256 digest: BAD")
        self.refused("Problem opening package")

    def test_an_altered_primary(self):
        self.installs()
        primary = next(self.mine.glob("repodata/*-primary.xml.gz"))
        text = gzip.decompress(primary.read_bytes())
        self.assertIn(b"2.0.0", text)
        primary.write_bytes(gzip.compress(text.replace(b"2.0.0", b"2.0.1"), mtime=0))
        self.assertIn(f"{MACHINE}/repodata/{primary.name}: not the file that repomd.xml names", self.faults())
        self.refused("checksum doesn't match")

    def test_an_altered_repomd(self):
        self.installs()
        text = self.repomd.read_text(encoding="utf-8")
        self.repomd.write_text(re.sub("<revision>.", "<revision>9", text), encoding="utf-8")
        self.assertRegex("\n".join(self.faults()), f"(?s)^{MACHINE}: .*BADSIG")
        self.refused(BAD)

    def test_metadata_without_a_signature(self):
        self.installs()
        self.repomd.with_name("repomd.xml.asc").unlink()
        self.assertRegex("\n".join(self.faults()), f"(?s)^{MACHINE}: .*repomd.xml.asc")
        self.refused("GPG signature is not available")

    def test_metadata_that_is_signed_with_another_key(self):
        self.installs()
        self.sign_metadata(self.other_key)
        self.assertRegex("\n".join(self.faults()), f"(?s)^{MACHINE}: .*NO_PUBKEY")
        self.refused(BAD)

    def test_metadata_that_has_expired(self):
        self.installs()
        signature = self.repomd.with_name("repomd.xml.asc")

        def sign(began):
            run("gpg", "--batch", "--yes", "--armor", "--faked-system-time", str(began),
                "--default-sig-expire", f"{DAYS}d", "--local-user", self.key.fingerprint, "--output",
                signature, "--detach-sign", self.repomd)

        sign(NOW - (DAYS - 1) * 86400)
        self.assertEqual(self.faults(), [])
        self.installs()
        sign(NOW - (DAYS + 1) * 86400)
        self.assertRegex("\n".join(self.faults()), f"(?s)^{MACHINE}: .*EXPSIG")
        self.refused(BAD)

    # --- Faults that only the check finds

    def test_a_signature_that_does_not_expire(self):
        self.key.sign("--detach-sign", self.repomd, self.repomd.with_name("repomd.xml.asc"))
        self.assertEqual(self.faults(), [f"{MACHINE}: the signature of repomd.xml does not expire"])

    def test_a_file_that_is_missing_or_too_many(self):
        (self.mine / "Packages/other").touch()
        (self.mine / "repodata/old-primary.xml.gz").touch()
        self.package.unlink()
        faults = self.faults()
        self.assertEqual(faults[:3], [
            f"{MACHINE}/Packages/{self.package.name}: not the file that primary.xml names",
            f"{MACHINE}/Packages/other: the metadata does not name it",
            f"{MACHINE}/repodata/old-primary.xml.gz: the metadata does not name it"])
        next(self.mine.glob("repodata/*-filelists.xml.gz")).unlink()
        self.assertRegex(self.faults()[0], "-filelists.xml.gz: not the file that repomd.xml names")

    def test_metadata_that_is_not_xml(self):
        for text in ("<repomd", "<repomd/>", '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data/></repomd>'):
            self.repomd.write_text(text, encoding="utf-8")
            self.sign_metadata(self.key)
            self.assertEqual(len(self.faults()), 1, text)


class Requirements(unittest.TestCase):
    def faults(self, *requires):
        with tempfile.TemporaryDirectory() as directory:
            return list(rpms.check_requirements(make_package(pathlib.Path(directory), "1.0.0", MACHINE, *requires)))

    def test_what_fedora_has(self):
        self.assertEqual(self.faults(
            "/bin/sh", "systemd", "libc.so.6()(64bit)", "libc.so.6(GLIBC_2.36)(64bit)",
            "libstdc++.so.6(GLIBCXX_3.4.30)(64bit)", "libstdc++.so.6(CXXABI_1.3.13)(64bit)",
            "libuv.so.1()(64bit)", "libssl.so.3(OPENSSL_3.0.0)(64bit)"), [])

    def test_what_fedora_may_lack(self):
        for required in ("libfmt.so.9()(64bit)", "libc.so.6(GLIBC_2.37)(64bit)", "libc.so.6(GLIBC_PRIVATE)(64bit)",
                         "libc.so.6(GLIBC_ABI_DT_RELR)(64bit)", "libstdc++.so.6(GLIBCXX_3.4.31)(64bit)",
                         "libtinfo.so.6(NCURSES6_TINFO_5.0.19991023)(64bit)", "libuv.so.1(UV_1)(64bit)",
                         "libuv.so.1", "bash", "/usr/bin/python3"):
            found = self.faults(required)
            self.assertEqual(len(found), 1, required)
            self.assertIn(f"requires {required}", found[0])


if __name__ == "__main__":
    unittest.main()
