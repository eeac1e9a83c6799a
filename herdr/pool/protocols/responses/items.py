"""Pure: the items that an answer consists of, each written as a stream of numbered events."""

from typing import Protocol

import msgspec

from herdr.pool.chunk import ToolStart
from herdr.pool.protocols.carried import pack
from herdr.pool.protocols.responses.tools import MappedTool

_encode = msgspec.json.Encoder().encode


class PlainInput(msgspec.Struct):
    """The arguments of a function that stands for a plain-text tool."""

    input: str


_input_decoder = msgspec.json.Decoder(PlainInput)


class Numbering:
    """Writes the events of one stream and counts them: `sequence_number` rises by one from each to the next."""

    def __init__(self) -> None:
        self._next = 0

    def event(self, name: bytes, fields: bytes) -> bytes:
        """Return one event; `fields` is what stands in its object beside the type and the number."""
        return self.finish(event_head(name) + fields)

    def finish(self, begun: bytes) -> bytes:
        """Return an event that begins with an `event_head`, with its number."""
        number = self._next
        self._next = number + 1
        return b'%s,"sequence_number":%d}\n\n' % (begun, number)


def event_head(name: bytes) -> bytes:
    """Return the beginning that all events of one name share."""
    return b'event: %s\ndata: {"type":"%s",' % (name, name)


class Item(Protocol):
    """One item that is being written."""

    done: bytes
    """The whole item as JSON, once it is closed."""

    def open(self) -> bytes:
        """Return the events that begin it."""
        ...

    def feed(self, text: str) -> bytes:
        """Return the event that brings more of it."""
        ...

    def close(self, status: bytes) -> bytes:
        """Return the events that end it; `status` is `completed` or `incomplete`."""
        ...


class WrittenItem:
    """What all items have: an id, a place among the others, and the text that came so far."""

    def __init__(self, numbering: Numbering, id_: str, index: int, delta: bytes, part: bytes = b"") -> None:
        """`delta` is the name of the event that brings more text, `part` says which part it belongs to."""
        self.done = b""
        self._numbering = numbering
        self._id = _encode(id_)
        self._index = index
        self._pieces: list[str] = []
        self._place = b'"item_id":%s,"output_index":%d,%s' % (self._id, index, part)
        self._delta = event_head(delta) + self._place + b'"delta":'

    def feed(self, text: str) -> bytes:
        """See `Item.feed`."""
        self._pieces.append(text)
        return self._numbering.finish(self._delta + _encode(text))

    def _text(self) -> str:
        return "".join(self._pieces)

    def _event(self, name: bytes, fields: bytes) -> bytes:
        return self._numbering.event(name, self._place + fields)

    def _added(self, item: bytes) -> bytes:
        fields = b'"output_index":%d,"item":%s' % (self._index, item)
        return self._numbering.event(b"response.output_item.added", fields)

    def _finished(self, item: bytes) -> bytes:
        self.done = item
        fields = b'"output_index":%d,"item":%s' % (self._index, item)
        return self._numbering.event(b"response.output_item.done", fields)


class MessageItem(WrittenItem):
    """What the model says."""

    def __init__(self, numbering: Numbering, call: str, index: int) -> None:
        part = b'"content_index":0,"logprobs":[],'
        super().__init__(numbering, f"msg_{call}_{index}", index, b"response.output_text.delta", part)
        self._part_place = b'"item_id":%s,"output_index":%d,"content_index":0,"part":' % (self._id, index)

    def open(self) -> bytes:
        """See `Item.open`."""
        return self._added(self._item(b"in_progress", b"")) + self._numbering.event(
            b"response.content_part.added", self._part_place + _text_part(b'""')
        )

    def close(self, status: bytes) -> bytes:
        """See `Item.close`."""
        text = _encode(self._text())
        part = _text_part(text)
        return (
            self._event(b"response.output_text.done", b'"text":' + text)
            + self._numbering.event(b"response.content_part.done", self._part_place + part)
            + self._finished(self._item(status, part))
        )

    def _item(self, status: bytes, content: bytes) -> bytes:
        item = b'{"id":%s,"type":"message","status":"%s","role":"assistant","content":[%s]}'
        return item % (self._id, status, content)


