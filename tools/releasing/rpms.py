"""The .rpm packages, built on Debian 12 for Fedora 37 and later, and for EL 10.

rpmbuild runs in the root in which the .deb of the same architecture was built, so with the same
compilers and libraries. The macros and flags of Fedora come from rpm/macros.*. Libraries whose names
differ on Fedora are compiled in (cmake/Portable.cmake); check_requirements() finds any other.

The same commit gives the same bytes, before signing: the directory, the host's name and all times are given.
"""

import os
import pathlib
import re
import shutil
import tempfile

import debs
import sources
from run import Problem, run
from yum_repository import Rpm

# The release of Debian that builds them: its libraries are older.
SUITE = "bookworm"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
# Of Debian's cross compilers: "%s" is the architecture, as rpm names it.
CROSS = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": "%s",
         "CMAKE_C_COMPILER": "%s-linux-gnu-gcc", "CMAKE_CXX_COMPILER": "%s-linux-gnu-g++",
         "PKG_CONFIG_EXECUTABLE": "/usr/bin/%s-linux-gnu-pkg-config"}
# Names of the spec's macros, and the packages of Debian that have the version.
BUNDLED = {"dygraphs": "libjs-dygraphs", "raft": "libraft-dev", "fmt": "libfmt-dev", "ncurses": "libncurses-dev",
           "tomlplusplus": "libtomlplusplus-dev"}
PACKAGES = ("tubed", "tubed-debuginfo", "tubed-debugsource")

# The libraries that a package may require. The baseline is what both Debian 12 and Fedora 37 have: glibc
# 2.36 and the libstdc++ of GCC 12 (GLIBCXX_3.4.30, CXXABI_1.3.13). EL 10 has glibc 2.39 and GCC 14. EL 9
# has glibc 2.34 and the libstdc++ of GCC 11 (GLIBCXX_3.4.29), which are too old. Fedora's libuv,
# libmicrohttpd, libsystemd and OpenSSL 3 have the same sonames as Debian's; its fmt is version 10 or later
# from Fedora 40 on, and its ncurses has no symbol versions. {soname: {prefix of a symbol version: the highest}}
LIBRARIES = {
    "libc.so.6": {"GLIBC": "2.36"}, "libm.so.6": {"GLIBC": "2.36"},
    "ld-linux-x86-64.so.2": {"GLIBC": "2.36"}, "ld-linux-aarch64.so.1": {"GLIBC": "2.36"},
    "libgcc_s.so.1": {"GCC": "12"}, "libstdc++.so.6": {"GLIBCXX": "3.4.30", "CXXABI": "1.3.13"},
    "libcrypto.so.3": {"OPENSSL": "3.0.0"}, "libssl.so.3": {"OPENSSL": "3.0.0"},
    # Fedora 37 has systemd 251.
    "libsystemd.so.0": {"LIBSYSTEMD": "251"}, "libmicrohttpd.so.12": {}, "libuv.so.1": {}}
# Capabilities of the base system, and features of rpm 4.18.
OTHER = {"/bin/sh", "shadow-utils", "systemd", "rtld(GNU_HASH)", "rpmlib(CompressedFileNames)",
         "rpmlib(FileDigests)", "rpmlib(PayloadFilesHavePrefix)", "rpmlib(PayloadIsZstd)", "config(tubed)"}
LIBRARY = re.compile(r"(?P<soname>[^()]+)\((?:(?P<prefix>[A-Z]+)_(?P<version>[\d.]+))?\)\(64bit\)")


