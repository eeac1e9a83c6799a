"""Pure: what connecting changes in one file, and how that is taken back when the file was changed since."""

import json
import tomllib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from herdr.connect import json_text
from herdr.connect.json_text import Unreadable
from herdr.connect.toml_text import with_block, without_block


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: `put` a value at a path of keys, `append` one to a list, or write a `block` of TOML."""

    kind: Literal["put", "append", "block"]
    path: tuple[str, ...] = ()
    value: Any = None
    mark: str = ""
    """What tells our items of a list from others."""


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits in it. Raises Unreadable."""
    for edit in edits:
        if edit.kind == "put":
            text = json_text.put(text, edit.path, edit.value)
        elif edit.kind == "append":
            text = json_text.append(text, edit.path, edit.value, edit.mark)
        else:
            text = with_block(text, str(edit.value))
    return text


def removed(text: str, edits: Sequence[Edit], original: str) -> str:
    """Return the text without the edits; what they replaced comes back from the original. Raises Unreadable.

    Lists and objects that the edits made are removed with their last member.
    """
    for edit in reversed(edits):
        if edit.kind == "block":
            text = without_block(text)
            continue
        if edit.kind == "append":
            text = json_text.drop_items(text, edit.path, edit.mark)
            emptied: Sequence[str] = edit.path
        else:
            text = _put_back(text, edit, original)
            emptied = edit.path[:-1]
        for depth in range(len(emptied), 0, -1):
            if json_text.find(original, emptied[:depth]) is None:
                text = json_text.drop_empty(text, emptied[:depth])
    return text


def _put_back(text: str, edit: Edit, original: str) -> str:
    before, now = json_text.find(original, edit.path), json_text.find(text, edit.path)
    if now is None or now.plain() != edit.value:
        return text  # removed or changed since: it is the user's
    if before is None:
        return json_text.drop(text, edit.path)
    return json_text.put(text, edit.path, before.plain())


def check(text: str, is_toml: bool) -> None:
    """Raise Unreadable when a text is not what its program reads."""
    if not is_toml:
        json_text.read(text)
        return
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from None


def shown(value: Any) -> str:
    """Return a value as JSON, for files that are ours alone."""
    return json.dumps(value, indent=2) + "\n"
