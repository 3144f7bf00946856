"""Finds words and phrases that comments and documentation of this project do not use.

The text is cut into blocks: a run of comment lines, a docstring, a paragraph, a list item or a
table row. A block matches when one or several of PATTERNS are found in it. Code is not read: string
literals, fenced blocks and text between backticks are blanked first. The string literals of src/
that have several words (help, logs, errors) are messages, which are read as well. tools/check-docs
prints the matches and bounds their share.
"""

import re

# Rows: name, pattern, what to write instead, a sentence that matches, a sentence that does not. The
# self-test plants both sentences. Case is ignored. Look-arounds exclude what is standard English.
VERB_OR_END = (
    r"(?=[.,;:!?)]|$| (?:that|which|is|was|are|were|in|with|without|for|before|after|at|to|may|can|"
    r"cannot|must|has|had|have|and|or|it|they|whose|from|by|on|does|did|goes|comes|ends|when|if|"
    r"while|until|as|not|than|behind|alone|only|there)\b)")

PATTERNS = (
    ("tell", r"\b(?:tells?|told|telling)\b(?!(?: [\w`,-]+){0,5} apart\b)",
     "report, log, emit, say",
     "The journal tells the error.", "They are told apart by their ids."),
    ("stand", r"\b(?:stands?|stood)\b(?! (?:for|in for|alone)\b)",
     "is",
     "The mark stands in its own record.", "The name stands for a host."),
    ("behind", r"(?<!left )(?<!leave )(?<!leaves )(?<!fall )(?<!falls )(?<!lags )(?<!lag )"
     r"\bbehind\b(?! (?:a|the|an) (?:proxy|firewall|load balancer|terminator|NAT)\b)",
     "after",
     "A record behind the mark is cut.", "It runs behind a proxy; a file is left behind."),
    ("who as subject", r"(?:^|[.;:] )Who\b(?![^.;]*\?)|\bwhoever\b|"
     r"\b(?:those|they|he|one|and|that of|of) who\b",
     "the client, the caller",
     "Who waits is served.", "A client who waits is served. Who waits?"),
    ("what as subject", r"(?:^|[.;] |\w[\w,]* [\w`]+: )What(?:ever)?\b(?= \w)(?![^.;]*\?)",
     "a named subject",
     "What is due is done.", "It does what is due. What is due? Drain: what it does."),
    ("nobody", r"\b(?:no|some|any|every)body\b|"
     r"\b(?:no|some|any|every) ?one\b(?! (?:of|thing|time)\b)",
     "no client, a component",
     "Nobody reads it.", "No client reads it, and any one of them may."),
    ("so many", r"(?<!, )\bso (?:many|much|long|few)\b(?! as\b)(?!(?: \w+){0,4} that\b)",
     "that many, a number",
     "At most so many bytes are read.", "It read so many bytes that it stopped."),
    ("has come", r"\b(?:has|have|had) (?:come|gone)\b|"
     r"\bas far as (?:it|they) (?:has|have|goes|go|comes?)\b",
     "ended, was removed, arrived",
     "A session has gone.", "A session ended."),
    ("anew", r"\banew\b",
     "again",
     "It is armed anew.", "It is armed again."),
    ("for ever", r"\bfor ever\b",
     "without limit",
     "It waits for ever.", "It waits without limit."),
    ("there is", r"\b(?:what|all|as|than|while|where|once|until|because|like|since|for|unless|if|"
     r"when) there (?:is|are|was|were)\b|"
     r"\bthere (?:is|are|was|were) (?:one|none|nothing|something|any)\b",
     "a verb",
     "It takes all there is.", "There are two modes."),
    ("one", r"\bones\b|(?:^|[.;:] )One (?:that|who|which)\b|"
     r"\b(?:the|an?|this|that|another|other|next|last|new|old) (?:\w+ )?"
     r"(?<!at least )(?<!at most )(?<!than )(?<!or )(?<!exactly )(?<!by )one\b" + VERB_OR_END,
     "the noun",
     "The old one is removed.", "The first of two, one file, one of them, or at most one."),
    ("turn", r"\b(?:a|the|each|this|every|next|last|same|first|another|per|that) turns?\b"
     r"(?! (?:on|off|out|into|of phrase)\b)|\bturn's\b|\bone turn\b|\bturns? of (?:the|a) loop\b",
     "tick, iteration",
     "It ends with the turn.", "They are served in turn, each waits for its turn."),
    ("left-over", r"\bleft-?overs?\b",
     "deferred work, rest",
     "The left-over is done.", "The rest is done."),
    ("look after", r"\blook(?:s|ed|ing)? after\b",
     "serve, handle",
     "It looks after clients.", "It serves them."),
    ("attend", r"\battend(?:s|ed|ing)?\b",
     "serve, handle",
     "The client is attended to.", "It is served."),
    ("woken", r"\bwoken\b",
     "dirty, notified",
     "The woken are served.", "The thread wakes up."),
    ("in vain", r"\bin vain\b",
     "without effect",
     "It is called in vain.", "It has no effect."),
    ("ring", r"\brings\b(?! of\b| buffers?\b)|\brung\b",
     "expires",
     "The timer rings.", "A list of rings of bytes."),
    ("runway", r"\brunways?\b",
     "preallocated segments",
     "The runway is short.", "Segments are preallocated."),
    ("old type", r"\b(?:LogNumber|SecondLook|ReplyGate|ReadyAges|TallyBook|tell_door|Keepers?)\b",
     "the new name",
     "It is a LogNumber.", "It is an Lsn."),
    ("tally", r"\btall(?:y|ies|ied)\b",
     "metrics of a tube, count",
     "It tallies jobs.", "It counts jobs."),
    ("gathering", r"\bgatherings?\b",
     "commit delay",
     "The gathering ends.", "The delay ends."),
    ("let through", r"\blet(?:s|ting)? [\w ]{0,20}\bthrough\b",
     "flush",
     "The gate lets it through.", "Let the loop run."),
    ("reply leaves", r"\b(?:replies|reply|answers?)(?: \w+){0,2} leaves?\b",
     "is sent",
     "No reply leaves before.", "No reply is sent before."),
    ("settle", r"\bsettle[sd]?\b",
     "complete, decide",
     "The record is settled.", "The record is complete."),
    ("patience", r"\bpatience\b",
     "idle timeout, stall timeout",
     "Its patience ends.", "Its timeout ends."),
    ("owe", r"\bow(?:es?|ed)\b",
     "the name of what is missing",
     "It owes a reply.", "It has an unsent reply."),
    ("excuse", r"\bexcuse[sd]?\b",
     "exempt",
     "A slow disk excuses it.", "It is exempt."),
    ("people", r"\b(?:verdicts?|fates?|deeds?|crews?|wish(?:es)?|lingering|lingers|doors?)\b",
     "a standard term",
     "The crew decides.", "The worker pool decides."),
    ("standard", r"\bstandard values?\b|"
     r"\b(?:a|its|the|their) standards?(?= (?:is|are|when)\b|[.,;)])",
     "default",
     "It has a standard value.", "The standard input and the standard library."),
    ("paper over", r"\bpaper(?:ed|s)? over\b",
     "ignored",
     "It is papered over.", "It is ignored."),
)
# Each match begins where a word begins, or at a stop. Without these look-aheads, each of the patterns
# would be tried at each character.
ANY = re.compile(r"(?:\b(?=\w)|(?=[.;:] ))(?:%s)" % "|".join(row[1] for row in PATTERNS), re.IGNORECASE)
EACH = [(row[0], re.compile(row[1], re.IGNORECASE), row[2]) for row in PATTERNS]

