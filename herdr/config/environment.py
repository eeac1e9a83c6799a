"""`HERDR_GATEWAY_SERVER__PORT=9000`: settings from environment variables, laid over the file's."""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import inspect

from herdr.config.check import extra, plain
from herdr.config.document import Item, read_text
from herdr.config.problem import Problem, nearest

PREFIX = "HERDR_GATEWAY_"
FILE_VARIABLE = PREFIX + "CONFIG"

# The first two belong to the client side; a shell that has them may start a gateway too.
_NOT_SETTINGS = {PREFIX + "URL", PREFIX + "TOKEN", FILE_VARIABLE}
# Kubernetes gives every container such variables for a service that is called herdr-gateway:
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(PREFIX + r"(SERVICE_(HOST|PORT).*|PORT_\d+_(TCP|UDP|SCTP).*)\Z")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

_ITEM_NUMBER = re.compile(r"(?<=__)\d+(?=__|\Z)")

Place = tuple[str | int, ...]


def environment_items(
    environ: Mapping[str, str], kind: inspect.StructType
) -> tuple[list[tuple[Place, Item]], list[Problem]]:
    """Return the settings of an environment by path, whole lists before their items, and what is wrong.

    A variable that is set to nothing counts as not set, because that is what `${PORT:-}` in a compose
    file makes of one.
    """
    items: list[tuple[Place, Item]] = []
    problems: list[Problem] = []
    for name in sorted(environ):
        text = environ[name]
        if not name.startswith(PREFIX) or not text or _is_foreign(name, text):
            continue
        target = _find(name, kind)
        if target is None:
            problems.append(Problem(name, "", f"unknown variable{_suggestion(name, kind)}"))
            continue
        path, leaf, from_file = target
        item, found = _from_file(name, text) if from_file else _item(name, text, leaf)
        problems += found
        if item is not None:
            items.append((path, item))
    return sorted(items, key=lambda pair: pair[0]), problems


def _is_foreign(name: str, text: str) -> bool:
    if name in _NOT_SETTINGS or _SERVICE_LINK.match(name):
        return True
    return name == PREFIX + "PORT" and _SERVICE_ADDRESS.match(text) is not None


def _find(name: str, kind: inspect.StructType) -> tuple[Place, inspect.Type, bool] | None:
    """Return path and type of the setting that a variable names, and whether it names a file of it."""
    parts = name.removeprefix(PREFIX).split("__")
    if (found := _walk(parts, kind)) is not None:
        return *found, False
    if parts[-1].endswith("_FILE"):
        found = _walk([*parts[:-1], parts[-1].removesuffix("_FILE")], kind)
        if found is not None and extra(found[1]).get("secret"):
            return *found, True
    return None


def _walk(parts: list[str], kind: inspect.Type) -> tuple[Place, inspect.Type] | None:
    path: list[str | int] = []
    for part in parts:
        bare = plain(kind)
        if isinstance(bare, inspect.StructType):
            field = next((f for f in bare.fields if f.encode_name.upper() == part), None)
            if field is None:
                return None
            path.append(field.encode_name)
            kind = field.type
        elif isinstance(bare, inspect.VarTupleType) and part.isascii() and part.isdigit():
            path.append(int(part))
            kind = bare.item_type
        elif isinstance(bare, inspect.DictType) and part:
            path.append(part.lower())
            kind = bare.value_type
        else:
            return None
    return tuple(path), kind


def _item(name: str, text: str, kind: inspect.Type) -> tuple[Item | None, list[Problem]]:
    """Read the value: text as it stands where text is wanted, YAML everywhere else."""
    if isinstance(plain(kind), inspect.StrType | inspect.LiteralType):
        return Item(text, name, name), []
    item, problems = read_text(text, lambda mark: name)
    if item is not None:
        item.key_origin = name
    return item, problems


def _from_file(name: str, text: str) -> tuple[Item | None, list[Problem]]:
    """Read a secret from the file that the variable names, as Docker and Kubernetes hand them out."""
    try:
        content = Path(text).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        # Not the name: people put the secret itself here by mistake.
        return None, [Problem(name, "", f"cannot read the file that it names: {reason}")]
    return Item(content.strip(), name, name), []


def _suggestion(name: str, kind: inspect.StructType) -> str:
    """Suggest the nearest variable, with the item numbers that the person wrote."""
    known = [*variable_names(kind), *sorted(_NOT_SETTINGS)]
    close = nearest(_ITEM_NUMBER.sub("N", name), known)
    for number in [*_ITEM_NUMBER.findall(name), "0", "0"]:  # names hold at most two numbers
        close = [re.sub(r"__N(?=__|\Z)", f"__{number}", other, count=1) for other in close]
    return (
        f"; did you mean {' or '.join(close)}?" if close else "; the reference of settings lists all of them"
    )


def variable_names(kind: inspect.Type, prefix: str = PREFIX) -> list[str]:
    """Return the name of every variable that can set something; `N` stands for an item's number from 0."""
    bare = plain(kind)
    names = [] if prefix == PREFIX else [prefix]
    stem = prefix if prefix == PREFIX else prefix + "__"
    if isinstance(bare, inspect.StructType):
        for field in bare.fields:
            names += variable_names(field.type, stem + field.encode_name.upper())
    elif isinstance(bare, inspect.VarTupleType) and isinstance(plain(bare.item_type), inspect.StructType):
        names += variable_names(bare.item_type, stem + "N")
    return names
