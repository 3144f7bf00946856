"""The packages of Debian, each built in a root of its own.

A root has the essential packages, the compilers and what debian/control asks for, and nothing else. It
has a network while these are installed, and none while the package is built. The packages of another
architecture are compiled by Debian's cross compilers, against that architecture's libraries.
"""

import contextlib
import datetime
import email.utils
import os
import re
import shutil

from run import Problem, run

MIRROR = "http://deb.debian.org/debian"
MAINTAINER = "The tubed authors <tubed@example.org>"
# The numbers of Debian's releases. A version for Debian 13 must be higher than the same for Debian 12.
NUMBERS = {"bookworm": 12, "trixie": 13}
# Where a release itself has no libraft that is new enough.
WITH_BACKPORTS = ("bookworm",)
COMPILERS = {each: f"crossbuild-essential-{each}" for each in ("amd64", "arm64")}
PIN = """Package: {packages}
Pin: release n={suite}-backports
Pin-Priority: 990
"""
# Fixed: the bytes of a build do not depend on the machine.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/build",
               "DEBIAN_FRONTEND": "noninteractive"}


def native_architecture():
    """The architecture of this machine, as Debian names it."""
    return run("dpkg", "--print-architecture").strip()


def package_version(version, suite):
    """The version of the packages for a suite. It is lower than the version of a package that users build."""
    return f"{version}-1~deb{NUMBERS[suite]}"


def make_root(suite, architecture, root, mirror, log):
    """A root in which packages of the architecture can be built."""
    native = native_architecture()
    lines = [f"deb {mirror} {suite} main"]
    if suite in WITH_BACKPORTS:
        lines.append(f"deb {mirror} {suite}-backports main")
    architectures = [native] + ([architecture] if architecture != native else [])
    extra = [COMPILERS[architecture]] if architecture != native else []
    include = ["--include=" + ",".join(extra)] if extra else []
    run("mmdebstrap", "--quiet", "--variant=buildd", f"--architectures={','.join(architectures)}",
        '--aptopt=APT::Install-Recommends "0"', *include, suite, root, *lines, log=log)
    if suite in WITH_BACKPORTS:
        # A pin without an architecture is for the native architecture only.
        packages = " ".join(f"{name}:{each}" for name in ("libraft-dev", "libraft0") for each in architectures)
        (root / "etc/apt/preferences.d/raft").write_text(PIN.format(suite=suite, packages=packages),
                                                         encoding="utf-8")
    (root / "build").mkdir(exist_ok=True)


def in_root(root, script, log, network=False, **variables):
    """Runs a script of bash in the root, as its only processes, and without a network unless
    `network`. The processes end with this process. Returns what run() returns."""
    without_network = [] if network else ["--net"]
    resolver = root / "etc/resolv.conf"
    if network:
        shutil.copy("/etc/resolv.conf", resolver)
    try:
        return run("unshare", *without_network, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                   f"--root={root}", "--wd=/build", "bash", "-euo", "pipefail", "-c", script, log=log,
                   env=ENVIRONMENT | variables)
    finally:
        if network:
            with contextlib.suppress(FileNotFoundError):
                resolver.unlink()


def fail_for_warnings(log):
    """Raises a Problem if the compiler has warned, by the log of the build."""
    warnings = re.findall(r".*warning: .*\[-W.*", log.read_text(encoding="utf-8", errors="replace"))
    if warnings:
        raise Problem("\n".join(["the compiler warned:", *warnings[:5]]))


def unpack(tarball, version, architecture, root, log):
    """Unpacks the sources in a root of make_root(), as /build/tubed-VERSION, and installs what
    debian/control asks for."""
    shutil.copy(tarball, root / "build" / f"tubed_{version}.orig.tar.gz")
    of_apt = f"--host-architecture={architecture}" if architecture != native_architecture() else ""
    in_root(root, f"""
        tar -xzf tubed_{version}.orig.tar.gz
        apt-get -q update
        apt-get -q build-dep --yes --no-install-recommends {of_apt} ./tubed-{version}""", log, network=True)


def build(tarball, version, moment, suite, architecture, root, log):
    """Builds the packages in a root of make_root(), below /build; returns their paths."""
    cross = architecture != native_architecture()
    unpack(tarball, version, architecture, root, log)
    options = f"parallel={os.cpu_count()}" + (" nocheck" if cross else "")
    profiles = "cross nocheck" if cross else ""
    # The date of the entry becomes the time of each file; the entry must be newer than the release's.
    date = datetime.datetime.fromtimestamp(moment + NUMBERS[suite], datetime.timezone.utc)
    entry = (f"tubed ({package_version(version, suite)}) {suite}; urgency=medium\n\n"
             f"  * Build for Debian {NUMBERS[suite]}.\n\n -- {MAINTAINER}  "
             f"{email.utils.format_datetime(date)}\n\n")
    of_dpkg = f"--host-arch={architecture}" if cross else ""
    in_root(root, f"""
        cd tubed-{version}
        {{ printf '%s' "$ENTRY"; cat debian/changelog; }} >../new
        mv ../new debian/changelog
        find . -exec touch --no-dereference --date=@{moment} {{}} +
        umask 022
        dpkg-buildpackage -us -uc -b {of_dpkg}""",
        log, ENTRY=entry, DEB_BUILD_OPTIONS=options, DEB_BUILD_PROFILES=profiles)
    fail_for_warnings(log)
    found = sorted((root / "build").glob(f"*_{architecture}.deb"))
    if not any(path.name.startswith("tubed_") for path in found):
        raise Problem("no package was built")
    return found
