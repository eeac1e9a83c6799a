"""Pure: tool calls that a model wrote as text, because its server did not parse them.

Known forms, each only for the name of a tool that the client offered; all else stays text:

- Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`
- Qwen-Coder: `<function=NAME><parameter=KEY>VALUE</parameter></function>`, also inside `<tool_call>`
- Llama 3: `<|python_tag|>{"name": …, "parameters": {…}}`, several parted by `;`, to the end of the answer
- Llama 3 and others: one bare JSON object of that form as the whole answer
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from herdr.pool.protocols.backend.stops import StopMatcher
from herdr.pool.protocols.json_text import is_object

_START_MAX = 256  # of spaces and a first key
BLOCK_MAX = 1024 * 1024  # characters held back while a block is open; a longer one is text

_OPENERS: Mapping[str, str] = {
    "<tool_call>": "</tool_call>",
    "<function=": "</function>",
    "<|python_tag|>": "",
}
_FUNCTION = re.compile(r"\s*<function=([^>\s]+)\s*>(.*?)(?:</function>\s*|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_BARE_KEYS = ("name", "type", "function", "arguments", "parameters", "id")
_BARE = re.compile(r'\s*(?:\{\s*(?:"([^"]*)("\s*:?)?)?)?')  # as much of the beginning as has come
_lenient = json.JSONDecoder(strict=False)  # models write line breaks into strings


class Recovered(msgspec.Struct, frozen=True):
    """A call found in text; `arguments` is the text of a JSON object, `raw` what the model wrote."""

    name: str
    arguments: str
    raw: str


class Recoverer:
    """Parts text that comes in pieces into text and calls; holds back only what may be a call."""

    def __init__(self, tools: Mapping[str, str]) -> None:
        """`tools` has each tool's JSON Schema as text under its name; `""`: not known."""
        self._tools = tools
        self._openers = StopMatcher(tuple(_OPENERS))
        self._start: str | None = ""  # spaces and what may begin a bare object; None: the text has begun
        self._opener: str | None = None  # of the open block; "" of a bare object
        self._block: list[str] = []
        self._size = 0
        self._tail = ""  # the block's last characters, where its closer may have begun

    def feed(self, text: str) -> list[str | Recovered]:
        """Return what is certain of the text so far, in order."""
        out: list[str | Recovered] = []
        while text:
            if self._opener is not None:
                text = self._inside(text, out)
            elif self._start is not None:
                text = self._first(self._start + text)
            else:
                text = self._outside(text, out)
        return out

    def finish(self) -> list[str | Recovered]:
        """Return the rest, when no more text comes; a block that was not closed counts if it is whole."""
        out: list[str | Recovered] = []
        if self._opener is not None:
            block = self._take()
            out += self._calls(block) or [block]
        out += [self._start or "", self._openers.flush()]
        if out[0]:
            self._start = None
        return [item for item in out if item]

    def _first(self, text: str) -> str:
        """Hold an answer back that may be one bare object; return it when it is anything else."""
        found = _BARE.match(text)
        assert found is not None  # it also matches nothing
        key, colon = found[1] or "", found[2] or ""
        if colon.endswith(":") and key in _BARE_KEYS:
            self._begin("", text)
        elif found.end() == len(text) and len(text) < _START_MAX and _may_be_bare(key, bool(colon)):
            self._start = text
            return ""
        self._start = None
        return "" if self._opener is not None else text

    def _outside(self, text: str, out: list[str | Recovered]) -> str:
        matcher = self._openers
        before = matcher.feed(text)
        if before:
            out.append(before)
        if matcher.matched is None:
            return ""
        self._openers = StopMatcher(tuple(_OPENERS))
        self._begin(matcher.matched, "")
        return matcher.rest

    def _begin(self, opener: str, text: str) -> None:
        self._opener, self._block, self._size, self._tail = opener, [opener, text], len(text), ""

    def _take(self) -> str:
        block = "".join(self._block)
        self._opener, self._block, self._tail = None, [], ""
        return block

    def _inside(self, text: str, out: list[str | Recovered]) -> str:
        closer = _OPENERS.get(self._opener or "", "")
        end = (self._tail + text).find(closer) if closer else -1
        if end < 0:
            self._add(text, closer)
            if self._size > BLOCK_MAX:
                out.append(self._take())
            return ""
        taken = end + len(closer) - len(self._tail)
        self._add(text[:taken], closer)
        block = "".join(self._block)
        calls = self._calls(block)
        if calls or not _in_a_string(block.removeprefix(self._opener or "").removesuffix(closer)):
            out += calls or [block]
            self._take()
        else:
            self._tail = ""  # this closer was part of a string
        return text[taken:]

    def _add(self, text: str, closer: str) -> None:
        self._block.append(text)
        self._size += len(text)
        self._tail = (self._tail + text)[1 - len(closer) :] if closer else ""

    def _calls(self, block: str) -> list[str | Recovered]:
        """Return the calls of a block; none unless the whole of it is calls of known tools."""
        inner = block.removeprefix("<tool_call>").removeprefix("<|python_tag|>").removesuffix("</tool_call>")
        functions = inner.lstrip().startswith("<function=")
        found = self._functions(inner) if functions else self._objects(inner)
        return [Recovered(call[0], call[1], "" if i else block) for i, call in enumerate(found)]

    def _objects(self, text: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            if text[at].isspace() or (text[at] == ";" and found):
                at += 1
                continue
            try:
                value, at = _lenient.raw_decode(text, at)
            except (ValueError, RecursionError):
                return []
            call = self._of_object(value)
            if call is None:
                return []
            found.append(call)
        return found

    def _of_object(self, value: Any) -> tuple[str, str] | None:
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            value = value["function"]
        if not isinstance(value, dict):
            return None
        name = value.get("name", value.get("function"))
        arguments = value.get("arguments", value.get("parameters"))
        if isinstance(arguments, str):
            arguments = _decoded(arguments)
        if not isinstance(name, str) or name not in self._tools or not isinstance(arguments, dict):
            return None
        text = _text(arguments)
        return (name, text) if is_object(text) else None  # Python also reads and writes NaN

    def _functions(self, text: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        at = 0
        while match := _FUNCTION.match(text, at):
            name = match[1]
            if name not in self._tools or _PARAMETER.sub("", match[2]).strip():
                return []
            types = _types(self._tools[name])
            pairs = {key: _typed(value, types.get(key)) for key, value in _PARAMETER.findall(match[2])}
            text_of = _text(pairs)
            if not is_object(text_of):
                return []
            found.append((name, text_of))
            at = match.end()
        return [] if text[at:].strip() else found


def _may_be_bare(key: str, whole: bool) -> bool:
    return key in _BARE_KEYS if whole else any(name.startswith(key) for name in _BARE_KEYS)


def _in_a_string(text: str) -> bool:
    """Tell whether JSON that was cut here was cut inside a string."""
    inside = escaped = False
    for character in text if text.lstrip().startswith("{") else "":
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = inside
        elif character == '"':
            inside = not inside
    return inside


def _decoded(text: str) -> Any:
    try:
        return _lenient.decode(text)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _types(schema: str) -> dict[str, Any]:
    """Return the `type` of each property that a schema names."""
    found = _decoded(schema) if schema else None
    properties = found.get("properties") if isinstance(found, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {
        key: value["type"] for key, value in properties.items() if isinstance(value, dict) and "type" in value
    }


def _typed(text: str, type_: Any) -> Any:
    """Return a parameter's value: JSON where its schema wants something else than a string.

    Without a schema only numbers and booleans are read as such: a file's content may well be JSON.
    """
    if type_ == "string" or (isinstance(type_, list) and "string" in type_):
        return text
    value = _decoded(text.strip())
    if type_ is None and not isinstance(value, bool | int | float):
        return text
    return text if value is None and text.strip() != "null" else value
