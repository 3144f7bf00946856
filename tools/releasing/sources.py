"""The sources of a release: the archive, the notes, and what the programs are made of (SPDX 2.3)."""

import datetime
import gzip
import json
import re
import subprocess
import tarfile

from run import Problem, run, sha256

# Debian's packages of what is compiled into the programs, and their licenses (SPDX identifiers).
COMPILED_IN = {"libraft-dev": "LGPL-3.0-only WITH LGPL-3.0-linking-exception", "libjs-dygraphs": "MIT",
               "nlohmann-json3-dev": "MIT"}
# Those that are compiled into the programs of the .rpm only.
COMPILED_INTO_RPM = ("libfmt-dev", "libncurses-dev", "libtomlplusplus-dev")
# Those of the shared libraries that the programs load.
LOADED = {"libuv1-dev": "MIT", "libfmt-dev": "MIT", "libmicrohttpd-dev": "LGPL-2.1-or-later",
          "libncurses-dev": "X11", "libssl-dev": "Apache-2.0", "libsystemd-dev": "LGPL-2.1-or-later",
          "libtomlplusplus-dev": "MIT"}


def archive(repository, ref, version, directory):
    """Writes tubed-VERSION.tar.gz: the files of a commit, byte for byte the same for each caller."""
    path = directory / f"tubed-{version}.tar.gz"
    done = subprocess.run(["git", "-C", str(repository), "archive", "--format=tar",
                           f"--prefix=tubed-{version}/", ref], capture_output=True, check=False)
    if done.returncode != 0:
        raise Problem(done.stderr.decode())
    # gzip.compress with a time of 0 writes neither a name nor a time.
    path.write_bytes(gzip.compress(done.stdout, 9, mtime=0))
    return path


def files_of(tarball, pattern):
    """{name: text} of the files of the archive whose names, without its first directory, match."""
    with tarfile.open(tarball) as tar:
        members = ((member, member.name.partition("/")[2]) for member in tar if member.isfile())
        return {name: tar.extractfile(member).read().decode() for member, name in members
                if re.fullmatch(pattern, name)}


def file_of(tarball, name):
    """The text of one of them."""
    return files_of(tarball, re.escape(name))[name]


def installed_versions(root):
    """{package: (its version, its source package)} of a root."""
    listed = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W",
                 "-f", "${Package} ${Version} ${source:Package}\n")
    return {name: (version, source) for name, version, source in map(str.split, listed.splitlines())}


def sbom(version, moment, tarball, suite, versions, rpm=False):
    """The document of one suite, or of the .rpm that is built in it: the program, its archive, and each
    library with Debian's version."""
    compiled_in = COMPILED_IN | ({name: LOADED[name] for name in COMPILED_INTO_RPM} if rpm else {})
    loaded = {name: LOADED[name] for name in LOADED if name not in compiled_in}
    document = f"tubed-{version}-{'rpm' if rpm else suite}"
    created = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    packages = [{
        "SPDXID": "SPDXRef-tubed", "name": "tubed", "versionInfo": version,
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "MIT",
        "licenseDeclared": "MIT", "copyrightText": "NOASSERTION", "packageFileName": tarball.name,
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(tarball)}],
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:generic/tubed@{version}"}]}]
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                      "relatedSpdxElement": "SPDXRef-tubed"}]
    for libraries, relationship in ((compiled_in, "STATIC_LINK"), (loaded, "DYNAMIC_LINK")):
        for name, license_name in sorted(libraries.items()):
            if name not in versions:
                raise Problem(f"{name} is not in the root of {suite}, so its version is not known")
            built, source = versions[name]
            key = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", source)
            packages.append({
                "SPDXID": key, "name": source, "versionInfo": built, "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False, "licenseConcluded": license_name, "licenseDeclared": license_name,
                "copyrightText": "NOASSERTION", "externalRefs": [{
                    "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                    "referenceLocator": f"pkg:deb/debian/{source}@{built}?distro={suite}"}]})
            relationships.append({"spdxElementId": "SPDXRef-tubed", "relationshipType": relationship,
                                  "relatedSpdxElement": key})
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": document,
        "documentNamespace": f"https://tubed.example.org/spdx/{document}-{sha256(tarball)[:16]}",
        "creationInfo": {"created": created, "creators": ["Tool: tubed-tools-release"]},
        "packages": packages, "relationships": relationships}, indent=1) + "\n"
