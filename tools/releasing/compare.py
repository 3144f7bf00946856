"""Compares two releases of one commit: what `tools/release --compare` does.

A release is reproducible: another build of the commit gives the same files, which shows that a published
release has nothing else. Files that depend on the key and on the time of signing differ. They follow from
the other files, as `--check` verifies.
"""

import filecmp
import pathlib
import re
import shutil
import tempfile

from run import Problem, files_below, run

# Signatures, and what names signed files by their hashes or has the date of signing.
SIGNED = re.compile(r"(.*/)?(InRelease|Release|Release\.gpg|SHA256SUMS|repodata/[^/]+|[^/]+\.asc)")


def compare(directory, other):
    """The differences, a line each."""
    names, others = (set(files_below(each)) for each in (directory, other))
    differences = [f"{name}: only in {directory if name in names else other}" for name in sorted(names ^ others)
                   if not SIGNED.fullmatch(name)]
    with tempfile.TemporaryDirectory() as temporary:
        for name in sorted(names & others):
            if not SIGNED.fullmatch(name) and not same(directory / name, other / name, pathlib.Path(temporary)):
                differences.append(f"{name}: not the same bytes")
    return differences


def same(path, other, temporary):
    """Whether two files have the same bytes, but for the signature within an .rpm. `temporary`: a
    directory for copies."""
    if filecmp.cmp(path, other, shallow=False):
        return True
    if path.suffix != ".rpm":
        return False
    try:
        return filecmp.cmp(unsigned(path, temporary / "one.rpm"), unsigned(other, temporary / "other.rpm"),
                           shallow=False)
    except Problem:  # rpmsign refuses a damaged package
        return False


def unsigned(path, copy):
    """A copy without the signature, which is within an .rpm."""
    shutil.copyfile(path, copy)
    run("rpmsign", "--delsign", copy)
    return copy
