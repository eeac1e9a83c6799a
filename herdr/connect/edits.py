"""Pure: what connecting changes in one file, and how that is taken back when the file was changed since."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from herdr.connect import hook_items, json_edit, json_text, toml_text
from herdr.connect.json_text import Unreadable

ENDPOINT = "/mcp"


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change.

    `put` sets the value at a path of keys, `missing` only where nothing is; `server` sets an MCP server of our name,
    and refuses in place of another program's; `item` and `hook` add to a list; `tables` writes a server as TOML.
    """

    kind: Literal["put", "missing", "server", "item", "hook", "tables"]
    path: tuple[str, ...] = ()
    value: Any = None
    address: str = ""
    """Where a hook goes to: what tells ours from others."""

    def place(self) -> tuple[str, tuple[str, ...], str]:
        """Return what it has in common with a later edit that takes its place."""
        return self.kind, self.path, self.address


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits in it. Raises Unreadable."""
    for edit in edits:
        text = _apply(text, edit)
    return text


def _apply(text: str, edit: Edit) -> str:
    if edit.kind == "server":
        node = json_edit.find(text, edit.path)
        _check_ours(node and node.plain(), edit.path)
    if edit.kind in ("put", "server"):
        return json_edit.put(text, edit.path, edit.value)
    if edit.kind == "missing":
        return text if json_edit.find(text, edit.path) else json_edit.put(text, edit.path, edit.value)
    if edit.kind == "item":
        return text if _has_item(text, edit) else json_edit.append(text, edit.path, edit.value)
    if edit.kind == "hook":
        return hook_items.with_hook(text, edit.path, edit.value, edit.address)
    _check_ours(toml_text.value_at(text, edit.path), edit.path)
    return toml_text.with_tables(text, str(edit.value))


def _check_ours(server: Any, path: Sequence[str]) -> None:
    """Refuse to replace a server that is not at an address of a gateway, such as another program of our name."""
    entries = server.values() if isinstance(server, Mapping) else ()
    if server is not None and not any(isinstance(e, str) and e.endswith(ENDPOINT) for e in entries):
        raise Unreadable(f"{'.'.join(path)} is there already and is something else: give that another name")


def in_effect(text: str, edits: Sequence[Edit]) -> bool:
    """Tell whether everything that the edits write is in the text; an object may have more in it by now."""
    return all(_holds(text, edit) for edit in edits)


def _holds(text: str, edit: Edit) -> bool:
    if edit.kind == "tables":
        return toml_text.holds(text, str(edit.value))
    if edit.kind == "item":
        return _has_item(text, edit)
    if edit.kind == "hook":
        return hook_items.has_hook(text, edit.path, edit.value, edit.address)
    node = json_edit.find(text, edit.path)
    if node is None or edit.kind == "missing":
        return node is not None
    there = node.plain()
    if isinstance(edit.value, Mapping) and isinstance(there, Mapping):
        return edit.value.items() <= there.items()
    return bool(there == edit.value)


def removed(text: str, edits: Sequence[Edit], original: str) -> str:
    """Return the text without the edits; what they replaced comes back from the original. Raises Unreadable.

    Lists and objects that the edits made go with their last member, what is `missing` when nothing else is left.
    A value of ours that was changed since is the user's; an object is ours as long as it has something of ours.
    """
    for edit in reversed(edits):
        text = _remove(text, edit, original)
        if edit.kind == "tables":
            continue
        made = edit.path if edit.kind in ("item", "hook") else edit.path[:-1]
        for depth in range(len(made), 0, -1):
            if json_edit.find(original, made[:depth]) is None:
                text = json_edit.drop_empty(text, made[:depth])
    return _without_fillers(text, [edit for edit in edits if edit.kind == "missing"], original)


def _remove(text: str, edit: Edit, original: str) -> str:
    if edit.kind in ("put", "server"):
        return _put_back(text, edit, original)
    if edit.kind == "item":
        return text if _has_item(original, edit) else _without_item(text, edit)
    if edit.kind == "hook":
        return hook_items.without_hooks(text, edit.path, edit.address)
    if edit.kind == "tables":
        text = toml_text.without_tables(text, str(edit.value))
        old = toml_text.tables_of(original, str(edit.value))
        return f"{text}\n{old}" if old else text
    return text


def _put_back(text: str, edit: Edit, original: str) -> str:
    before, now = json_edit.find(original, edit.path), json_edit.find(text, edit.path)
    if now is None or not _is_ours(now.plain(), edit.value):
        return text
    if before is None:
        return json_edit.drop(text, edit.path)
    return text[: now.start] + original[before.start : before.end] + text[now.end :]


def _is_ours(now: Any, written: Any) -> bool:
    if isinstance(written, Mapping) and isinstance(now, Mapping):
        return any(now.get(key) == value for key, value in written.items())
    return bool(now == written)


def _without_fillers(text: str, edits: Sequence[Edit], original: str) -> str:
    root = json_edit.find(text, ()) if edits else None
    fillers = {edit.path[0] for edit in edits if json_edit.find(original, edit.path) is None}
    if root is None or any(key not in fillers for key, _, _ in root.members):
        return text
    for key in fillers:
        text = json_edit.drop(text, (key,))
    return text


def _has_item(text: str, edit: Edit) -> bool:
    array = json_edit.find(text, edit.path)
    return array is not None and any(node.plain() == edit.value for node in array.items)


def _without_item(text: str, edit: Edit) -> str:
    array = json_edit.find(text, edit.path)
    places = [n for n, node in enumerate(array.items) if node.plain() == edit.value] if array else []
    return json_edit.cut(text, array, places[-1]) if array and places else text


def check(text: str, is_toml: bool) -> None:
    """Raise Unreadable when a text is not what its program reads."""
    if is_toml:
        toml_text.parsed(text)
    else:
        json_text.read(text)
