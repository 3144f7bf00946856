"""Finds the words of tools/words.txt in comments and documentation.

The text is cut into blocks: a run of comment lines, a docstring, a paragraph, a list item or a table
row. Code is not read: string literals, fenced blocks and text between backticks are blanked first. The
string literals of src/ that have several words (help, logs, errors) are messages, which are read as
well. tools/check-docs prints the matches and bounds their share.
"""

import pathlib
import re

WORDS = "tools/words.txt"
CLAUSE_ENDS = (
    r"(?=[.,;:!?)]|$| (?:that|which|is|was|are|were|in|with|without|for|before|after|at|to|may|can|"
    r"cannot|must|has|had|have|and|or|it|they|whose|from|by|on|does|did|goes|comes|ends|when|if|"
    r"while|until|as|not|than|behind|alone|only|there)\b)")


def pattern_of(phrases):
    """The pattern of phrases as words.txt has them."""
    found = []
    for phrase in phrases:
        phrase = phrase.replace(" ...", r"(?: [\w`,-]+){0,5}").replace("*", r"[\w`]+")
        if phrase.startswith("^"):
            phrase = rf"(?:^|[.;] |\w[\w,]* [\w`]+: ){phrase[1:]}\b(?= \w)(?![^.;]*\?)"
        else:
            phrase = (r"\b" if phrase[0] != "," else "") + (
                phrase[:-1] + r"\b" + CLAUSE_ENDS if phrase[-1] == "~" else phrase + r"\b")
        found.append(phrase)
    return re.compile("|".join(found), re.IGNORECASE)


class Rule:
    """A line of words.txt: phrases to avoid, and in `but` the phrases in which they are right."""

    def __init__(self, line, but):
        phrases, self.instead = line.split(" = ")
        self.phrases, self.but = phrases.split("; "), but.split("; ") if but else []
        self.pattern, self.right = pattern_of(self.phrases), pattern_of(self.but)

    def find(self, block):
        """The first words to avoid, or None."""
        right = [match.span() for match in self.right.finditer(block)] if self.but else []
        return next((match[0].strip(" .;:") for match in self.pattern.finditer(block) if not any(
            begin < match.end() and match.start() < end for begin, end in right)), None)


RULES = [Rule(*match.groups()) for match in re.finditer(
    r"^([^#\s].*)(?:\n    but (.*))?$",
    pathlib.Path(__file__).with_name("words.txt").read_text(encoding="utf-8"), re.MULTILINE)]
# Tried only where a word, or a sentence, begins: otherwise each rule would be tried at each character.
ANY = re.compile(r"(?:\b(?=\w)|(?=[.;:] ))(?:%s)" % "|".join(rule.pattern.pattern for rule in RULES),
                 re.IGNORECASE)

KINDS = COMMENTS, PARAGRAPHS, MESSAGES = ("comment blocks", "paragraphs", "messages")
SUFFIXES = {
    "cpp": ".cc .h .mjs .js", "python": ".py", "markdown": ".md", "mdoc": ".1 .5 .7 .8",
    "hash": ".rb .bash .cmake .toml .conf .yml .yaml .service .socket .wire .spec .shim"}
KIND_OF = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes.split()}
HASHED = {"CMakeLists.txt", ".clang-format", ".clang-tidy", ".gitignore", "usr.bin.tubed"}

# Comments for tools, which no reader needs: they would only increase the number of blocks.
PRAGMA = re.compile(r"namespace\b|NOLINT|clang-format |shellcheck |noqa\b|pylint:|---")
CODE_SPAN = re.compile(r"`[^`\n]+`")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
CPP_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'')
CPP_LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CPP_RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
DOCSTRING = re.compile(r'^([ \t]*)[rR]?"""(.*?)"""', re.DOTALL | re.MULTILINE)
TRIPLE = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s")
MDOC_BREAK = re.compile(r"\.(?:Pp|It|Sh|Ss|Bl|El|Bd|Ed|Dd|Dt|Os|Nd|\\\")")
MDOC_DISPLAY = re.compile(r"^\.Bd.*?^\.Ed", re.MULTILINE | re.DOTALL)


