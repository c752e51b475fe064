"""Make text from the input fit to be shown: whoever wrote it cannot make it look like ours.

Rules of this file

1. Every text that comes from input passes `visible` before it reaches a terminal, Markdown, JUnit, annotations, a badge or
   HTML: file names, traces, log lines, names that a driven program or a broker gives.
2. What is left is one line of printable characters. A control character could move the cursor over the verdict, a line feed
   could make a line `PASS: ..` of its own, a bidirectional one could turn the order of what is read.
3. JSON is for programs: there a text stays what it is, and the same characters have JSON's own escapes.
"""

import re

_NOT_ASCII = re.compile(r"[^\n -~]")
"""A character that is neither printable ASCII nor a line feed, and so may be unprintable."""
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")
"""An escape sequence that sets the colour of a terminal; a group, so that `split` keeps it."""


def visible(text: str) -> str:
    """Return the text with everything escaped that is no printable character: `\\x1b`, `\\n`, `\\u202e`."""
    # Nearly every text is printable, and isprintable is fast.
    return text if text.isprintable() else "".join(map(_escaped, text))


def visible_lines(text: str) -> str:
    """Return a text of several lines with what is not printable escaped, but for line feeds and the escapes of colours.

    A tab becomes four spaces.
    """
    # For output as a whole, whose lines and colours are ours: what a writer forgot to escape does not reach the terminal.
    return "\n".join(line if line.isprintable() else _visible_but_colours(line) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """Return about `most` characters of a text, and `..` where it is longer: whole lines, or of a long line whole words."""
    if len(text) <= most:
        return text
    beginning = text[:most]
    for gap in "\n ":
        # Cut at the last line end, or else at the last space; not where less than half would be left.
        if (end := beginning.rfind(gap)) > 0 and 2 * end >= most:
            return f"{beginning[:end]}{gap}.."
    return f"{beginning} .."


def printable_json(text: str) -> str:
    """Return a JSON document with JSON's escapes for what is no printable character; its value is the same."""
    return _NOT_ASCII.sub(lambda character: character[0] if character[0].isprintable() else _json_escape(character[0]), text)


def _escaped(character: str) -> str:
    """Return a character, or its escape of Python (without the quotes of `ascii`) if it is not printable."""
    return character if character.isprintable() else ascii(character)[1:-1]


def _visible_but_colours(line: str) -> str:
    """Return a line with what is not printable escaped, but for the escapes of colours."""
    parts = _COLOUR.split(line)  # text and colours in turn: every second part is a colour
    return "".join(part if at % 2 else visible(part.replace("\t", "    ")) for at, part in enumerate(parts))


def _json_escape(character: str) -> str:
    """Return a character as JSON writes it in ASCII; one above U+FFFF is a pair of surrogates."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
