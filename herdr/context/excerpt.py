"""Pure: a text about the project or a session, cut to a budget of tokens: a map, a file's outline, a window."""

import msgspec


class Excerpt(msgspec.Struct, frozen=True):
    """A text that is put before somebody, and what is known of it."""

    text: str
    tokens: int
    tokenizer: str
    """Who counted: `bytes/2.7`, `o200k_base`, or `backend:NAME`."""
    ref: str
    """SHA-256 of the text in hex: equal texts have equal refs, and `GET /v1/blobs/{ref}` has it."""
