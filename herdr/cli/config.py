"""`herdr config`: check the configuration, show what is in force, print its JSON Schema."""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

from herdr.cli.terminal import counted, note
from herdr.config import ConfigError, Loaded, advice, config_schema, load, plain_config, render
from herdr.config.check import DEFAULT_ORIGIN

_EPILOG = """\
examples:
  herdr config check herdr.yaml
  herdr config show --origin herdr.yaml
  herdr config schema > herdr.schema.json
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its three parts."""
    parser = subparsers.add_parser(
        "config",
        help="check, show or describe the configuration",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    check = parts.add_parser(
        "check",
        help="say everything that is wrong with a file; exit code 1 if so",
        epilog="example: herdr config check herdr.yaml",
    )
    show = parts.add_parser(
        "show",
        help="print the configuration in force, secrets masked",
        epilog="example: herdr config show --origin herdr.yaml",
    )
    show.add_argument("--origin", action="store_true", help="say where each value comes from")
    for part in (check, show):
        part.add_argument("--json", action="store_true", help="as JSON")
        part.add_argument(
            "file", nargs="?", type=Path, help="the file; without it, the one that HERDR_GATEWAY_CONFIG names"
        )
        # `herdr serve` takes the file this way, and people type what they know.
        part.add_argument("--config", dest="file_flag", type=Path, metavar="FILE", help="the same")
    parts.add_parser(
        "schema",
        help="print the JSON Schema of herdr.yaml, for editors",
        epilog="example: herdr config schema > herdr.schema.json",
    )


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
    warnings = advice(loaded.config)
    if as_json:
        print(json.dumps({"ok": True, "problems": [], "warnings": warnings}, ensure_ascii=False))
        return 0
    print(f"ok: {_summary(loaded)}")
    for warning in warnings:
        note(f"warning: {warning}")
    return 0


def _summary(loaded: Loaded) -> str:
    """Say which file was read, how many values are set, and what the lists hold."""
    config = loaded.config
    lists = {
        "route": config.routes,
        "workspace": config.workspaces,
        "token": config.auth.tokens,
        "backend": config.models.backends,
    }
    kinds = Counter(_kind(origin) for path, origin in loaded.origins.items() if _is_value(path, loaded))
    parts = [f"{counted(kinds['file'] + kinds['environment'], 'value')} set"]
    parts += [f"{kinds['environment']} by the environment"] if kinds["environment"] else []
    parts += [counted(len(entries), name) for name, entries in lists.items() if entries]
    return f"{loaded.path or 'no file'} ({', '.join(parts)})"


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
