#!/usr/bin/env python3
"""Runs what the test of another machine sends, each time as an operator who pastes it: lines of shell over the
unix socket /shared/NAME.socket, answered by a line with the exit code, and the output. NAME is in the file `name`.
Ends after the lines "poweroff"."""

import pathlib
import socket
import subprocess


def receive(stream):
    received = b""
    while data := stream.recv(1 << 16):
        received += data
    return received.decode()


def main():
    name = pathlib.Path("name").read_text(encoding="utf-8").strip()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/shared/{name}.socket")
        listener.listen()
        while True:
            stream, _ = listener.accept()
            with stream:
                lines = receive(stream)
                if lines == "poweroff":
                    return
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", lines], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                print(lines, done.stdout.decode(errors="replace"), done.returncode, flush=True)
                stream.sendall(b"%d\n" % done.returncode + done.stdout)


main()
