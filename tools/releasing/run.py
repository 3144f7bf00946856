"""Runs commands for a release, and names the command that failed."""

import hashlib
import pathlib
import shlex
import subprocess


class Problem(Exception):
    """A message for the maintainer."""


def run(*command, log=None, **options):
    """Runs a command to its end and returns its output. With `log`, a file, its output and errors go
    there. Raises a Problem if the command fails."""
    command = [str(word) for word in command]
    if log:
        with open(log, "ab") as stream:
            stream.write(f"$ {shlex.join(command)}\n".encode())
            stream.flush()
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                                  check=False, **options).returncode
        if code != 0:
            lines = pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
            raise Problem("\n".join([*lines[-40:], f"{shlex.join(command)}: exit code {code}; --work keeps the log"]))
        return ""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          **options)
    if done.returncode != 0:
        raise Problem(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def sha256(path):
    """The hash of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def files_below(directory):
    """All files, sorted, relative to the directory."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*")
                  if path.is_symlink() or not path.is_dir())
