"""Checks a finished release directory: what `tools/release --check` does."""

import json
import lzma
import re
import shutil
import tarfile
import time
import zlib

import apt_repository
import image
import rpms
import sources
import yum_repository
from run import Problem, files_below, run, sha256
from signing import verify

SUMS = "SHA256SUMS"
# How reading a damaged file fails: a file or a field is missing, or cannot be unpacked, or a program
# refuses it.
DAMAGE = (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, lzma.LZMAError, zlib.error,
          tarfile.TarError, Problem)
# Where the pages say that a release is published.
PUBLISHED = re.compile(r"https://packages\.example\.org/tubed/(?P<path>[^\s'\")>`]*)")
# Tags of lintian that say that the archive of a distribution would want something else.
SUPPRESSED = ("initial-upload-closes-no-bugs", "bad-distribution-in-changes-file")


def write_sums(directory, key):
    """SHA256SUMS has every file of the directory but itself and its signature."""
    names = [name for name in files_below(directory) if name not in (SUMS, f"{SUMS}.asc")]
    (directory / SUMS).write_text("".join(f"{sha256(directory / name)}  {name}\n" for name in names),
                                  encoding="utf-8")
    key.sign("--detach-sign", directory / SUMS, directory / f"{SUMS}.asc")


def check(directory, public_key=None, now=None, lint=True):
    """The faults of a release, a line each. `public_key`: whose signatures are trusted; by default the
    release's own key, which checks only its coherence."""
    now = time.time() if now is None else now
    trusted = public_key or directory / "tubed.asc"
    faults = guarded(SUMS, check_sums, directory, trusted)
    if public_key:
        faults += guarded("tubed.asc", check_key, directory, public_key)
    faults += guarded("apt", apt_repository.check, directory / "apt", trusted, now)
    if (directory / "yum").exists():
        faults += guarded("yum", yum_repository.check, directory / "yum", trusted, now)
    for path in sorted(directory.glob("yum/*/Packages/*.rpm")):
        faults += guarded(path.name, rpms.check_requirements, path)
    if (directory / "image").exists():
        faults += guarded("image", check_the_image, directory)
    for path in sorted(directory.glob("*.spdx.json")):
        faults += guarded(path.name, check_sbom, directory, path)
    faults += guarded("documents", check_documents, directory)
    if lint:
        faults += check_packages(directory)
    return faults


def guarded(what, function, *arguments):
    """The faults that a check yields, or that it could not read a damaged file."""
    try:
        return list(function(*arguments))
    except DAMAGE as error:
        return [f"{what}: {error if isinstance(error, Problem) else repr(error)}"]


def archive_of(directory):
    """The sources of a release."""
    found = sorted(directory.glob("tubed-*.tar.gz"))
    if len(found) != 1:
        raise ValueError(f"{len(found)} archives of sources")
    return found[0]


def version_of(directory):
    """The version of a release, by the name of its sources."""
    return archive_of(directory).name.removeprefix("tubed-").removesuffix(".tar.gz")


def check_key(directory, public_key):
    """Yields a fault if the published key is not the trusted key."""
    if public_key.read_bytes() != (directory / "tubed.asc").read_bytes():
        yield "tubed.asc: not the key that is trusted"


def check_the_image(directory):
    """The faults of the image of a release."""
    return image.check(directory / "image", version_of(directory), directory / "apt/pool" / image.SUITE)


def check_sums(directory, public_key):
    """Yields each file that is not as SHA256SUMS records it, is missing, or is not recorded."""
    verify(public_key, directory / f"{SUMS}.asc", directory / SUMS)
    lines = (directory / SUMS).read_text(encoding="utf-8").splitlines()
    recorded = {name: hashed for hashed, name in (line.split("  ", 1) for line in lines)}
    present = set(files_below(directory)) - {SUMS, f"{SUMS}.asc"}
    for name in sorted(present - recorded.keys()):
        yield f"{name}: not recorded in {SUMS}"
    for name, hashed in sorted(recorded.items()):
        if name not in present:
            yield f"{name}: missing"
        elif sha256(directory / name) != hashed:
            yield f"{name}: not the file that {SUMS} records"


def check_sbom(directory, path):
    """The form of SPDX 2.3 as far as this program uses it, and the archive that it describes."""
    document = json.loads(path.read_text(encoding="utf-8"))
    known = {"SPDXRef-DOCUMENT", *(each["SPDXID"] for each in document["packages"])}
    for each in document["relationships"]:
        for end in ("spdxElementId", "relatedSpdxElement"):
            if each[end] not in known:
                yield f"{path.name}: {each[end]} is not described"
    tubed = document["packages"][0]
    if document["spdxVersion"] != "SPDX-2.3" or tubed["name"] != "tubed":
        yield f"{path.name}: not the document of tubed in SPDX 2.3"
    archive = directory / tubed["packageFileName"]
    if not archive.exists() or tubed["checksums"][0]["checksumValue"] != sha256(archive):
        yield f"{path.name}: describes another {archive.name}"


def check_documents(directory):
    """Yields each file that a page of the sources names and the release lacks: below the address at which
    it is published, in the layout of images, and in the table of docs/internals/releasing.md."""
    version = version_of(directory)
    for page, text in sources.files_of(archive_of(directory), r"(?:README|docs/.*)\.md").items():
        named = {match["path"] for match in PUBLISHED.finditer(text)}
        if f"oci:image:{version}" in text:
            named.add("image/index.json")
        if page == "docs/internals/releasing.md":
            table = text.partition("## What it makes\n")[2].partition("\n## ")[0]
            named |= set(re.findall("`([^`]+)`", " ".join(re.findall(r"^\| (.*?) \|", table, re.M))))
        for name in sorted(named):
            for path in files_named(name, version):
                if path and not any(directory.glob(path)):
                    yield f"{page} names {path}, which is not in the release"


def files_named(name, version):
    """The files of a release, or patterns of their names, that a name with variables stands for."""
    name = name.replace("VERSION", version).replace("SUITE", "*")
    return [name.replace("$basearch", each) for each in rpms.ARCHITECTURES.values()] if "$basearch" in name else [name]


def check_packages(directory):
    """The packages by the linters of their distributions."""
    for command in ("lintian", "rpmlint"):
        if not shutil.which(command):
            yield f"{command} is missing: tools/install-deps release"
            return
    for path in sorted((directory / "apt/pool").glob("*/tubed_*.deb")):
        try:
            run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags",
                ",".join(SUPPRESSED), path)
        except Problem as problem:
            yield f"{path.relative_to(directory)}: lintian: {problem}"
    for path in sorted(directory.glob("yum/*/Packages/tubed-[0-9]*.rpm")):
        yield from rpms.lint(path)
