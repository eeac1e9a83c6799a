"""Pure: a block of our own at the end of a TOML file, between two comments."""

BEGIN, END = "# >>> herdr connect", "# <<< herdr connect"


def with_block(text: str, block: str) -> str:
    """Return the text with the block at its end, in place of an earlier one."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = without_block(text)
    gap = "" if not text or text.endswith("\n\n") else newline if text.endswith("\n") else newline * 2
    lines = [BEGIN, *block.strip().splitlines(), END]
    return text + gap + newline.join(lines) + newline


def without_block(text: str) -> str:
    """Return the text without our block, and without the empty line before it."""
    begin = text.find(BEGIN)
    end = text.find(END, begin)
    if begin < 0 or end < 0:
        return text
    rest = text[end + len(END) :].lstrip("\r\n")
    before = text[:begin]
    if not rest:
        return before.rstrip("\r\n") + ("\n" if before.strip() else "")
    return before + rest
