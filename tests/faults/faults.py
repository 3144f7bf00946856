"""The faults of a campaign (campaign.py), which each act on a cluster of tubed processes.

Two kinds. A *fault* begins at any moment, also during others, and lasts until its `end`: the
functions in `Faults.BEGIN` return that, or None if they cannot begin now. A *step* is what
operators do, or the loss of a disk: it needs a cluster whose members all vote, and leaves one. At
most one fault acts on the process or the disk of a node at a time.

Clocks are stepped in rounds of their own (`steps_clocks`), in which a node is only killed, or its
disk only fails, when all nodes know the leader. A majority that is restarted takes the time from
the wall clock of its leader (docs/clustering.md), and would end reservations if that is wrong.
"""

import contextlib
import errno
import os
import shutil
import signal
import subprocess

from cluster import EXIT_DAMAGED, EXIT_NOT_STORED, EXIT_REMOVED
from harness import preloaded, until
from journal_full_test import PRIVATE

DISK_MEGABYTES = 300  # raft logs preallocate their files
EIO = 5
# Of faulty_disk.cc.
DISK_FAULTS = (f"sync {EIO}", f"write {EIO}", "synced-write 28", "write short")


class Faults:
    def __init__(self, campaign, cluster, dice, counts):
        self.campaign, self.cluster, self.dice, self.counts = campaign, cluster, dice, counts
        self.net = cluster.net
        self.busy = set()  # nodes with a fault of their process or disk
        self.links_are_faulty = False
        self.steps_clocks = False
        self.spare = []  # nodes that are no members
        self.has_disks = bool(os.environ.get(PRIVATE))
        libraries = [preloaded(name, campaign.directory)
                     for name in ("faulty_disk", "stepped_clock")]
        self.environment = libraries[0] | {
            "LD_PRELOAD": ":".join(each["LD_PRELOAD"] for each in libraries)}
        for node in cluster:
            self.prepare(node)

    def prepare(self, node):
        """Gives a node a small disk of its own and the libraries, before its first start."""
        clock = node.directory / "clock"
        clock.mkdir()
        os.mkfifo(clock / "steps")
        node.options["environment"] = self.environment | {
            "TUBED_FAULT": str(node.directory / "fault"), "TUBED_CLOCK_DIRECTORY": str(clock)}
        if self.has_disks:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tubed-test",
                            node.journal], check=True)
            self.campaign.addCleanup(subprocess.run, ["umount", "-l", node.journal], check=True)

    # --- What the faults have in common

    def idle_nodes(self):
        """Nodes that run and have no fault of their own."""
        return [node for node in self.cluster if node.name not in self.busy]

    def take(self):
        """Returns a node for a fault, or None."""
        nodes = self.idle_nodes()
        if self.steps_clocks and (self.busy or not self.all_know_the_leader()):
            return None
        # A leader is worth more faults than its share.
        leader = self.cluster.find_leader() if self.dice.random() < 0.4 else None
        if leader in nodes:
            nodes = [leader]
        return self.take_these([self.dice.choice(nodes)])[0] if nodes else None

    def all_know_the_leader(self):
        statuses = [node.status() for node in self.cluster]
        return all(status and status["leader"] for status in statuses)

    def take_these(self, nodes):
        self.busy |= {node.name for node in nodes}
        return nodes

    def free(self, *nodes):
        self.busy -= {node.name for node in nodes}

    def start(self, node):
        node.start(wait=False)

    def wipe(self, node):
        for path in node.journal.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    # --- Faults

    def begin_kill(self):
        node = self.take()
        if not node:
            return None
        node.kill()
        return lambda: (self.start(node), self.free(node))

    def begin_kill_of_many(self):
        nodes = [node for node in self.idle_nodes() if self.dice.random() < 0.7]
        if len(nodes) < 2 or self.steps_clocks:
            return None
        self.take_these(nodes)
        for node in nodes:
            node.daemon.process.kill()
        for node in nodes:
            node.kill()

        def end():
            self.dice.shuffle(nodes)
            for node in nodes:
                self.start(node)
            self.free(*nodes)
        return end

    def begin_stop(self):
        """SIGSTOP; SIGCONT ends it."""
        node = self.take()
        if not node:
            return None
        node.freeze()
        return lambda: (node.thaw(), self.free(node))

    def links(self, begin):
        """`begin` changes some links; one such fault lasts at a time."""
        if self.links_are_faulty:
            return None
        self.links_are_faulty = True
        begin()

        def end():
            self.net.heal(reset=self.dice.random() < 0.4)
            self.links_are_faulty = False
        return end

    def pair(self):
        return self.dice.sample(self.cluster.names(), 2)

    def begin_cut(self):
        def begin():
            one = self.dice.choice(self.cluster.names())
            self.net.partition([one], [name for name in self.cluster.names() if name != one])
        return self.links(begin)

    def begin_cut_of_a_pair(self):
        return self.links(lambda: self.net.cut_both(*self.pair()))

    def begin_one_way(self):
        def begin():
            names = self.cluster.names()
            one, to_it = self.dice.choice(names), self.dice.random() < 0.5
            others = [name for name in names if name != one]
            for other in self.dice.sample(others, self.dice.randrange(1, len(others) + 1)):
                self.net.cut(*((other, one) if to_it else (one, other)))
        return self.links(begin)

    def begin_narrow(self):
        def begin():
            for one in self.cluster.names():
                for other in self.cluster.names():
                    if one != other and self.dice.random() < 0.6:
                        self.net.narrow(one, other, self.dice.randrange(30_000, 1_000_000))
        return self.links(begin)

    def begin_delay(self):
        return self.links(
            lambda: self.net.delay_all(self.cluster.election * self.dice.uniform(0.02, 0.6)))

    def begin_reset(self):
        self.net.reset(*self.pair())
        return lambda: None

    def begin_full_disk(self):
        node = self.take() if self.has_disks else None
        if not node:
            return None
        path = node.journal / "another"
        with open(path, "ab") as file:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        os.write(file.fileno(), bytes(size))

        def end():
            path.unlink()
            self.restart_if_not_stored(node)
        return end

    def begin_failing_disk(self):
        node = self.take()
        if not node:
            return None
        path = node.directory / "fault"
        path.write_text(self.dice.choice(DISK_FAULTS), encoding="utf-8")

        def end():
            path.unlink()
            self.restart_if_not_stored(node)
        return end

    def restart_if_not_stored(self, node):
        """A node ends with a code of its own when its disk fails. It may be about to, until it
        answers after the end of the fault."""
        until(f"{node.name} to answer or to end", lambda: not node.is_running() or node.status())
        self.free(node)
        self.campaign.see_end(node, EXIT_DAMAGED if self.has_refused_its_start(node)
                              else EXIT_NOT_STORED)

    @staticmethod
    def has_refused_its_start(node):
        """The disk may fail while a node is starting."""
        return (not node.is_running() and node.daemon.wait() == EXIT_DAMAGED and
                any(os.strerror(error) in node.daemon.lines[-1]
                    for error in (errno.EIO, errno.ENOSPC)))

    def begin_clock_step(self):
        if not self.steps_clocks:
            return None
        node = self.dice.choice(list(self.cluster))
        seconds = self.dice.choice((1, 60, 3600, 86_400 * 30)) * self.dice.choice((-1, 1))
        self.set_ahead(node, seconds)
        return lambda: self.set_ahead(node, 0)

    @staticmethod
    def set_ahead(node, seconds):
        """Sets the wall clock of a node."""
        clock = node.directory / "clock"
        (clock / "new").write_text(str(seconds), encoding="utf-8")
        (clock / "new").rename(clock / "offset")

    BEGIN = {"kill": begin_kill, "kills of many": begin_kill_of_many, "stop": begin_stop,
             "cut": begin_cut, "cut of a pair": begin_cut_of_a_pair, "one-way": begin_one_way,
             "narrow": begin_narrow, "delay": begin_delay, "reset": begin_reset,
             "full disk": begin_full_disk, "failing disk": begin_failing_disk,
             "clock step": begin_clock_step}

    # --- Steps

    def any_node(self):
        return self.dice.choice(list(self.cluster))

    def step_orderly_stop(self):
        node = self.any_node()
        node.stop()
        self.campaign.pause()
        self.start(node)

    def step_transfer(self):
        follower = self.dice.choice(self.cluster.followers())
        self.cluster.transfer(self.dice.choice([None, follower.name]))

    def step_reload(self):
        node = self.any_node()
        node.settings["timeouts__idle"] = f"{self.dice.randrange(3600, 7200)}s"
        node.write_settings()
        node.daemon.signal(signal.SIGHUP)
        until(f"{node.name} to be reloaded", lambda: node.daemon.lines_with("reloaded"))

    def remove(self, node):
        """Removes a member that runs or does not."""
        self.cluster.remove(node.name)
        if node.is_running():
            node.wait_for_exit(EXIT_REMOVED)
        del self.cluster.nodes[node.name]
        self.wipe(node)
        self.cluster.wait_for_voters()

    def add(self, node):
        """Adds a node with an empty directory that does not run."""
        self.cluster.nodes[node.name] = node
        node.start()
        self.cluster.add(node)
        self.cluster.wait_for_voters()

    def step_remove_and_add(self):
        node = self.any_node()
        self.remove(node)
        self.campaign.pause()
        self.add(node)

    def step_lost_disk(self):
        node = self.any_node()
        node.kill()
        self.remove(node)
        self.add(node)

    def step_standby(self):
        """A standby that stays, which is then promoted and removed, or only removed."""
        if self.spare:
            node = self.spare.pop()
        else:
            node = self.cluster.new_node("s")
            del self.cluster.nodes["s"]
            self.prepare(node)
        node.start()
        self.cluster.nodes[node.name] = node
        self.cluster.add_standby(node)
        self.campaign.pause()
        if self.dice.random() < 0.7:
            self.counts["promote"] += 1
            self.cluster.change("/cluster/promote", {"name": node.name})
            self.cluster.wait_for_voters()
            self.campaign.pause()
        self.remove(node)
        self.spare.append(node)

    def step_flipped_bit(self):
        """In a file of a node that was stopped. It starts, or ends and is replaced."""
        node = self.any_node()
        node.stop()
        path = self.dice.choice(sorted(path for path in node.journal.rglob("*")
                                       if path.is_file() and path.stat().st_size and
                                       path.name != "lock"))
        offset, bit = self.dice.randrange(path.stat().st_size), self.dice.randrange(8)
        # Files are preallocated: most of the flips are in the first part, which has records.
        if self.dice.random() < 0.8:
            offset %= 20_000
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1 << bit]))
        self.campaign.note(f"flips bit {bit} of byte {offset} of {node.name}/{path.name}")
        self.start(node)
        until(f"{node.name} to end, or all to vote", lambda: not node.is_running() or
              self.cluster.complete(self.cluster.names()))
        if not node.is_running():
            self.counts["flipped bit, refused"] += 1
            self.campaign.see_end(node, EXIT_DAMAGED, restart=False)
            self.remove(node)
            self.add(node)

    STEPS = {"orderly stop": step_orderly_stop, "transfer": step_transfer, "reload": step_reload,
             "remove and add": step_remove_and_add, "lost disk": step_lost_disk,
             "standby": step_standby, "flipped bit": step_flipped_bit}