def kind_of(path, head):
    """Which of READERS reads `path`; None: none does. `head`: its first line."""
    if path.suffix in KIND_OF:
        return KIND_OF[path.suffix]
    if path.name in HASHED or head.startswith("#!"):
        return "python" if "python" in head else "hash"
    return None


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def blocks_of(lines):
    """Yields (line, text) of each block. `lines` has (text, whether a block begins) of each line; no
    block has a line whose text is None."""
    first, parts = 0, []
    for number, (text, begins) in enumerate([*lines, (None, True)], 1):
        if parts and (begins or text is None):
            yield first, " ".join(parts)
            parts = []
        if text is not None:
            first = first if parts else number
            parts.append(text)


def comments_of(text, marker, string):
    """The comment of each line. After code it begins a block, which the next lines continue if they
    have only a comment in the same column."""
    column = -1
    for line in text.splitlines():
        at = line.find(marker)
        if at >= 0 and line.find('"', 0, at) + line.find("'", 0, at) > -2:
            line = string.sub(blank, line)
            at = line.find(marker)
        # In a shell, `#` begins a comment only at the beginning of a word.
        if at < 0 or marker == "#" and at > 0 and not line[at - 1].isspace():
            yield None, True
        else:
            yield line[at:].strip("/#! \t"), at != column or bool(line[:at].strip())
            column = at


def cpp_blocks(text):
    return blocks_of(comments_of(CPP_RAW.sub(blank, text), "//", CPP_STRING))


def hash_blocks(text):
    return blocks_of(comments_of(text, "#", STRING))


def python_blocks(text):
    for match in DOCSTRING.finditer(text):
        before = text[:match.start()].rstrip()
        if not before or before.endswith(":") or before.splitlines()[-1].startswith("#"):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[2].split())
    yield from hash_blocks(TRIPLE.sub(blank, text))


def markdown_blocks(text):
    """Paragraphs, list items and table rows. A heading is a block of its own."""
    lines, alone = [], False
    for line in FENCE.sub(blank, text).splitlines():
        before, alone = alone, line.strip()[:1] in ("|", "#")
        text = None if re.fullmatch(r"[|:\- ]*", line.strip()) else line.strip()
        lines.append((text, before or alone or bool(ITEM.match(line))))
    return blocks_of(lines)


def mdoc_blocks(text):
    """Paragraphs of a manual page, without displays and macros that only mark up."""
    return blocks_of(
        (None if MDOC_BREAK.match(line) else re.sub(r"^\.\w\w ?|\\f\w|\\&|\\-", "", line), False)
        for line in MDOC_DISPLAY.sub(blank, text).splitlines())


def messages(text):
    """Yields (line, text) for each string literal of C++ with three words or more."""
    text = re.sub(r"^\s*//.*", "", text, flags=re.MULTILINE)
    for match in CPP_LITERALS.finditer(text):
        message = "".join(literal[1:-1] for literal in CPP_STRING.findall(match[0]))
        if len(message.split()) >= 3:
            yield text.count("\n", 0, match.start()) + 1, message.replace("\\n", " ")


READERS = {"cpp": cpp_blocks, "python": python_blocks, "hash": hash_blocks,
           "markdown": markdown_blocks, "mdoc": mdoc_blocks}


def matches_of(block):
    """The matches of a block: (what was found, what to write instead)."""
    block = CODE_SPAN.sub("``", block).lstrip("-*+#| 0123456789.")
    if not ANY.search(block):
        return []
    return [(found, rule.instead) for rule in RULES for found in [rule.find(block)] if found]


def read(path, text):
    """Yields (kind, line, matches) for each block of a file; `kind` is one of KINDS."""
    kind = kind_of(path, text[:80].split("\n", 1)[0])
    if kind is None:
        return
    text = re.sub(r"\A#!.*", "", text)
    name = PARAGRAPHS if kind in ("markdown", "mdoc") else COMMENTS
    for line, block in READERS[kind](text):
        heading = kind == "markdown" and block.startswith("#")
        if not heading and not PRAGMA.match(block) and re.search(r"[A-Za-z]{2}", block):
            yield name, line, matches_of(block)
    if kind == "cpp" and path.parts[0] == "src":
        for line, message in messages(text):
            yield MESSAGES, line, matches_of(message)
