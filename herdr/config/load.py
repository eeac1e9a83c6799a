"""Puts flags, environment, file and defaults together, in that order of precedence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import cast

import msgspec
from msgspec import inspect

from herdr.config.check import DEFAULT_ORIGIN, Checker, below, plain
from herdr.config.document import Item, read_document
from herdr.config.environment import FILE_VARIABLE, Place, environment_items
from herdr.config.problem import ConfigError, Problem, got
from herdr.config.routes import RouteRule
from herdr.config.sections import Config, Token

FLAG_ORIGIN = "command line"
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checked configuration and where each of its values comes from."""

    config: Config
    origins: Mapping[str, str]
    """Path (`bus.retention.max_age_s`, `routes[0].event`) to `file:line:column`, the name of a variable,
    `command line` or `default`; sections and lists have an entry too."""
    path: Path | None
    """The file that was read; None when there was none."""


def load(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, object] = _NOTHING) -> Loaded:
    """Read and check the whole configuration.

    Without a path the file is the one that `HERDR_GATEWAY_CONFIG` names, and without that there is none.
    `flags` has dotted paths (`server.port`) and plain values; None counts as not given, and a path that
    ends in `+` (`workspaces+`) adds its items to the list instead of replacing it.

    Raises ConfigError with everything that is wrong.
    """
    if path is None and (named := environ.get(FILE_VARIABLE)):
        path = Path(named)
    kind = cast(inspect.StructType, inspect.type_info(Config))
    root, problems = _read_file(path) if path is not None else (Item({}, DEFAULT_ORIGIN), [])
    # A file that cannot be parsed does not hide what is wrong elsewhere.
    tree = root if root is not None and isinstance(root.value, dict) else Item({}, DEFAULT_ORIGIN)
    if root is not None and tree is not root:
        problems.append(
            Problem(
                root.origin, "", f"got {got(root.value)}, expected a mapping with sections such as server:"
            )
        )
    settings, found = environment_items(environ, kind)
    problems += found
    for place, item in settings:
        problems += _lay_over(tree, place, item)
    for dotted, value in flags.items():
        if value is not None:
            problems += _lay_over_flag(tree, dotted, value)
    _name_the_nameless(tree)
    checker = Checker(_key_places(kind))
    config = checker.build(tree, kind, "")
    secrets, found = _secrets(checker, environ)
    problems += checker.problems + found
    if problems:
        raise ConfigError(_in_reading_order(problems))
    return Loaded(_with_secrets(config, secrets), MappingProxyType(checker.origins), path)


def parse_routes(
    path: Path | None, environ: Mapping[str, str] = _NOTHING, flags: Mapping[str, object] = _NOTHING
) -> tuple[RouteRule, ...]:
    """Return the routes as a start with the same arguments would have them now.

    Raises ConfigError when anything in the file is wrong, not only its routes: a file that a restart would
    refuse should be noticed when it is saved.
    """
    return load(path, environ, flags).config.routes