def build(tarball, version, moment, architecture, root, log):
    """Builds the packages in a root in which debs.build() has built the packages of Debian 12; returns
    their paths. `moment`: the time of the release, in seconds since 1970."""
    target = ARCHITECTURES[architecture]
    cross = architecture != debs.native_architecture()
    versions = sources.installed_versions(root)
    libraries = [*sources.COMPILED_IN, *sources.COMPILED_INTO_RPM]
    copyrights = " ".join(f"/usr/share/doc/{name}/copyright" for name in libraries)
    defines = {"_topdir": "/build/rpm", "_smp_mflags": f"-j{os.cpu_count()}"}
    for name, package in BUNDLED.items():
        defines[f"{name}_version"] = re.match(r"(?:\d+:)?([\d.]*\d)", versions[package][0])[1]
    if cross:
        settings = " ".join(f"-D{name}={value.replace('%s', target)}" for name, value in CROSS.items())
        defines |= {"cmake_options": settings, "__strip": f"{target}-linux-gnu-strip",
                    "__objdump": f"{target}-linux-gnu-objdump"}
    # The programs of another architecture cannot run here.
    options = " ".join([f"--target {target}", *(["--nocheck"] if cross else []),
                        *(f'--define "{name} {value}"' for name, value in defines.items())])
    shutil.copy(tarball, root / f"build/tubed-{version}.tar.gz")
    debs.in_root(root, "apt-get -q install --yes --no-install-recommends cpio debugedit elfutils rpm", log,
                 network=True)
    debs.in_root(root, f"""
        rm -rf rpm
        mkdir -p rpm/SOURCES
        cd rpm
        tar --strip-components=1 --one-top-level=tree -xzf ../tubed-{version}.tar.gz
        mv ../tubed-{version}.tar.gz SOURCES
        cp tree/packaging/sysusers/tubed.conf SOURCES/tubed.sysusers
        cp /usr/share/javascript/dygraphs/dygraph.min.js SOURCES
        for file in {copyrights} /usr/share/common-licenses/LGPL-3; do
          printf '%s\\n\\n' "=== $file"
          cat "$file"
          echo
        done >SOURCES/LIBRARIES
        umask 022
        # Not --load: rpmbuild forgets that when it reads the files of a --target.
        mkdir -p /etc/rpm
        cp tree/rpm/macros.fedora tree/rpm/macros.release /etc/rpm
        rpmbuild -bb --nodeps --with portable {options} tree/rpm/tubed.spec""", log, SOURCE_DATE_EPOCH=str(moment))
    debs.fail_for_warnings(log)
    built = {path.name: path for path in (root / "build/rpm/RPMS").rglob("*.rpm")}
    expected = sorted(f"{name}-{version}-1.{target}.rpm" for name in PACKAGES)
    if sorted(built) != expected:
        raise Problem(f"built {', '.join(sorted(built))} instead of {', '.join(expected)}")
    # Without a tool that it needs, rpm makes packages for debuggers with hardly any files.
    with Rpm() as rpm:
        listed = "".join(rpm.query(path, "--list") for path in built.values())
    for name in ("/usr/bin/tubectl", "/usr/bin/tubed", f"/tubectl-{version}-1.{target}.debug",
                 f"/tubed-{version}-1.{target}.debug", "/src/main.cc", "/src/tubectl/main.cc"):
        if f"{name}\n" not in listed:
            raise Problem(f"no package has {name}")
    return [built[name] for name in expected]


def check_requirements(path):
    """Yields a line for each requirement of a package that Fedora 37 or EL 10 may not have."""
    with Rpm() as rpm:
        required = rpm.query(path, "--requires").splitlines()
    for line in sorted(set(required)):
        name = line.split(" ")[0]
        library = LIBRARY.fullmatch(name)
        if library:
            highest = LIBRARIES.get(library["soname"])
            if highest is None:
                yield f"{path.name}: requires {line}, which is not in tools/releasing/rpms.py"
            elif library["prefix"] and numbers(library["version"]) > numbers(
                    highest.get(library["prefix"], "")):
                yield f"{path.name}: requires {line}: the highest version is {highest}"
        elif name not in OTHER:
            yield f"{path.name}: requires {line}, which is not in tools/releasing/rpms.py"


def numbers(version):
    """A version as a list, which compares as versions do."""
    return [int(number) for number in version.split(".") if number]


def lint(path):
    """Yields what rpmlint finds in a package of programs; those for debuggers break its rules."""
    settings = pathlib.Path(__file__).resolve().parents[2] / "rpm/rpmlint.toml"
    with tempfile.TemporaryDirectory() as home:
        try:
            run("rpmlint", "--strict", "-c", settings, path, env=os.environ | {"HOME": home})
        except Problem as problem:
            yield f"{path.name}: rpmlint: {problem}"
