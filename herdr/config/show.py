"""The configuration for people and editors: as YAML with origins, as plain data, as JSON Schema."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from herdr.config.check import DEFAULT_ORIGIN, below
from herdr.config.load import Loaded
from herdr.config.sections import Config

MASK = "********"

# Text that YAML 1.1 and 1.2 both read as text without quotes.
_BARE = re.compile(r"[A-Za-z./][A-Za-z0-9_./-]*\Z")
_NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def plain_config(config: Config) -> dict[str, Any]:
    """Return the configuration as dicts, lists and scalars, with every secret masked."""
    found: dict[str, Any] = msgspec.to_builtins(config, builtin_types=())
    for token in found["auth"]["tokens"]:
        if token["token_env"] is not None:
            del token["token"]  # it was filled in from the variable
        else:
            token["token"] = MASK
            del token["token_env"]
    return found


def render(loaded: Loaded, with_origins: bool = False) -> str:
    """Return the effective configuration as YAML that can be loaded again (but for masked secrets).

    With origins, every value has a comment that says where it comes from.
    """
    return "".join(
        f"{line}  # {loaded.origins.get(path, DEFAULT_ORIGIN)}\n" if with_origins and path else f"{line}\n"
        for line, path in _lines(plain_config(loaded.config), "", "")
    )


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `herdr.yaml`, with descriptions, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Herdr configuration",
        **msgspec.json.schema(Config),
    }


def _lines(value: Mapping[str, Any], path: str, indent: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the path of the value on it; headings have none."""
    for key, entry in value.items():
        where = below(path, key)
        if isinstance(entry, dict) and entry:
            yield f"{indent}{_scalar(key)}:", ""
            yield from _lines(entry, where, indent + "  ")
        elif isinstance(entry, list | tuple) and any(isinstance(item, dict) for item in entry):
            yield f"{indent}{_scalar(key)}:", ""
            for n, item in enumerate(entry):
                yield from _list_item(item, below(where, n), indent + "  ")
        elif entry is not None:
            yield f"{indent}{_scalar(key)}: {_flow(entry)}", where


def _list_item(item: Mapping[str, Any], path: str, indent: str) -> Iterator[tuple[str, str]]:
    dash = "- "
    for line, where in _lines(item, path, ""):
        yield f"{indent}{dash}{line}", where
        dash = "  "


def _flow(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return "{}"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str) and _BARE.match(value) and value.casefold() not in _NOT_TEXT:
        return value
    return json.dumps(value, ensure_ascii=False)
