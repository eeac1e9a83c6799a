"""`herdr config`: check the configuration, show what is in force, print its JSON Schema."""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from herdr.config import ConfigError, Loaded, config_schema, load, plain_config, render
from herdr.config.check import DEFAULT_ORIGIN


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its three parts."""
    parser = subparsers.add_parser(
        "config", help="check, show or describe the configuration", description=__doc__
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    check = parts.add_parser("check", help="say everything that is wrong with a file; exit code 1 if so")
    show = parts.add_parser("show", help="print the configuration in force, secrets masked")
    show.add_argument("--origin", action="store_true", help="say where each value comes from")
    for part in (check, show):
        part.add_argument("--json", action="store_true", help="as JSON")
        part.add_argument(
            "file", nargs="?", type=Path, help="the file; without it, the one that HERDR_GATEWAY_CONFIG names"
        )
        # `herdr serve` takes the file this way, and people type what they know.
        part.add_argument("--config", dest="file_flag", type=Path, metavar="FILE", help="the same")
    parts.add_parser("schema", help="print the JSON Schema of herdr.yaml, for editors")


def run(args: argparse.Namespace) -> int:
    """Run the part that was asked for; ConfigError goes up to `main`, which prints it and exits 1."""
    if args.part == "schema":
        print(json.dumps(config_schema(), indent=2, ensure_ascii=False))
        return 0
    file = args.file or args.file_flag
    if args.part == "check":
        return _check(file, args.json)
    loaded = load(file, os.environ)
    if args.json:
        print(json.dumps(_as_json(loaded, args.origin), indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(render(loaded, args.origin))
    return 0


def _check(file: Path | None, as_json: bool) -> int:
    try:
        loaded = load(file, os.environ)
    except ConfigError as error:
        if not as_json:
            raise
        problems = [problem._asdict() for problem in error.problems]
        print(json.dumps({"ok": False, "problems": problems}, indent=2, ensure_ascii=False))
        return 1
    print('{"ok": true, "problems": []}' if as_json else f"ok: {_summary(loaded)}")
    return 0


def _summary(loaded: Loaded) -> str:
    """Say which file was read, what it holds, and how many values come from elsewhere."""
    config = loaded.config
    sections = {
        "routes": config.routes,
        "workspaces": config.workspaces,
        "tokens": config.auth.tokens,
        "backends": config.models.backends,
    }
    parts = [str(loaded.path) if loaded.path else "no file, only the environment and the defaults"]
    values = Counter(_kind(origin) for path, origin in loaded.origins.items() if _is_value(path, loaded))
    parts += [f"{values[kind]} set by the {kind}" for kind in ("file", "environment") if values[kind]]
    parts += ["every value at its default"] if len(parts) == 1 else []
    parts += [f"{len(entries)} {name}" for name, entries in sections.items() if entries]
    return ", ".join(parts)


def _is_value(path: str, loaded: Loaded) -> bool:
    """Tell a value from the sections and lists around it."""
    return not any(other.startswith((f"{path}.", f"{path}[")) for other in loaded.origins) and path != ""


def _kind(origin: str) -> str:
    if origin == DEFAULT_ORIGIN:
        return "defaults"
    return "environment" if origin.startswith("HERDR_GATEWAY_") else "file"


def _as_json(loaded: Loaded, with_origins: bool) -> object:
    config = plain_config(loaded.config)
    return {"config": config, "origins": dict(loaded.origins)} if with_origins else config
