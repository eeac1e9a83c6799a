"""Pure: reasoning that a client carries along without seeing it, in the signature of its thinking block."""

import binascii

MARK = "herdr1:"


def seal(text: str) -> str:
    """Return a signature that holds `text`; of an empty text the mark alone."""
    return MARK + binascii.b2a_base64(text.encode(), newline=False).decode()


def unseal(signature: str) -> str:
    """Return the text that `seal` put into a signature; "" when it is another's, or damaged."""
    if not signature.startswith(MARK):
        return ""
    try:
        return binascii.a2b_base64(signature[len(MARK) :].encode(), strict_mode=True).decode()
    except (binascii.Error, UnicodeError):
        return ""
