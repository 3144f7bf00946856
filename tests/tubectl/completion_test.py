"""The completions of tubectl in a real bash and a real zsh, with the tubes of a running server.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/completion_test.py
"""

import os
import pathlib
import pty
import re
import socket
import subprocess
import threading
import unittest

from programs import SECONDS, TUBECTL, TubectlTest, subcommands, until

COMPLETIONS = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "completions"
# Legal names that a shell would execute if it evaluated them.
TUBES = ["emails", "emails-later", "faxes", "$(touch-me)", "a;b", "x/y"]
NOBODY = "unix:/no/such/socket"

BASH = r"""
set -u
[[ ${WITH_LIBRARY} ]] && { set +u; source /usr/share/bash-completion/bash_completion; }
source "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE}
mapfile -t COMP_WORDS <<<"$WORDS"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
function=$(complete -p tubectl | sed -n 's/.*-F \([^ ]*\).*/\1/p')
"$function" tubectl "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
"""

# The candidates go to a file, followed by END. The dump of compinit is kept for the next shell of
# the same test.
ZSHRC = r"""
PROMPT= fpath=("$COMPLETIONS" $fpath)
autoload -Uz compinit && compinit -u -C -d "$ZDOTDIR/dump"
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-[OAD]* ]]; then builtin compadd "$@"; return; fi
  local -a hits
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- $hits >>$HITS
  builtin compadd "$@"
}
offer() { _main_complete; print -r -- END >>$HITS; compstate[insert]= compstate[list]= }
zle -C offer complete-word offer
bindkey '^I' offer
: >$HITS.ready
"""


def cut_as_bash(line):
    """COMP_WORDS as readline splits them: at blanks, = and :."""
    words = re.findall(r"[^\s=:]+|[=:]+", line)
    return words + [""] if line[-1].isspace() else words


class CompletionTest(TubectlTest):
    def setUp(self):
        super().setUp()
        self.programs = self.directory / "programs"
        self.programs.mkdir()
        (self.programs / "tubectl").symlink_to(TUBECTL)
        # The scripts give tubectl a second, which is too short on a busy machine.
        patient = self.programs / "timeout"
        patient.write_text('#!/bin/sh\nshift\n/usr/bin/timeout "$LIMIT" "$@"\ncode=$?\n'
                           f'echo $code >>{self.programs}/codes\nexit $code\n', encoding="utf-8")
        patient.chmod(0o755)
        self.limit = SECONDS
        self.tubed_address = self.tubed()
        client = self.client(self.tubed_address)
        for tube in TUBES:
            client.ask(f"use {tube}")
            client.put(b"x")

    def environment(self, server):
        environment = {key: value for key, value in os.environ.items() if key != "TUBED_SERVER"}
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        environment["LIMIT"] = str(self.limit)
        return environment | ({"TUBED_SERVER": server} if server else {})

    def bash(self, line, server=None, library=""):
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH], capture_output=True, text=True, timeout=SECONDS,
            check=False, cwd=self.directory, env=self.environment(server) | {
                "SCRIPT": str(COMPLETIONS / "tubectl.bash"), "LINE": line,
                "WORDS": "\n".join(cut_as_bash(line)), "WITH_LIBRARY": library})
        self.assertEqual(done.stderr, "", line)
        return sorted(done.stdout.split("\n")[:-1])

    def zsh(self, line, server=None):
        home = self.directory / "zsh"
        home.mkdir(exist_ok=True)
        (home / ".zshrc").write_text(ZSHRC, encoding="utf-8")
        hits = home / "hits"
        for old in home.glob("hits*"):
            old.unlink()
        environment = self.environment(server) | {
            "ZDOTDIR": str(home), "COMPLETIONS": str(COMPLETIONS), "HITS": str(hits),
            "TERM": "dumb"}
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.directory)
            os.execvpe("zsh", ["zsh", "-d", "-i"], environment)
        shown = bytearray()

        def drain():
            try:
                while chunk := os.read(terminal, 4096):
                    shown.extend(chunk)
            except OSError:  # the shell has ended
                pass
        reader = threading.Thread(target=drain)
        reader.start()
        try:
            until("zsh to be ready", lambda: pathlib.Path(f"{hits}.ready").exists())
            os.write(terminal, line.encode() + b"\t")
            until(f"zsh to complete {line!r}: {shown!r}", lambda: hits.exists() and
                  hits.read_text("utf-8").endswith("END\n"))
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            reader.join(SECONDS)
            os.close(terminal)
        self.assertNotIn(b"tubectl: ", shown)
        return sorted(set(hits.read_text("utf-8").split("\n")[:-2]))

    def shells(self):
        for name, complete in (("bash", self.bash), ("zsh", self.zsh)):
            with self.subTest(shell=name):
                yield name, complete


