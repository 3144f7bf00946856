#!/usr/bin/env python3
"""Counts with valgrind's callgrind the instructions of commands in the server's user space, and compares
them with instructions.json: more than 3 % above the recorded count fails, and more than 3 % below
fails until it is recorded.

A count depends on the machine's libraries and on the build of the program, so the file has a column of
counts for each build. Exit codes: 0 as recorded, 1 not as recorded, 77 nothing is recorded for this
build (1 if CI is set, because CI's build must be recorded).
"""

import argparse
import json
import os
import pathlib
import platform
import sys

import callgrind

MARGIN = 0.03
RECORDED = pathlib.Path(__file__).with_name("instructions.json")
# The build, in addition to the system, as CMakeLists.txt describes it.
CI = "debian 12 x86_64, GNU 12 -O2 -g -DNDEBUG"
SKIPPED = 77


def system():
    release = platform.freedesktop_os_release()
    return f"{release['ID']} {release.get('VERSION_ID', '')} {platform.machine()}"


def per_command(output, profiles):
    """Instructions by name. Each line of output has the number of commands and the name of a step; the
    step's profile has the same name."""
    counts = {}
    for line in output.splitlines():
        commands, name = line.split(" ", 1)
        # A plausibility check: a step that collected nothing would appear as a great gain.
        totals = [profile.instructions for profile in profiles if profile.name == name]
        if len(totals) != 1 or totals[0] < int(commands):
            sys.exit(f"{name}: {len(totals)} profiles with {sum(totals)} instructions")
        counts[name] = round(totals[0] / int(commands), 1)
    if not counts:
        sys.exit("the program has measured nothing")
    return counts


def judge(recorded, counted):
    """The lines of a table, and one line for each fault."""
    table = [f"{'instructions a command':<36} {'recorded':>10} {'counted':>10} {'difference':>10}"]
    wrong = []
    for name in [*counted, *(name for name in recorded if name not in counted)]:
        before, now = recorded.get(name), counted.get(name)
        if before is None or now is None:
            wrong.append(f"{name}: " + ("not recorded" if before is None else "no longer counted"))
            difference = ""
        else:
            change = now / before - 1
            difference = f"{change:+.2%}"
            if change > MARGIN:
                wrong.append(f"{name}: {change:.1%} dearer than recorded")
            elif change < -MARGIN:
                wrong.append(f"{name}: {-change:.1%} cheaper than recorded: record the gain, or the "
                             "next loss goes unseen")
        table.append(f"{name:<36} {before or '':>10} {now or '':>10} {difference:>10}")
    return table, wrong


def check(recorded, build, counted, say=print):
    """The exit code."""
    table, wrong = judge(recorded.get(build, {}), counted)
    say("\n".join(table))
    if build not in recorded:
        say(f"Nothing is recorded for '{build}', only for: {', '.join(recorded) or 'no build'}.\n"
            "So nothing was checked.")
        return SKIPPED
    for line in wrong:
        say("FAILED: " + line)
    if wrong:
        say("If it is meant: build the target record-instructions, and say in the commit what it "
            "buys.")
    return 1 if wrong else 0


def record(path, recorded, build, counted):
    path.write_text(json.dumps({**recorded, build: counted}, indent=2) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--build", required=True, help="compiler and build type")
    options.add_argument("--file", type=pathlib.Path, default=RECORDED)
    options.add_argument("--record", action="store_true", help="write what is counted to the file")
    given = options.parse_args()

    build = f"{system()}, {given.build}"
    recorded = json.loads(given.file.read_text()) if given.file.exists() else {}
    counted = per_command(*callgrind.run(given.program, lambda folder: [folder],
                                         instrument_at_start=True))
    if given.record:
        print("\n".join(judge(recorded.get(build, {}), counted)[0]))
        record(given.file, recorded, build, counted)
        print(f"recorded for '{build}' in {given.file}")
        return 0
    code = check(recorded, build, counted)
    return 1 if code == SKIPPED and os.environ.get("CI") else code


if __name__ == "__main__":
    sys.exit(main())
