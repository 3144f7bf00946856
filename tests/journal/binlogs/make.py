#!/usr/bin/env python3
"""Makes the golden binlogs in this folder with a real beanstalkd.

Each folder contains the binlog.N of a killed beanstalkd, and `expected`: the jobs that a beanstalkd
started on a copy of them reports. beanstalkd 1.12 buries each buried job again at each start, counts
that, and changes the order: here that bury is not counted, and the order is that before the kill. The
lines of `expected` are

  now NANOSECONDS                  the wall clock when the jobs were reported
  job ID TUBE STATE PRI AGE DELAY TTR TIME-LEFT RESERVES TIMEOUTS RELEASES BURIES KICKS BODY
  buried TUBE ID...                in the order in which they were buried before the kill
  next ID                          of the next put
  # lost ...                       a value from before the kill that beanstalkd has lost

BODY is percent-encoded. A run changes all times, so run it only to change the recorded contents:

  python3 tests/journal/binlogs/make.py [--beanstalkd PROGRAM]
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "daemon"))
from harness import Client, as_dict, start_beanstalkd  # noqa: E402

FAR = 100_000_000  # three years: delayed jobs stay delayed during a run
FIELDS = ("tube state pri age delay ttr time-left reserves timeouts releases buries kicks").split()


class Beanstalkd:
    """One process on a directory of binlogs, and one connection to it."""

    def __init__(self, program, directory):
        self.process = start_beanstalkd("-b", str(directory), "-f", "0", "-s", "4096",
                                        program=program)
        self.client = Client(self.process.addresses[0])

    def kill(self):
        self.process.kill()
        self.client.close()

    def command(self, line, body=None, expect=""):
        self.client.send(line.encode() + b"\r\n" + (b"" if body is None else body + b"\r\n"))
        reply = self.client.line()
        if not reply.startswith(expect):
            raise AssertionError(f"{line}: {reply}")
        return reply

    def payload(self, line):
        words = self.command(line).split()
        return self.client.body_after(words) if words[0] in ("OK", "FOUND", "RESERVED") else None

    def put(self, body, tube="default", pri=100, delay=0, ttr=60):
        self.command(f"use {tube}", expect="USING")
        reply = self.command(f"put {pri} {delay} {ttr} {len(body)}", body, "INSERTED")
        return int(reply.split()[1])

    def reserve(self, job):
        self.payload(f"reserve-job {job}")

    def bury(self, job, pri=100):
        self.reserve(job)
        self.command(f"bury {job} {pri}", expect="BURIED")

    def release(self, job, pri=100, delay=0):
        self.reserve(job)
        self.command(f"release {job} {pri} {delay}", expect="RELEASED")

    def stats(self, job):
        text = self.payload(f"stats-job {job}")
        return text and {key: str(value) for key, value in as_dict(text).items()}


def states(server):
    """Brings jobs into every state of rest, in several tubes; two jobs are reserved at the end."""
    server.put(b"first")
    server.put(b"urgent", pri=0)
    server.put(b"least urgent", pri=4294967295, ttr=4294967295)
    server.put(b"", tube="empty-body")
    server.put(b"line\r\nline\r\n\0\xff", tube="any.bytes;$_()")
    for number in range(4):
        server.put(b"%d" % number * (200 + 100 * number), tube="t" * 200, pri=number)
    server.put(b"later", tube="delayed", delay=FAR)
    released = server.put(b"released with a delay", tube="delayed", ttr=1)
    server.release(released, 7, FAR)
    buried = [server.put(b"bury %d" % number, tube="graves") for number in range(6)]
    for job in (buried[4], buried[1], buried[3], buried[0], buried[5]):
        server.bury(job, pri=job)
    server.command("use graves", expect="USING")
    server.command("kick 1", expect="KICKED 1")          # the job that was buried first
    server.command(f"kick-job {buried[3]}", expect="KICKED")
    server.bury(buried[3], 5)                            # now after the others
    kicked = server.put(b"kicked out of its delay", tube="delayed", delay=FAR)
    server.command(f"kick-job {kicked}", expect="KICKED")
    again = server.put(b"released without a delay", tube="released")
    server.release(again, 9, 0)
    gone = [server.put(b"gone" * 50, tube="gone") for _ in range(12)]
    for job in gone:
        server.command(f"delete {job}", expect="DELETED")
    server.put(b"last")
    server.reserve(server.put(b"held at the end", tube="held"))
    held = server.put(b"buried, then held at the end", tube="held")
    server.bury(held)
    server.reserve(held)
    server.command(f"delete {server.put(b'the largest id')}", expect="DELETED")


def compacted(server):
    """Removes the oldest files: compaction copied their jobs to later files."""
    for number in range(8):
        server.put(b"stays %d " % number * 50, pri=number)
    server.put(b"stays delayed", tube="delayed", delay=FAR)
    buried = [server.put(b"stays buried %d" % number, tube="graves") for number in range(3)]
    for job in (buried[2], buried[0], buried[1]):
        server.bury(job)
    server.command(f"kick-job {buried[0]}", expect="KICKED")
    for number in range(45):
        job = server.put(b"churn %d " % number * 60, tube="churn")
        server.command(f"delete {job}", expect="DELETED")
    server.bury(buried[0])
    server.command("delete 2", expect="DELETED")
    server.put(b"the last one", tube="churn")


def restarted(server):
    """The commands for the first of two beanstalkds; restarted_again() has those for the second."""
    for number in range(5):
        server.put(b"%d" % number * 500, pri=number)
    server.bury(3)
    server.bury(2)


def restarted_again(server):
    server.bury(5)
    server.release(4, 77, FAR)
    server.command("delete 1", expect="DELETED")
    server.command("kick-job 3", expect="KICKED")
    server.put(b"put after the restart")


def all_jobs(server, beyond):
    """The stats of all jobs by id."""
    found = ((job, server.stats(job)) for job in range(1, beyond))
    return {job: stats for job, stats in found if stats is not None}


def buried_order(server):
    """The buried jobs of each tube, the first buried first. Kicks them, so it must be the last
    call."""
    order = {}
    for tube in sorted(server.payload("list-tubes").decode().split("\n- ")[1:]):
        tube = tube.strip().strip('"')
        server.command(f"use {tube}", expect="USING")
        while (reply := server.command("peek-buried")).startswith("FOUND"):
            job, size = map(int, reply.split()[1:])
            server.client.read(size + 2)
            order.setdefault(tube, []).append(job)
            server.command("kick 1", expect="KICKED 1")
    return order


def buried_lines(order):
    return [f"{tube} {' '.join(map(str, jobs))}" for tube, jobs in order.items()]


def report(server):
    """The lines of `expected` for the jobs and the next id; and the data from which the lines were
    made."""
    beyond = server.put(b"")
    server.command(f"delete {beyond}", expect="DELETED")
    now = time.time_ns()
    jobs = all_jobs(server, beyond)
    lines = [f"now {now}"]
    for job, stats in jobs.items():
        body = urllib.parse.quote_from_bytes(server.payload(f"peek {job}"), safe="")
        kept = dict(stats)
        if stats["state"] == "buried":
            kept["buries"] = str(int(stats["buries"]) - 1)
        fields = " ".join(kept[field] for field in FIELDS)
        lines.append(f"job {job} {fields} {body}")
    lines.append(f"next {beyond}")
    return lines, jobs


def losses(before, after):
    keys = [key for key in FIELDS if key not in ("age", "time-left")]
    for job in sorted(before):
        if job not in after:
            yield f"job {job} is not there"
            continue
        for key in keys:
            if before[job][key] != after[job][key]:
                yield f"job {job} {key}: {before[job][key]}, then {after[job][key]}"


def record(program, name, *scripts):
    with tempfile.TemporaryDirectory() as work:
        directory = pathlib.Path(work) / "binlogs"
        directory.mkdir()
        for script in scripts:
            server = Beanstalkd(program, directory)
            script(server)
            last = script is scripts[-1]
            before = all_jobs(server, 1000) if last else {}
            copies = pathlib.Path(work) / "killed"
            if last:
                # -f 0: every acknowledged change is in the files. The running process reports the
                # order.
                server.process.freeze()
                shutil.copytree(directory, copies)
                server.process.thaw()
                order_before = buried_order(server)
            server.kill()
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in copies.glob("binlog.*"):
            shutil.copy(path, folder)
            (folder / path.name).chmod(0o644)

        server = Beanstalkd(program, copies)
        lines, after = report(server)
        order_after = buried_order(server)
        server.kill()
    # A buried job that is reserved at the kill is buried again afterwards.
    held = {tube: jobs for tube, jobs in order_after.items() if tube not in order_before}
    lines += [f"buried {line}" for line in buried_lines(order_before | held)]
    lines += [f"# lost {line}" for line in losses(before, after)]
    if order_before != order_after:
        lines += [f"# lost buried, then: {line}" for line in buried_lines(order_after)]
    (folder / "expected").write_text("\n".join(lines) + "\n")
    print(f"{name}: {len(after)} jobs in {len(list(folder.glob('binlog.*')))} files")


def main():
    parser = argparse.ArgumentParser(description="Makes the golden binlogs anew.")
    parser.add_argument("--beanstalkd", default="/usr/bin/beanstalkd")
    program = parser.parse_args().beanstalkd
    record(program, "states", states)
    record(program, "compacted", compacted)
    record(program, "restarted", restarted, restarted_again)
    return 0


if __name__ == "__main__":
    sys.exit(main())
