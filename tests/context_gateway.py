"""A gateway for tests whose shared context is a folder of texts: `sessions/ID`, `maps/WORKSPACE`, `files/PATH`.

Run in place of `python -m herdr`, with the folder in CONTEXT_FOLDER. A text that begins with WAIT never comes;
each look-up is a line of `asked`.
"""

import asyncio
import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fake_contexts import excerpt
from gateway import GatewayProcess

from herdr import app
from herdr.bus.beside import Beside
from herdr.cli.main import main
from herdr.context.excerpt import Excerpt
from herdr.errors import NotFound

PROGRAM = (__file__,)
WAIT = "WAIT"


class FolderContexts:
    """Implements what bus and pool ask of the shared context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def session(self, session: str, tokens: int) -> Excerpt:
        return await self._read("sessions", session, "unknown_session", tokens)

    async def map(self, workspace: str, tokens: int, focus: tuple[str, ...]) -> Excerpt:
        return await self._read("maps", workspace, "unknown_workspace", tokens, *focus)

    async def outline(self, workspace: str, path: str) -> Excerpt:
        return await self._read("files", path, "unknown_file", workspace)

    async def _read(self, kind: str, name: str, code: str, *more: object) -> Excerpt:
        with (self._folder / "asked").open("a") as file:
            file.write(json.dumps([kind, name, *more]) + "\n")
        try:
            text = (self._folder / kind / name).read_text()
        except OSError:
            raise NotFound(f"there is no {name}", code) from None
        if text.startswith(WAIT):
            await asyncio.Event().wait()
        return excerpt(text)


class Folder:
    """The test's side of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def put(self, kind: str, name: str, text: str) -> None:
        file = self.path / kind / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def asked(self, kind: str) -> list[list[Any]]:
        lines = (self.path / "asked").read_text().splitlines() if (self.path / "asked").exists() else []
        return [one for one in map(json.loads, lines) if one[0] == kind]


@contextlib.contextmanager
def context_gateway(data: Path, folder: Folder, *args: str) -> Iterator[GatewayProcess]:
    """Run one until the end of the context."""
    process = GatewayProcess(data, args, {"CONTEXT_FOLDER": str(folder.path)}, PROGRAM).start()
    try:
        yield process
    finally:
        if process.running():
            process.kill()


def _with(build: Callable[..., Any], **given: Any) -> Callable[..., Any]:
    """Return the builder with these arguments, whatever its caller gives."""

    def built(*args: Any, **more: Any) -> Any:
        bound = inspect.signature(build).bind(*args, **more)
        bound.arguments.update(given)
        return build(*bound.args, **bound.kwargs)

    return built


if __name__ == "__main__":
    contexts = FolderContexts(Path(os.environ["CONTEXT_FOLDER"]))
    beside = Beside(contexts)
    app.endpoints = _with(app.endpoints, beside=beside)  # type: ignore[attr-defined]
    app.websockets = _with(app.websockets, beside=beside)  # type: ignore[attr-defined]
    app.model_endpoints = _with(app.model_endpoints, contexts=contexts)  # type: ignore[attr-defined]
    sys.exit(main())
