"""The checker of a cluster's promises: it judges the commands that clients send, and the replies.

Jobs are independent of each other, so each rule is about one job, and each event is checked in
constant time:

  never lost        an acknowledged job exists at the end, unless some client sent a delete of it
  never back        no reply shows a job to a command that was sent after its DELETED had arrived
  one holder        between two RESERVED of a job, the first client sent a command that ends its
                    reservation, or closed its connection, or the TTR passed, or, after a change of
                    the leader, hold_grace passed
  holder's right    until then its delete, release, bury and touch succeed, also after such a change
  whole             a job has the body, tube, priority and TTR with which it was put, and its
                    counters never shrink
  unique            an id is given once, and ids rise in the order in which puts are acknowledged
  once              a body is at most as many jobs as puts of it were sent
  one leader        all clients that are served in a term are served by the same node

A connection may be *passed on* by a node that does not lead. Its end may then be known to the
leader before the client: the leader gives the client's jobs to others while the client still has
the connection. So a second holder in the same term is a problem only once a command is answered
that the first holder sent on that connection later, because then it had not ended. Nor can a
client know whether the leader had noticed the end of such a connection before it lost leadership:
after that, nothing is said of its reservations. The client of such a connection may still take
itself for the holder. After a change of the leader it may end the reservation of the next holder,
as any client may: a reservation for which another client's command succeeded, or has no answer, is
not protected then.

A command without a reply was done or was not. `Checker` is called with the events in the order in
which the clients process them; times are of the monotonic clock. An *epoch* is the time of one
leader, identified by its term. A leader answers only while no other leader does. So the next leader
took over after the newest command that the previous leader answered was sent; hold_grace counts
from that time.
"""

import collections

SKEW = 0.1  # by which the rates of clocks may differ
SLACK = 0.2  # seconds, for the rounding of TTRs and the scheduling of processes
MOST_PROBLEMS = 50


def body_of(serial, size=0):
    """Returns the body of a job, which depends on its serial number and its size."""
    return (b"%d " % serial).ljust(size, b".")


def serial_of(body):
    head = body.split(b" ", 1)[0]
    return int(head) if head.isdigit() else None


def safe(seconds):
    """A part of a duration that has not passed on any clock."""
    return seconds * (1 - SKEW) - SLACK


class Put:
    """All puts of one body."""
    __slots__ = ("size", "tube", "priority", "ttr", "sends", "ids", "open", "acknowledged")

    def __init__(self, size, tube, priority, ttr):
        self.size, self.tube, self.priority, self.ttr = size, tube, priority, ttr
        self.sends = 0
        self.open = 0  # sends without a reply
        self.ids = []  # jobs with this body
        self.acknowledged = 0


class Hold:
    """A reservation. It lasts at least until the TTR after `base`."""
    __slots__ = ("client", "connection", "epoch", "base", "arrived", "ttr", "ended", "connected",
                 "given_up", "passed_on", "contested")

    def __init__(self, client, connection, epoch, base, arrived, ttr, passed_on):
        self.client, self.connection, self.epoch = client, connection, epoch
        self.base, self.arrived, self.ttr = base, arrived, ttr
        self.ended = False  # a command that ends it was sent
        self.connected = True
        self.given_up = False  # the client itself closed the connection
        self.passed_on = passed_on  # the connection is
        # Commands of other clients that would end it after a change of the leader, except those
        # that were answered NOT_FOUND.
        self.contested = 0


class Job:
    __slots__ = ("serial", "acknowledged", "deletes", "hold", "counters", "counted", "events")

    def __init__(self, serial):
        self.serial = serial
        self.acknowledged = None  # when INSERTED arrived
        self.deletes = 0  # sent deletes, except those answered NOT_FOUND
        self.hold = None
        self.counters = None
        self.counted = 0.0  # when the reply with `counters` arrived
        self.events = collections.deque(maxlen=20)  # the last, for people

    def event(self, text, epoch, sent, arrived):
        self.events.append(f"{sent:.3f}-{arrived:.3f} term {epoch}: {text}")


