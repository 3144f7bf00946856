"""The container image: packaging/container/Containerfile for each architecture, as an OCI layout.

buildah builds the image from the packages of a release, with images and containers of its own below
the work directory. It writes an OCI layout: index.json names an index, which names the manifest of each
architecture. finish() then adds what buildah leaves out of OCI images: the health check, which OCI
reserves a field for and Docker reads, and annotations.
"""

import datetime
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile

import debs
from run import Problem, run, sha256

# The release of Debian whose packages the image is made of: the newest, for it gets corrections longest.
SUITE = "trixie"
USER = "11300:11300"
MOST_BYTES = 40 << 20
PREFIX = "org.opencontainers.image."
LAYOUT = {"imageLayoutVersion": "1.0.0"}
SOURCES = """Types: deb
URIs: {mirror}
Suites: {suite} {suite}-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: {mirror}-security
Suites: {suite}-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


def build(tarball, version, moment, packages, architectures, mirror, directory, work, log):
    """Writes the layout to `directory`. `packages` has the packages of SUITE, `work` is a new directory.
    Debian's corrections (SUITE-security) are installed too."""
    work.mkdir()
    revision = unpack(tarball, work)
    context = work / "container"
    for architecture in architectures:
        for path in packages.glob(f"tubed_*_{architecture}.deb"):
            shutil.copy(path, context)
    buildah = ("buildah", "--root", work / "images", "--runroot", work / "run", "--storage-driver", "overlay")
    base = work / "base"
    base.mkdir()
    (work / "debian.sources").write_text(SOURCES.format(mirror=mirror, suite=SUITE), encoding="utf-8")
    run("mmdebstrap", "--quiet", "--variant=apt", SUITE, base / "base.tar", work / "debian.sources", log=log)
    (base / "Containerfile").write_text("FROM scratch\nADD base.tar /\n", encoding="utf-8")
    options = ("--isolation", "chroot", "--layers=false", "--timestamp", moment)
    try:
        run(*buildah, "build", *options, "--tag", "base", base, log=log)
        labels = {"version": version, "revision": revision, "created": rfc3339(moment)}
        run(*buildah, "build", *options, "--identity-label=false", "--build-arg", "BASE=localhost/base",
            "--build-arg", f"BUILDPLATFORM=linux/{debs.native_architecture()}",
            "--platform", ",".join(f"linux/{each}" for each in architectures), "--manifest", "tubed",
            *(f"--label={PREFIX}{name}={value}" for name, value in labels.items()), context, log=log)
        run(*buildah, "manifest", "push", "--all", "tubed", f"oci:{directory}:{version}", log=log)
    finally:
        run(*buildah, "rmi", "--all", "--force", log=log)
    finish(directory, health_check((context / "Containerfile").read_text(encoding="utf-8")))


def unpack(tarball, work):
    """Unpacks packaging/container; returns the id of the commit, which `git archive` writes."""
    with tarfile.open(tarball) as tar:
        prefix = tar.next().name.split("/", 1)[0]
        wanted = f"{prefix}/packaging/container/"
        for member in tar:
            if member.isfile() and member.name.startswith(wanted):
                member.name = "container/" + member.name.removeprefix(wanted)
                tar.extract(member, work)
        return tar.pax_headers["comment"]


def rfc3339(moment):
    """A time in seconds since 1970, as annotations have it."""
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def health_check(containerfile):
    """The instruction HEALTHCHECK, as the configuration of an image has it: times are in nanoseconds."""
    found = re.search(r"^HEALTHCHECK((?: --[a-z-]+=\d+s)+) CMD (\[.*\])$", containerfile, re.M)
    times = {name.title().replace("-", ""): int(seconds) * 10**9
             for name, seconds in re.findall(r"--([a-z-]+)=(\d+)s", found[1])}
    return {"Test": ["CMD", *json.loads(found[2])]} | times


