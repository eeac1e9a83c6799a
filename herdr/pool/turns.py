"""Pure: what was said in one turn, for the records of a session."""

from herdr.pool.request import ChatRequest, Text

TEXT_MAX = 65_536  # characters; at six bytes each in JSON well within an event's 1 MiB
_NOTE_OPENS, _NOTE_CLOSES = "<system-reminder>", "</system-reminder>"


def last_user_text(request: ChatRequest) -> str:
    """Return what the user said last; empty when the last message of the user brings only tool results.

    Takes the request as the client sent it: in its canonical form the client's notices are the user's text.
    Notes that Claude Code puts beside the user's words are left out.
    """
    last = next((message for message in reversed(request.messages) if message.role == "user"), None)
    if last is None:
        return ""
    texts = [part.text for part in last.parts if isinstance(part, Text) and not _is_note(part.text)]
    return bounded("\n\n".join(filter(None, texts)))


def bounded(text: str) -> str:
    """Return a text of at most TEXT_MAX characters and a remark where more was cut."""
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX]}\n[{len(text) - TEXT_MAX} more characters are not recorded]"


def _is_note(text: str) -> bool:
    text = text.strip()
    closes = text.find(_NOTE_CLOSES)  # words after a note are the user's
    return text.startswith(_NOTE_OPENS) and 0 < closes == len(text) - len(_NOTE_CLOSES)
