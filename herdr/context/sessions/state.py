"""Pure: what is kept of a session, and within which bounds. Encodable with msgspec, so that a store can keep it.

Every part is bounded, so that the state of a session of any length has a most: some 900 KiB as MessagePack, in
practice 3 to 60 KiB. What goes first where a bound is reached stands beside the bound. Decisions are never
dropped: beyond FULL_MAX the oldest are kept in one line, beyond that as the number of their message, which the store
still has.
"""

from typing import Literal

import msgspec

from herdr.context.sessions.message import Call, Role
from herdr.context.sessions.tools import Action

FULL_MAX = 96  # decisions with all that is known of them; a long day's session makes about fifty
SHORT_MAX = 512  # older ones in one line
SHORT_TEXT_MAX = 90  # characters of that line
NOTED_BYTES_MAX = (
    262_144  # older ones yet as numbers of messages, 1 to 5 bytes each; beyond it they are counted
)
FILES_MAX = 256  # the ones touched longest ago go first
QUESTIONS_MAX = 32  # the oldest goes first
OUTCOMES_MAX = 32  # the oldest goes first
ERRORS_MAX = 32  # the oldest goes first
SOURCES_MAX = 16  # tools that took part; later ones are not named
CALLS_MAX = 32  # calls whose answer has not come; the oldest goes first

Trouble = Literal["check", "command", "edit", "reported"]


class Decision(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One decision in full."""

    text: str
    reason: str
    about: str
    """The question or proposal that it answers; empty where it stands by itself."""
    files: tuple[str, ...]
    seq: int
    time_us: int
    source: str
    by: Role
    superseded: int = 0
    """The `seq` of the later decision that takes its place."""
    again: int = 0
    """The `seq` at which it was last said again."""
    options: tuple[str, ...] = ()
    """The ways that it chose among, where they stood in a list."""
    chosen: tuple[str, ...] = ()
    """The words of what it is for, to know what replaces it."""
    refused: tuple[str, ...] = ()
    """Those of what it turns down."""


class OldDecision(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One decision in short."""

    text: str
    seq: int
    superseded: int = 0


class File(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One file that was touched."""

    path: str
    actions: tuple[Action, ...]
    """Each once, in the order in which they first happened."""
    seq: int
    time_us: int


class Question(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One question that nobody has answered yet."""

    text: str
    seq: int
    time_us: int
    source: str
    by: Role


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Something that came about."""

    text: str
    seq: int
    time_us: int
    source: str
    key: str = ""
    """A later outcome of the same key takes its place: the last run of the tests, not all of them."""


class Error(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An error that nothing has shown to be over."""

    text: str
    seq: int
    time_us: int
    source: str
    trouble: Trouble
    subject: str
    """What has to go well for it to be over: a test, a command, a file."""
    targets: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Tests that failed."""
    count: int = 0
    """The session's number of messages when it came up."""


class More(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How many of each went because a bound was reached."""

    files: int = 0
    questions: int = 0
    outcomes: int = 0
    errors: int = 0


class Summary(msgspec.Struct, array_like=True, frozen=True):
    """What is kept of a session up to the message `seq`."""

    messages: int = 0
    seq: int = 0
    first_us: int = 0
    last_us: int = 0
    sources: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    """The newest FULL_MAX, oldest first."""
    older: tuple[OldDecision, ...] = ()
    noted: bytes = b""
    """The messages of still older ones: differences of their `seq`, as varints (7 bits a byte, low ones first)."""
    noted_count: int = 0
    noted_last: int = 0
    files: tuple[File, ...] = ()
    """The one touched last is the last."""
    questions: tuple[Question, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    errors: tuple[Error, ...] = ()
    more: More = More()
    asked: tuple[str, ...] = ()
    """What the assistant last laid before the user."""
    options: tuple[str, ...] = ()
    """The ways that it listed then, each with its label: `B: a second file`."""
    user_seq: int = 0
    """The user's last message."""
    calls: tuple[Call, ...] = ()
    """Calls that have not been answered."""

    @property
    def decided(self) -> int:
        """How many decisions there are, in whatever form."""
        return len(self.decisions) + len(self.older) + self.noted_count
