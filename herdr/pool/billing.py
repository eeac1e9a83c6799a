"""Pure: the accounting line that Claude Code puts into its system prompt.

It reads `x-anthropic-billing-header: cc_version=2.1.328.b7f; cc_entrypoint=sdk-cli;` and has parts that change
with each conversation (the end of `cc_version`), agent (`cc_is_subagent=true;`) or request (`cch=…;`), so a
prompt that keeps it shares no prefix with any other. It comes as a block of its own, as a line of a system
string, or glued to the text that follows.
"""

import re

_NAME = "x-anthropic-billing-header:"
_PAIRS = r"(?=cc)(?:[a-z]\w*=[^;\r\n]*;[ \t]*)+"  # later names may be new ones
_LAST = r"cc\w*=[^;\r\n]*(?=[\r\n]|\Z)"  # without its semicolon nothing but the line's end ends it
_ENTRY = rf"[ \t]*{_NAME}[ \t]*(?:{_PAIRS}(?:{_LAST})?|{_LAST})[\r\n]*"
_BILLING = re.compile(rf"^(?:{_ENTRY})+", re.MULTILINE)
_SUB_AGENT = re.compile(r"\bcc_is_subagent=true\b")


def without_billing(text: str) -> tuple[str, bool]:
    """Return a system text without its billing lines, and whether one of them says `cc_is_subagent=true`.

    Only what begins a line and goes on as the client writes it is taken for one; a sentence about it stays.
    Line breaks after it go too, so that a block of its own and a line of a string leave the same text.
    """
    if _NAME not in text:
        return text, False
    found = list(_BILLING.finditer(text))
    if not found:
        return text, False
    kept = _BILLING.sub("", text)
    if found[-1].end() == len(text):
        kept = kept.rstrip("\r\n")
    return kept, any(_SUB_AGENT.search(match.group()) for match in found)
