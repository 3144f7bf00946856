"""Compares two releases of one commit: what `tools/release --compare` does.

A release is reproducible: another build of the commit gives the same files, which shows that a published
release has nothing else. Files that depend on the key and on the time of signing differ. They follow from
the other files, as `--check` verifies.
"""

import filecmp
import re
import struct

from run import files_below

# Signatures, and what names signed files by their hashes or has the date of signing.
SIGNED = re.compile(r"(.*/)?(InRelease|Release|Release\.gpg|SHA256SUMS|repodata/[^/]+|[^/]+\.asc)")

# An .rpm begins with the lead and the signature header, which is a section: its magic number and version, the
# number of entries, and the bytes of their data. The header and the payload follow.
LEAD_BYTES = 96
LEAD_ARCHITECTURE = slice(8, 10)
LEAD_MAGIC = bytes.fromhex("edabeedb")
SECTION = struct.Struct(">4s4xII")
SECTION_MAGIC = bytes.fromhex("8eade801")
ENTRY_BYTES = 16


def compare(directory, other):
    """The differences, a line each."""
    names, others = (set(files_below(each)) for each in (directory, other))
    differences = [f"{name}: only in {directory if name in names else other}" for name in sorted(names ^ others)
                   if not SIGNED.fullmatch(name)]
    differences += [f"{name}: not the same bytes" for name in sorted(names & others)
                    if not SIGNED.fullmatch(name) and not same(directory / name, other / name)]
    return differences


def same(path, other):
    """Whether two files have the same bytes, but for the signature within an .rpm."""
    if filecmp.cmp(path, other, shallow=False):
        return True
    if path.suffix != ".rpm":
        return False
    contents = unsigned(path.read_bytes())
    return contents is not None and contents == unsigned(other.read_bytes())


def unsigned(package):
    """The lead, the header and the payload of an .rpm; None if it has no whole signature header.

    rpmsign cannot restore the package from before the signature: it does not return the bytes of the signature
    to the reserved space. The signature header also has digests and sizes, which follow from the rest, as
    `--check` verifies. When rpmsign replaces a signature, it also replaces the architecture in the lead, which
    rpm does not read: the header has the architecture."""
    start = LEAD_BYTES + SECTION.size
    if len(package) < start or not package.startswith(LEAD_MAGIC):
        return None
    magic, entries, bytes_of_data = SECTION.unpack_from(package, LEAD_BYTES)
    end = start + ENTRY_BYTES * entries + bytes_of_data
    end += -end % 8  # padding
    if magic != SECTION_MAGIC or len(package) < end:
        return None
    return package[:LEAD_ARCHITECTURE.start] + package[LEAD_ARCHITECTURE.stop:LEAD_BYTES] + package[end:]
