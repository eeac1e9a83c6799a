"""The configuration as a gateway that is started here would read it, and the files that hold its secrets."""

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from herdr.cli.checks.finding import Finding, fail, ok, warn
from herdr.config import Backend, ConfigError, Loaded, advice, load

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAME = re.compile(r"token|secret|passw|credential|key$", re.IGNORECASE)
SECRET_MIN = 4  # characters: to blank a shorter one would blank half of every text


def configuration(file: Path | None, environ: Mapping[str, str]) -> tuple[Loaded | None, list[Finding]]:
    """Read the configuration; None when it cannot be used."""
    try:
        loaded = load(file, environ)
    except ConfigError as error:
        problems = "; ".join(str(problem) for problem in error.problems)
        return None, [
            fail("configuration", problems, "correct it; `herdr config check FILE` says when it is right")
        ]
    where = (
        str(loaded.path) if loaded.path is not None else "no file, so the defaults and the environment count"
    )
    hints = [warn("configuration", hint, "see `herdr config check`") for hint in advice(loaded.config)]
    return loaded, [ok("configuration", where), *hints]


def secret_files(loaded: Loaded) -> Finding:
    """Look whether others may read a file with tokens in it."""
    path = loaded.path
    held = [
        token.name
        for number, token in enumerate(loaded.config.auth.tokens)
        if path is not None and loaded.origins.get(f"auth.tokens[{number}].token", "").startswith(f"{path}:")
    ]
    if path is None or not held:
        return ok("secrets", "no file holds one")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return warn(
            "secrets",
            f"{path} holds tokens ({', '.join(held)}), and others may read it (mode {mode:04o})",
            f"run `chmod 600 {path}`, or name variables with token_env in place of the tokens",
        )
    return ok("secrets", f"only its owner may read {path}")


def exposure(loaded: Loaded) -> Finding:
    """Look at who can reach the port, and who may come in."""
    server, auth = loaded.config.server, loaded.config.auth
    if auth.open and not auth.tokens and server.host not in LOOPBACK:
        return warn(
            "exposure",
            f"auth.open: everyone who reaches {server.host}:{server.port} may do everything",
            "configure auth.tokens, or listen on 127.0.0.1",
        )
    who = f"{len(auth.tokens)} tokens" if auth.tokens else "no tokens"
    return ok("exposure", f"listens on {server.host}:{server.port}, {who}")


def allowed_host(hosts: Iterable[str], url: str) -> Finding:
    """Look whether the configured gateway answers to the name in the address that is used."""
    name = (urlsplit(url).hostname or "").lower()
    known = [host.lower().strip("[]") for host in hosts]
    if name not in known:
        return fail(
            "host",
            f"the address in use names {name}, and server.allowed_hosts only {', '.join(known)}",
            f"add {name} to server.allowed_hosts (HERDR_GATEWAY_SERVER__ALLOWED_HOSTS)",
        )
    return ok("host", f"{name} is one of server.allowed_hosts")


def known_secrets(loaded: Loaded | None, environ: Mapping[str, str], token: str | None) -> list[str]:
    """Return every secret that we know of, the longest first: also what the environment calls one."""
    found = [token or "", *(value for name, value in environ.items() if _SECRET_NAME.search(name))]
    if loaded is not None:
        found += [configured.token or "" for configured in loaded.config.auth.tokens]
        found += [environ.get(backend.api_key_env or "", "") for backend in loaded.config.models.backends]
    return sorted({secret for secret in found if len(secret) >= SECRET_MIN}, key=len, reverse=True)


def at_loopback(backends: Iterable[Backend]) -> list[str]:
    """Return the names of backends whose address is the machine's own."""
    return [backend.name for backend in backends if urlsplit(backend.url).hostname in LOOPBACK]


def keys(backends: Iterable[Backend], environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look for backends whose API key is not set here."""
    for backend in backends:
        if backend.api_key_env is not None and not environ.get(backend.api_key_env):
            yield warn(
                "backends",
                f"{backend.name}: the variable {backend.api_key_env} is not set here",
                "set it where the gateway is started",
            )
