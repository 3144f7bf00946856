"""What the tests of `tubectl work` share: how it runs on, and commands that tell of themselves."""

import pathlib
import subprocess

from programs import SANITIZED, SECONDS, TubectlTest, until, within

# Of jobs that are to be touched in time: a busy machine keeps a command waiting, and a sanitized
# one takes long to start.
SHORT_TTR = 6 if SANITIZED else 3


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1]
    except FileNotFoundError:
        return False
    return state.split()[0] != "Z"


def is_pending(process, number):
    """A signal that it has not taken yet."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
    return bool(pending >> (number - 1) & 1)


class WorkTest(TubectlTest):
    def setUp(self):
        super().setUp()
        self.files = self.directory / "files"
        self.files.mkdir()

    def start_work(self, server, *arguments, **options):
        """One that runs on; it ends with the test at the latest."""
        process = self.popen(server, "work", *arguments, stdin=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)
        self.addCleanup(end)
        return process

    def wait_for_end(self, process):
        """(exit code, stderr)."""
        errors = process.communicate(timeout=SECONDS)[1].decode()
        return process.returncode, errors

    def error_line(self, process, what):
        """The next line on its standard error."""
        return within(what, process.stderr.readline).decode()

    def work(self, server, *arguments):
        """(exit code, stdout, stderr) of one that ends by itself."""
        return self.run_tubectl(server, "work", *arguments)

    def path(self, name):
        return self.files / name

    def wait_for_file(self, name):
        """Its text, once there is a line."""
        path = self.path(name)
        return until(f"the file {name}", lambda: path.exists() and path.read_text("utf-8"))

    def wait_for_pid(self, name):
        return int(self.wait_for_file(name))

    def state_of(self, client, job):
        """Of stats-job; nothing: there is no such job."""
        client.send(f"stats-job {job}\r\n".encode())
        words = client.line().split()
        if words[0] == "NOT_FOUND":
            return None
        block = client.read(int(words[1]) + 2).decode()
        return dict(line.split(": ", 1) for line in block.splitlines()[1:] if line)["state"]

    def wait_for_state(self, client, job, state):
        until(f"job {job} to be {state}", lambda: self.state_of(client, job) == state)

    def sleeper(self, name="pid"):
        """A command that tells its pid and then goes on for as long as nobody ends it."""
        return ("sh", "-c", f'echo $$ > {self.path(name)}; exec sleep 1000')
