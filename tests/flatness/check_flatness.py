#!/usr/bin/env python3
"""Counts the server's instructions for put+reserve+delete with valgrind's callgrind, alone and
beside 50,000 tubes, 10,000 waiting clients and 1,000,000 delayed jobs, and fails if the second
count is more than 20 % above the first."""

import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 1.20


def instructions(binary, *crowd):
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
                   "--callgrind-out-file=" + out + ".%p", binary, folder + "/socket", *map(str, crowd)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=500)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {run.returncode}:\n{run.stdout}{run.stderr}")
        cycles = int(re.search(r"cycles: (\d+)", run.stdout).group(1))
        print(run.stdout.strip())
        # The waiting clients are a process of their own, which collects nothing.
        total = 0
        for profile in pathlib.Path(folder).glob("callgrind.out.*"):
            total += int(re.search(r"^totals: (\d+)", profile.read_text(), re.M).group(1))
    return total / cycles


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
