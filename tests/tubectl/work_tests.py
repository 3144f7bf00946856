"""Helpers of the tests of `tubectl work`: a process that keeps running, and commands that report
their process ids.
"""

import pathlib
import subprocess

from harness import StandingClock
from programs import DONE, SANITIZED, SECONDS, TubectlTest, until, within

# In seconds, of jobs whose touches a test waits for. tubectl sends one after each third of it. It
# ends on a standing clock only, because a busy machine may delay a touch.
SHORT_TTR = 3


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1]
    except FileNotFoundError:
        return False
    return state.split()[0] != "Z"


def is_pending(process, number):
    """True if the process has this signal pending."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
    return bool(pending >> (number - 1) & 1)


class WorkTest(TubectlTest):
    def setUp(self):
        super().setUp()
        self.files = self.directory / "files"
        self.files.mkdir()

    def tubed_on_standing_clock(self):
        """Starts a tubed on whose clock no time passes by itself. Returns (its address, the clock)."""
        clock = StandingClock(self.directory)
        server = self.start(environment=clock.environment)
        clock.advance()
        return server.addresses[0], clock

    def start_work(self, server, *arguments, **options):
        """Starts a process that keeps running, at most until the end of the test."""
        process = self.popen(server, "work", *arguments, stdin=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, **options)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)
        self.addCleanup(end)
        return process

    def wait_for_end(self, process):
        """Returns (exit code, stderr)."""
        errors = process.communicate(timeout=SECONDS)[1].decode()
        return process.returncode, errors

    def error_line(self, process, what):
        """Returns the next line of the process on standard error."""
        return within(what, process.stderr.readline).decode()

    def work(self, server, *arguments):
        """Runs tubectl work until it ends by itself. Returns (exit code, stdout, stderr)."""
        return self.run_tubectl(server, "work", *arguments)

    def check_that_each_job_is_done_once(self, *flags):
        count = 200 if SANITIZED else 1000
        for server in self.servers():
            client = self.client(server)
            client.put_many(count)
            done = self.path("done")
            code, _, errors = self.work(server, "-j", 8, *flags, "--exit-when-idle", 0, "--", "sh",
                                        "-c", f"echo $TUBED_JOB_ID >> {done}")
            self.assertEqual((code, errors), (DONE, ""))
            jobs = sorted(map(int, done.read_text("utf-8").split()))
            self.assertEqual(jobs, list(range(1, count + 1)))
            stats = client.stats()
            self.assertEqual((stats["cmd-delete"], stats["current-jobs-ready"]), (count, 0))
            done.unlink()

    def path(self, name):
        return self.files / name

    def wait_for_file(self, name):
        """Returns the text of the file once it is not empty."""
        path = self.path(name)
        return until(f"the file {name}", lambda: path.exists() and path.read_text("utf-8"))

    def wait_for_pid(self, name):
        return int(self.wait_for_file(name))

    def state_of(self, client, job):
        """Returns the state in stats-job; None if the job does not exist."""
        stats = client.stats_if_found(f"stats-job {job}")
        return stats and stats["state"]

    def wait_for_state(self, client, job, state):
        until(f"job {job} to be {state}", lambda: self.state_of(client, job) == state)

    def sleeper(self, name="pid"):
        """A command that writes its pid to a file and runs until a signal ends it."""
        return ("sh", "-c", f'echo $$ > {self.path(name)}; exec sleep 1000')
