"""Pure: the model's reasoning, carried through a client that hands it back.

It stands where the client's own protocol has an opaque field (Anthropic's `signature`, the Responses API's
`encrypted_content`). It is not secret: the client sees the same text, and may write what it likes into its own
history. It is only packed, so that it comes back byte for byte whatever a client does with what it shows.
"""

import binascii

MARK = "herdr1:"


def pack(text: str) -> str:
    """Return what carries a text; of an empty text the mark alone."""
    return MARK + binascii.b2a_base64(text.encode(), newline=False).decode()


def unpack(content: str) -> str | None:
    """Return the text that `pack` was given; None for what another server wrote, or what is damaged."""
    if not content.startswith(MARK):
        return None
    try:
        return binascii.a2b_base64(content[len(MARK) :].encode(), strict_mode=True).decode()
    except (binascii.Error, UnicodeError):
        return None
