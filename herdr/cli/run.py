"""`herdr run`: start an agent with the environment that sends it to the gateway, and step out of its way."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from herdr.cli.child import NOT_FOUND, NOT_RUN
from herdr.cli.client import TOKEN_VARIABLE, URL_VARIABLE, add_connection, gateway_of
from herdr.cli.terminal import note
from herdr.errors import HerdrError
from herdr.pool.names import Names

_EPILOG = """\
examples:
  herdr run --agent reviewer --priority 2 -- claude
  herdr run --agent docs --route background -- qwen -p 'list the public functions'
  eval "$(herdr run --agent reviewer --print)"

The program takes our place: the terminal, signals and the exit code are its own. Variables that you have set win,
save for the address and the credentials; header lines are added to yours.
"""
NO_TOKEN = "local"  # a gateway without tokens takes any, and clients do not start without one
VALUE_MAX = 200  # characters of a header's value; names of agents and sessions are shorter
CLAUDE_NEEDS = 16_384  # tokens: Claude Code's own prompt and tools take about 12,000 (2.1.328)
COMPACT_MIN = 100_000  # tokens: Claude Code 2.1.328 takes a smaller window for this one, and complains
OUTPUT_MAX = 32_000  # tokens: what Claude Code itself asks for at least
_HEADER_VARIABLES = ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS")
_ONE_BY_ONE: Mapping[str, str] = MappingProxyType(  # for clients whose own files name a variable for a header
    {
        "X-Agent-Id": "HERDR_AGENT",
        "X-Priority": "HERDR_PRIORITY",
        "X-Herdr-Route": "HERDR_ROUTE",
        "X-Herdr-Session": "HERDR_SESSION",
    }
)
_CREDENTIALS = frozenset({"authorization", "x-api-key"})
_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # a line of the prompt that differs in each conversation
        "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",  # tells side calls from the conversation
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # it would ask for all of a broken answer again
        "API_TIMEOUT_MS": "3600000",  # a queue and a long prefill are no failure
        "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "1800000",  # the most that it accepts
        "QWEN_CODE_API_TIMEOUT_MS": "0",  # none; Qwen Code gives up after 120 s otherwise
        "OPENAI_MODEL": "local",  # Qwen Code wants one; the gateway's default model answers to any name
    }
)
_MODELS = (
    *("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL"),
    *("ANTHROPIC_DEFAULT_HAIKU_MODEL", "OPENAI_MODEL"),
)
# Each leads past the gateway, or sends a cloud's key to it: the anthropic package prefers the key to the token
_AWAY = (
    *("ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
    "CLAUDE_CODE_USE_FOUNDRY",
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")

Changes = Mapping[str, str | None]
"""What becomes of the environment: a value, or None for a variable that is taken out."""


class Wanted(NamedTuple):
    """What the command line asks for."""

    url: str
    token: str
    headers: Mapping[str, str]
    model: str | None


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "run",
        help="start an agent on the model pool",
        description=__doc__,
        epilog=_EPILOG,
        usage="herdr run [OPTIONS] -- COMMAND...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--agent", type=_value, help="its name in the pool (default: the client's own session)"
    )
    parser.add_argument(
        "--priority", type=_priority, metavar="N", help="0, the first, to 9 (default: the gateway's, 5)"
    )
    parser.add_argument("--route", type=_value, help="whose share of the slots it uses, such as background")
    parser.add_argument("--session", type=_value, help="the session that its calls are recorded under")
    parser.add_argument("--model", type=_value, help="the model that it asks for (default: its own choice)")
    parser.add_argument(
        "--print", action="store_true", help="print the environment as lines for a shell; runs nothing"
    )
    add_connection(parser, as_json=False)
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command, after --")


def _value(text: str) -> str:
    text = text.strip()
    if not (text and text.isascii() and text.isprintable() and len(text) <= VALUE_MAX):
        raise argparse.ArgumentTypeError(
            f"{text[:VALUE_MAX]!r} cannot be sent as a header: use 1 to {VALUE_MAX} printable ASCII characters, "
            "no line breaks"
        )
    return text


def _priority(text: str) -> str:
    if text not in list("0123456789"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a priority from 0 (first) to 9")
    return text


def run(args: argparse.Namespace) -> int:
    """Become the command; returns only when there is nothing to run, or it cannot be run."""
    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if bool(command) == args.print:
        raise HerdrError(
            "--print runs nothing: leave out the command"
            if command
            else "there is no command: herdr run --agent reviewer -- claude",
            "usage",
        )
    pool = gateway_of(args).call("GET", "/v1/pool")
    wanted = Wanted(args.url, (args.token or "").strip(), _headers(args), args.model)
    context = context_of(pool, args.model or os.environ.get("ANTHROPIC_MODEL") or "claude")
    changes = environment(wanted, context, os.environ)
    if args.print:
        for line in shell_lines(changes):
            sys.stdout.write(f"{line}\n")  # as it is: the headers' line breaks belong to it
        return 0
    _warn(command[0], context)
    return _become(command, {n: v for n, v in {**os.environ, **changes}.items() if v is not None})


def _headers(args: argparse.Namespace) -> dict[str, str]:
    named = {
        "X-Agent-Id": args.agent,
        "X-Priority": args.priority,
        "X-Herdr-Route": args.route,
        "X-Herdr-Session": args.session,
    }
    return {name: value for name, value in named.items() if value is not None}


def context_of(pool: Mapping[str, Any], model: str) -> int | None:
    """Return the tokens that a slot holds of the backend which a model's name means; None when unknown."""
    backends = {backend["name"]: backend for backend in pool.get("backends", ())}
    name = Names(pool.get("names") or {}, list(backends)).find(model)
    context = backends.get(name or "", {}).get("context")
    return context if isinstance(context, int) and context > 0 else None


