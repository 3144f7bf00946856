"""A cluster of real processes under load and all faults, for as long as you like.

  tests/faults/run [--seconds N | --rounds N] [--seed N] [--nodes N] [--keep DIRECTORY]
                   [--only NAME,...] [--verbose]

--seconds N       how long (default: 300); a round is finished
--rounds N        so many rounds instead
--seed N          of the faults and of the load (default: a new one, which is printed)
--nodes N         3 to 5 (default: by the seed)
--keep DIRECTORY  writes the logs of the nodes, and each fault with its time, there at the end
--only NAME,...   only these faults and steps, by the names in the last line
--verbose         prints each fault as it begins and ends

TUBED_PROGRAM and TUBECTL_PROGRAM are the programs (default: those in build/gate). Clients connect
to the leader and to any node, which passes them on. Faults that overlap are drawn from the seed:
kill -9 of one and of many nodes, SIGSTOP, links that are cut, one-way, narrow, slow or reset, full
and failing disks, stepped wall clocks. Between them, with all members voting: orderly stops,
transfers, reloads, members that are removed and added, standbys, promotions, lost disks, flipped
bits. The checker of tests/daemon/cluster_checker.py judges each reply, and at the end all nodes
show the same jobs, all journals are intact, and each term has had one leader. The last line has
the number of each fault and of operations. The exit code is 0, or 1 if a promise is broken.

The faults depend on the seed alone, their moments on the machine. Full disks need mounts, so the
program restarts itself in a private mount namespace; if that is not allowed, it leaves them out.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests/daemon"), str(ROOT / "tests/faults")]
for variable, built in (("TUBED_PROGRAM", "tubed"), ("TUBECTL_PROGRAM", "tubectl/tubectl")):
    os.environ.setdefault(variable, str(ROOT / "build/gate/src" / built))

from cluster import NAMES, QUICK, Cluster, ClusterTest  # noqa: E402
from faults import Faults  # noqa: E402
from journal_full_test import PRIVATE, go_private  # noqa: E402

MOST_FAULTS = 3  # at a time
FAULTS_OF_A_ROUND = 12
STEPS_OF_A_ROUND = 2


class Campaign(ClusterTest):
    options = None

    def runTest(self):
        """The faults of a campaign break no promise."""
        options = self.options
        self.dice = random.Random(options.seed)
        self.counts = collections.Counter()
        nodes = options.nodes or self.dice.choice((3, 3, 4, 5))
        self.began = time.monotonic()
        self.cluster = Cluster(
            self, nodes=nodes, proxied=True, election=QUICK,
            settings={"cluster__clients": "forward", "cluster__leader_wait": "1s",
                      "limits__job_memory": 1 << 30})
        self.faults = Faults(self, self.cluster, self.dice, self.counts)
        self.addCleanup(self.cluster.end)  # before the umounts
        self.kept = []
        self.addCleanup(self.keep_logs)
        self.cluster.start()
        self.load = self.start_load(self.cluster, clients=30, seed=options.seed,
                                    names=NAMES[:nodes], spread=0.6)
        rounds = 0
        while (rounds < options.rounds if options.rounds else
               time.monotonic() < self.began + options.seconds):
            self.round()
            rounds += 1
        self.check_end()
        self.note(f"{rounds} rounds with {nodes} nodes")

    # --- A round

    def chosen(self, table):
        names = [name for name in table if not self.options.only or name in self.options.only]
        return self.dice.choice(names) if names else None

    def round(self):
        active = []
        self.faults.steps_clocks = self.dice.random() < 0.4
        for _ in range(FAULTS_OF_A_ROUND):
            name = self.chosen(Faults.BEGIN)
            end = Faults.BEGIN[name](self.faults) if name and len(active) < MOST_FAULTS else None
            if end:
                self.note(f"begins: {name}")
                self.counts[name] += 1
                active.append((name, end))
            self.pause()
            self.check()
            if active and self.dice.random() < 0.5:
                self.end_one(active)
        while active:
            self.end_one(active)
        self.settle()
        for _ in range(STEPS_OF_A_ROUND):
            name = self.chosen(Faults.STEPS)
            if name:
                self.note(f"step: {name}")
                self.counts[name] += 1
                Faults.STEPS[name](self.faults)
                self.settle()

    def end_one(self, active):
        name, end = active.pop(self.dice.randrange(len(active)))
        self.note(f"ends: {name}")
        end()

    def pause(self):
        """Longer on a slower machine."""
        self.cluster.exchange(self.dice.choice((1, 30, 150, 500, 1500)))

    def settle(self):
        """Waits until all members vote and puts are acknowledged again."""
        self.check()
        self.load.next_put()
        self.cluster.wait_for_voters()
        self.check()

    # --- Checks

    def check(self):
        for node in self.faults.idle_nodes():
            self.assertTrue(node.is_running(), f"{node.name} has ended by itself: "
                                               f"{node.daemon.lines[-20:]}")
        self.assert_clean(self.load.report())

    def see_end(self, node, code, restart=True):
        """A node that has ended by itself must have ended with this code."""
        if node.is_running():
            return
        node.wait_for_exit(code)
        self.counts[f"ended with {code}"] += 1
        if restart:
            self.faults.start(node)

    def check_end(self):
        self.settle()
        report = self.stop_load(self.load)
        for key in ("replies", "inserted", "reserved", "deleted", "passed_on", "ended"):
            self.counts[f"{key} (load)"] = report.get(f"count_{key}", 0)
        self.assertGreater(report.get("count_passed_on", 0), 0, report)
        self.counts["jobs at the end"] = len(self.cluster.check_replicas())
        terms = collections.defaultdict(set)
        for daemon in self.cluster.daemons:
            for line in daemon.lines_with("leading leader="):
                leader, term = re.search(r"leading leader=(\w+) term=(\d+)", line).groups()
                terms[term].add(leader)
        self.counts["terms"] = len(terms)
        self.assertEqual({term: names for term, names in terms.items() if len(names) > 1}, {})
        self.cluster.check_journals()

    def note(self, text):
        """For --verbose and --keep."""
        if self.options.verbose:
            print(f"{time.monotonic() - self.began:8.1f} {text}", flush=True)
        self.kept.append(f"{time.monotonic():.3f} {text}")

    def keep_logs(self):
        if not self.options.keep:
            return
        directory = pathlib.Path(self.options.keep)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "faults").write_text("\n".join(self.kept) + "\n", encoding="utf-8")
        for number, daemon in enumerate(self.cluster.daemons):
            (directory / f"{number:04}.log").write_text("\n".join(daemon.lines) + "\n",
                                                        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--nodes", type=int, choices=(3, 4, 5), default=None)
    parser.add_argument("--keep")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--verbose", action="store_true")
    Campaign.options = options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1 << 32)
        sys.argv += ["--seed", str(options.seed)]
    known = [*Faults.BEGIN, *Faults.STEPS]
    for name in options.only:
        if name not in known:
            parser.error(f"no fault or step {name!r}: {', '.join(known)}")
    if not os.environ.get(PRIVATE):
        go_private()
    print(f"seed {options.seed}", flush=True)
    campaign = Campaign()
    result = unittest.TextTestRunner(stream=sys.stdout).run(campaign)
    broken = len(result.failures) + len(result.errors)
    counts = ", ".join(f"{name} {count}" for name, count in campaign.counts.items())
    print(f"seed {options.seed}, {time.monotonic() - campaign.began:.0f} s: {counts}; "
          f"{broken} violations", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
