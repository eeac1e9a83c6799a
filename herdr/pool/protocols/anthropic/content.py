"""Pure: Anthropic's content blocks → the parts of a message. Kinds that nobody here can use are dropped.

Kinds: https://docs.anthropic.com/en/api/messages
"""

import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import UNSET, Raw

from herdr.pool.protocols.carried import unpack
from herdr.pool.protocols.reading import name_at, object_text, refuse, text_at
from herdr.pool.request import Image, Part, Text, Thinking, ToolResult, ToolUse

NESTING_MAX = 8  # lists in lists of a tool's result; clients send one, seldom two

Plain = Text | Image


class Inner(msgspec.Struct):
    """What a block may hold wherever it stands. Only what its kind needs is looked at."""

    type: object = UNSET
    text: object = UNSET
    source: object = UNSET
    content: object = UNSET
    title: object = None
    context: object = None
    tool_name: object = UNSET


class Block(Inner):
    """A block of a message; `input` stays the client's own JSON text."""

    id: object = UNSET
    name: object = UNSET
    input: Raw = Raw(b"{}")
    tool_use_id: object = UNSET
    is_error: object = None
    thinking: object = ""
    signature: object = ""


def parts_of(content: str | Sequence[Block], role: str, path: str) -> tuple[Part, ...]:
    """Return a message's parts in the client's order; `path` is where the content stands."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: list[Part] = []
    for index, block in enumerate(content):
        parts += _parts(block, role, f"{path}[{index}]")
    return tuple(parts)


def _parts(block: Block, role: str, path: str) -> Sequence[Part]:
    kind = name_at(block.type, f"{path}.type")
    if kind not in _OF_MESSAGES:
        return _plain(block, kind, path)
    only, read = _OF_MESSAGES[kind]
    if role != only:
        raise refuse(
            f"{path}.type", f"A block of type {kind} belongs in a message of role {only}, not {role}."
        )
    return read(block, path)


def _tool_use(block: Block, path: str) -> Sequence[Part]:
    arguments = object_text(block.input, f"{path}.input")
    return [ToolUse(name_at(block.id, f"{path}.id"), name_at(block.name, f"{path}.name"), arguments)]


def _tool_result(block: Block, path: str) -> Sequence[Part]:
    if block.is_error not in (None, True, False):
        raise refuse(f"{path}.is_error", "Expected true or false.")
    name = name_at(block.tool_use_id, f"{path}.tool_use_id")
    return [ToolResult(name, tuple(_plains(block.content, f"{path}.content")), block.is_error is True)]


def _thinking(block: Block, path: str) -> Sequence[Part]:
    text = text_at(block.thinking, f"{path}.thinking")
    if not text and isinstance(block.signature, str):
        text = unpack(block.signature) or ""
    return [Thinking(text)] if text else []


def _plains(content: object, path: str) -> Iterator[Plain]:
    """Yield what stands in a block's own content: a string, a list of blocks, or lists of such."""
    for leaf, place in _leaves(content, path, 0):
        if isinstance(leaf, str):
            yield from _text_parts(leaf)
        elif isinstance(leaf, dict):
            inner = msgspec.convert(leaf, Inner)
            yield from _plain(inner, name_at(inner.type, f"{place}.type"), place)
        elif leaf is not None and leaf is not UNSET:
            raise refuse(place, "Expected a string or a list of content blocks, each an object with a type.")


def _leaves(content: object, path: str, depth: int) -> Iterator[tuple[object, str]]:
    if not isinstance(content, list):
        yield content, path
        return
    if depth == NESTING_MAX:
        raise refuse(path, f"Lists are nested more than {NESTING_MAX} deep; send one list of blocks.")
    for index, item in enumerate(content):
        yield from _leaves(item, f"{path}[{index}]", depth + 1)


def _plain(block: Inner, kind: str, path: str) -> Sequence[Plain]:
    read = _ANYWHERE.get(kind)
    return read(block, path) if read else ()


def _text_parts(text: str) -> Sequence[Plain]:
    return (Text(text),) if text else ()


def _text(block: Inner, path: str) -> Sequence[Plain]:
    return _text_parts(text_at(block.text, f"{path}.text"))


def _image(block: Inner, path: str) -> Sequence[Plain]:
    source, kind = _source(block, path)
    path = f"{path}.source"
    if kind == "base64":
        media_type = name_at(source.get("media_type", UNSET), f"{path}.media_type")
        return [Image(media_type, name_at(source.get("data", UNSET), f"{path}.data"))]
    if kind == "url":
        return [Image(url=name_at(source.get("url", UNSET), f"{path}.url"))]
    return [Text(f"[an image was here; images of source {kind!r:.80} cannot be read by this gateway]")]


def _document(block: Inner, path: str) -> Sequence[Plain]:
    source, kind = _source(block, path)
    path = f"{path}.source"
    about = [text for text in (block.title, block.context) if isinstance(text, str) and text]
    heading = Text("".join(f"{line}\n" for line in about))
    if kind == "content":
        body: Sequence[Plain] = list(_plains(source.get("content"), f"{path}.content"))
    elif kind == "text":
        body = _text_parts(text_at(source.get("data", UNSET), f"{path}.data"))
    elif kind == "base64" and str(source.get("media_type")).startswith("text/"):
        body = _text_parts(_decoded(source.get("data", UNSET), f"{path}.data"))
    else:
        body = [Text(_unreadable(source, kind))]
    return [heading, *body] if about else body


def _unreadable(source: Mapping[str, object], kind: str) -> str:
    place = source.get("url") or source.get("file_id") or source.get("media_type") or kind
    return f"[a document was here; its content cannot be read by this gateway: {place!s:.200}]"


def _decoded(data: object, path: str) -> str:
    try:
        return binascii.a2b_base64(text_at(data, path)).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise refuse(path, f"It is not base64: {error}; encode the document's bytes again.") from None


def _source(block: Inner, path: str) -> tuple[Mapping[str, object], str]:
    if not isinstance(block.source, dict):
        raise refuse(f"{path}.source", "Expected an object with a type, such as base64 or url.")
    return block.source, name_at(block.source.get("type", UNSET), f"{path}.source.type")


def _search_result(block: Inner, path: str) -> Sequence[Plain]:
    about = [text for text in (block.title, block.source) if isinstance(text, str) and text]
    return [Text("".join(f"{line}\n" for line in about)), *_plains(block.content, f"{path}.content")]


def _tool_reference(block: Inner, path: str) -> Sequence[Plain]:
    return [Text(f"[the tool {name_at(block.tool_name, f'{path}.tool_name')} can be called now]")]


_ANYWHERE: Mapping[str, Callable[[Inner, str], Sequence[Plain]]] = MappingProxyType(
    {
        "text": _text,
        "image": _image,
        "document": _document,
        "search_result": _search_result,
        "tool_reference": _tool_reference,
    }
)
_OF_MESSAGES: Mapping[str, tuple[str, Callable[[Block, str], Sequence[Part]]]] = MappingProxyType(
    {
        "tool_use": ("assistant", _tool_use),
        "tool_result": ("user", _tool_result),
        "thinking": ("assistant", _thinking),
    }
)
"""Kind → the role in whose messages it may stand, and its reader."""
