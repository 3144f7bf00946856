"""The repository for dnf: a directory for each architecture, with Packages and repodata.

Each package is signed (gpgcheck), and so is repomd.xml (repo_gpgcheck), which names the other files of
repodata by their hashes; these name the packages by theirs. The signature of repomd.xml expires, so dnf
refuses an old repository, which lacks corrections. dnf reports it as a bad signature.

rpm gets a database of its own for each task, because it creates the caller's even for a query.
"""

import datetime
import gzip
import os
import pathlib
import shutil
import tempfile
from xml.etree import ElementTree

from run import Problem, files_below, run, sha256
from signing import verify

REPO = "{http://linux.duke.edu/metadata/repo}"
COMMON = "{http://linux.duke.edu/metadata/common}"


class Rpm:
    """rpm with a database that has only one public key, or none. Use it in a `with` statement."""

    def __init__(self, public_key=None):
        self.public_key = public_key
        self.directory = None

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tubed-rpm-")
        if self.public_key:
            run("rpmkeys", "--dbpath", self.directory.name, "--import", self.public_key)
        return self

    def __exit__(self, *error):
        self.directory.cleanup()

    def query(self, path, *arguments):
        """Returns the output of `rpm -qp` about a package."""
        return run("rpm", "--dbpath", self.directory.name, "--nosignature", "-qp", *arguments, path)

    def verify(self, path):
        """Raises a Problem unless the package has a signature by the key, and the bytes that were signed."""
        run("rpmkeys", "--dbpath", self.directory.name, "--define", "_pkgverify_level all",
            "--checksig", "--verbose", path)


def add(directory, packages):
    """Copies packages to the directories of their architectures. index() makes them a part of the
    repository."""
    with Rpm() as rpm:
        for path in packages:
            target = directory / rpm.query(path, "--qf", "%{ARCH}") / "Packages"
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def index(directory, moment, days, key):
    """Signs the packages that have no signature by the key, and writes and signs the metadata of all
    packages. The repository is valid for `days` from `moment`, in seconds since 1970."""
    with tempfile.TemporaryDirectory() as temporary:
        public_key = pathlib.Path(temporary) / "key.asc"
        key.export(public_key)
        with Rpm(public_key) as rpm:
            for path in sorted(directory.glob("*/Packages/*.rpm")):
                sign_package(rpm, path, key)
    for each in sorted(directory.iterdir()):
        write_metadata(each, moment)
        repomd = each / "repodata/repomd.xml"
        key.sign("--detach-sign", repomd, repomd.with_name("repomd.xml.asc"), until=moment + days * 86400)


def sign_package(rpm, path, key):
    """A package that the key has signed keeps its bytes: a second signature would have another time."""
    try:
        rpm.verify(path)
    except Problem:
        key.sign_rpm(path)
        rpm.verify(path)
    # The metadata has the time of the file.
    built = int(rpm.query(path, "--qf", "%{BUILDTIME}"))
    os.utime(path, (built, built))


def write_metadata(directory, moment):
    """The metadata of one architecture. One worker, and times that are given: the same packages give
    the same bytes."""
    shutil.rmtree(directory / "repodata", ignore_errors=True)
    run("createrepo_c", "--quiet", "--error-exit-val", "--no-database", "--unique-md-filenames",
        "--workers", "1", "--revision", moment, "--set-timestamp-to-revision", directory)


def check(directory, public_key, now):
    """Yields a line for each fault: signatures, dates, hashes, packages. `now` in seconds since 1970."""
    for each in sorted(directory.iterdir()):
        try:
            yield from check_architecture(directory, each, public_key, now)
        except (ElementTree.ParseError, AttributeError) as error:
            # Not XML, or an element is missing.
            yield f"{each.name}: {error!r}"


def check_architecture(directory, each, public_key, now):
    """Yields a line for each fault of `each`, the repository of one architecture."""
    repomd = each / "repodata/repomd.xml"
    try:
        until = verify(public_key, repomd.with_name("repomd.xml.asc"), repomd)
    except (Problem, OSError) as problem:
        yield f"{each.name}: {problem}"
        return
    if until is None:
        yield f"{each.name}: the signature of repomd.xml does not expire"
    elif until <= now:
        yield f"{each.name}: valid until {datetime.datetime.fromtimestamp(until, datetime.timezone.utc)}"
    named = {"repodata/repomd.xml", "repodata/repomd.xml.asc"}
    primary = None
    for data in ElementTree.parse(repomd).getroot().iter(f"{REPO}data"):
        name = data.find(f"{REPO}location").get("href")
        named.add(name)
        if not is_named(each / name, data.find(f"{REPO}checksum")):
            yield f"{each.name}/{name}: not the file that repomd.xml names"
        elif data.get("type") == "primary":
            primary = each / name
    if primary is None:
        yield f"{each.name}: no primary.xml"
        return
    packages = set()
    for package in ElementTree.fromstring(gzip.decompress(primary.read_bytes())).iter(f"{COMMON}package"):
        name = package.find(f"{COMMON}location").get("href")
        packages.add(name)
        if not is_named(each / name, package.find(f"{COMMON}checksum")):
            yield f"{each.name}/{name}: not the file that primary.xml names"
    for name in sorted(set(files_below(each)) - named - packages):
        yield f"{each.name}/{name}: the metadata does not name it"
    with Rpm(public_key) as rpm:
        for name in sorted(files_below(each / "Packages")):
            try:
                rpm.verify(each / "Packages" / name)
            except Problem as problem:
                yield f"{each.name}/Packages/{name}: {problem}"


def is_named(path, checksum):
    """Whether the file has the hash that an element of the metadata names."""
    return path.exists() and checksum.get("type") == "sha256" and sha256(path) == checksum.text
