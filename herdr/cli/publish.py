"""`herdr publish`: publish one event, or a stream of them from stdin."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from herdr.cli.client import NDJSON, Answer, Gateway, Unreachable, add_connection, gateway_of
from herdr.cli.stdin_lines import Batch, read_batches
from herdr.cli.terminal import note, print_json, print_line
from herdr.errors import HerdrError

_EPILOG = """\
examples:
  herdr publish user.message --source me --data '{"text": "tests first"}'
  git diff | jq -Rs '{patch: .}' | herdr publish change.proposed --subject src/a.py --data-file -
  generate-events | herdr publish --ndjson > receipts.ndjson

Exit codes: 0 accepted, duplicate or deferred; 1 dropped, stale or refused; see `herdr --help` for the others.
"""
_STORED, _LOST = ("accepted", "duplicate", "deferred"), ("dropped", "stale")
_STDIN = 0
PAYLOAD_MAX = 64 * 1024**2  # bytes; the gateway's limit can be raised, but not without end
_FIELDS = ("source", "subject", "workspace", "session", "task", "priority", "id", "based_on", "if_stale")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "publish",
        help="publish an event",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("type", nargs="?", metavar="TYPE", help="dotted lower case, such as test.failed")
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--data", metavar="JSON", help="the payload; - reads it from stdin")
    data.add_argument("--data-file", metavar="FILE", help="the payload from a file; - is stdin")
    data.add_argument(
        "--ndjson", action="store_true", help="read whole events from stdin, one JSON object a line"
    )
    parser.add_argument("--source", help="which tool this is (default: the token's name)")
    parser.add_argument("--subject", help="what it is about, such as a path in the workspace")
    parser.add_argument("--workspace", help="which project (default: default)")
    parser.add_argument("--session", help="conversation that it belongs to")
    parser.add_argument("--task", help="task that it belongs to")
    parser.add_argument("--priority", choices=["P0", "P1", "P2"], help="wished lane")
    parser.add_argument("--tag", action="append", default=[], dest="tags", help="short label; repeatable")
    parser.add_argument("--id", help="publishing the same source and id again stores nothing twice")
    parser.add_argument(
        "--based-on", type=int, metavar="SEQ", help="newest seq about the subject that was known"
    )
    parser.add_argument(
        "--if-stale", choices=["notify", "reject"], help="what to do when there is a newer one"
    )
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Publish, print the receipts, and return the exit code that they stand for."""
    if args.ndjson:
        return _publish_lines(args)
    if args.type is None:
        raise HerdrError("TYPE is missing; or give --ndjson to read events from stdin", "usage")
    answer = _send(gateway_of(args), _one_event(args), "application/json", bool(args.id))
    receipt: dict[str, Any] = answer.value
    print_json(receipt) if args.json else print_line(_words(receipt))
    return 0 if receipt["status"] in _STORED else 1


def _one_event(args: argparse.Namespace) -> bytes:
    fields = {name: getattr(args, name) for name in _FIELDS if getattr(args, name) is not None}
    fields |= {"type": args.type, **({"tags": args.tags} if args.tags else {})}
    head = json.dumps(fields).encode()
    data = _payload(args)
    # Spliced in as it is: decoding and encoding would change large numbers and doubled keys
    return head if data is None else head[:-1] + b', "data": ' + data + b"}"


def _payload(args: argparse.Namespace) -> bytes | None:
    if args.data is not None and args.data != "-":
        raw, origin = args.data.encode("utf-8", "surrogateescape"), "--data"
    elif args.data == "-" or args.data_file == "-":
        with open(_STDIN, "rb", closefd=False) as stdin:
            raw, origin = stdin.read(PAYLOAD_MAX + 1), "stdin"
    elif args.data_file is not None:
        raw, origin = Path(args.data_file).read_bytes(), args.data_file
    else:
        return None
    if len(raw) > PAYLOAD_MAX:
        raise HerdrError(f"{origin} is larger than {PAYLOAD_MAX} bytes: store it elsewhere and refer to it")
    try:
        json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise HerdrError(
            f"{origin} is not JSON ({error}); a text needs quotes of its own: --data '\"text\"'", "usage"
        ) from None
    return bytes(raw)


