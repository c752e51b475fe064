"""Text that a sender wrote, as a report may show it: it cannot speak for us.

Rules of this file

1. Every text that comes from input passes `visible` before it reaches a terminal, Markdown, JUnit, annotations, a badge or
   HTML: file names, traces, log lines, names that a driven program or a broker gives.
2. What is left is one line of printable characters. A control character could move the cursor over the verdict, a line feed
   could make a line `PASS: ..` of its own, a bidirectional one could turn the order of what is read.
3. JSON is for programs: there a text stays what it is, and the same characters have JSON's own escapes.
"""

import re

_NOT_IN_LINES = re.compile(r"[^\n -~]")
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")


def visible(text: str) -> str:
    """Return the text with everything escaped that is no printable character: `\\x1b`, `\\n`, `\\u202e`."""
    # Nearly every text is printable, and to ask takes nothing.
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Return a text of several lines, each of our making, with everything else escaped; colours stay."""
    # A last look at what is printed: what a writer has forgotten does not reach the terminal.
    return "\n".join(line if line.isprintable() else _visible_but_colours(line) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """Return at most so many characters of a text: whole lines or, of a long line, whole words, then `..`."""
    if len(text) <= most:
        return text
    kept = text[:most]
    for gap in "\n ":
        # A line that is most of the text is cut at a word: without it the others say little.
        if (end := kept.rfind(gap)) > 0 and 2 * end >= most:
            return f"{kept[:end]}{gap}.."
    return f"{kept} .."


def printable_json(text: str) -> str:
    """Return JSON with JSON's escapes for what is no printable character; it has the same value."""
    return _NOT_IN_LINES.sub(
        lambda character: character[0] if character[0].isprintable() else _json_escape(character[0]), text
    )


def _escaped(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def _visible_but_colours(line: str) -> str:
    parts = _COLOUR.split(line)
    return "".join(part if at % 2 else visible(part.replace("\t", "    ")) for at, part in enumerate(parts))


def _json_escape(character: str) -> str:
    """Return a character as JSON writes it in ASCII; one above U+FFFF is a pair of surrogates."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