KINDS = COMMENTS, PARAGRAPHS, MESSAGES = ("comment blocks", "paragraphs", "messages")
COMMENTED = {".cc": "cpp", ".h": "cpp", ".mjs": "cpp", ".js": "cpp", ".py": "python", ".rb": "hash"}
HASHED = {".bash", ".cmake", ".toml", ".conf", ".yml", ".yaml", ".service", ".socket", ".wire",
          ".spec", ".shim"}
NAMED_HASHED = {"CMakeLists.txt", ".clang-format", ".clang-tidy", ".gitignore", "usr.bin.tubed"}
PROSE = {".md": "markdown", ".1": "mdoc", ".5": "mdoc", ".7": "mdoc", ".8": "mdoc"}

# Comments for tools, which no reader needs: they would only increase the number of blocks.
PRAGMA = re.compile(r"namespace\b|NOLINT|clang-format |shellcheck |noqa\b|pylint:|---")
CODE_SPAN = re.compile(r"`[^`\n]+`")
CPP_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'')
CPP_LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CPP_RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
PYTHON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
DOCSTRING = re.compile(r'^([ \t]*)[rR]?"""(.*?)"""', re.DOTALL | re.MULTILINE)
TRIPLE = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s")
MDOC_BREAK = re.compile(r"^\.(?:Pp|It|Sh|Ss|Bl|El|Bd|Ed|Dd|Dt|Os|Nd|\\\")")