def _send(gateway: Gateway, body: bytes, kind: str, repeatable: bool) -> Answer:
    try:
        answer = gateway.ask("POST", "/v1/events", body, kind)
    except Unreachable as error:
        if not error.sent:
            raise
        advice = "publish it again" if repeatable else "to be sure next time, publish with an id"
        raise HerdrError(
            f"{error.detail} Whether the event was stored is unknown: {advice}; the same source and id are "
            "never stored twice",
            error.code,
        ) from None
    if not isinstance(answer.value, dict) or answer.value.get("status") not in (*_STORED, *_LOST):
        raise gateway.problem(answer)
    return answer


def _words(receipt: Mapping[str, Any]) -> str:
    words = [receipt["status"]]
    if receipt.get("reason"):
        words.append(f"({receipt['reason']})")
    if receipt.get("seq") is not None:
        words.append(f"seq {receipt['seq']}")
    words.append(f"id {receipt['id']}")
    if conflict := receipt.get("conflict"):
        words.append(
            f"conflict: seq {conflict['seq']} about {conflict['subject']} by {conflict['source']} is newer"
        )
    return " ".join(words)


def _publish_lines(args: argparse.Namespace) -> int:
    given = [name for name in ("type", *_FIELDS, "tags") if getattr(args, name)]
    if given:
        raise HerdrError(
            f"--ndjson takes whole events: put {', '.join(given)} into each line instead", "usage"
        )
    gateway = gateway_of(args)
    counts: Counter[str] = Counter()
    for receipt in _receipts(gateway):
        counts[receipt.get("reason") or receipt["status"]] += 1
        print_json(receipt)
    lost = {name: count for name, count in counts.items() if name not in _STORED}
    if lost:
        what = ", ".join(f"{count} {name}" for name, count in sorted(lost.items()))
        note(f"{sum(lost.values())} of {counts.total()} events were not stored: {what}")
    return 1 if lost else 0


def _receipts(gateway: Gateway) -> Iterator[dict[str, Any]]:
    for batch in read_batches(_STDIN):
        try:
            answer = gateway.ask("POST", "/v1/events", b"\n".join(batch.lines), NDJSON)
        except Unreachable as error:
            raise HerdrError(f"{error.detail} {_unanswered(batch, error.sent)}", error.code) from None
        if not isinstance(answer.value, dict) or "results" not in answer.value:
            raise _refusal(gateway, answer, batch)
        yield from answer.value["results"]
        sys.stdout.flush()


def _unanswered(batch: Batch, sent: bool) -> str:
    if not sent:
        return f"Line {batch.numbers[0]} and what follows were not published"
    return (
        f"Lines {batch.numbers[0]} to {batch.numbers[-1]} are unanswered, what follows was not published: send "
        "them again; events with a source and id of their own are never stored twice"
    )


def _refusal(gateway: Gateway, answer: Answer, batch: Batch) -> HerdrError:
    """Say which line of stdin was wrong: the gateway counts from the start of the request."""
    error = gateway.problem(answer)
    errors = answer.value.get("errors") if isinstance(answer.value, dict) else None
    if not errors or not isinstance(errors[0].get("index"), int):
        return HerdrError(f"lines {batch.numbers[0]} to {batch.numbers[-1]}: {error.detail}", error.code)
    first = errors[0]
    line = batch.numbers[min(first["index"], len(batch.numbers) - 1)]
    where = f"{first['field']}: " if first["field"] else ""
    return HerdrError(
        f"line {line}: {where}{first['message']}; nothing was published from line {batch.numbers[0]} on",
        error.code,
    )
