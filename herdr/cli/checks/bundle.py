"""What one would send with a bug report, as a zip file without secrets."""

import base64
import json
import os
import platform
import sqlite3
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from herdr import __version__
from herdr.config import Loaded, render
from herdr.context.redact import redact, redact_tree
from herdr.errors import HerdrError

GONE = "[redacted: known secret]"
DISTRIBUTION = "herdr-gateway"
PREFIX = "HERDR_"
SHOWN = ("HERDR_GATEWAY_URL", "HERDR_GATEWAY_CONFIG", "HERDR_IN_CONTAINER")


def write_bundle(
    file: Path,
    report: Mapping[str, Any],
    loaded: Loaded | None,
    environ: Mapping[str, str],
    answers: Mapping[str, str],
    secrets: Sequence[str],
) -> None:
    """Write the file, which only its owner may read; raises HerdrError when there is one already.

    `answers`: what the gateway said, by the name of the file to put it in.
    """
    parts = {
        "doctor.json": _json(report),
        "versions.json": _json(versions()),
        "environment.json": _json(_environment(environ)),
        "configuration.yaml": render(loaded, with_origins=True)
        if loaded
        else "the configuration cannot be used\n",
        **{
            name: _json(json.loads(text)) if name.endswith(".json") else text
            for name, text in answers.items()
        },
    }
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise HerdrError(f"{file} exists already: name a new file") from None
    with os.fdopen(descriptor, "wb") as opened, zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in parts.items():
            bundle.writestr(name, without(text, secrets))


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets that are known, however they are written, and without what looks like one."""
    for secret in secrets:
        for form in _forms(secret):
            text = text.replace(form, GONE)
    return redact(text).text


def _forms(secret: str) -> Iterator[str]:
    yield from dict.fromkeys(
        (
            secret,
            json.dumps(secret)[1:-1],
            quote(secret, safe=""),
            quote_plus(secret),
            base64.b64encode(secret.encode()).decode(),
        )
    )


def versions() -> dict[str, Any]:
    """Return what runs here, and in which version."""
    return {
        "herdr": __version__,
        "python": sys.version,
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
        "packages": dict(sorted(_packages())),
    }


def _packages() -> Iterator[tuple[str, str]]:
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return
    for line in needed:
        name = line.split(";")[0].split("[")[0].split(">")[0].split("=")[0].split("<")[0].strip()
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return which variables that change what we do are set; the values of few, as the others may be secrets."""
    names = sorted(n for n in environ if n.startswith(PREFIX) or n.lower().endswith("_proxy"))
    return {name: environ[name] if name in SHOWN else "(set)" for name in names}


def _json(value: Any) -> str:
    return json.dumps(redact_tree(value)[0], indent=2, ensure_ascii=False) + "\n"
