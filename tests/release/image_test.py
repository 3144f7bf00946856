"""The container image of tools/release: a small layout without Debian, and the faults that the
check finds.

packaging/tests/container runs the real image.
"""

import gzip
import hashlib
import io
import json
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import tomllib
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "releasing")]
import image  # noqa: E402
from run import Problem, run  # noqa: E402

VERSION = "9.8.7"
ARCHITECTURES = ("amd64", "arm64")
CONTAINER = ROOT / "packaging/container"
MEDIA = "application/vnd.oci.image."
LABELS = {f"{image.PREFIX}version": VERSION, f"{image.PREFIX}title": "tubed", "other": "label"}
HEALTH = {"Test": ["CMD", "tubectl", "health"], "Interval": 30 * 10**9}


def programs(architecture):
    return {f"usr/bin/{name}": f"{name} of {architecture}".encode() for name in ("tubed", "tubectl")}


def make_package(directory, architecture):
    tree = directory / f"tree-{architecture}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: tubed\nVersion: {VERSION}-1\nArchitecture: {architecture}\n"
        "Maintainer: Ada <ada@example.org>\nDescription: nothing\n", encoding="utf-8")
    for name, data in programs(architecture).items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    run("dpkg-deb", "--root-owner-group", "--build", tree, directory / f"tubed_{VERSION}-1_{architecture}.deb")


