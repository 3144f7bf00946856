"""tools/release on packages without programs: its files, the faults that its check finds, and the
repositories that apt refuses.

apt-get uses directories of its own and reads the repository from a file: URI, so it changes nothing
on this machine. The keys are made for the test.
"""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "releasing")]
import apt_repository  # noqa: E402
import check  # noqa: E402
import compare  # noqa: E402
import sources  # noqa: E402
from keys import TestWithKeys  # noqa: E402
from run import Problem, run, sha256  # noqa: E402
from signing import Key  # noqa: E402

VERSION = "9.8.7"
DAYS = 30
# apt compares the dates with the clock, and accepts none in the future.
NOW = int(time.time()) - 60
ARCHITECTURE = run("dpkg", "--print-architecture").strip()


def make_package(directory, suite, version):
    tree = directory / f"tree-{suite}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: tubed\nVersion: {version}\nArchitecture: {ARCHITECTURE}\n"
        "Maintainer: Ada <ada@example.org>\nDescription: nothing\n", encoding="utf-8")
    path = directory / f"tubed_{version}_{ARCHITECTURE}.deb"
    run("dpkg-deb", "--root-owner-group", "--build", tree, path)
    return path


PAGES = {
    "README.md": "A page of a user: https://elsewhere.example.org/missing\n",
    "docs/installing.md": "Run `curl https://packages.example.org/tubed/tubed.asc` for\n"
                          "'deb https://packages.example.org/tubed/apt bookworm main'\n",
    "docs/internals/releasing.md": "`missing`\n## What it makes\n\n| file | contents |\n|---|---|\n"
                         "| `tubed-VERSION.tar.gz` | not `missing` |\n| `tubed-VERSION-SUITE.spdx.json` | |\n"
                         "| `SHA256SUMS`, `SHA256SUMS.asc` | |\n\n## Next\n\n| `missing` | |\n"}


