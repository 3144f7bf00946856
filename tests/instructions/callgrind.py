"""Runs a program under valgrind's callgrind and reads the instruction counts."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

# Makes the counts independent of the environment and the processor. libc uses the functions for
# strings and memory that every amd64 processor supports (with `rep movsb`, each copied byte would
# count as an instruction), and the dynamic linker resolves all symbols before a measurement.
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "LD_BIND_NOW": "1",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2"
                      ",-AVX_Fast_Unaligned_Load",
}


class Profile(NamedTuple):
    name: str  # the argument of CALLGRIND_DUMP_STATS_AT; empty for the dump at the process's end
    instructions: int


def read_profile(text):
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
    return Profile(name.group(1) if name else "",
                   int(re.search(r"^totals: (\d+)", text, re.M).group(1)))


def run(binary, make_arguments, instrument_at_start):
    """Runs `binary`; returns its standard output and a profile for each dump of each of its
    processes. make_arguments(folder) returns the arguments; `folder` is for sockets and files.
    Nothing is collected until the program requests it."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        scratch = pathlib.Path(folder, "scratch")
        out.mkdir()
        scratch.mkdir()
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no",
                   "--instr-atstart=" + ("yes" if instrument_at_start else "no"),
                   f"--callgrind-out-file={out}/%p", binary, *map(str, make_arguments(scratch))]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout, [read_profile(file.read_text()) for file in sorted(out.iterdir())]
