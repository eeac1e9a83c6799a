"""Pure: what evicted conversations left in numbered files, so that they need not be evaluated again.

Measured on a 1,500-token prompt: evaluating it took 11.7 s, saving its slot 0.02 s, restoring 0.011 s. The
backend names the files, the schedule only numbers them. There are at most twice as many as slots, as one is
tens of megabytes and more; beyond that the one that was used least recently is overwritten. Nothing here is
trusted: some models' files restore to nothing, which the shell sees in the tokens that were reused.
"""

from herdr.pool import chain as chains
from herdr.pool.slots import Conversation, Slot

FILES_PER_SLOT = 2
TOKENS_MIN = 256
"""Half of what llama.cpp evaluates in one step (512 by default): a file would win nothing, and cost a longer
conversation its place."""


class File:
    """One saved content."""

    __slots__ = ("chain", "conversation", "number", "readers", "tokens", "used", "writer")

    def __init__(self, number: int, writer: str, slot: Slot, conversation: Conversation, used: int) -> None:
        self.number = number
        self.conversation = conversation
        self.chain = slot.chain
        self.tokens = slot.tokens
        self.used = used
        """Counts uses of all files; the smallest is the least recently used."""
        self.writer: str | None = writer
        """The call that waits for it to be written; nothing can be restored before."""
        self.readers: set[str] = set()
        """Calls that were told to restore it; until they end it stays."""

    @property
    def is_pinned(self) -> bool:
        """Whether it must not be overwritten now."""
        return self.writer is not None or bool(self.readers)


class Spill:
    """The files of one backend. A conversation has at most one."""

    def __init__(self, slots: int, *, enabled: bool) -> None:
        self._wanted = self._enabled = enabled
        self._files: dict[int, File] = {}
        self._of: dict[Conversation, File] = {}
        self._uses = 0
        self.resize(slots)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_on(self) -> bool:
        """Whether the backend saves and restores."""
        return self._enabled

    def resize(self, slots: int) -> None:
        """Forget all files, and have at most two for each slot."""
        self._files_max = FILES_PER_SLOT * slots
        self.forget()

    def forget(self) -> None:
        """Forget all files: their content belongs to a server that is gone; the new one may restore again."""
        self._files.clear()
        self._of.clear()
        self._enabled = self._wanted

    def turn_off(self) -> None:
        """Neither save nor restore any more: what was restored was not there."""
        self.forget()
        self._enabled = False

    def restore(
        self, call: str, conversation: Conversation, slot: Slot, chain: tuple[bytes, ...]
    ) -> File | None:
        """Return the file that holds more of the prompt than the slot does, and keep it until the call ends."""
        file = self._find(conversation, chain)
        if file is None or chains.shared(file.chain, chain) <= chains.shared(slot.chain, chain):
            return None
        file.readers.add(call)
        self._touch(file)
        if file.conversation != conversation:  # continued by a client without identity under a new number
            del self._of[file.conversation]
            file.conversation = conversation
            self._of[conversation] = file
        return file

    def _find(self, conversation: Conversation, chain: tuple[bytes, ...]) -> File | None:
        if conversation.agent is not None:
            file = self._of.get(conversation)
            return file if file is not None and file.writer is None else None
        if conversation in self._of:
            return None  # it continues a slot, which has all that its file had
        anonymous = [f for f in self._files.values() if f.conversation.agent is None and f.writer is None]
        fitting = [f for f in anonymous if chains.continues(f.chain, chain)]
        return max(fitting, key=lambda f: len(f.chain), default=None)

    def save(self, call: str, slot: Slot) -> int | None:
        """Return the number of the file to save the slot's content to, or None where that is not worth it.

        The file counts when `saved` confirms it. The caller sees to it that no urgent call waits.
        """
        conversation = slot.content_of
        if not self._enabled or conversation is None or slot.tokens < TOKENS_MIN:
            return None
        old = self._of.get(conversation)
        if old is not None and old.chain == slot.chain and old.writer is None:
            self._touch(old)
            return None  # it is there already
        number = old.number if old is not None else self._room()
        if number is None or (old is not None and old.is_pinned):
            return None
        self._drop(number)
        self._uses += 1
        self._files[number] = self._of[conversation] = File(number, call, slot, conversation, self._uses)
        return number

    def _room(self) -> int | None:
        """Return a number for another file: an unused one, else that of the least recently used file."""
        if len(self._files) < self._files_max:
            return next(number for number in range(self._files_max) if number not in self._files)
        loose = [file for file in self._files.values() if not file.is_pinned]
        return min(loose, key=lambda file: file.used).number if loose else None

    def saved(self, number: int, *, ok: bool) -> None:
        """Note that a file is there, or that it is not (or no longer)."""
        file = self._files.get(number)
        if file is None:
            return
        if not ok:
            self._drop(number)
        elif file.writer is not None:
            file.writer = None

    def end(self, call: str) -> None:
        """Note that a call ended: what it restored may go, and what was not confirmed by now never was."""
        for file in list(self._files.values()):
            file.readers.discard(call)
            if file.writer == call:
                self._drop(file.number)

    def _drop(self, number: int) -> None:
        file = self._files.pop(number, None)
        if file is not None:
            del self._of[file.conversation]

    def _touch(self, file: File) -> None:
        self._uses += 1
        file.used = self._uses