def environment(wanted: Wanted, context: int | None, present: Mapping[str, str]) -> Changes:
    """Return what to change in an environment so that clients of either kind go to the gateway."""
    settings: dict[str, str] = {**_SETTINGS, **_window(context)}
    changes: dict[str, str | None] = {n: v for n, v in settings.items() if not present.get(n)}
    if wanted.model is not None:
        changes |= dict.fromkeys(_MODELS, wanted.model)
    token = wanted.token or NO_TOKEN
    changes |= {
        URL_VARIABLE: wanted.url,
        TOKEN_VARIABLE: token,
        "ANTHROPIC_BASE_URL": wanted.url,
        "ANTHROPIC_AUTH_TOKEN": token,
        "OPENAI_BASE_URL": f"{wanted.url}/v1",
        "OPENAI_API_KEY": token,
    }
    changes |= {_ONE_BY_ONE[name]: value for name, value in wanted.headers.items()}
    for name in _HEADER_VARIABLES:
        if lines := merged_headers(present.get(name, ""), wanted.headers):
            changes[name] = lines
    changes |= dict.fromkeys([name for name in _AWAY if name in present], None)
    return changes | _past_proxies(wanted.url, present)


def _window(context: int | None) -> dict[str, str]:
    """Return the settings that keep Claude Code, which assumes 200,000 tokens, within a slot.

    Below COMPACT_MIN it compacts when the gateway answers that the prompt is too long.
    """
    if context is None:
        return {}
    window = {
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(context),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(min(context // 4, OUTPUT_MAX)),
    }
    if context >= COMPACT_MIN:
        window["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(context)
    return window


def merged_headers(present: str, headers: Mapping[str, str]) -> str:
    """Return header lines, one a line: those that are there, then ours, which replace their namesakes.

    Credentials among those that are there are another server's, and stay behind.
    """
    ours = {name.lower() for name in headers} | _CREDENTIALS
    kept = [line.strip() for line in present.splitlines()]
    kept = [line for line in kept if line and line.partition(":")[0].strip().lower() not in ours]
    return "\n".join([*kept, *(f"{name}: {value}" for name, value in headers.items())])


def _past_proxies(url: str, present: Mapping[str, str]) -> dict[str, str | None]:
    """Keep a proxy from standing between a client and the gateway, as none does for our own commands."""
    if not any(present.get(name) or present.get(name.upper()) for name in _PROXIES):
        return {}
    already = present.get("no_proxy") or present.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, (already, urlsplit(url).hostname)))
    return {"no_proxy": hosts, "NO_PROXY": hosts}


def shell_lines(changes: Changes) -> Iterator[str]:
    """Yield the changes as commands of a POSIX shell."""
    for name, value in changes.items():
        yield f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"


def _warn(program: str, context: int | None) -> None:
    if PurePath(program).name != "claude":
        return
    if context is None:
        note(
            "how many tokens a slot holds is not known yet (see `herdr pool`), so Claude Code will assume 200,000"
        )
    elif context < CLAUDE_NEEDS:
        note(
            f"a slot holds {context} tokens, of which Claude Code's own prompt takes about 12,000: run the model "
            f"with at least {CLAUDE_NEEDS} for each slot"
        )


def _become(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Replace this process by the command; returns the shell's exit code when that cannot be done."""
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and what is ignored is inherited
    try:
        os.execvpe(command[0], list(command), environ)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        advice = "check the spelling and PATH" if missing else "check that it may be executed"
        note(f"cannot run {command[0]}: {why}; {advice}")
        return NOT_FOUND if missing else NOT_RUN
