#!/usr/bin/env python3
"""Counts the instructions of the server in user space for each command with valgrind's callgrind,
and compares them with instructions.json. A count more than 3 % above or below the recorded count
fails; a lower count has to be recorded.

A count depends on the machine's libraries and on the build, so the file has a set of counts for each
build. Exit codes: 0 as recorded, 1 not as recorded, 77 nothing is recorded for this build (1 if CI
is set).
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
# The build of CI: the system, then the name of the build from CMakeLists.txt.
CI = "debian 12 x86_64, GNU 12 -O2 -DNDEBUG"
SKIPPED = 77


def system():
    release = platform.freedesktop_os_release()
    return f"{release['ID']} {release.get('VERSION_ID', '')} {platform.machine()}"


def per_command(output, profiles):
    """Returns the instructions per command, by the name of the step. Each line of output has the
    number of commands of a step and the step's name, which is also the name of its profile."""
    counts = {}
    for line in output.splitlines():
        commands, name = line.split(" ", 1)
        # A step that collected nothing would look like a large gain.
        totals = [profile.instructions for profile in profiles if profile.name == name]
        if len(totals) != 1 or totals[0] < int(commands):
            sys.exit(f"{name}: {len(totals)} profiles with {sum(totals)} instructions")
        counts[name] = round(totals[0] / int(commands), 1)
    if not counts:
        sys.exit("the program has measured nothing")
    return counts


def compare(recorded, counted):
    """Returns the lines of a table, and a line for each fault."""
    table = [f"{'instructions a command':<36} {'recorded':>10} {'counted':>10} {'difference':>10}"]
    faults = []
    for name in [*counted, *(name for name in recorded if name not in counted)]:
        before, now = recorded.get(name), counted.get(name)
        if before is None or now is None:
            faults.append(f"{name}: " + ("not recorded" if before is None else "no longer counted"))
            difference = ""
        else:
            change = now / before - 1
            difference = f"{change:+.2%}"
            if change > MARGIN:
                faults.append(f"{name}: {change:.1%} more than recorded")
            elif change < -MARGIN:
                faults.append(f"{name}: {-change:.1%} less than recorded: record the gain, or the "
                              "next loss is not noticed")
        table.append(f"{name:<36} {before or '':>10} {now or '':>10} {difference:>10}")
    return table, faults


def check(recorded, build, counted, report=print):
    """Compares and reports; returns the exit code."""
    table, faults = compare(recorded.get(build, {}), counted)
    report("\n".join(table))
    if build not in recorded:
        report(f"Nothing is recorded for '{build}', only for: {', '.join(recorded) or 'no build'}.\n"
               "So nothing was checked.")
        return SKIPPED
    for line in faults:
        report("FAILED: " + line)
    if faults:
        report("If the change is intended: build the target record-instructions, and explain the "
               "change in the commit message.")
    return 1 if faults else 0


def record(path, recorded, build, counted):
    path.write_text(json.dumps({**recorded, build: counted}, indent=2) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--build", required=True, help="compiler and build type")
    options.add_argument("--file", type=pathlib.Path, default=RECORDED)
    options.add_argument("--record", action="store_true", help="write the counts to the file")
    given = options.parse_args()

    build = f"{system()}, {given.build}"
    recorded = json.loads(given.file.read_text()) if given.file.exists() else {}
    counted = per_command(*callgrind.run(given.program, lambda folder: [folder],
                                         instrument_at_start=True))
    if given.record:
        print("\n".join(compare(recorded.get(build, {}), counted)[0]))
        record(given.file, recorded, build, counted)
        print(f"recorded for '{build}' in {given.file}")
        return 0
    code = check(recorded, build, counted)
    return 1 if code == SKIPPED and os.environ.get("CI") else code


if __name__ == "__main__":
    sys.exit(main())