class End:
    """A delete, release, bury or touch in progress, and what it may rely on."""
    __slots__ = ("kind", "client", "connection", "id", "sent", "hold", "right")

    def __init__(self, kind, client, connection, job_id, sent, hold, right):
        self.kind, self.client, self.connection = kind, client, connection
        self.id, self.sent, self.hold, self.right = job_id, sent, hold, right


class Checker:
    def __init__(self, grace=10.0):
        self.grace = grace
        self.problems = []
        self.problem_count = 0
        self.puts = {}
        self.jobs = {}
        self.gone = {}  # ids: when DELETED arrived
        self.answered = {}  # epochs: send time of the newest command answered in it
        self.held = collections.defaultdict(set)  # connections: ids
        self.passed_on = set()  # connections
        # Connections that are passed on: (time, id, problem if they have not ended at that time)
        self.suspicions = collections.defaultdict(list)
        self.leaders = {}  # epochs: names
        self.newest_id = 0  # acknowledged
        self.last_serial = 0
        self.counts = collections.Counter()

    def problem(self, job_id, text):
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            job = self.jobs.get(job_id)
            events = "".join(f"\n    {event}" for event in job.events) if job else ""
            self.problems.append(f"job {job_id} {text}{events}")

    def live(self):
        return len(self.jobs)

    # --- Puts

    def new_put(self, size, tube, priority, ttr):
        """Returns a serial number for a body that was never put before."""
        self.last_serial += 1
        self.puts[self.last_serial] = Put(size, tube, priority, ttr)
        return self.last_serial

    def put_sent(self, serial):
        """Returns the newest acknowledged id; the id of the new job is larger."""
        put = self.puts[serial]
        put.sends += 1
        put.open += 1
        self.counts["retries"] += put.sends > 1
        return self.newest_id

    def put_refused(self, serial):
        """The put had a reply other than INSERTED: it made no job."""
        put = self.puts[serial]
        put.open -= 1
        put.sends -= 1

    def inserted(self, serial, job_id, newest_before, arrived):
        self.counts["inserted"] += 1
        put = self.puts[serial]
        put.open -= 1
        put.acknowledged += 1
        if job_id <= newest_before:
            self.problem(job_id, f"was put after job {newest_before} was acknowledged")
        self.newest_id = max(self.newest_id, job_id)
        known = self.jobs.get(job_id)
        if (known and known.acknowledged is not None) or job_id in self.gone and (
                job_id not in put.ids):
            self.problem(job_id, "is the id of two puts")
            return
        job = self.identify(job_id, serial)
        if job:
            job.acknowledged = arrived

    def identify(self, job_id, serial):
        """Returns the job with this id, whose body has this serial number."""
        job = self.jobs.get(job_id)
        if job:
            if job.serial != serial:
                self.problem(job_id, f"is body {job.serial} and body {serial}")
            return job
        put = self.puts.get(serial)
        if not put:
            self.problem(job_id, f"has body {serial}, which was never put" if not serial or
                         serial > self.last_serial else
                         f"is doubled: body {serial} was put once, and its job is deleted")
            return None
        if job_id in put.ids:  # it was deleted
            return None
        put.ids.append(job_id)
        if len(put.ids) > 1:
            self.counts["doubled"] += 1
        if len(put.ids) > put.sends:
            self.problem(job_id, f"is doubled: body {serial} was put {put.sends} times and is the "
                                 f"jobs {put.ids}")
        job = self.jobs[job_id] = Job(serial)
        return job

    def seen(self, job_id, body, sent):
        """Takes a reply that shows the job. Returns the job, or None if it cannot exist."""
        gone = self.gone.get(job_id)
        if gone is not None:
            if gone < sent:
                self.problem(job_id, "is back: it was deleted before the command was sent")
            return None
        serial = serial_of(body)
        job = self.identify(job_id, serial)
        if job:
            expected = body_of(serial, self.puts[serial].size)
            if body != expected:
                self.problem(job_id, f"has the body {body[:40]!r} of {len(body)} bytes, not "
                                     f"{expected[:40]!r} of {len(expected)}")
        return job

    # --- Holders

    def connected(self, connection, epoch, leader, passed_on):
        """The leader of this epoch has greeted a client. `leader`: its name, or None."""
        known = self.leaders.setdefault(epoch, leader)
        if known != leader:
            self.problem(0, f"(all): {known} and {leader} serve clients in term {epoch}")
        if passed_on:
            self.passed_on.add(connection)

    def reply(self, epoch, sent, connection=None):
        """A command that was sent at this time was answered."""
        for since, job_id, text in self.suspicions.get(connection, ()):
            if sent > since:
                self.problem(job_id, text)
                del self.suspicions[connection]
                break
        if sent > self.answered.get(epoch, 0.0):
            self.answered[epoch] = sent

    def lasts_until(self, hold, epoch):
        """The time until which a leader of `epoch` protects the reservation, at least."""
        until = hold.base + safe(hold.ttr)
        if epoch == hold.epoch:
            return until if hold.connected else 0.0
        if epoch < hold.epoch or hold.given_up or hold.passed_on or hold.contested:
            return 0.0
        return min(until, self.answered.get(hold.epoch, 0.0) + safe(self.grace))

    def two_holders(self, job_id, hold, arrived, text):
        if hold.passed_on:
            self.counts["suspicions"] += 1
            self.suspicions[hold.connection].append((arrived, job_id, text))
        else:
            self.problem(job_id, text)

    def reserved(self, client, connection, epoch, job_id, body, sent, arrived):
        self.counts["reserved"] += 1
        job = self.seen(job_id, body, sent)
        if not job:
            return
        old = job.hold
        if old and epoch < old.epoch:
            self.counts["unordered"] += 1
            return
        if old and not old.ended and arrived < self.lasts_until(old, epoch):
            self.two_holders(
                job_id, old, arrived,
                f"has two holders: it was given to client {client} by the leader of term {epoch}, "
                f"and client {old.client} has it from that of term {old.epoch} for "
                f"{old.base + old.ttr - arrived:.1f} s more")
        if old:
            self.held[old.connection].discard(job_id)
        job.hold = Hold(client, connection, epoch, sent, arrived, self.puts[job.serial].ttr,
                        connection in self.passed_on)
        self.held[connection].add(job_id)
        job.event(f"RESERVED for {client} on connection {connection}"
                  f"{', passed on' if job.hold.passed_on else ''}", epoch, sent, arrived)

    def connection_ended(self, connection, given_up):
        """`given_up`: the client closed the connection; otherwise the server did."""
        self.passed_on.discard(connection)
        self.suspicions.pop(connection, None)
        for job_id in self.held.pop(connection, ()):
            job = self.jobs.get(job_id)
            if job and job.hold and job.hold.connection == connection:
                job.hold.connected = False
                job.hold.given_up = given_up

    def end_sent(self, kind, client, connection, job_id, sent):
        """A client sends delete, release, bury or touch. Returns the argument of end_reply()."""
        job = self.jobs.get(job_id)
        hold = job.hold if job else None
        right = bool(hold and hold.client == client and not hold.ended)
        if job and kind == "delete":
            job.deletes += 1
        if right and kind != "touch":
            hold.ended = True
        if hold and hold.client != client:
            hold.contested += 1
        return End(kind, client, connection, job_id, sent, hold, right)

    def end_reply(self, end, epoch, done, arrived):
        job = self.jobs.get(end.id)
        if job:
            job.event(f"{end.kind} of {end.client}: {'done' if done else 'NOT_FOUND'}", epoch,
                      end.sent, arrived)
        if not done:
            if end.hold and end.hold.client != end.client:
                end.hold.contested -= 1
            self.end_refused(end, job, epoch, arrived)
            return
        if end.id in self.gone:
            if self.gone[end.id] < end.sent:
                self.problem(end.id, f"was deleted before its {end.kind} was sent, which succeeded")
            return
        if not job:
            self.problem(end.id, f"is unknown, and its {end.kind} succeeded")
            return
        hold = job.hold
        if hold and hold.client != end.client and not hold.ended and end.sent > hold.arrived and (
                hold.epoch == epoch and arrived < self.lasts_until(hold, epoch)):
            self.two_holders(end.id, hold, arrived,
                             f"is held by client {hold.client}, and the {end.kind} of client "
                             f"{end.client} succeeded")
        if end.right and end.hold.epoch < epoch:
            self.counts["held_over"] += 1
        if end.kind == "touch":
            self.touched(end, hold, epoch)
        elif end.kind == "delete":
            self.deleted(end, job, arrived)

    def touched(self, end, hold, epoch):
        if not hold or hold is not end.hold or hold.client != end.client:
            return
        hold.base = max(hold.base, end.sent)
        if hold.connection != end.connection:
            self.held[hold.connection].discard(end.id)
            hold.connection, hold.epoch = end.connection, epoch
            hold.connected, hold.given_up = True, False
            hold.passed_on = end.connection in self.passed_on
            self.held[end.connection].add(end.id)

    def deleted(self, end, job, arrived):
        self.counts["deleted"] += 1
        self.gone[end.id] = arrived
        if job.hold:
            self.held[job.hold.connection].discard(end.id)
        del self.jobs[end.id]
        put = self.puts[job.serial]
        # Forgets a body that cannot appear again.
        if not put.open and put.sends == put.acknowledged and all(i in self.gone for i in put.ids):
            del self.puts[job.serial]

    def end_refused(self, end, job, epoch, arrived):
        if not job:
            return
        if end.kind == "delete":
            job.deletes -= 1
        if not end.right or end.hold is not job.hold or job.deletes > 0:
            return
        hold = job.hold
        if hold.connection != end.connection and epoch == hold.epoch:
            return
        if arrived < self.lasts_until(hold, epoch):
            self.problem(end.id, f"is held by client {end.client}, and its {end.kind} was answered "
                                 f"NOT_FOUND by the leader of term {epoch}; the reservation is of "
                                 f"term {hold.epoch}, and lasts "
                                 f"{self.lasts_until(hold, epoch) - arrived:.1f} s more at least")

    # --- Peeks and stats of the clients

    def found(self, job_id, body, sent):
        self.seen(job_id, body, sent)

    def not_found(self, job_id, sent):
        """A peek or stats-job was answered NOT_FOUND."""
        job = self.jobs.get(job_id)
        if job and job.acknowledged is not None and job.acknowledged < sent and not job.deletes:
            self.problem(job_id, "was acknowledged, and was not found later")

    COUNTERS = ("timeouts", "releases", "buries", "kicks")

    def stats_job(self, job_id, stats, sent, arrived):
        job = self.jobs.get(job_id)
        if not job:
            if self.gone.get(job_id, sent) < sent:
                self.problem(job_id, "is back: it was deleted, and has stats")
            return
        put = self.puts[job.serial]
        for key, expected in (("tube", put.tube), ("ttr", put.ttr), ("pri", put.priority)):
            if stats[key] != expected:
                self.problem(job_id, f"has {key} {stats[key]}, and was put with {expected}")
        counters = [stats[key] for key in self.COUNTERS]
        if job.counters and sent > job.counted and any(
                now < before for now, before in zip(counters, job.counters)):
            self.problem(job_id, f"had the counters {job.counters} and has {counters}")
        job.counters, job.counted = counters, arrived

    # --- At the end

    def check_jobs(self, found):
        """`found`: the bodies of all jobs of the server at the end, by id."""
        for job_id, body in found.items():
            if job_id in self.gone:
                self.problem(job_id, "is back: it was deleted")
            else:
                self.seen(job_id, body, float("inf"))
        for job_id, job in self.jobs.items():
            if job.acknowledged is not None and not job.deletes and job_id not in found:
                self.problem(job_id, f"is lost (body {job.serial}), and was acknowledged at "
                                     f"{job.acknowledged:.3f}")
