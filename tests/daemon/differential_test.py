#!/usr/bin/env python3
"""Sends the same random commands to beanstalkd and tubed, and compares their replies byte for byte.

The commands follow from a seed; differential_test.py --seed N repeats a run. The commands exclude
the intended differences (docs/compatibility.md lists them), and all times are too long to expire.
In blocks of stats the comparison omits the lines about the process and about seconds, and
cmd-stats, because the test itself sends stats.
"""

import argparse
import random
import re
import sys
import unittest

import harness

TUBES = ("default", "a", "b", "c+d")
# The paused tubes always exist, because a pause keeps its tube only in tubed.
PAUSED_TUBES = ("default", "c+d")
CLIENTS = 4
VARIABLE = re.compile(r"^(cmd-stats|age|time-left|pause-time-left|pid|version|rusage-[us]time|"
                      r"uptime|binlog-.*|id|hostname|os|platform|total-connections|file|"
                      r"draining): ")
BODY_WORDS = ("RESERVED", "FOUND", "OK")


class Script:
    """Makes random commands that interact: few tubes, few priorities and recent ids."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.last_id = 0
        self.held = [[] for _ in range(CLIENTS)]
        self.number = 0  # of the client that sends the next command

    def next_client(self):
        self.number = self.random.randrange(CLIENTS)
        return self.number

    def apply_reply(self, reply):
        words = reply.split()
        if words and words[0] == "INSERTED":
            self.last_id = int(words[1])
        if words and words[0] == "RESERVED":
            self.held[self.number].append(int(words[1]))
            del self.held[self.number][:-6]

    def id(self):
        if self.held[self.number] and self.random.random() < 0.6:
            return self.random.choice(self.held[self.number])
        return max(0, self.last_id - self.random.randrange(12) + 1)

    def priority(self):
        return self.random.choice((0, 1, 2, 1023, 1024, 4294967295))

    def delay(self):
        return self.random.choice((0, 0, 0, 1000, 1001, 2000))

    def put(self):
        body = "x" * self.random.choice((0, 1, 2, 100, 3000))
        return (f"put {self.priority()} {self.delay()} {self.random.choice((1000, 4294967295))} "
                f"{len(body)}\r\n{body}")

    def command(self):
        tube = self.random.choice(TUBES)
        choices = (
            (8, self.put),
            (2, lambda: f"use {tube}"), (2, lambda: f"watch {tube}"), (2, lambda: f"ignore {tube}"),
            (5, lambda: "reserve-with-timeout 0"), (2, lambda: f"reserve-job {self.id()}"),
            (3, lambda: f"delete {self.id()}"),
            (3, lambda: f"release {self.id()} {self.priority()} {self.delay()}"),
            (3, lambda: f"bury {self.id()} {self.priority()}"), (1, lambda: f"touch {self.id()}"),
            (2, lambda: f"kick {self.random.choice((0, 1, 2, 100))}"),
            (2, lambda: f"kick-job {self.id()}"),
            (1, lambda: f"peek {self.id()}"),
            (1, lambda: self.random.choice(("peek-ready", "peek-delayed", "peek-buried"))),
            (1, lambda: self.random.choice(("list-tubes", "list-tube-used", "list-tubes-watched"))),
            (1, lambda: f"pause-tube {self.random.choice(PAUSED_TUBES)} "
                        f"{self.random.choice((0, 0, 1000))}"),
            (2, lambda: f"stats-job {self.id()}"), (1, lambda: f"stats-tube {tube}"),
            (1, lambda: "stats"),
            (1, self.malformed),
        )
        weights, makers = zip(*choices)
        return self.random.choices(makers, weights)[0]()

    def malformed(self):
        return self.random.choice((
            "", "x", "put", "delete", "delete ", "delete x", "delete -1", "use", "use -a", "use a b",
            "watch " + "n" * 201, "release 1 2", "release 1 2 3 4", "bury 1", "touch 1 2 3", "peek  x",
            "kick", "stats ", "list-tubes x", "pause-tube a", "DELETE 1", "reserve-with-timeout",
            "put 0 0 1 70000\r\n" + "b" * 70000, "z" * 300))


def comparable(reply):
    """Returns the reply without the parts that may differ."""
    head, _, block = reply.partition("\r\n")
    if not head.startswith("OK ") or "- " in block:
        return reply
    lines = block.removesuffix("\r\n").split("\n")
    last = ("platform: ", "pause-time-left: ")  # the last lines of stats and stats-tube there
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith(last)), len(lines))
    return [line for line in lines[:end] if not VARIABLE.match(line)]


def reply_of(client):
    line = client.line()
    words = line.split()
    if words and words[0] in BODY_WORDS and words[-1].isdigit() and len(words) > 1:
        return line + "\r\n" + client.read(int(words[-1]) + 2).decode()
    return line


class Pair:
    """Connections to both servers, the same number to each."""

    def __init__(self, addresses):
        self.addresses = addresses
        self.clients = [[harness.Client(address) for address in addresses] for _ in range(CLIENTS)]
        self.watchers = [harness.Client(address) for address in addresses]
        for watcher in self.watchers:
            for tube in PAUSED_TUBES:
                watcher.ask(f"watch {tube}")

    def ask(self, number, command):
        replies = []
        for client in self.clients[number]:
            client.send(command.encode() + b"\r\n")
            replies.append(reply_of(client))
        return replies

    def reconnect(self, number):
        for client in self.clients[number]:
            client.close()
        for watcher in self.watchers:
            harness.until("the connection to be closed",
                          lambda: watcher.stats()["current-connections"] == CLIENTS)
        self.clients[number] = [harness.Client(address) for address in self.addresses]
        for client in self.clients[number]:
            client.ask("list-tube-used")

    def close(self):
        for client in [client for row in self.clients for client in row] + self.watchers:
            client.close()


def play(seed, exchanges, addresses):
    """Returns the first difference as text, or None."""
    pair = Pair(addresses)
    try:
        return play_on(pair, Script(seed), exchanges, seed)
    finally:
        pair.close()


def play_on(pair, script, exchanges, seed):
    history = []
    for step in range(exchanges):
        number = script.next_client()
        if script.random.random() < 0.01:
            history.append(f"{number} reconnects")
            pair.reconnect(number)
            continue
        command = script.command()
        history.append(f"{number}> {command[:80]!r}")
        theirs, ours = pair.ask(number, command)
        if comparable(theirs) != comparable(ours):
            recent = "\n".join(history[-30:])
            return (f"seed {seed}, step {step}:\n{recent}\n"
                    f"beanstalkd: {comparable(theirs)!r:.900}\n"
                    f"tubed:      {comparable(ours)!r:.900}")
        script.apply_reply(ours)
    return None


class Differential(harness.DaemonTest):
    seeds = range(1, 9)
    exchanges = 1500

    def test_the_same_commands_get_the_same_bytes(self):
        for seed in self.seeds:
            original = self.start_beanstalkd()
            daemon = self.start()
            difference = play(seed, self.exchanges, [original.addresses[0], daemon.addresses[0]])
            self.assertIsNone(difference, "\n" + str(difference))
        print(f"\n{len(self.seeds) * self.exchanges} random exchanges are equal")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    if options.seed is not None:
        Differential.seeds = [options.seed]
    unittest.main(argv=[sys.argv[0], *rest])