class Blobs:
    """The files of a layout, each named by its hash."""

    def __init__(self, layout):
        self.directory = layout / "blobs/sha256"

    def path(self, descriptor):
        """The file of the blob that a descriptor names."""
        return self.directory / descriptor["digest"].removeprefix("sha256:")

    def read(self, descriptor):
        """The document that a descriptor names."""
        return json.loads(self.path(descriptor).read_text(encoding="utf-8"))

    def replace(self, descriptor, value):
        """Writes `value` in place of what the descriptor names, and lets it name that."""
        data = json.dumps(value, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.path(descriptor).unlink()
        (self.directory / digest).write_bytes(data)
        descriptor |= {"digest": f"sha256:{digest}", "size": len(data)}


def finish(layout, health):
    """Adds the health check to each configuration, and the labels as annotations to each manifest and to
    the index."""
    blobs = Blobs(layout)
    top = json.loads((layout / "index.json").read_text(encoding="utf-8"))
    index = blobs.read(top["manifests"][0])
    for descriptor in index["manifests"]:
        manifest = blobs.read(descriptor)
        config = blobs.read(manifest["config"])
        config["config"]["Healthcheck"] = health
        blobs.replace(manifest["config"], config)
        annotations = {name: value for name, value in sorted(config["config"]["Labels"].items())
                       if name.startswith(PREFIX)}
        manifest["annotations"] = index["annotations"] = annotations
        blobs.replace(descriptor, manifest)
    blobs.replace(top["manifests"][0], index)
    (layout / "index.json").write_text(json.dumps(top, separators=(",", ":")), encoding="utf-8")


def check(layout, version, packages):
    """Yields a line for each fault of a layout: the blobs, and of each image its size, its user, its
    version, and whether its programs are the packages'."""
    if json.loads((layout / "oci-layout").read_text(encoding="utf-8")) != LAYOUT:
        yield "oci-layout: not a layout of version 1.0.0"
    blobs = Blobs(layout)
    top = json.loads((layout / "index.json").read_text(encoding="utf-8"))
    named = {}
    faults = list(follow(blobs, top, named))
    yield from faults
    for path in sorted(blobs.directory.iterdir()):
        if path.name not in named:
            yield f"{path.relative_to(layout)}: no manifest names it"
    if faults:
        return
    if [each.get("annotations", {}).get(f"{PREFIX}ref.name") for each in top["manifests"]] != [version]:
        yield f"index.json: not one index, of version {version}"
        return
    index = blobs.read(top["manifests"][0])
    if sorted(each["platform"]["architecture"] for each in index["manifests"]) != sorted(debs.COMPILERS):
        yield "index.json: not an image for each architecture"
    for descriptor in index["manifests"]:
        for fault in check_image(blobs, descriptor, version, packages):
            yield f"{descriptor['platform']['architecture']}: {fault}"


def follow(blobs, value, named):
    """Yields a fault for each descriptor in `value`, a document, that does not match its blob."""
    children = [*value.get("manifests", []), *value.get("layers", []), *filter(None, [value.get("config")])]
    for descriptor in children:
        if "digest" not in descriptor:  # the "config" of a configuration
            continue
        path = blobs.path(descriptor)
        named[path.name] = descriptor
        if not path.exists() or sha256(path) != path.name or path.stat().st_size != descriptor["size"]:
            yield f"{descriptor['digest']}: not the blob that is named"
        elif descriptor["mediaType"].endswith("+json"):
            yield from follow(blobs, blobs.read(descriptor), named)


def check_image(blobs, descriptor, version, packages):
    """Yields a line for each fault of the image of one architecture."""
    manifest = blobs.read(descriptor)
    document = blobs.read(manifest["config"])
    config = document["config"]
    if sum(layer["size"] for layer in manifest["layers"]) >= MOST_BYTES:
        yield f"the layers have {MOST_BYTES >> 20} MiB or more"
    if config.get("User") != USER:
        yield f"its user is {config.get('User', 'root')}, not {USER}"
    labels, annotations = config.get("Labels", {}), manifest.get("annotations", {})
    for name, value in (("version", version), ("title", "tubed")):
        if not labels.get(PREFIX + name) == annotations.get(PREFIX + name) == value:
            yield f"{PREFIX}{name} is not {value}"
    if "Healthcheck" not in config or document["architecture"] != descriptor["platform"]["architecture"]:
        yield "not the configuration of such an image"
    # The pool may also have packages of older releases.
    found = list(packages.glob(f"tubed_{version}-*_{document['architecture']}.deb"))
    if len(found) != 1:
        yield f"there are {len(found)} packages of its architecture and version"
        return
    programs = [f"usr/bin/{name}" for name in ("tubed", "tubectl")]
    in_image = {}
    for layer in manifest["layers"]:
        with gzip.open(blobs.path(layer)) as stream, tarfile.open(fileobj=stream) as tar:
            in_image |= read_files(tar, programs)
    in_package = read_package(found[0], programs)
    for name in programs:
        if not in_image.get(name) or in_image[name] != in_package.get(name):
            yield f"{name} is not that of {found[0].name}"


def read_files(tar, names):
    """{name: hash} of those files that the archive has."""
    return {name: hashlib.sha256(tar.extractfile(member).read()).hexdigest() for member in tar
            if (name := member.name.removeprefix("./")) in names and member.isfile()}


def read_package(path, names):
    """The same of a package of Debian."""
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=False)
    if done.returncode != 0:
        raise Problem(done.stderr.decode(errors="replace"))
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        return read_files(tar, names)
