"""Reference pages made from the code: from its command line, its JSON Schema and a running gateway."""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from typing import Any

from herdr.cli.main import GROUPS


def _herdr(*args: str) -> str:
    done = subprocess.run([sys.executable, "-m", "herdr", *args], capture_output=True, text=True, check=True)
    return done.stdout


@contextlib.contextmanager
def gateway() -> Iterator[str]:
    """Run a gateway with an empty data folder; yields its address."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "herdr", "serve", "--port", "0", "--data", data]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().split()[-1]
            finally:
                process.terminate()


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        text: str = answer.read().decode()
    return text


def commands(_url: str) -> str:
    """Return what each command says with --help."""
    parts = [f"## herdr {group}\n\n```text\n{_herdr('help', group).rstrip()}\n```\n" for group in GROUPS]
    return "\n".join(parts)


def endpoints(url: str) -> str:
    """Return the endpoints as the running gateway describes them."""
    described = json.loads(_read(f"{url}/openapi.json"))
    rows = ["| method | path | what | statuses |", "| --- | --- | --- | --- |"]
    for path, methods in sorted(described["paths"].items()):
        for method, about in methods.items():
            statuses = ", ".join(sorted(about.get("responses", {})))
            rows.append(f"| {method.upper()} | `{path}` | {about.get('summary', '')} | {statuses} |")
    return "\n".join(rows) + "\n"


def settings(_url: str) -> str:
    """Return every key of the configuration, from its JSON Schema."""
    schema = json.loads(_herdr("config", "schema"))
    rows = ["| key | default | meaning |", "| --- | --- | --- |"]
    rows += [f"| `{key}` | {default} | {meaning} |" for key, default, meaning in _keys(schema, schema, "")]
    return "\n".join(rows) + "\n"


def _keys(schema: Any, node: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    node = _resolved(schema, node)
    for name, about in node.get("properties", {}).items():
        key = f"{prefix}{name}"
        inner = _resolved(schema, about)
        item = _resolved(schema, inner.get("items", {})) if inner.get("type") == "array" else {}
        if "properties" in inner:
            yield from _keys(schema, inner, f"{key}.")
            continue
        default = about.get("default", inner.get("default", ""))
        shown = f"`{json.dumps(default)}`" if default != "" else ""
        yield key, shown.replace("|", "\\|"), str(about.get("description", "")).replace("|", "\\|")
        if "properties" in item:
            yield from _keys(schema, item, f"{key}[].")


def _resolved(schema: Any, node: Any) -> Any:
    for option in node.get("anyOf", ()):
        if "$ref" in option:
            node = option
    reference = node.get("$ref")
    return (
        node
        if reference is None
        else schema["$defs"][reference.rpartition("/")[2]]
        | {name: value for name, value in node.items() if name != "$ref"}
    )


def metrics(url: str) -> str:
    """Return the metrics of a gateway that has just begun."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text := _read(f"{url}/metrics"), re.M))
    rows = ["| metric | kind | meaning |", "| --- | --- | --- |"]
    rows += [
        f"| `{n}` | {kinds.get(n, '')} | {what} |"
        for n, what in re.findall(r"^# HELP (\S+) (.+)$", text, re.M)
    ]
    return "\n".join(rows) + "\n"
