"""Pure: a follower's place in the log as text, and back. Clients treat it as opaque."""

import re
from typing import NamedTuple

from herdr.errors import InvalidInput
from herdr.event import Positions

SEQ_MAX = 2**63 - 1

_CURSOR = re.compile(r"([0-9a-f]{8}):(\d{1,19})-(\d{1,19})-(\d{1,19})", re.ASCII)
_PLAIN = re.compile(r"\d{1,19}", re.ASCII)


class Cursor(NamedTuple):
    """Positions in one log; `epoch` is None for a plain `seq`, which is meant for whatever log is there."""

    epoch: str | None
    positions: Positions


def format_cursor(epoch: str, positions: Positions) -> str:
    """Render a cursor: `<epoch>:<p0>-<p1>-<p2>`."""
    return f"{epoch}:{positions[0]}-{positions[1]}-{positions[2]}"


def parse_cursor(text: str) -> Cursor:
    """Read a cursor or a plain `seq`; raises InvalidInput when it is neither."""
    if _PLAIN.fullmatch(text):
        seq = int(text)
        found = Cursor(None, (seq, seq, seq))
    elif cursor := _CURSOR.fullmatch(text):
        found = Cursor(cursor[1], (int(cursor[2]), int(cursor[3]), int(cursor[4])))
    else:
        raise InvalidInput(
            f"{text[:80]!r} is not a cursor; use one that the gateway gave you (an SSE id, or a page's "
            "`cursor`), a plain seq, or 0 for the oldest retained event",
            "bad_cursor",
        )
    if max(found.positions) > SEQ_MAX:
        raise InvalidInput(f"the cursor {text!r} lies beyond the largest seq there can be", "bad_cursor")
    return found
