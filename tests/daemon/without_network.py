"""Runs a program that may create no IPv4 or IPv6 sockets, as the units of the packages do
(RestrictAddressFamilies=AF_UNIX): socket(2) fails with EAFNOSUPPORT.

    without_network.py PROGRAM ARGUMENT…
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

# The number of the system call socket(2).
SYSTEM_CALL = {"x86_64": 41, "aarch64": 198}.get(platform.machine())

# <linux/bpf_common.h>, <linux/seccomp.h>, <linux/prctl.h>
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
# Offsets in struct seccomp_data.
NUMBER, FIRST_ARGUMENT = 0, 16


def confine():
    instructions = [  # code, jump if true, jump if false, constant
        (LOAD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 0, 3, SYSTEM_CALL),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_EQUAL, 2, 0, socket.AF_INET),
        (JUMP_IF_EQUAL, 1, 0, socket.AF_INET6),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, FAIL | errno.EAFNOSUPPORT),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SECCOMP, FILTER, program, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    confine()
    os.execv(sys.argv[1], sys.argv[1:])