def write_sources(path, text, pages=()):
    """Writes an archive of sources with pages that name files of a release."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in ({"file": text} | PAGES | dict(pages)).items():
            member = tarfile.TarInfo(f"tubed-{VERSION}/{name}")
            member.size = len(content.encode())
            tar.addfile(member, io.BytesIO(content.encode()))


class Apt:
    """apt-get with directories of its own."""

    def __init__(self, directory, repository, key, suite="bookworm"):
        self.directory = directory
        for name in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
            (directory / name).mkdir(parents=True)
        (directory / "status").touch()
        (directory / "etc/sources.list").write_text(
            f"deb [signed-by={key}] file:{repository} {suite} main\n", encoding="utf-8")
        (directory / "apt.conf").write_text("\n".join((
            f'Dir::Etc "{directory}/etc";', f'Dir::State "{directory}/state";',
            f'Dir::State::status "{directory}/status";', f'Dir::Cache "{directory}/cache";',
            'APT::Sandbox::User "root";', 'Acquire::Languages "none";',
            'APT::Get::List-Cleanup "false";')) + "\n", encoding="utf-8")

    def __call__(self, *arguments):
        """Returns (exit code, output and errors)."""
        done = subprocess.run(["apt-get", *arguments], check=False, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.directory,
                              env=os.environ | {"APT_CONFIG": str(self.directory / "apt.conf"), "LC_ALL": "C"})
        return done.returncode, done.stdout


class ReleaseTest(TestWithKeys):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-release-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.release = self.directory / "release"
        self.release.mkdir()
        self.tarball = self.release / f"tubed-{VERSION}.tar.gz"
        write_sources(self.tarball, "the sources")
        for suite in ("bookworm", "trixie"):
            package = make_package(self.directory, suite, f"{VERSION}-1~{suite}")
            apt_repository.add(self.release / "apt", suite, [package])
            versions = {name: ("1.2-3", name) for name in sources.COMPILED_IN | sources.LOADED}
            (self.release / f"tubed-{VERSION}-{suite}.spdx.json").write_text(
                sources.sbom(VERSION, NOW, self.tarball, suite, versions), encoding="utf-8")
        apt_repository.index(self.release / "apt", NOW, DAYS, self.key)
        self.key.export(self.release / "tubed.asc")
        check.write_sums(self.release, self.key)
        self.trusted = self.directory / "trusted.asc"
        self.key.export(self.trusted)

    def faults(self, now=NOW + 60):
        return check.check(self.release, self.trusted, now, lint=False)

    def refused(self, key=None):
        """Returns the messages of apt about the repository, and checks that apt does not install
        from it."""
        shutil.rmtree(self.directory / "apt", ignore_errors=True)
        apt = Apt(self.directory / "apt", self.release / "apt", key or self.trusted)
        code, text = apt("update")
        failed = code != 0 or "\nW: " in f"\n{text}" or "\nE: " in f"\n{text}"
        code, installed = apt("install", "--download-only", "--yes", "tubed")
        self.assertTrue(failed or code != 0, text)
        self.assertNotEqual(code, 0, installed)
        return text + installed

    # --- A correct release

    def test_it_is_complete_and_apt_installs_from_it(self):
        self.assertEqual(self.faults(), [])
        for suite in ("bookworm", "trixie"):
            apt = Apt(self.directory / suite, self.release / "apt", self.trusted, suite)
            code, text = apt("update")
            self.assertEqual((code, "W: " in text, "E: " in text), (0, False, False), text)
            code, text = apt("install", "--print-uris", "--yes", "tubed")
            self.assertEqual(code, 0, text)
            self.assertIn(f"/pool/{suite}/tubed_{VERSION}-1%7e{suite}_{ARCHITECTURE}.deb", text)

    def test_the_same_input_gives_the_same_indexes(self):
        again = self.directory / "again"
        for suite in ("trixie", "bookworm"):
            apt_repository.add(again, suite, (self.release / "apt/pool" / suite).iterdir())
        apt_repository.index(again, NOW, DAYS, self.key)
        for path in sorted(again.rglob("*")):
            if path.is_file() and path.name not in ("InRelease", "Release.gpg"):
                other = self.release / "apt" / path.relative_to(again)
                self.assertEqual(path.read_bytes(), other.read_bytes(), path)

    def test_it_is_renewed(self):
        later = NOW + (DAYS + 1) * 86400
        self.assertEqual(len(self.faults(later)), 2)
        apt_repository.index(self.release / "apt", later, DAYS, self.key)
        check.write_sums(self.release, self.key)
        self.assertEqual(self.faults(later), [])

    def test_an_older_package_is_added(self):
        package = make_package(self.directory, "older", "9.8.6-1")
        apt_repository.add(self.release / "apt", "bookworm", [package])
        apt_repository.index(self.release / "apt", NOW, DAYS, self.key)
        check.write_sums(self.release, self.key)
        self.assertEqual(self.faults(), [])
        apt = Apt(self.directory / "apt", self.release / "apt", self.trusted)
        apt("update")
        for version in ("9.8.6-1", f"{VERSION}-1~bookworm"):
            code, text = apt("install", "--print-uris", "--yes", f"tubed={version}")
            self.assertEqual(code, 0, text)

    # --- Releases that must not be trusted

    def test_a_file_that_was_changed(self):
        for name in ("tubed.asc", f"tubed-{VERSION}.tar.gz", "SHA256SUMS", "apt/dists/trixie/InRelease",
                     "apt/dists/bookworm/main/binary-%s/Packages.xz" % ARCHITECTURE,
                     f"apt/pool/bookworm/tubed_{VERSION}-1~bookworm_{ARCHITECTURE}.deb"):
            with self.subTest(name):
                path = self.release / name
                before = path.read_bytes()
                path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]) + b"\n")
                self.assertNotEqual(self.faults(), [])
                path.write_bytes(before)
                self.assertEqual(self.faults(), [])

    def test_a_file_that_is_missing_or_too_many(self):
        extra = self.release / "apt/pool/bookworm/extra.deb"
        extra.touch()
        self.assertEqual(self.faults(), ["apt/pool/bookworm/extra.deb: not recorded in SHA256SUMS",
                                         "pool/bookworm/extra.deb: no index names it"])
        extra.unlink()
        self.tarball.unlink()
        self.assertIn(f"{self.tarball.name}: missing", self.faults())

    def test_an_sbom_of_other_sources(self):
        write_sources(self.tarball, "other sources")
        check.write_sums(self.release, self.key)
        self.assertEqual(self.faults(), [f"tubed-{VERSION}-{suite}.spdx.json: describes another "
                                         f"{self.tarball.name}" for suite in ("bookworm", "trixie")])

    def test_a_page_that_names_a_file_which_is_missing(self):
        pages = {"docs/installing.md": "https://packages.example.org/tubed/yum/$basearch and oci:image:9.8.7",
                 "docs/internals/releasing.md": "## What it makes\n| `tubed.asc`, `notes-VERSION.md` | |\n"}
        write_sources(self.tarball, "the sources", pages)
        check.write_sums(self.release, self.key)
        self.assertEqual([fault for fault in self.faults() if "SHA256SUMS" not in fault and "spdx" not in fault],
                         ["docs/installing.md names image/index.json, which is not in the release",
                          "docs/installing.md names yum/x86_64, which is not in the release",
                          "docs/installing.md names yum/aarch64, which is not in the release",
                          f"docs/internals/releasing.md names notes-{VERSION}.md, which is not in the release"])

    def test_an_archive_of_sources_that_is_missing(self):
        self.tarball.unlink()
        self.assertIn("documents: ValueError('0 archives of sources')", self.faults())

    def test_damaged_files_are_faults(self):
        """The check continues after each fault."""
        package = self.release / f"yum/x86_64/Packages/tubed-{VERSION}-1.x86_64.rpm"
        package.parent.mkdir(parents=True)
        package.write_bytes(b"\xed\xab\xee\xdb")
        (self.release / "image").mkdir()
        (self.release / "tubed.asc").unlink()
        (self.release / f"tubed-{VERSION}-trixie.spdx.json").write_text("[]", encoding="utf-8")
        found = "\n".join(self.faults())
        for pattern in (r"tubed\.asc: missing", r"tubed\.asc: FileNotFoundError", rf"{package.name}: rpm .*",
                        r"image: FileNotFoundError", rf"tubed-{VERSION}-trixie\.spdx\.json: TypeError"):
            self.assertRegex(found, rf"(?m)^{pattern}")

    def test_releases_of_one_commit_are_compared(self):
        other = self.directory / "other"
        shutil.copytree(self.release, other)
        apt_repository.index(other / "apt", NOW - 60, DAYS + 1, self.other_key)
        self.other_key.export(other / "tubed.asc")
        check.write_sums(other, self.other_key)
        self.assertEqual(compare.compare(self.release, other), [])
        package = next((other / "apt/pool/bookworm").iterdir())
        package.write_bytes(package.read_bytes() + b"x")
        (other / "extra").touch()
        (other / self.tarball.name).unlink()
        self.assertEqual(compare.compare(self.release, other),
                         [f"extra: only in {other}", f"{self.tarball.name}: only in {self.release}",
                          f"apt/pool/bookworm/{package.name}: not the same bytes"])

    def test_another_key(self):
        apt_repository.index(self.release / "apt", NOW, DAYS, self.other_key)
        self.other_key.export(self.release / "tubed.asc")
        check.write_sums(self.release, self.other_key)
        self.assertEqual(check.check(self.release, None, NOW + 60, lint=False), [])
        self.assertEqual([fault.split(":")[0] for fault in self.faults()],
                         ["SHA256SUMS", "tubed.asc", "dists/bookworm", "dists/trixie"])
        self.assertIn("NO_PUBKEY", self.refused())

    def test_an_expired_index(self):
        apt_repository.index(self.release / "apt", NOW - (DAYS + 1) * 86400, DAYS, self.key)
        self.assertIn("expired", self.refused())

    def test_an_index_that_was_tampered_with(self):
        dist = self.release / "apt/dists/bookworm"
        package = next((self.release / "apt/pool/bookworm").iterdir())
        for path in dist.rglob("Packages*"):
            if path.suffix == "":
                path.write_text(path.read_text(encoding="utf-8").replace(sha256(package), "0" * 64),
                                encoding="utf-8")
            else:
                path.unlink()
        for path in dist.rglob("by-hash/SHA256/*"):
            path.unlink()
        self.assertRegex(self.refused(), "Hash Sum mismatch|File has unexpected size|Unable to locate")

    def test_a_package_that_was_tampered_with(self):
        package = next((self.release / "apt/pool/bookworm").iterdir())
        package.write_bytes(package.read_bytes()[:-1] + b"x")
        self.assertRegex(self.refused(), "Hash Sum mismatch|unexpected size")

    def test_a_release_file_that_was_tampered_with(self):
        for name in ("InRelease", "Release"):
            path = self.release / "apt/dists/bookworm" / name
            path.write_text(path.read_text(encoding="utf-8").replace("Label: tubed", "Label: tubeD"),
                            encoding="utf-8")
        self.assertIn("BADSIG", self.refused())

    def test_a_key_that_does_not_exist(self):
        with self.assertRaises(Problem):
            Key("nobody@example.org")


class Sources(unittest.TestCase):
    def test_the_archive_is_the_same_each_time(self):
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            repository = directory / "repository"
            git = ("git", "-C", str(repository), "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
            run("git", "init", "-q", repository)
            (repository / "file").write_text("text\n", encoding="utf-8")
            (repository / "CHANGELOG.md").write_text("the changes\n", encoding="utf-8")
            run(*git, "add", ".")
            run(*git, "commit", "-qm", "first")
            found = []
            for name in ("one", "two"):
                (directory / name).mkdir()
                path = sources.archive(repository, "HEAD", VERSION, directory / name)
                (repository / "file").write_text("not committed\n", encoding="utf-8")
                found.append(path.read_bytes())
            self.assertEqual(*found)
            self.assertEqual(sources.file_of(path, "CHANGELOG.md"), "the changes\n")
            with self.assertRaises(Problem):
                sources.archive(repository, "v0.0.0", VERSION, directory)


if __name__ == "__main__":
    unittest.main()
