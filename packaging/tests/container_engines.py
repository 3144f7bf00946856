"""Two ways to run the image of an OCI layout: podman without root, and systemd-nspawn with its files.

`Podman` and `Nspawn` have the same methods. run() starts a container that ends by itself, and start() a
server, as a `Container`; logs() returns the logs of the last server. A Podman container is started with the
command of docs/containers.md, and MACHINE_OPTIONS. Nspawn gives the same to the unpacked files: the user, the
variables and the program that the configuration of the image names, a read-only root, a volume, and no
capabilities.

packaging/tests/container makes the directory `work` and the namespaces. Every process ends with them.
"""

import concurrent.futures
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / each) for each in ("tests/daemon", "tools/releasing")]
from debs import native_architecture  # noqa: E402
from harness import SECONDS, Client, until  # noqa: E402
from image import Blobs  # noqa: E402

PAGE = HERE.parents[1] / "docs/containers.md"
PORT, HTTP_PORT = 11300, 11380
USER = 11300
DATA = "/var/lib/tubed"
CONFIG = "/etc/tubed/tubed.toml"
CLONE_NEWNET = 0x40000000
# Without these podman needs a journal of systemd and a session of the user.
CONTAINERS_CONF = """[containers]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
# No port of the machine, and no control group, which podman cannot make without a session of systemd.
MACHINE_OPTIONS = ("--network", "none", "--cgroups", "disabled")
# The default, vfs, copies the image for each container.
STORAGE_CONF = """[storage]
driver = "overlay"
"""


def execute(*command, timeout=SECONDS, **options):
    """Runs a command to its end: (exit code, output, errors). `timeout` in seconds."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def checked(*command, **options):
    """The output of a command that has to succeed."""
    code, output, errors = execute(*command, **options)
    if code != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {code}\n{output}{errors}")
    return output


class Page:
    """The fenced blocks of docs/containers.md."""

    def __init__(self, text=None):
        self.text = text or PAGE.read_text(encoding="utf-8")

    def marked(self, mark):
        """The block after the comment <!-- MARK -->."""
        return re.search(rf"^<!-- {re.escape(mark)} -->\n```\w+\n(.*?)^```$", self.text, re.M | re.S)[1]

    def files(self):
        return re.findall(r"^<!-- file: (\S+) -->$", self.text, re.M)

    def lines(self, start):
        """The lines of all blocks of sh that begin with `start`, without comments."""
        blocks = re.findall(r"^```sh\n(.*?)^```$", self.text, re.M | re.S)
        lines = "".join(blocks).replace("\\\n", "").splitlines()
        return [re.sub(r" +#.*", "", line) for line in lines if line.startswith(start)]


class Layout:
    """A directory in OCI's format: an index of version `version`, and an image for each architecture."""

    def __init__(self, directory):
        self.directory = directory
        self.blobs = Blobs(directory)
        top, = json.loads((directory / "index.json").read_text(encoding="utf-8"))["manifests"]
        self.version = top["annotations"]["org.opencontainers.image.ref.name"]
        self.manifests = {each["platform"]["architecture"]: self.blobs.read(each)
                          for each in self.blobs.read(top)["manifests"]}

    def config(self, architecture):
        return self.blobs.read(self.manifests[architecture]["config"])["config"]

    def unpack(self, architecture, target):
        target.mkdir()
        for layer in self.manifests[architecture]["layers"]:
            checked("tar", "-C", target, "--numeric-owner", "-xpf", self.blobs.path(layer))
        # Marks of files that a layer removes, which tar does not know.
        assert not list(target.rglob(".wh.*"))


class Container:
    """A server in a container. The subclasses say how to reach it."""

    pid = 0

    def command(self, *words, terminal=False):
        """The command line that runs `words` in the container."""
        raise NotImplementedError

    def execute(self, *words):
        return execute(*self.command(*words))

    def checked(self, *words):
        return checked(*self.command(*words))

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8")

    def listens(self, port):
        try:
            return re.search(rf"^ +\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A ", self.proc("net/tcp"), re.M)
        except OSError:  # it has ended
            return None

    def wait_until_it_listens(self):
        until(f"port {PORT}", lambda: self.listens(PORT))

    def within(self, function):
        """Calls a function in the network of the container, in a thread that ends with it."""
        def call():
            with open(f"/proc/{self.pid}/ns/net", "rb") as network:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            return function()

        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(call).result(SECONDS)

    def connect(self):
        return self.within(lambda: Client(f"127.0.0.1:{PORT}"))

    def fetch(self, path):
        """(status, text) of a page that the server has for HTTP."""
        def get():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{HTTP_PORT}{path}", timeout=SECONDS) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
        return self.within(get)


