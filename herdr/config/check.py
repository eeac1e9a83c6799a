"""A tree of items against the structs: builds the values, or says everything that is wrong.

`msgspec.convert` stops at the first error and knows no positions; this walks the same type information
(`msgspec.inspect`) and goes on.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import NODEFAULT, inspect

from herdr.config.document import Item
from herdr.config.problem import Problem, did_you_mean, got, nearest

_BAD: Final = object()  # stands for a value that was refused; the reason is already in the list
_NO_EXTRA: Mapping[str, Any] = MappingProxyType({})
DEFAULT_ORIGIN = "default"


@runtime_checkable
class _Checked(Protocol):
    """A struct that can say more about itself than its types do."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field path, what is wrong)."""
        ...


def below(path: str, part: str | int) -> str:
    """Return the path of a key or of an item of a list: `bus.retention`, `routes[0]`."""
    if isinstance(part, int):
        return f"{path}[{part}]"
    return f"{path}.{part}" if path and part else path or part


def plain(kind: inspect.Type) -> inspect.Type:
    """Return the type itself, without its description and, for an optional one, without None."""
    while True:
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        elif isinstance(kind, inspect.UnionType) and kind.includes_none and len(kind.types) == 2:
            kind = next(t for t in kind.types if not isinstance(t, inspect.NoneType))
        else:
            return kind


def extra(kind: inspect.Type) -> Mapping[str, Any]:
    """Return the notes on a type: expected, hint, names, pattern, secret; the outermost wins."""
    notes: dict[str, Any] = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            notes = {**(kind.extra or {}), **notes}
            kind = kind.type
        elif isinstance(kind, inspect.UnionType) and kind is not plain(kind):
            kind = next(t for t in kind.types if not isinstance(t, inspect.NoneType))
        else:
            return notes or _NO_EXTRA


def default_of(field: inspect.Field) -> object:
    """Return what a key is when nobody sets it."""
    return field.default if field.default is not NODEFAULT else field.default_factory()


class Checker:
    """One pass over one tree. `build` may be called once."""

    def __init__(self, key_places: Mapping[str, str] = _NO_EXTRA) -> None:
        self.problems: list[Problem] = []
        self.origins: dict[str, str] = {}
        self.built: dict[str, object] = {}
        """Every struct that could be built, by path, also when others could not."""
        self._key_places = key_places
        """Key name to the path where it is known, for keys that stand in the wrong section."""

    def build(self, item: Item, kind: inspect.Type, path: str) -> Any:
        """Return the value of the type that the item describes, or a stand-in when it was refused."""
        self.origins[path] = item.origin
        bare = plain(kind)
        if item.value is None and isinstance(
            bare, inspect.StructType | inspect.DictType | inspect.VarTupleType
        ):
            item = Item([] if isinstance(bare, inspect.VarTupleType) else {}, item.origin)
        match bare:
            case inspect.StructType() if isinstance(item.value, dict):
                return self._struct(item, bare, path)
            case inspect.DictType() if isinstance(item.value, dict):
                return self._dict(item, bare, path)
            case inspect.VarTupleType() if isinstance(item.value, list):
                return self._list(item, bare, path)
            case inspect.UnionType() if isinstance(item.value, list | dict):
                return self._member_of_union(item, bare, kind, path)
            case _:
                return self._scalar(item, kind, path)

    def _add(self, origin: str, path: str, message: str) -> None:
        self.problems.append(Problem(origin, path, message))

    def _struct(self, item: Item, kind: inspect.StructType, path: str) -> object:
        given: dict[str, Item] = item.value  # type: ignore[assignment]  # checked by build
        fields = {field.encode_name: field for field in kind.fields}
        meant = self._unknown_keys(given, fields, path)
        values: dict[str, object] = {}
        for key, field in fields.items():
            if key in given:
                values[field.name] = self.build(given[key], field.type, below(path, key))
            elif not field.required:
                values[field.name] = self._default(field, below(path, key))
            else:
                values[field.name] = _BAD
                if key not in meant:
                    self._add(item.origin, path, f"the key {key} is missing; it must be given")
        if any(value is _BAD for value in values.values()):
            return _BAD
        return self._self_check(kind.cls(**values), item, path)

    def _unknown_keys(self, given: Mapping[str, Item], fields: Mapping[str, object], path: str) -> set[str]:
        """Report keys that do not exist; return the ones that were probably meant."""
        meant: set[str] = set()
        for key, child in given.items():
            if key not in fields:
                free = [name for name in fields if name not in given] or list(fields)
                meant.update(nearest(key, free))
                self._add(
                    child.key_origin or child.origin, below(path, key), self._unknown_key(key, free, fields)
                )
        return meant

    def _unknown_key(self, key: str, free: list[str], fields: Mapping[str, object]) -> str:
        close = nearest(key, free) or nearest(key, fields)
        if places := self._key_places.get(key):
            close.append(places)
        return (
            f"unknown key; did you mean {' or '.join(close)}?"
            if close
            else f"unknown key; known here: {', '.join(fields)}"
        )

    def _default(self, field: inspect.Field, path: str) -> object:
        bare = plain(field.type)
        if isinstance(bare, inspect.StructType):
            return self.build(Item({}, DEFAULT_ORIGIN), bare, path)
        self.origins[path] = DEFAULT_ORIGIN
        return default_of(field)

    def _self_check(self, value: object, item: Item, path: str) -> object:
        count = len(self.problems)
        if isinstance(value, _Checked):
            for field, message in value.problems():
                where = below(path, field)
                self._add(self.origins.get(where, item.origin), where, message)
        if len(self.problems) > count:
            return _BAD
        self.built[path] = value
        return value

    def _dict(self, item: Item, kind: inspect.DictType, path: str) -> object:
        given: dict[str, Item] = item.value  # type: ignore[assignment]  # checked by build
        if not self._fits_length(item, kind, path):
            return _BAD
        values = {}
        good = True
        for key, child in given.items():
            good = self._key(key, child, kind.key_type, path) and good
            values[key] = self.build(child, kind.value_type, below(path, key))
        return values if good and not any(value is _BAD for value in values.values()) else _BAD

    def _key(self, key: str, child: Item, kind: inspect.Type, path: str) -> bool:
        pattern = extra(kind).get("pattern", "")
        if _fits(key, plain(kind)) and re.search(pattern, key):
            return True
        self._add(child.key_origin or child.origin, below(path, key), _unknown_field(key, extra(kind)))
        return False

    def _list(self, item: Item, kind: inspect.VarTupleType, path: str) -> object:
        given: list[Item] = item.value  # type: ignore[assignment]  # checked by build
        if not self._fits_length(item, kind, path):
            return _BAD
        values = [self.build(child, kind.item_type, below(path, n)) for n, child in enumerate(given)]
        self._unique_names(given, path)
        return _BAD if any(value is _BAD for value in values) else tuple(values)

    def _member_of_union(self, item: Item, bare: inspect.UnionType, kind: inspect.Type, path: str) -> object:
        for member in map(plain, bare.types):
            if isinstance(member, inspect.VarTupleType) and isinstance(item.value, list):
                return self._list(item, member, path)
            if isinstance(member, inspect.StructType) and isinstance(item.value, dict):
                return self._struct(item, member, path)
        return self._refuse(item, kind, path)

    def _fits_length(self, item: Item, kind: inspect.DictType | inspect.VarTupleType, path: str) -> bool:
        count = len(item.value)  # type: ignore[arg-type]  # checked by build
        if kind.min_length is not None and count < kind.min_length:
            self._add(item.origin, path, f"got {count} entries, expected at least {kind.min_length}")
        elif kind.max_length is not None and count > kind.max_length:
            self._add(item.origin, path, f"got {count} entries, expected at most {kind.max_length}")
        else:
            return True
        return False

    def _unique_names(self, given: list[Item], path: str) -> None:
        """Items of a list that have names are told apart by them."""
        seen: dict[str, str] = {}
        for n, item in enumerate(given):
            name = item.value.get("name") if isinstance(item.value, dict) else None
            if name is None or not isinstance(name.value, str):
                continue
            where = below(below(path, n), "name")
            if name.value in seen:
                self._add(name.origin, where, f"{got(name.value)} is already the name of {seen[name.value]}")
            seen.setdefault(name.value, below(path, n))

    def _scalar(self, item: Item, kind: inspect.Type, path: str) -> object:
        members = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
        if isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.UnionType):
            members = kind.type.types
        if any(_fits(item.value, plain(member)) for member in members):
            return item.value
        return self._refuse(item, kind, path)

    def _refuse(self, item: Item, kind: inspect.Type, path: str) -> object:
        notes = extra(kind)
        bare = plain(kind)
        shown = "a value" if notes.get("secret") else got(item.value)
        message = f"got {shown}, expected {notes.get('expected') or describe(bare)}"
        if isinstance(bare, inspect.LiteralType) and isinstance(item.value, str):
            message += did_you_mean(item.value, map(str, bare.values))
        if isinstance(bare, inspect.StrType) and isinstance(item.value, bool | int | float):
            message += "; put it in quotes"
        if hint := notes.get("hint"):
            message += f" ({hint})"
        self._add(item.origin, path, message)
        return _BAD


