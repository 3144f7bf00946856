#!/usr/bin/env python3
"""Counts the server's instructions for put+reserve+delete with valgrind's callgrind, in an empty
server and with 50,000 tubes, 10,000 waiting clients and 1,000,000 delayed jobs. Fails if the second
count exceeds the first by more than 20 %.
"""

import re
import sys

import callgrind

MOST = 1.20


def instructions(binary, *crowd):
    output, profiles = callgrind.run(binary, lambda folder: [folder / "socket", *crowd],
                                     instrument_at_start=False)
    print(output.strip())
    # The waiting clients run in a process of their own, which collects nothing.
    total = sum(profile.instructions for profile in profiles)
    return total / int(re.search(r"cycles: (\d+)", output).group(1))


def main():
    binary = sys.argv[1]
    alone = instructions(binary, 0, 0, 0)
    crowded = instructions(binary, 50_000, 10_000, 1_000_000)
    ratio = crowded / alone
    print(f"instructions for put+reserve+delete: {alone:.0f} alone, {crowded:.0f} in the crowd, "
          f"ratio {ratio:.3f} (at most {MOST})")
    if ratio > MOST or alone < 1000:
        sys.exit(1)


if __name__ == "__main__":
    main()
