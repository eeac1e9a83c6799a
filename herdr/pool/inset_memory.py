"""Pure: which blocks stand in which conversations, for as long as there is room to remember it."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping

from herdr.pool.inset import Block

CONVERSATIONS_MAX = 1000  # as many as there are waiting calls; a slot server holds a few dozen
BYTES_MAX = 32 * 1024 * 1024  # of their texts: 32 KiB each, a map of 8,000 tokens with its outlines
BLOCK_BYTES = 200  # what a block takes beside its text
PLAIN_MAX = 10_000  # conversations without blocks, of which nothing but their beginning is kept


class Memory:
    """Forgets the conversation that was continued longest ago; what was forgotten is made anew."""

    def __init__(self, conversations_max: int = CONVERSATIONS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._conversations_max = conversations_max
        self._bytes_max = bytes_max
        self._known: OrderedDict[Hashable, Mapping[bytes, Block]] = OrderedDict()
        self._plain: OrderedDict[bytes, None] = OrderedDict()
        self._bytes = 0

    def find(self, conversation: Hashable) -> Mapping[bytes, Block] | None:
        """Return a conversation's blocks by the keys of their places; None when it is not known."""
        known = self._known.get(conversation)
        if known is not None:
            self._known.move_to_end(conversation)
        return known

    def keep(self, conversation: Hashable, blocks: Mapping[bytes, Block]) -> None:
        """Remember a conversation's blocks in place of those that it had."""
        self.forget(conversation)
        self._known[conversation] = blocks
        self._bytes += _size(blocks)
        while len(self._known) > self._conversations_max or self._bytes > self._bytes_max:
            self.forget(next(iter(self._known)))

    def forget(self, conversation: Hashable) -> None:
        """Remember a conversation no longer; harmless when it is not known."""
        self._bytes -= _size(self._known.pop(conversation, {}))

    def was_plain(self, beginning: bytes) -> bool:
        """Tell whether a conversation that began so has been seen without blocks."""
        return beginning in self._plain

    def note_plain(self, beginning: bytes) -> None:
        """Remember that a conversation that began so had no block."""
        self._plain[beginning] = None
        self._plain.move_to_end(beginning)
        if len(self._plain) > PLAIN_MAX:
            self._plain.popitem(last=False)


def _size(blocks: Mapping[bytes, Block]) -> int:
    return sum(BLOCK_BYTES + block.size for block in blocks.values())