class ReasoningItem(WrittenItem):
    """What the model thinks: shown as a summary, unless it is to be hidden, and packed to come back."""

    def __init__(self, numbering: Numbering, call: str, index: int, hidden: bool) -> None:
        name = b"response.reasoning_summary_text.delta"
        super().__init__(numbering, f"rs_{call}_{index}", index, name, b'"summary_index":0,')
        self._hidden = hidden

    def open(self) -> bytes:
        """See `Item.open`."""
        opened = self._added(self._item(b"", b"null"))
        if self._hidden:
            return opened
        return opened + self._event(
            b"response.reasoning_summary_part.added", b'"part":' + _summary_part(b'""')
        )

    def feed(self, text: str) -> bytes:
        """See `Item.feed`."""
        if not self._hidden:
            return super().feed(text)
        self._pieces.append(text)
        return b""

    def close(self, status: bytes) -> bytes:
        """See `Item.close`; reasoning has no status of its own."""
        packed = _encode(pack(self._text()))
        if self._hidden:
            return self._finished(self._item(b"", packed))
        text = _encode(self._text())
        part = _summary_part(text)
        return (
            self._event(b"response.reasoning_summary_text.done", b'"text":' + text)
            + self._event(b"response.reasoning_summary_part.done", b'"part":' + part)
            + self._finished(self._item(part, packed))
        )

    def _item(self, summary: bytes, content: bytes) -> bytes:
        item = b'{"id":%s,"type":"reasoning","summary":[%s],"encrypted_content":%s}'
        return item % (self._id, summary, content)


class CallItem(WrittenItem):
    """A call of a function; `tool` is there when the model knows it by another name than the client."""

    def __init__(
        self, numbering: Numbering, call: str, index: int, chunk: ToolStart, tool: MappedTool | None
    ) -> None:
        name = b"response.function_call_arguments.delta"
        super().__init__(numbering, f"fc_{call}_{index}", index, name)
        self._name = _encode(chunk.name if tool is None else tool.member)
        self._names = _names(chunk.id, self._name, tool)

    def open(self) -> bytes:
        """See `Item.open`."""
        return self._added(self._item(b"in_progress", b'""'))

    def close(self, status: bytes) -> bytes:
        """See `Item.close`; a call without arguments gets the empty object."""
        only = b"" if self._pieces else self.feed("{}")
        arguments = _encode(self._text())
        fields = b'"name":%s,"arguments":%s' % (self._name, arguments)
        return (
            only
            + self._event(b"response.function_call_arguments.done", fields)
            + self._finished(self._item(status, arguments))
        )

    def _item(self, status: bytes, arguments: bytes) -> bytes:
        item = b'{"id":%s,"type":"function_call","status":"%s",%s,"arguments":%s}'
        return item % (self._id, status, self._names, arguments)


class CustomCallItem(WrittenItem):
    """A call of a plain-text tool: its text is known only when the JSON around it is whole."""

    def __init__(
        self, numbering: Numbering, call: str, index: int, chunk: ToolStart, tool: MappedTool
    ) -> None:
        name = b"response.custom_tool_call_input.delta"
        super().__init__(numbering, f"ctc_{call}_{index}", index, name)
        self._names = _names(chunk.id, _encode(tool.member), tool)

    def open(self) -> bytes:
        """See `Item.open`."""
        return self._added(self._item(b"in_progress", b'""'))

    def feed(self, text: str) -> bytes:
        """See `Item.feed`."""
        self._pieces.append(text)
        return b""

    def close(self, status: bytes) -> bytes:
        """See `Item.close`."""
        text = _encode(_plain_text(self._text()))
        return (
            self._event(b"response.custom_tool_call_input.delta", b'"delta":' + text)
            + self._event(b"response.custom_tool_call_input.done", b'"input":' + text)
            + self._finished(self._item(status, text))
        )

    def _item(self, status: bytes, text: bytes) -> bytes:
        item = b'{"id":%s,"type":"custom_tool_call","status":"%s",%s,"input":%s}'
        return item % (self._id, status, self._names, text)


def _names(call_id: str, name: bytes, tool: MappedTool | None) -> bytes:
    """Return the fields that say what is called, as the client named it."""
    names = b'"call_id":%s,"name":%s' % (_encode(call_id), name)
    if tool is None or not tool.namespace:
        return names
    return names + b',"namespace":' + _encode(tool.namespace)


def _plain_text(arguments: str) -> str:
    """Return the text that a model put into the one argument, or all it wrote if it did not keep to that."""
    if arguments in ("", "{}"):  # no arguments at all, which a backend may write either way
        return ""
    try:
        return _input_decoder.decode(arguments).input
    except (msgspec.DecodeError, RecursionError):
        return arguments


def _text_part(text: bytes) -> bytes:
    return b'{"type":"output_text","text":%s,"annotations":[],"logprobs":[]}' % text


def _summary_part(text: bytes) -> bytes:
    return b'{"type":"summary_text","text":%s}' % text