def _read_file(path: Path) -> tuple[Item | None, list[Problem]]:
    try:
        return read_document(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None, [
            Problem(str(path), "", "there is no such file; check the path, or leave it out for the defaults")
        ]
    except IsADirectoryError:
        # Docker makes an empty folder of a mounted file that is not there.
        return None, [
            Problem(str(path), "", "this is a folder, not a file; if it is a mount, does its source exist?")
        ]
    except OSError as error:
        return None, [Problem(str(path), "", f"cannot be read: {error.strerror}")]


def _lay_over(tree: Item, place: Place, item: Item) -> list[Problem]:
    """Set the value at the place, making the mappings and the next list item on the way."""
    node, path = tree, ""
    for part, following in zip(place, [*place[1:], None], strict=True):
        fresh = item if following is None else Item([] if isinstance(following, int) else {}, item.origin)
        path = below(path, part)
        if not isinstance(node.value, list if isinstance(part, int) else dict) and node.value is not None:
            return []  # the file has something else here, and the checker says so
        if isinstance(part, int):
            entries = node.value if isinstance(node.value, list) else []
            if part > len(entries):
                return [
                    Problem(
                        item.origin,
                        path,
                        f"the list has {len(entries)} items; the next one is {len(entries)}",
                    )
                ]
            if part == len(entries):
                entries.append(fresh)
            elif following is None:
                entries[part] = fresh
            node.value, node = entries, entries[part]
        else:
            keys: dict[str, Item] = node.value if isinstance(node.value, dict) else {}
            if following is None or part not in keys or keys[part].value is None:
                keys[part] = fresh
            node.value, node = keys, keys[part]
    return []


def _lay_over_flag(tree: Item, dotted: str, value: object) -> list[Problem]:
    if not dotted.endswith("+") or not isinstance(value, list | tuple):
        return _lay_over(tree, tuple(dotted.split(".")), _item_of(value))
    parts: list[str | int] = [*dotted.removesuffix("+").split(".")]
    problems = []
    for entry in value:
        node: Item | None = tree
        for part in parts:
            node = node.value.get(part) if node is not None and isinstance(node.value, dict) else None
        count = len(node.value) if node is not None and isinstance(node.value, list) else 0
        problems += _lay_over(tree, (*parts, count), _item_of(entry))
    return problems


def _item_of(value: object) -> Item:
    match value:
        case Mapping():
            value = {str(key): _item_of(entry) for key, entry in value.items()}
        case list() | tuple():
            value = [_item_of(entry) for entry in value]
    return Item(value, FLAG_ORIGIN, FLAG_ORIGIN)


def _name_the_nameless(tree: Item) -> None:
    """Give rules and workspaces without a name the one that the reference promises."""
    for n, rule in enumerate(_entries(tree, "routes"), 1):
        rule.setdefault("name", Item(f"file-{n}", DEFAULT_ORIGIN))
    for workspace in _entries(tree, "workspaces"):
        path = workspace.get("path")
        if path is not None and isinstance(path.value, str) and (name := PurePath(path.value).name):
            workspace.setdefault("name", Item(name, DEFAULT_ORIGIN))


def _entries(tree: Item, section: str) -> list[dict[str, Item]]:
    found = cast(dict[str, Item], tree.value).get(section)
    entries = found.value if found is not None and isinstance(found.value, list) else []
    return [entry.value for entry in entries if isinstance(entry.value, dict)]


def _secrets(checker: Checker, environ: Mapping[str, str]) -> tuple[list[str], list[Problem]]:
    """Return the secret of each token, in order, and what is wrong with them."""
    secrets: list[str] = []
    problems: list[Problem] = []
    owners: dict[str, str] = {}
    for path, token in checker.built.items():
        if not isinstance(token, Token):
            continue
        secret = token.token or environ.get(token.token_env or "", "")
        where = below(path, "token" if token.token_env is None else "token_env")
        origin = checker.origins[where]
        if not secret and token.token_env is not None:
            problems.append(Problem(origin, where, f"the variable {token.token_env} is not set"))
        elif secret in owners:
            problems.append(
                Problem(origin, where, f"this is the secret of {owners[secret]} too; make another")
            )
        owners.setdefault(secret, path)
        secrets.append(secret)
    return secrets, problems


def _with_secrets(config: Config, secrets: Sequence[str]) -> Config:
    tokens = tuple(
        msgspec.structs.replace(token, token=secret)
        for token, secret in zip(config.auth.tokens, secrets, strict=True)
    )
    return msgspec.structs.replace(config, auth=msgspec.structs.replace(config.auth, tokens=tokens))


def _key_places(kind: inspect.Type, path: str = "") -> dict[str, str]:
    """Return, for every key that exists in one place only, that place."""
    places: dict[str, list[str]] = {}
    for key, place in _keys(kind, ""):
        places.setdefault(key, []).append(place)
    return {key: found[0] for key, found in places.items() if len(found) == 1}


def _keys(kind: inspect.Type, path: str) -> list[tuple[str, str]]:
    bare = plain(kind)
    if isinstance(bare, inspect.VarTupleType):
        return _keys(bare.item_type, f"{path}[]")
    if not isinstance(bare, inspect.StructType):
        return []
    found = []
    for field in bare.fields:
        place = below(path, field.encode_name)
        found += [(field.encode_name, place), *_keys(field.type, place)]
    return found


def _in_reading_order(problems: Sequence[Problem]) -> list[Problem]:
    """Sort by place; lines and columns as numbers."""

    def key(problem: Problem) -> tuple[str, int, int]:
        file, _, position = problem.origin.partition(":")
        line, _, column = position.partition(":")
        return file, int(line or 0) if line.isdigit() else 0, int(column) if column.isdigit() else 0

    return sorted(problems, key=key)