def layer_of(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(data.getvalue(), mtime=0)


class Layout:
    """A layout in the format of buildah."""

    def __init__(self, directory):
        self.directory = directory
        self.blobs = directory / "blobs/sha256"
        self.blobs.mkdir(parents=True)
        (directory / "oci-layout").write_text(json.dumps(image.LAYOUT), encoding="utf-8")

    def add(self, kind, value, **more):
        """Adds a blob; returns its descriptor."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        digest = hashlib.sha256(data).hexdigest()
        (self.blobs / digest).write_bytes(data)
        return {"mediaType": f"{MEDIA}{kind}", "digest": f"sha256:{digest}", "size": len(data)} | more

    def add_image(self, architecture, files=None, **changes):
        config = {"User": image.USER, "Labels": LABELS} | changes
        manifest = {"schemaVersion": 2,
                    "config": self.add("config.v1+json", {"architecture": architecture, "os": "linux", "config": config}),
                    "layers": [self.add("layer.v1.tar+gzip", layer_of({"etc/hostname": architecture.encode()})),
                               self.add("layer.v1.tar+gzip", layer_of(files or programs(architecture)))]}
        return self.add("manifest.v1+json", manifest, platform={"architecture": architecture, "os": "linux"})

    def write_index(self, *images, version=VERSION):
        index = self.add("index.v1+json", {"schemaVersion": 2, "manifests": list(images)},
                         annotations={f"{image.PREFIX}ref.name": version})
        (self.directory / "index.json").write_text(
            json.dumps({"schemaVersion": 2, "manifests": [index]}), encoding="utf-8")

    def read(self, descriptor):
        return json.loads((self.blobs / descriptor["digest"].removeprefix("sha256:")).read_text(encoding="utf-8"))

    def top(self):
        return json.loads((self.directory / "index.json").read_text(encoding="utf-8"))


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="tubed-image-")
        cls.addClassCleanup(directory.cleanup)
        cls.packages = pathlib.Path(directory.name)
        for architecture in ARCHITECTURES:
            make_package(cls.packages, architecture)

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="tubed-image-")
        self.addCleanup(directory.cleanup)
        self.layout = Layout(pathlib.Path(directory.name) / "image")

    def make(self, architectures=ARCHITECTURES, version=VERSION, **changes):
        """Makes a finished layout; the changes apply to the image of arm64."""
        self.layout.write_index(*(self.layout.add_image(each, **(changes if each == "arm64" else {}))
                                  for each in architectures), version=version)
        image.finish(self.layout.directory, HEALTH)
        return self.layout

    def faults(self):
        return list(image.check(self.layout.directory, VERSION, self.packages))

    def blob(self, kind):
        """Returns the file of the first blob of a kind that an image names."""
        manifest = self.layout.read(self.layout.read(self.layout.top()["manifests"][0])["manifests"][0])
        descriptor = manifest["config"] if kind == "config" else manifest["layers"][0]
        return self.layout.blobs / descriptor["digest"].removeprefix("sha256:")

    # --- A correct layout

    def test_finish(self):
        self.make()
        self.assertEqual(self.faults(), [])
        annotations = {name: value for name, value in LABELS.items() if name.startswith(image.PREFIX)}
        index = self.layout.read(self.layout.top()["manifests"][0])
        self.assertEqual(index["annotations"], annotations)
        for descriptor in index["manifests"]:
            manifest = self.layout.read(descriptor)
            self.assertEqual(manifest["annotations"], annotations)
            config = self.layout.read(manifest["config"])["config"]
            self.assertEqual((config["Healthcheck"], config["Labels"]), (HEALTH, LABELS))

    def test_finish_again_changes_nothing(self):
        self.make()
        before = {path: path.read_bytes() for path in self.layout.directory.rglob("*") if path.is_file()}
        image.finish(self.layout.directory, HEALTH)
        self.assertEqual({path: path.read_bytes() for path in self.layout.directory.rglob("*") if path.is_file()}, before)

    # --- Faults that the check finds

    def test_a_changed_blob(self):
        for kind in ("config", "layer"):
            self.make()
            path = self.blob(kind)
            data = path.read_bytes()
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            self.assertEqual(self.faults(), [f"sha256:{path.name}: not the blob that is named"])
            path.write_bytes(data)
            self.assertEqual(self.faults(), [])

    def test_a_missing_blob(self):
        self.make()
        path = self.blob("layer")
        path.unlink()
        self.assertEqual(self.faults(), [f"sha256:{path.name}: not the blob that is named"])

    def test_a_missing_manifest(self):
        self.make()
        name = self.layout.top()["manifests"][0]["digest"]
        (self.layout.blobs / name.removeprefix("sha256:")).unlink()
        self.assertEqual(self.faults()[0], f"{name}: not the blob that is named")

    def test_a_file_too_many(self):
        self.make()
        (self.layout.blobs / "other").touch()
        self.assertEqual(self.faults(), ["blobs/sha256/other: no manifest names it"])

    def test_another_version_of_the_layout(self):
        self.make()
        (self.layout.directory / "oci-layout").write_text("{}", encoding="utf-8")
        self.assertEqual(self.faults(), ["oci-layout: not a layout of version 1.0.0"])

    def test_another_name(self):
        self.make(version="9.8.6")
        self.assertEqual(self.faults(), [f"index.json: not one index, of version {VERSION}"])

    def test_no_index(self):
        self.make()
        (self.layout.directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": []}))
        self.assertEqual(self.faults()[-1], f"index.json: not one index, of version {VERSION}")

    def test_a_missing_architecture(self):
        self.make(architectures=("amd64",))
        self.assertEqual(self.faults(), ["index.json: not an image for each architecture"])

    def test_an_architecture_twice(self):
        self.layout.write_index(*map(self.layout.add_image, ARCHITECTURES),
                                self.layout.add_image("arm64", Labels=LABELS | {"other": "image"}))
        image.finish(self.layout.directory, HEALTH)
        self.assertEqual(self.faults(), ["index.json: not an image for each architecture"])

    def test_another_user(self):
        for user in ("0:0", ""):
            self.setUp()
            self.make(User=user)
            self.assertEqual(self.faults(), [f"arm64: its user is {user}, not {image.USER}"])

    def test_no_user_and_no_labels(self):
        config = self.layout.add("config.v1+json", {"architecture": "arm64", "config": {"Healthcheck": HEALTH}})
        layer = self.layout.add("layer.v1.tar+gzip", layer_of(programs("arm64")))
        manifest = {"config": config, "layers": [layer]}
        self.layout.write_index(self.layout.add("manifest.v1+json", manifest, platform={"architecture": "arm64"}))
        faults = self.faults()
        self.assertIn(f"arm64: its user is root, not {image.USER}", faults)
        self.assertIn(f"arm64: {image.PREFIX}version is not {VERSION}", faults)

    def test_another_label(self):
        for name in ("version", "title"):
            self.setUp()
            self.make(Labels=LABELS | {f"{image.PREFIX}{name}": "other"})
            self.assertEqual(self.faults(), [f"arm64: {image.PREFIX}{name} is not {LABELS[image.PREFIX + name]}"])

    def test_another_program(self):
        self.make(files=programs("arm64") | {"usr/bin/tubectl": b"other"})
        self.assertEqual(self.faults(), [f"arm64: usr/bin/tubectl is not that of tubed_{VERSION}-1_arm64.deb"])

    def test_a_missing_program(self):
        self.make(files={"usr/bin/tubectl": programs("arm64")["usr/bin/tubectl"]})
        self.assertEqual(self.faults(), [f"arm64: usr/bin/tubed is not that of tubed_{VERSION}-1_arm64.deb"])

    def test_packages_of_other_releases(self):
        """Packages of other releases stay in the pool; one package of the release is damaged."""
        pool = self.layout.directory.parent / "pool"
        shutil.copytree(self.packages, pool, ignore=shutil.ignore_patterns("tree-*"))
        for version in ("9.8.6", "9.8.70", "10.0.0"):
            (pool / f"tubed_{version}-1_arm64.deb").touch()
        self.make()
        self.assertEqual(list(image.check(self.layout.directory, VERSION, pool)), [])
        package = pool / f"tubed_{VERSION}-1_arm64.deb"
        package.write_bytes(package.read_bytes()[:200])
        with self.assertRaisesRegex(Problem, "dpkg-deb"):
            list(image.check(self.layout.directory, VERSION, pool))
        package.unlink()
        self.assertEqual(list(image.check(self.layout.directory, VERSION, pool)),
                         ["arm64: there are 0 packages of its architecture and version"])

    def test_the_configuration_of_another_architecture(self):
        self.layout.write_index(self.layout.add_image("amd64"),
                                self.layout.add_image("amd64", Labels=LABELS | {"other": "image"}) |
                                {"platform": {"architecture": "arm64"}})
        image.finish(self.layout.directory, HEALTH)
        self.assertIn("arm64: not the configuration of such an image", self.faults())

    def test_an_image_that_is_not_finished(self):
        self.layout.write_index(*map(self.layout.add_image, ARCHITECTURES))
        self.assertEqual(self.faults(), [f"{each}: {fault}" for each in ARCHITECTURES for fault in (
            f"{image.PREFIX}version is not {VERSION}", f"{image.PREFIX}title is not tubed",
            "not the configuration of such an image")])

    def test_large_layers(self):
        self.make()
        with mock.patch.object(image, "MOST_BYTES", 1):
            self.assertEqual(self.faults(), [f"{each}: the layers have 0 MiB or more" for each in ARCHITECTURES])

    # --- The files from which the image is made

    def test_the_health_check_of_the_containerfile(self):
        text = (CONTAINER / "Containerfile").read_text(encoding="utf-8")
        second = 10**9
        self.assertEqual(image.health_check(text), {"Test": ["CMD", "tubectl", "health"], "Interval": 30 * second,
                                                    "Timeout": 5 * second, "StartPeriod": 60 * second})

    def test_the_user_of_the_containerfile(self):
        text = (CONTAINER / "Containerfile").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^USER (.*)$", text, re.M), [image.USER])
        script = (CONTAINER / "install").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^uid=(.*)$", script, re.M), [image.USER.split(":", maxsplit=1)[0]])

    def test_the_settings_of_the_page(self):
        page = (ROOT / "docs/containers.md").read_text(encoding="utf-8")
        text = re.search(r"^<!-- file: tubed\.toml -->\n```toml\n(.*?)^```$", page, re.M | re.S)[1]
        settings = (CONTAINER / "tubed.toml").read_text(encoding="utf-8")
        self.assertEqual(tomllib.loads(text), tomllib.loads(settings))
        self.assertEqual(lines_of(text), lines_of(settings))


def lines_of(toml):
    """Returns the lines of settings, without comments."""
    return [line for line in toml.splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    unittest.main()
