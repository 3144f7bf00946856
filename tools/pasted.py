"""The commands that pages print, and which of them a test pastes.

A fenced block of `sh` or `console` is pasted into a shell as it is printed. A block with commands that cannot be
pasted, because of a placeholder, another distribution or another machine, is `text`. Settings and other files have
the names of their languages; reports and diagrams have none.

In a block of `console`, `$ ` marks a command, `> ` a line that is typed into it, and any other line is its output.
"""

import re

# Where packaging/tests/pages pastes every block.
PASTED = (
    "README.md", "docs/concepts.md", "docs/console.md", "docs/downgrade.md", "docs/installing.md", "docs/metrics.md",
    "docs/migrating-from-beanstalkd.md", "docs/migrating-from-forks.md", "docs/operating-the-journal.md",
    "docs/second-instance.md", "docs/security.md", "docs/sizing.md", "docs/tls.md", "docs/troubleshooting.md",
    "docs/workers.md")
# Pages whose blocks another test runs: it needs several machines, a container engine or a key.
OTHERS = {
    "docs/clustering.md": "tests/daemon/cluster_page_test.py",
    "docs/containers.md": "packaging/tests/containers_page",
    "docs/http-api.md": "tests/daemon/http_api_page_test.py",
    "docs/internals/releasing.md": "packaging/tests/release",
    "docs/testing.md": "tests/contrib/testing_page_test.py",
}
SHELL = ("sh", "console")
COMMAND = re.compile(
    r"(?:\$ )?(?:sudo )?(?:(?:\./|\w+/)*tools/\w+|apt-get|beanstalkd|cmake|curl|dnf|dpkg|journalctl|kill|runuser|ssh"
    r"|systemctl|tubectl|tubed)(?: |$)")
FENCE = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)


class Block:
    """A fenced block: its language, its lines, the headings of its sections, and the paragraph before it."""

    def __init__(self, markdown, match):
        above = markdown[:match.start()]
        self.line = above.count("\n") + 1
        self.language, self.text = match[1].strip(), match[2]
        self.headings = []
        for marks, heading in re.findall(r"^(#+) +(.*?)\s*$", FENCE.sub("", above), re.MULTILINE):
            self.headings[len(marks) - 1:] = [heading]
        paragraph = re.sub(r"<!--.*?-->\n", "", above).rstrip("\n").rsplit("\n\n", 1)[-1]
        self.paragraph = re.sub(r"\s+", " ", paragraph)

    def names_file(self):
        """The file that the paragraph tells to write; None if it tells nothing of the kind."""
        found = re.search(r"[Ww]rite (?:\w+ ){0,3}`(/[^`]+)`(?:, [^`:]*)?:$", self.paragraph)
        if found:
            return found[1]
        found = re.search(r"`systemctl edit ([\w@.-]+)`(?:,? and write)?:$", self.paragraph)
        return f"/etc/systemd/system/{found[1]}.d/override.conf" if found else None

    def is_script(self):
        return self.language == "sh" and self.text.startswith("#!")


def blocks_of(markdown):
    return [Block(markdown, match) for match in FENCE.finditer(markdown)]


def complaints(name, markdown, has_file):
    """What is wrong with the blocks of the page `name`; has_file(path): whether the tree has it."""
    if name != "README.md" and (not name.startswith("docs/") or name.startswith("docs/reference/")):
        return  # examples of single commands
    for block in blocks_of(markdown):
        where = f"{name}:{block.line}"
        if block.language in SHELL:
            if name not in PASTED and not has_file(OTHERS.get(name, "")):
                yield f"{where}: no test pastes this page (tools/pasted.py)"
            elif block.is_script() and not block.names_file():
                yield f"{where}: the sentence before it names no file to write"
        elif block.language == "" and COMMAND.match(block.text):
            yield f"{where}: commands are sh or console, which a test pastes, or text"
