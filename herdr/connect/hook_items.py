"""Pure: which of the hooks in a client's list are ours: those that go to our address, and nobody else's.

A list holds handlers, or groups of handlers under `hooks`. A group that a person has put one of theirs into stays.
"""

import re
from collections.abc import Mapping
from typing import Any

from herdr.connect import json_edit
from herdr.connect.json_text import Node

GROUP = "hooks"
_SENDS = ("url", "command")


def with_hook(text: str, path: tuple[str, ...], hook: Any, address: str) -> str:
    """Return the text with the hook in the list at a path, once, in place of an earlier one of the same address."""
    items = _items(text, path)
    ours = [node for node in items if is_ours(node.plain(), address)]
    if len(ours) == 1 and not _mixed(items, address):
        return text if ours[0].plain() == hook else json_edit.replace(text, ours[0], hook)
    return json_edit.append(without_hooks(text, path, address), path, hook)


def without_hooks(text: str, path: tuple[str, ...], address: str) -> str:
    """Return the text without the hooks for an address in the list at a path."""
    while True:
        array = json_edit.find(text, path)
        if array is None:
            return text
        found = next(((n, node) for n, node in enumerate(array.items) if _has_ours(node, address)), None)
        if found is None:
            return text
        place, node = found
        group = node.get(GROUP) if node.kind == "object" else None
        if group is not None and not is_ours(node.plain(), address):
            inner = next(n for n, h in enumerate(group.items) if is_ours(h.plain(), address))
            text = json_edit.cut(text, group, inner)
        else:
            text = json_edit.cut(text, array, place)


def has_hook(text: str, path: tuple[str, ...], hook: Any, address: str) -> bool:
    """Tell whether the hook is in the list at a path as we write it, and no other of ours."""
    items = _items(text, path)
    return [node.plain() for node in items if _has_ours(node, address)] == [hook]


def is_ours(hook: Any, address: str) -> bool:
    """Tell whether a handler goes to the address, or all of a group."""
    if not isinstance(hook, Mapping):
        return False
    group = hook.get(GROUP)
    if isinstance(group, list):
        return bool(group) and all(is_ours(handler, address) for handler in group)
    sent = [hook[name] for name in _SENDS if isinstance(hook.get(name), str)]
    return any(re.search(rf"(?<![^\s'\"]){re.escape(address)}(?![^\s'\"])", text) for text in sent)


def _items(text: str, path: tuple[str, ...]) -> tuple[Node, ...]:
    array = json_edit.find(text, path)
    return array.items if array is not None else ()


def _has_ours(node: Node, address: str) -> bool:
    hook = node.plain()
    group = hook.get(GROUP) if isinstance(hook, Mapping) else None
    return is_ours(hook, address) or (
        isinstance(group, list) and any(is_ours(handler, address) for handler in group)
    )


def _mixed(items: tuple[Node, ...], address: str) -> bool:
    return any(_has_ours(node, address) and not is_ours(node.plain(), address) for node in items)
