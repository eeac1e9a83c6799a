"""Pure: outcomes of the lock table as events of the log, and back: the table is the fold of these."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from herdr.locks.lock import Expired, Granted, Lock, Outcome, Released, Renewed

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Told(NamedTuple):
    """What an event of the gateway says, and to whom beside those that the routing table names."""

    type: str
    data: Mapping[str, Any]
    to: tuple[str, ...] = ()


def event_of(outcome: Outcome) -> Told:
    """Return the event that an outcome is committed as."""
    lock = outcome.lock
    about = {"lock": lock.lock, "owner": lock.owner, "token": lock.token, "paths": lock.paths}
    match outcome:
        case Granted():
            return Told("lock.granted", _whole(lock))
        case Renewed(_, _, ttl_s):
            return Told("lock.renewed", {**about, "ttl_s": ttl_s})
        case Released(_, reason, by):
            forced = (lock.owner,) if by != lock.owner else ()
            return Told("lock.released", {**about, "reason": reason, "by": by}, forced)
        case Expired(_, saw):
            return Told("lock.expired", {**about, "saw": saw}, (lock.owner,))


def deadlock_event(cycle: tuple[str, ...]) -> Told:
    """Return the event that tells the others of a cycle of waits that somebody would have closed."""
    closer = cycle[0]
    others = tuple(dict.fromkeys(owner for owner in cycle if owner != closer))
    return Told("lock.deadlock", {"cycle": cycle, "closed_by": closer}, others)


def outcome_of(type_: str, data: bytes, seq: int, held: Mapping[str, Lock]) -> Outcome | None:
    """Return the outcome that a stored event tells of; None for one that changes nothing.

    The gateway starts from stored locks and needs no replay; this is how one sees that the log alone says the
    same. `held` are the locks as the earlier events left them. Raises msgspec.ValidationError when the event is not
    one of this module's.
    """
    if type_ == "lock.granted":
        fields = {**_decode(data), "renewed": seq}
        return Granted(msgspec.convert(fields, Lock))
    if type_ not in ("lock.renewed", "lock.released", "lock.expired"):
        return None
    told = _decode(data)
    lock = held.get(told["lock"])
    if lock is None:
        return None
    if type_ == "lock.renewed":
        return Renewed(lock, seq, told["ttl_s"])
    if type_ == "lock.released":
        return Released(lock, told["reason"], told["by"])
    return Expired(lock, told["saw"])


def _whole(lock: Lock) -> dict[str, Any]:
    fields = msgspec.structs.asdict(lock)
    del fields["renewed"], fields["expired"]  # the event's own seq, and not yet
    return fields