def kind_of(path, head):
    """Which of READERS finds the blocks of `path`; None: it is not read. `head`: its first line."""
    if path.suffix in PROSE:
        return PROSE[path.suffix]
    if path.suffix in COMMENTED:
        return COMMENTED[path.suffix]
    if path.suffix in HASHED or path.name in NAMED_HASHED:
        return "hash"
    if head.startswith("#!"):
        return "python" if "python" in head else "hash"
    return None


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def blocks_of_lines(lines, marker, string):
    """Yields (line, text) for each run of comment lines. A comment after code begins a new block,
    which following lines continue if they hold only a comment in the same column."""
    first, column, parts = 0, -1, []
    for number, line in enumerate(lines, 1):
        at = line.find(marker)
        if at >= 0 and string is not None and line.find('"', 0, at) + line.find("'", 0, at) > -2:
            line = string.sub(blank, line)
            at = line.find(marker)
        # In a shell, `#` begins a comment only at the beginning of a word.
        if marker == "#" and at > 0 and not line[at - 1].isspace():
            at = -1
        alone = at >= 0 and not line[:at].strip()
        if parts and not (alone and at == column):
            yield first, " ".join(parts)
            parts = []
        if at >= 0:
            if not parts:
                first, column = number, at
            parts.append(line[at:].strip("/#! \t"))
    if parts:
        yield first, " ".join(parts)


def cpp_blocks(text):
    if 'R"' in text:
        text = CPP_RAW.sub(blank, text)
    return blocks_of_lines(text.splitlines(), "//", CPP_STRING)


def python_blocks(text):
    for match in DOCSTRING.finditer(text):
        before = text[:match.start()].rstrip()
        if not before or before.endswith(":") or before.splitlines()[-1].startswith("#"):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[2].split())
    if '"""' in text:
        text = TRIPLE.sub(blank, text)
    yield from blocks_of_lines(text.splitlines(), "#", PYTHON_STRING)


def markdown_blocks(text):
    """Paragraphs, list items and table rows. A heading is a block of its own."""
    text = FENCE.sub(blank, text)
    first, parts = 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        stripped = line.strip()
        alone = stripped[:1] in ("|", "#")
        if parts and (not stripped or alone or ITEM.match(line) or parts[0][:1] in ("|", "#")):
            yield first, " ".join(parts)
            parts = []
        if stripped and not re.fullmatch(r"[|:\- ]+", stripped):
            if not parts:
                first = number
            parts.append(stripped)
    if parts:
        yield first, " ".join(parts)


def mdoc_blocks(text):
    """Paragraphs of a manual page, without displays and macros that only mark up."""
    first, parts, display = 0, [], False
    for number, line in enumerate(text.splitlines() + [".Pp"], 1):
        if line.startswith(".Bd"):
            display = True
        if MDOC_BREAK.match(line):
            if parts:
                yield first, " ".join(parts)
                parts = []
        elif not display:
            if not parts:
                first = number
            parts.append(re.sub(r"\\f\w|\\&|\\-", "", re.sub(r"^\.\w\w ?", "", line)))
        if line.startswith(".Ed"):
            display = False


def hash_blocks(text):
    return blocks_of_lines(text.splitlines(), "#", PYTHON_STRING)


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
    """The rows of PATTERNS that a block matches: (name, what was found, what to write instead)."""
    block = CODE_SPAN.sub("``", block).lstrip("-*+#| 0123456789.")
    if not ANY.search(block):
        return []
    return [(name, found[0].strip(" .;:"), instead) for name, pattern, instead in EACH
            for found in [pattern.search(block)] if found]


def read(path, text):
    """Yields (kind, line, matches) for each block of a file; the kinds are those of KINDS."""
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
