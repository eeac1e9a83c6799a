"""Pure: the clients whose hooks are understood."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from herdr.hooks import claude_code, codex, cursor, gemini, opencode, vscode
from herdr.hooks.call import Call, Reply


class Client(NamedTuple):
    """One client: how its payloads are read, and its answers written."""

    decode: Callable[[Mapping[str, Any]], Call]
    encode: Callable[[Call, Reply], dict[str, Any]]


CLIENTS: Mapping[str, Client] = MappingProxyType(
    {
        "claude-code": Client(claude_code.decode, claude_code.encode),
        "codex": Client(codex.decode, codex.encode),
        "cursor": Client(cursor.decode, cursor.encode),
        "gemini": Client(gemini.decode, gemini.encode),
        "opencode": Client(opencode.decode, opencode.encode),
        "vscode": Client(vscode.decode, vscode.encode),
    }
)