class Podman:
    """podman as a user without rights, with images and containers of its own."""

    name = "podman"

    def __init__(self, layout, work):
        self.layout = layout
        self.home = work / "home"
        owner = self.home.stat()
        # The page calls podman by its name.
        self.program = work / "bin/podman"
        self.program.parent.mkdir()
        variables = {"HOME": self.home, "XDG_RUNTIME_DIR": self.home / "run", "TMPDIR": self.home, "TERM": "xterm",
                     "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                     # The test itself runs the health check: no timers of systemd.
                     "DISABLE_HC_SYSTEMD": "true"}
        settings = " ".join(f"{name}={value}" for name, value in variables.items())
        self.program.write_text(
            f"#!/bin/sh\nexec setpriv --reuid={owner.st_uid} --regid={owner.st_gid} --clear-groups "
            f"env -i {settings} podman \"$@\"\n", encoding="utf-8")
        self.program.chmod(0o755)
        for name in ("run", ".config/containers"):
            (self.home / name).mkdir(mode=0o700, parents=True)
        (self.home / ".config/containers/containers.conf").write_text(CONTAINERS_CONF, encoding="utf-8")
        (self.home / ".config/containers/storage.conf").write_text(STORAGE_CONF, encoding="utf-8")
        (self.home / "image").symlink_to(layout.directory)
        for path in self.home.rglob("*"):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        self.run_line = self.adapted(Page().marked("run: podman"))
        self.image = self.run_line[-1]

    def refusal(self):
        """Why the machine does not let podman run a program in a container; empty: it does. Neither the
        page nor the format of the image matters here."""
        root = self.home / "probe"
        self.layout.unpack(native_architecture(), root)
        owner = self.home.stat()
        checked("chown", "-R", f"{owner.st_uid}:{owner.st_gid}", root)
        code, output, errors = execute(self.program, "run", "--rm", *MACHINE_OPTIONS, "--rootfs", root,
                                       "/usr/bin/tubed", "--version", cwd=self.home)
        shutil.rmtree(root)
        return f"exit code {code}\n{output}{errors}" if code != 0 else ""

    def load(self):
        """Makes the image known as the page has it."""
        pull, = Page().lines("podman tag ")
        self.paste(pull)

    def podman(self, *words):
        return checked(self.program, *words, cwd=self.home)

    def paste(self, line):
        """Runs a line of the page as the user; returns its output."""
        path = f"{self.program.parent}:{os.environ['PATH']}"
        return checked("bash", "-euo", "pipefail", "-c", line, cwd=self.home, env=os.environ | {"PATH": path})

    def adapted(self, line):
        """The words of a `podman run` of the page, without what this machine may refuse."""
        words = shlex.split(line.replace("\\\n", " "))
        assert words[:2] == ["podman", "run"], words
        if "--publish" in words:
            where = words.index("--publish")
            del words[where:where + 2]
        return [str(self.program), "run", *MACHINE_OPTIONS, *words[2:]]

    def run(self, *flags, files=()):
        words = [word for word in self.run_line[:-1] if word not in ("--detach", "--name", "tubed")]
        for source, target in files:
            words += ["--volume", f"{source}:{target}:ro"]
        return execute(*words, "--rm", self.image, *flags, cwd=self.home)

    def start(self, *flags, files=()):
        words = list(self.run_line[:-1])
        for source, target in files:
            words += ["--volume", f"{source}:{target}:ro"]
        checked(*words, self.image, *flags, cwd=self.home)
        return PodmanContainer(self)

    def remove_all(self):
        self.podman("rm", "--force", "--all", "--time", "0")
        self.podman("volume", "rm", "--force", "--all")

    def logs(self):
        """(standard output, standard error)"""
        _, output, errors = execute(self.program, "logs", "tubed", cwd=self.home)
        return output, errors


class PodmanContainer(Container):
    def __init__(self, engine):
        self.engine = engine
        self.started()

    def started(self):
        self.pid = int(self.inspect("{{.State.Pid}}"))
        self.wait_until_it_listens()

    def inspect(self, what):
        return self.engine.podman("inspect", "--format", what, "tubed").strip()

    def command(self, *words, terminal=False):
        return [self.engine.program, "exec", *(["-it", "-e", "TERM"] if terminal else []), "tubed", *words]

    def kill(self, name):
        self.engine.podman("kill", "--signal", name, "tubed")

    def wait(self):
        """The exit code."""
        return int(self.engine.podman("wait", "tubed"))

    def start_again(self):
        self.engine.podman("start", "tubed")
        self.started()

    def logs(self):
        return self.engine.logs()

    def check_health(self):
        """The exit code of the health check."""
        return execute(self.engine.program, "healthcheck", "run", "tubed", cwd=self.engine.home)[0]


