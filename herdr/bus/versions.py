"""Pure: the newest version of each (workspace, subject), a fold of the log that reads no clock.

A version is the `seq` of the newest `file.changed` or `change.*` about the subject. Who publishes with an
older `based_on`, while another source made the newer version, is stale.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from herdr.event import Draft

SUBJECTS_MAX = 200_000  # about 60 MiB; whoever bases work on a file untouched for that long is not stale


HASH_MAX = 256  # characters; SHA-512 in hex with a prefix fits. A longer one would be kept for every subject

FORGOTTEN_TAKEN_MAX = 256  # with one batch; each is one row to delete


class Version(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The newest change of one subject."""

    seq: int
    source: str
    accepted_us: int
    hash: str | None = None


class _Payload(msgspec.Struct, gc=False):
    hash: Annotated[str, Meta(max_length=HASH_MAX)] | None = None


_decode_payload = msgspec.json.Decoder(_Payload).decode
_decode_version = msgspec.json.Decoder(Version).decode


def makes_version(draft: Draft) -> bool:
    """Tell whether an event advances its subject's version."""
    return draft.subject is not None and (draft.type == "file.changed" or draft.type.startswith("change."))


def content_hash(draft: Draft) -> str | None:
    """Return `data.hash` where the payload is an object that has one."""
    try:
        return _decode_payload(draft.data).hash
    except (msgspec.DecodeError, RecursionError):
        return None


class Versions:
    """(workspace, subject) → version, bounded; the subject that changed longest ago is forgotten first."""

    def __init__(self) -> None:
        self._forgotten: list[tuple[str, str]] = []
        self._newest: OrderedDict[tuple[str, str], Version] = OrderedDict()

    def get(self, workspace: str, subject: str) -> Version | None:
        """Return the newest known version."""
        return self._newest.get((workspace, subject))

    def set(self, workspace: str, subject: str, version: Version) -> None:
        """Record a newer version; past the bound the subject that changed longest ago is forgotten for it."""
        key = (workspace, subject)
        self._newest[key] = version
        self._newest.move_to_end(key)
        if len(self._newest) > SUBJECTS_MAX:
            self._forgotten.append(self._newest.popitem(last=False)[0])

    def restore(self, stored: Mapping[str, bytes]) -> None:
        """Take over the stored versions, in the order in which the subjects changed."""
        found = [(key, _decode_version(raw)) for key, raw in stored.items()]
        for key, version in sorted(found, key=lambda pair: pair[1].seq):
            workspace, _, subject = key.partition("\0")
            self.set(workspace, subject, version)

    def take_forgotten(self) -> list[tuple[str, str]]:
        """Return, once, some of the subjects that were forgotten, to be removed from the store too."""
        taken, self._forgotten = self._forgotten[:FORGOTTEN_TAKEN_MAX], self._forgotten[FORGOTTEN_TAKEN_MAX:]
        return taken

    def __len__(self) -> int:
        return len(self._newest)
