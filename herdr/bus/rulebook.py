"""The rules in force: the configuration file's and those set over the API, which win and survive restarts."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from herdr.bus.route import RoutingTable, check_rule
from herdr.config import RouteRule
from herdr.errors import InvalidInput, NotFound

RULES_MAX = 1000  # a table that people read; rules without conditions are judged once a type


class _Stored(msgspec.Struct, omit_defaults=True):
    """What the store keeps by name: a rule, or the file's rule that was deleted over the API."""

    rule: RouteRule | None = None
    deleted: RouteRule | None = None


class Listed(NamedTuple):
    """One rule in force and where it came from."""

    rule: RouteRule
    origin: Literal["file", "api"]


_decode = msgspec.json.Decoder(_Stored).decode
_encode = msgspec.json.Encoder().encode


class Rulebook:
    """Rules by name. A rule set over the API takes the place of the file's rule of that name.

    A file's rule that was deleted over the API stays deleted until the file says something else there.
    """

    def __init__(self, stored: Mapping[str, bytes], file_rules: Iterable[RouteRule] = ()) -> None:
        self._stored = {name: _decode(raw) for name, raw in stored.items()}
        self._file: dict[str, RouteRule] = {}
        self.table = RoutingTable()
        self.load_file(file_rules)

    def load_file(self, rules: Iterable[RouteRule]) -> None:
        """Take over the file's rules, all or (InvalidInput) none."""
        named = {rule.name or f"file-{place}": rule for place, rule in enumerate(rules, 1)}
        for rule in named.values():
            check_rule(rule)
        self._file = {name: msgspec.structs.replace(rule, name=name) for name, rule in named.items()}
        self._rebuild()

    def listed(self) -> list[Listed]:
        """Return the rules in force, the file's first."""
        listed = []
        for name, rule in self._file.items():
            stored = self._stored.get(name)
            if stored is None or (stored.rule is None and stored.deleted != rule):
                listed.append(Listed(rule, "file"))
        listed.extend(Listed(s.rule, "api") for s in self._stored.values() if s.rule is not None)
        return listed

    def get(self, name: str) -> Listed:
        """Return one rule in force; raises NotFound."""
        for listed in self.listed():
            if listed.rule.name == name:
                return listed
        raise NotFound(f"no route is called {name!r}; GET /v1/routes lists those there are", "unknown_route")

    def check_put(self, name: str, rule: RouteRule) -> RouteRule:
        """Return the rule under this name, ready to store; raises InvalidInput."""
        if rule.name not in ("", name):
            raise InvalidInput(f"the body names the rule {rule.name!r}, the address {name!r}", "bad_rule")
        check_rule(rule)
        if len(self._stored) >= RULES_MAX and name not in self._stored:
            raise InvalidInput(f"there are {RULES_MAX} rules already; delete some", "too_many_rules")
        return msgspec.structs.replace(rule, name=name)

    def stored_form(self, name: str, rule: RouteRule | None) -> bytes | None:
        """Return what the store should keep for a rule that is set (or, with None, deleted)."""
        if rule is not None:
            return _encode(_Stored(rule))
        deleted = self._file.get(name)
        return None if deleted is None else _encode(_Stored(deleted=deleted))

    def apply(self, name: str, stored: bytes | None) -> None:
        """Put a committed change into force."""
        if stored is None:
            self._stored.pop(name, None)
        else:
            self._stored[name] = _decode(stored)
        self._rebuild()

    def _rebuild(self) -> None:
        self.table = RoutingTable(listed.rule for listed in self.listed())

    def timeout_max_ms(self) -> int:
        """Return the longest time that any rule in force gives a delivery."""
        return max((rule.timeout_ms or 0 for rule in self.table.rules), default=0)

    def knows_target(self, name: str) -> bool:
        """Tell whether a rule in force sends to this target."""
        return any(rule.target == name for rule in self.table.rules)
