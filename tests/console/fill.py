"""Creates the tubes and jobs of the servers whose console is tested. Each function returns the
names and ids that a test needs.
"""

import json

from harness import Client

MAX_JOB_BYTES = 8 << 20
CROWD = 10_000   # tubes

HOSTILE_TUBES = ["../../etc/passwd", "+SUM(1+1);cmd", "$(reboot)", "__proto__", "constructor",
                 "a/b;c", "javascript;alert(1)", "/", "A" * 200]
# Names that no path of a URL can contain, because browsers resolve them.
UNREACHABLE_TUBES = [".", ".."]
HTML = (b'<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>'
        b'<style>*{display:none}</style><iframe src="//evil.example/"></iframe>'
        b'<a href="javascript:alert(4)">x</a><meta http-equiv=refresh content=0>')
BODIES = {
    "html": HTML,
    "bidi": "invoice_\u202efdp.exe\u202c \u2066x\u2069 zero\u200bwidth \U000e0041 caf\u00e9 \u4e16"
            .encode(),
    "nul": b"a\0b\x07\x1b[31mred\x1b[0m",
    "binary": b"\xff\xfe\xc3\x28 <b>not UTF-8</b> " + bytes(range(256)),
    "line": b"x" * 60_000,
    "lines": b"first\r\nsecond\tand a tab\r\n\r\nlast",
    "json": json.dumps({"to": "ada@example.org", "html": HTML.decode(), "n": [1, {}, [], None],
                        "text": "a \\\"quote\\\""}).encode()[:-1] + b', "id": 12345678901234567890.10}',
    "broken": b'{"a": [1, 2',
    # JSON that would become very long with an indent for each level.
    "deep": b"[" * 30_000 + b"]" * 30_000,
    "empty": b"",
    "megabyte": b"0123456789abcde\n" * (1 << 16),
    "large": "\u4e16".encode() * ((5 << 20) // 3),
}


class Filler:
    """Puts jobs through one connection that pipelines commands."""

    def __init__(self, address):
        self.client = Client(address)

    def put(self, tube, bodies, pri=1024, delay=0, ttr=120, tags=""):
        """Puts jobs with these bodies; returns their ids."""
        lines = [b"put-in-tube %s %d %d %d %d%s\r\n%s\r\n" % (
            tube.encode(), pri, delay, ttr, len(body), f" {tags}".encode() if tags else b"", body)
            for body in bodies]
        last = int(self.client.pump(b"".join(lines), len(lines)).split()[1])
        return list(range(last - len(lines) + 1, last + 1))

    def bury(self, jobs, pri=1024):
        """Buries these jobs, whose bodies must have no line end."""
        commands = b"".join(b"reserve-job %d\r\nbury %d %d\r\n" % (job, job, pri) for job in jobs)
        assert self.client.pump(commands, 3 * len(jobs)) == "BURIED"

    def hold(self, jobs):
        for job in jobs:
            self.client.reserve(f"reserve-job {job}")

    def ask(self, command, reply):
        got = self.client.ask(command)
        assert got.startswith(reply), (command, got)


def mail(number):
    return json.dumps({"to": f"user{number}@example.org", "subject": f"Order {number} has shipped",
                       "template": "shipped", "attempt": 1 + number % 3}).encode()


def many(count, begin=0):
    return [mail(number) for number in range(begin, begin + count)]


def crowd(full):
    """Makes 10,000 tubes and 100,000 jobs."""
    return some_of_each(full, CROWD, 100_000, 12_000)


def several(full):
    """Makes the same with 300 tubes and 4,000 jobs."""
    return some_of_each(full, 300, 4000, 120)


def some_of_each(full, tubes, jobs, steps):
    """Makes this number of tubes and jobs, among them jobs in each state, hostile names and bodies, and this number
    of jobs in the tube `steps`, half of which are buried."""
    filler = Filler(full.daemon.addresses[0])
    full.clients.append(filler.client)
    client = filler.client
    facts = {"tubes": tubes, "jobs": jobs, "hostileTubes": HOSTILE_TUBES,
             "unreachableTubes": UNREACHABLE_TUBES}
    client.ask("use mail")  # removes the tube `default`
    filler.ask("watch mail", "WATCHING")
    filler.ask("ignore default", "WATCHING")

    # A tube with jobs in each state, a client that holds some jobs, and a client that waits in
    # another tube.
    buried = filler.put("mail", many(300), pri=500)
    filler.bury(buried, pri=500)
    facts["buried"] = buried
    facts["delayed"] = filler.put("mail", many(50, 300), delay=86_400)
    held = filler.put("mail", many(20, 350), ttr=86_400)
    filler.hold(held)
    facts["held"] = held
    facts["ready"] = filler.put("mail", many(1204, 370))
    filler.put("mail", [b"urgent"], pri=1)

    filler.put("paused", many(5))
    filler.ask("pause-tube paused 86400", "PAUSED")
    facts["group"] = filler.put("reports", [b"part 1", b"part 2"], tags="grp:monthly")
    facts["after"] = filler.put("reports", [b"after all parts"], tags="aft:monthly")[0]
    # In a crowd, more jobs than one request clears or moves.
    stepped = filler.put("steps", [b"s"] * steps)
    filler.bury(stepped[:steps // 2])
    facts["ids"] = {name: filler.put("bodies", [body])[0] for name, body in BODIES.items()}
    for name in (*HOSTILE_TUBES, *UNREACHABLE_TUBES):
        filler.put(name, [HTML, b"second"])

    have = client.stats()
    bulk = tubes - have["current-tubes"]
    per_tube, more = divmod(jobs - sum(have[f"current-jobs-{state}"]
                                       for state in ("ready", "reserved", "delayed", "buried")), bulk)
    counts = [per_tube + (tube < more) for tube in range(bulk)]
    commands = b"".join(b"put-in-tube bulk-%05d %d 0 60 %d\r\n%s\r\n" % (
        tube, tube, len(body), body) for tube, count in enumerate(counts) for body in
        [b"bulk %d" % tube] * count)
    client.pump(commands, sum(counts))
    facts["bulk"] = {"tubes": bulk, "jobs": per_tube, "more": more}

    have = client.stats()
    assert have["current-tubes"] == tubes, have["current-tubes"]
    facts["buriedTotal"] = have["current-jobs-buried"]
    return facts


def small(client):
    """Makes a few jobs, the same in each of the small servers."""
    filler = Filler.__new__(Filler)
    filler.client = client
    filler.bury(filler.put("mail", many(5)))
    filler.put("mail", many(10))
    filler.put("mail-eu", many(3))
    filler.put("orders", many(4))


def empty(_):
    """Makes nothing, for a script that puts its own jobs."""
    return {}


def pictures(full):
    """Makes a shop, whose jobs shop.py adds, and some idle tubes."""
    filler = Filler(full.daemon.addresses[0])
    full.clients.append(filler.client)
    filler.put("reports.monthly", many(340))
    filler.ask("pause-tube reports.monthly 5400", "PAUSED")
    filler.put("mail.digest", many(180), delay=4000)
    for number in range(36):
        filler.put(f"tenant-{number + 1:02}", many(3 + 7 * (number % 5)), delay=900)
    return {}


def still(full):
    """Makes a few tubes on a server in test mode, the same in each run."""
    filler = Filler(full.daemon.addresses[0])
    full.clients.append(filler.client)
    filler.ask("use mail", "USING")  # removes the tube `default`
    filler.ask("watch mail", "WATCHING")
    filler.ask("ignore default", "WATCHING")
    buried = filler.put("mail", many(12), pri=500)
    filler.ask("test-advance 4000", "ADVANCED")
    filler.bury(buried, pri=500)
    held = filler.put("mail", many(4, 20), ttr=7200)
    filler.ask("test-advance 600", "ADVANCED")
    filler.hold(held)
    filler.put("mail", many(230, 30))
    filler.put("mail", [b"urgent"], pri=1)
    filler.put("mail", many(40, 300), delay=5400)
    filler.put("reports", many(75))
    filler.ask("pause-tube reports 3600", "PAUSED")
    filler.ask("test-advance 300", "ADVANCED")
    for number in range(8):
        filler.put(f"tenant-{number + 1}", many(3 + 7 * (number % 5)))
    filler.ask("test-advance 45", "ADVANCED")
    return {}
