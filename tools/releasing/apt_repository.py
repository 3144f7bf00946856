"""The repository for apt: dists/SUITE with one component, main, and pool/SUITE.

Each index is also at by-hash/SHA256. An update that reads the old InRelease finds the indexes that it
names, as long as the new repository keeps the old files. Release has Valid-Until: no mirror can serve an
old repository, which lacks corrections, without limit.
"""

import contextlib
import datetime
import gzip
import lzma
import re
import shutil

from run import Problem, files_below, run, sha256
from signing import verify

TIME = "%a, %d %b %Y %H:%M:%S UTC"
FORMATS = {"": lambda data: data, ".gz": lambda data: gzip.compress(data, 9, mtime=0),
           ".xz": lambda data: lzma.compress(data, preset=6)}


def add(directory, suite, packages):
    """Copies packages to the pool of a suite. index() makes them a part of the repository."""
    pool = directory / "pool" / suite
    pool.mkdir(parents=True, exist_ok=True)
    for path in packages:
        shutil.copy(path, pool)


def index(directory, moment, days, key):
    """Writes and signs the indexes of all packages in the pool. The repository is valid for `days` from
    `moment`, in seconds since 1970."""
    for pool in sorted((directory / "pool").iterdir()):
        main = directory / "dists" / pool.name / "main"
        shutil.rmtree(main, ignore_errors=True)
        architectures = sorted({path.stem.rsplit("_", 1)[1] for path in pool.glob("*.deb")})
        for architecture in architectures:
            listed = run("apt-ftparchive", "--arch", architecture, "packages", f"pool/{pool.name}",
                         cwd=directory)
            # In an order that does not depend on the file system.
            stanzas = sorted(filter(None, listed.strip("\n").split("\n\n")))
            write_index(main / f"binary-{architecture}", "".join(f"{each}\n\n" for each in stanzas).encode())
        sign(directory, pool.name, architectures, moment, days, key)


def write_index(directory, text):
    """Packages in all formats, each a second time by its hash."""
    hashes = directory / "by-hash" / "SHA256"
    hashes.mkdir(parents=True)
    for suffix, compressed in FORMATS.items():
        path = directory / f"Packages{suffix}"
        path.write_bytes(compressed(text))
        shutil.copy(path, hashes / sha256(path))


def sign(directory, suite, architectures, moment, days, key):
    """Writes Release, with the hashes of the indexes, and signs it."""
    dist = directory / "dists" / suite
    for name in ("InRelease", "Release", "Release.gpg"):
        with contextlib.suppress(FileNotFoundError):
            (dist / name).unlink()
    begin = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
    fields = {"Origin": "tubed", "Label": "tubed", "Suite": suite, "Codename": suite,
              "Date": begin.strftime(TIME), "Valid-Until": (begin + datetime.timedelta(days)).strftime(TIME),
              "Acquire-By-Hash": "yes", "Architectures": " ".join(architectures), "Components": "main",
              "Description": "The packages of tubed"}
    lines = [f"{name}: {value}" for name, value in fields.items()] + ["SHA256:"]
    for name in files_below(dist):
        if "/by-hash/" not in f"/{name}":
            lines.append(f" {sha256(dist / name)} {(dist / name).stat().st_size} {name}")
    release = dist / "Release"
    release.write_text("\n".join(lines) + "\n", encoding="utf-8")
    key.sign("--clearsign", release, dist / "InRelease")
    key.sign("--detach-sign", release, dist / "Release.gpg")


def check(directory, public_key, now):
    """Yields a line for each fault: signatures, dates, hashes, packages. `now` in seconds since 1970."""
    for dist in sorted((directory / "dists").iterdir()):
        try:
            verify(public_key, dist / "InRelease")
            verify(public_key, dist / "Release.gpg", dist / "Release")
        except (Problem, OSError) as problem:
            yield f"dists/{dist.name}: {problem}"
            continue
        release = (dist / "Release").read_text(encoding="utf-8")
        if release not in (dist / "InRelease").read_text(encoding="utf-8"):
            yield f"dists/{dist.name}: InRelease and Release differ"
        until = datetime.datetime.strptime(re.search("^Valid-Until: (.*)$", release, re.M)[1], TIME)
        if until.replace(tzinfo=datetime.timezone.utc).timestamp() <= now:
            yield f"dists/{dist.name}: valid until {until}"
        named = dict(re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+)$", release, re.M))
        for hashed, name in named.items():
            path = dist / name
            for each in (path, path.parent / "by-hash" / "SHA256" / hashed):
                if not each.exists() or sha256(each) != hashed:
                    yield f"{each.relative_to(directory)}: not the file that Release names"
        for name in files_below(dist):
            if name not in ("InRelease", "Release", "Release.gpg") and name not in named.values() and (
                    "/by-hash/" not in name or name.rsplit("/", 1)[1] not in named):
                yield f"dists/{dist.name}/{name}: Release does not name it"
        yield from check_packages(directory, dist)


def check_packages(directory, dist):
    """Yields a line for each index that has another text in another format, for each package that differs
    from the index, and for each package in the pool that no index names."""
    pool = {f"pool/{dist.name}/{name}" for name in files_below(directory / "pool" / dist.name)}
    found = set()
    for index in sorted(dist.rglob("Packages")):
        text = index.read_text(encoding="utf-8")
        for suffix, unpack in ((".gz", gzip.decompress), (".xz", lzma.decompress)):
            if unpack(index.with_name(f"Packages{suffix}").read_bytes()).decode() != text:
                yield f"{index.relative_to(directory)}: {suffix} has another text"
        for stanza in filter(str.strip, text.split("\n\n")):
            fields = dict(re.findall(r"^(\S+): (.*)$", stanza, re.M))
            path = directory / fields["Filename"]
            found.add(fields["Filename"])
            if not path.exists() or sha256(path) != fields["SHA256"]:
                yield f"{fields['Filename']}: not the file that {index.relative_to(directory)} names"
    for name in sorted(pool - found):
        yield f"{name}: no index names it"
