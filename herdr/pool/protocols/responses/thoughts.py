"""Pure: the model's reasoning, carried through a client that hands it back.

What the API calls encrypted is not: the client sees the same text, and may write what it likes into its own
history. It is only packed, so that it comes back byte for byte whatever a client does with the summary.
"""

import base64
import binascii

MARK = "herdr1:"


def pack(text: str) -> str:
    """Return the `encrypted_content` that carries a text."""
    return MARK + base64.b64encode(text.encode()).decode()


def unpack(content: str | None) -> str | None:
    """Return the text that `pack` was given; None for what another server packed."""
    if content is None or not content.startswith(MARK):
        return None
    try:
        return base64.b64decode(content[len(MARK) :], validate=True).decode()
    except (binascii.Error, ValueError):
        return None