class Nspawn:
    """systemd-nspawn, with a configuration in OCI's format."""

    name = "nspawn"

    def __init__(self, layout, work):
        self.work = work
        self.root = work / "root"
        self.config = layout.config(native_architecture())
        layout.unpack(native_architecture(), self.root)
        self.volumes = self.bundles = 0
        self.running = []
        self.make_volume()

    def make_volume(self):
        """A new volume, with the owner and the mode that the directory has in the image."""
        self.volumes += 1
        self.volume = self.work / f"volume-{self.volumes}"
        self.volume.mkdir()
        status = (self.root / DATA[1:]).stat()
        os.chown(self.volume, status.st_uid, status.st_gid)
        self.volume.chmod(status.st_mode)

    def launch(self, flags, files, **streams):
        self.bundles += 1
        bundle = self.work / f"bundle-{self.bundles}"
        bundle.mkdir()
        uid, gid = map(int, self.config["User"].split(":"))
        kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.0",
            "process": {"user": {"uid": uid, "gid": gid}, "args": [*self.config["Entrypoint"], *flags],
                        "env": self.config["Env"], "cwd": "/", "capabilities": {kind: [] for kind in kinds}},
            "root": {"path": str(self.root)}, "mounts": [],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]}}))
        group = pathlib.Path("/sys/fs/cgroup") / self.work.name
        # nspawn makes groups below the group that it runs in.
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe",
                   "--machine", self.work.name, "--read-only", "--no-new-privileges=yes",
                   f"--bind={self.volume}:{DATA}", *(f"--bind-ro={source}:{target}" for source, target in files),
                   f"--oci-bundle={bundle}"]
        return subprocess.Popen(
            ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group, *command], stdin=subprocess.DEVNULL,
            env=os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}, **streams)

    def run(self, *flags, files=()):
        process = self.launch(flags, files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = process.communicate(timeout=SECONDS)
        return process.returncode, output, errors

    def start(self, *flags, files=()):
        return NspawnContainer(self, flags, files)

    def remove_all(self):
        for container in self.running:
            container.end()
        self.running.clear()
        self.make_volume()

    def logs(self):
        return self.running[-1].logs() if self.running else ()


class NspawnContainer(Container):
    def __init__(self, engine, flags, files):
        self.engine, self.flags, self.files = engine, flags, files
        engine.running.append(self)
        self.start_again()

    def start_again(self):
        self.outputs = [self.engine.work / f"{kind}-{self.engine.bundles}" for kind in ("output", "errors")]
        with open(self.outputs[0], "wb") as output, open(self.outputs[1], "wb") as errors:
            self.process = self.engine.launch(self.flags, self.files, stdout=output, stderr=errors)
        self.pid = until("the server in nspawn", self.find_server)
        self.wait_until_it_listens()

    def find_server(self):
        if self.process.poll() is not None:
            raise AssertionError(f"nspawn has ended: {self.logs()}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for child in children.read_text(encoding="utf-8").split():
            # Helpers of nspawn end meanwhile.
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "tubed\n":
                    return int(child)
        return None

    def command(self, *words, terminal=False):
        variables = [*self.engine.config["Env"], *(["TERM=xterm"] if terminal else [])]
        return ["env", "-i", *variables, "nsenter", "--target", str(self.pid), "--mount", "--uts", "--ipc", "--net",
                "--pid", "--root", "--wd=/", "--setuid", str(USER), "--setgid", str(USER), "--", *words]

    def kill(self, name):
        os.kill(self.pid, signal.Signals[f"SIG{name}"])

    def wait(self):
        return self.process.wait(SECONDS)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()  # which kills the server
            self.wait()

    def logs(self):
        return tuple(path.read_text(encoding="utf-8") for path in self.outputs)

    def check_health(self):
        assert self.engine.config["Healthcheck"]["Test"][0] == "CMD"
        return self.execute(*self.engine.config["Healthcheck"]["Test"][1:])[0]


def choose(layout, work, wanted):
    """The engine that is named; with no name Podman if it runs here, otherwise Nspawn."""
    if wanted == "nspawn":
        return Nspawn(layout, work)
    engine = Podman(layout, work)
    reason = engine.refusal()
    if reason and not wanted:
        print(f"podman runs no container here: {reason}")
        return Nspawn(layout, work)
    engine.load()
    return engine
