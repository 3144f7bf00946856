#!/usr/bin/env python3
"""Counts the engine's instructions for reserves, a release and a close of jobs with a concurrency
key, with valgrind's callgrind: a key in one tube, and a key in 90,000 tubes. Fails if the second
count is more than twice the first.
"""

import re
import sys

import callgrind

MOST = 2.0


def instructions(binary, tubes):
    output, profiles = callgrind.run(binary, lambda folder: [tubes], instrument_at_start=False)
    print(output.strip())
    total = sum(profile.instructions for profile in profiles)
    return total / int(re.search(r"cycles: (\d+)", output).group(1))


def main():
    binary = sys.argv[1]
    narrow = instructions(binary, 1)
    wide = instructions(binary, 90_000)
    ratio = wide / narrow
    print(f"instructions for two reserves, a release and a close: {narrow:.0f} with one tube, "
          f"{wide:.0f} with 90,000, ratio {ratio:.3f} (at most {MOST})")
    if ratio > MOST or narrow < 1000:
        sys.exit(1)


if __name__ == "__main__":
    main()