class Completion(CompletionTest):
    def options(self, subcommand):
        """Returns the options with two hyphens, in the help's order."""
        text = self.tubectl(NOBODY, subcommand, "--help").split("\nexamples:")[0]
        return sorted(set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)))

    def test_subcommands(self):
        for _, complete in self.shells():
            self.assertEqual(complete("tubectl "), sorted([*subcommands(), "help"]))
            self.assertEqual(complete("tubectl ben"), ["bench"])

            self.assertEqual(complete("tubectl help pe"), ["peek"])
            self.assertEqual(complete("tubectl help peek j"), [])

    def test_a_word_that_may_be_a_tube(self):
        for _, complete in self.shells():
            for words in ("kick", "kick --all", "peek --ready"):
                self.assertEqual(complete(f"tubectl {words} fa", self.tubed_address), ["faxes"])
            # The word after --watch may be its value, or a tube.
            self.assertEqual(complete("tubectl stats --watch fa", self.tubed_address), ["faxes"])

    def test_options_of_every_subcommand(self):
        for subcommand in subcommands():
            wanted = self.options(subcommand)
            self.assertIn("--help", wanted)
            self.assertEqual(self.bash(f"tubectl {subcommand} --"), wanted)
            self.assertLessEqual(set(wanted),
                                 {name.rstrip("=") for name in self.zsh(f"tubectl {subcommand} --")})

    def test_tubes_of_the_server_that_is_meant(self):
        address = self.tubed_address
        for name, complete in self.shells():
            for line, server in (
                    ("tubectl work -t ", address), ("tubectl work --tube ", address),
                    ("tubectl work --tube=", address), (f"tubectl work -s {address} -t ", NOBODY),
                    (f"tubectl work --server {address} -t ", NOBODY),
                    (f"tubectl work --server={address} -v -t ", NOBODY),
                    (f"tubectl work -s{address} -t ", None),
                    (f"tubectl -s {address} work -t ", NOBODY),
                    (f"tubectl --server={address} stats ", NOBODY),
                    (f"tubectl work -t faxes -s {address} -t ", None)):
                with self.subTest(line=line):
                    got = [tube.replace("\\", "") for tube in complete(line, server)]
                    self.assertEqual(got, sorted(["default", *TUBES]), name)
            self.assertEqual(complete("tubectl work -t em", address), ["emails", "emails-later"])
            self.assertEqual(complete("tubectl pause fa", address), ["faxes"])

    def test_names_that_a_shell_would_run_are_quoted(self):
        self.assertIn(r"\$\(touch-me\)", self.bash("tubectl work -t ", self.tubed_address))
        self.assertIn(r"a\;b", self.bash("tubectl work -t ", self.tubed_address))

    def test_beside_the_library_of_bash(self):
        self.assertEqual(self.bash("tubectl work -t em", self.tubed_address, library="yes"),
                         ["emails", "emails-later"])

    def test_without_a_server_there_are_none_and_no_words(self):
        self.limit = 1
        with socket.create_server(("127.0.0.1", 0)) as silent:
            mute = f"127.0.0.1:{silent.getsockname()[1]}"
            for _, complete in self.shells():
                for server in (NOBODY, "127.0.0.1:1", mute):
                    self.assertEqual(complete("tubectl work -t ", server), [])
                    # tubectl itself would wait 30 s for a silent server; timeout(1) ends it with
                    # code 124.
                    codes = (self.programs / "codes").read_text(encoding="utf-8").split()
                    self.assertTrue(codes and (server != mute or codes[-1] == "124"), codes)

    def test_choices_files_and_commands(self):
        (self.directory / "some-file").touch()
        for _, complete in self.shells():
            self.assertEqual(complete("tubectl work --on-failure "), ["bury", "delete", "release"])
            self.assertEqual(complete("tubectl bench --latencies some-f"), ["some-file"])
            self.assertEqual(complete("tubectl work --retries "), [])
            self.assertEqual(complete("tubectl cluster "),
                             ["add", "promote", "remove", "secret", "set-address", "status",
                              "transfer", "upgrade-check"])
            self.assertEqual(complete("tubectl cluster remove "), [])
            self.assertEqual(complete("tubectl wait-cluster --admin some-f"), ["some-file"])
            self.assertIn("tubectl", complete("tubectl work -t x -j 3 -- tubec"))
            # Words after COMMAND are completed as a separate command.
            self.assertIn("some-file", complete("tubectl work -- cat some-f"))


if __name__ == "__main__":
    unittest.main()