def _unknown_field(key: str, notes: Mapping[str, Any]) -> str:
    names = notes.get("names")
    if names is None:
        return f"the key must be {notes.get('expected', 'another')}"
    return f"unknown field{did_you_mean(key, names) or '; known here: ' + ', '.join(names)}"


def _fits(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool) and _within(value, kind)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _within(value, kind)
        case inspect.StrType():
            return isinstance(value, str) and _fits_text(value, kind)
        case inspect.LiteralType():
            return value in kind.values and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case _:
            return False


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return (
        (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
    )


def _fits_text(value: str, kind: inspect.StrType) -> bool:
    if kind.min_length is not None and len(value) < kind.min_length:
        return False
    if kind.max_length is not None and len(value) > kind.max_length:
        return False
    return kind.pattern is None or re.search(kind.pattern, value) is not None


def describe(kind: inspect.Type) -> str:
    """Say in plain words what a key of this type takes."""
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _bounds(kind)
        case inspect.FloatType():
            return "a number" + _bounds(kind)
        case inspect.StrType():
            return "text" + _text_bounds(kind)
        case inspect.LiteralType():
            return (
                f"one of {', '.join(map(str, kind.values))}" if len(kind.values) > 1 else str(kind.values[0])
            )
        case inspect.VarTupleType():
            return f"a list (of {describe(plain(kind.item_type))})"
        case inspect.DictType() | inspect.StructType():
            return "a mapping"
        case inspect.UnionType():
            return " or ".join(describe(plain(t)) for t in kind.types if not isinstance(t, inspect.NoneType))
        case _:
            return "something else"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    low = f" from {kind.ge}" if kind.ge is not None else f" above {kind.gt}" if kind.gt is not None else ""
    return low + (f" to {kind.le}" if kind.le is not None else "")


def _text_bounds(kind: inspect.StrType) -> str:
    length = f" of 1 to {kind.max_length} characters" if kind.max_length is not None else ""
    return length + (" without control characters" if kind.pattern and "x1f" in kind.pattern else "")
