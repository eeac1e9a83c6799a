"""`herdr task`: work that goes from hand to hand: create it, claim it, hand it over, end it."""

import argparse
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from herdr.cli.client import TIMEOUT_S, Gateway, add_connection, gateway_of, part_of
from herdr.cli.listing import print_rows
from herdr.cli.owner import OWNER_VARIABLE, lasting_owner
from herdr.cli.task_options import CLAIM_VARIABLES, add_claim, add_note, add_work, body_of, seconds
from herdr.cli.task_texts import HEADER, describe, listed, one_line
from herdr.cli.task_work import work
from herdr.cli.terminal import note, print_json, print_line
from herdr.clock import SystemClock
from herdr.errors import HerdrError
from herdr.tasks.task import State

_EPILOG = """\
examples:
  herdr task create 'Sum the cart once' --role coder --description 'see docs/cart.md'
  herdr task claim --role coder --wait 600
  herdr task hand-over 01M8P532BP53ND5G61AVK3QGY7 --role reviewer --summary 'sums are cached' --file src/cart.py
  herdr task work --role tester -- scripts/test
  herdr task list --role reviewer --state submitted
"""
STATES = get_args(State)
TASKS = "/v1/tasks"


class Verb(NamedTuple):
    """What may be done with one task."""

    help: str
    description: str
    example: str
    holds: bool = True
    """Whether it takes the token of whoever holds the task."""
    notes: bool = False
    reasons: bool = False


VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        "hand-over": Verb(
            "give it to the next role",
            "Give a task that you hold to another role, with what its next holder should know.",
            "T1 --role reviewer --summary 'sums are cached' --file src/cart.py",
            notes=True,
        ),
        "ask": Verb(
            "ask something; you keep the task",
            "Ask about a task that you hold: whoever handed it over, or created it, unless you say whom.",
            "T1 'Which currency?' --to architect",
        ),
        "answer": Verb(
            "answer what its holder asked",
            "Answer what the holder of a task has asked; it goes on then.",
            "T1 'The one of the shop'",
            holds=False,
        ),
        "renew": Verb(
            "hold it for longer", "Let the lease of a task that you hold begin anew.", "T1 --ttl 600"
        ),
        "release": Verb(
            "give it back",
            "Give a task that you hold back to its role.",
            "T1 --reason 'no access'",
            reasons=True,
        ),
        "finish": Verb(
            "say that it is done", "End a task that you hold.", "T1 --summary 'merged'", notes=True
        ),
        "fail": Verb(
            "say that it cannot be done",
            "End a task that you hold, and say why it cannot be done.",
            "T1 --reason 'the API is gone'",
            notes=True,
            reasons=True,
        ),
        "reject": Verb(
            "say that it should not be done",
            "End a task that you hold, and say why it should not be done.",
            "T1 --reason 'a duplicate of T0'",
            notes=True,
            reasons=True,
        ),
        "cancel": Verb(
            "end it, whoever holds it",
            "End a task that you created, whoever holds it; other people's need the scope admin.",
            "T1 --reason 'not needed any more'",
            holds=False,
            reasons=True,
        ),
    }
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its parts."""
    parser = subparsers.add_parser(
        "task",
        help="work that goes from hand to hand",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    _add_create(parts)
    _add_looks(parts)
    _add_claim(parts)
    for name, verb in VERBS.items():
        _add_verb(parts, name, verb)
    add_work(parts)


def _add_create(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    create = parts.add_parser(
        "create",
        help="create one",
        description="Create a task for whoever has a role; prints its id.",
        epilog="example: herdr task create 'Sum the cart once' --role coder",
    )
    create.add_argument("title", metavar="TITLE", help="what it is, in one line")
    create.add_argument("--role", required=True, metavar="R", help="who is to work on it, such as coder")
    create.add_argument("--description", metavar="TEXT", help="what to do; - reads it from stdin")
    create.add_argument(
        "--id", metavar="ID", help="its id (default: a new one); the same again is no new task"
    )
    create.add_argument("--workspace", metavar="W", help="which project (default: default)")
    create.add_argument("--session", metavar="S", help="conversation that it belongs to")
    add_note(create)
    _add_owner(create)
    add_connection(create)


def _add_looks(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    listing = parts.add_parser(
        "list",
        help="what there is to do, and who does it",
        description="List tasks, the one that changed last first.",
        epilog="example: herdr task list --role reviewer --state submitted",
    )
    listing.add_argument("--workspace", metavar="W", help="only this project's")
    listing.add_argument("--role", metavar="R", help="only those that this role is to work on")
    listing.add_argument(
        "--state", action="append", choices=STATES, metavar="STATE", help="only those in it; may be repeated"
    )
    listing.add_argument("--holder", metavar="N", help="only those that this one holds")
    listing.add_argument("--limit", type=int, metavar="N", help="at most so many (default 100)")
    add_connection(listing)
    show = parts.add_parser(
        "show",
        help="one with its history",
        description="Print a task with all its steps.",
        epilog="example: herdr task show 01M8P532BP53ND5G61AVK3QGY7",
    )
    show.add_argument("task", metavar="TASK", help="its id")
    add_connection(show)


def _add_claim(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    claim = parts.add_parser(
        "claim",
        help="take one",
        description="Take a task, or with --role the one that has waited longest; prints its id and the token that "
        "the other parts ask for. It returns to its role when the lease is over.",
        epilog="example: herdr task claim --role coder --wait 600",
    )
    claim.add_argument("task", metavar="TASK", nargs="?", help="its id")
    claim.add_argument("--role", metavar="R", help="any of this role, in place of an id")
    claim.add_argument("--workspace", metavar="W", help="with --role: which project (default: default)")
    claim.add_argument(
        "--wait", type=seconds(0, 600), metavar="S", help="with --role: wait at most so many seconds for one"
    )
    claim.add_argument("--ttl", type=seconds(1, 3600), metavar="S", help="lease in seconds (default 120)")
    _add_owner(claim)
    add_connection(claim)


def _add_verb(parts: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, verb: Verb) -> None:
    part = parts.add_parser(
        name,
        help=verb.help,
        description=verb.description,
        epilog=f"example: herdr task {name} {verb.example}",
    )
    part.add_argument("task", metavar="TASK", help="its id")
    if name in ("ask", "answer"):
        text = "question" if name == "ask" else "answer"
        part.add_argument(text, metavar=text.upper(), help="- reads it from stdin")
    if name == "ask":
        part.add_argument("--to", metavar="N", help="whom: a name or a role")
    if name == "hand-over":
        part.add_argument("--role", required=True, metavar="R", help="who is to go on with it")
    if name == "renew":
        part.add_argument("--ttl", type=seconds(1, 3600), metavar="S", help="for so many seconds")
    if verb.reasons:
        part.add_argument("--reason", metavar="TEXT", help="why")
    if verb.notes:
        add_note(part)
    if verb.holds:
        add_claim(part)
    else:
        _add_owner(part)
    add_connection(part)


def _add_owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--owner",
        metavar="N",
        help=f"who we are (default: {OWNER_VARIABLE}, git's herdr.owner, the gateway token's name, or user@host)",
    )


def run(args: argparse.Namespace) -> int:
    """Do what the part says."""
    if args.part == "work":
        return work(args)
    gateway = gateway_of(args)
    if args.part == "list":
        return _list(args, gateway)
    if args.part == "show":
        return _show(args, gateway.read(f"{TASKS}/{part_of(args.task)}"))
    if args.part == "create":
        return _create(args, gateway)
    if args.part == "claim":
        return _claim(args, gateway)
    view = gateway.object(gateway.call("POST", f"{TASKS}/{part_of(args.task)}/{args.part}", _verb_body(args)))
    return _tell(args, view, one_line(view))


def _verb_body(args: argparse.Namespace) -> dict[str, Any]:
    verb = VERBS[args.part]
    body = body_of(args, "role", "to", "ttl", "reason")
    for name in ("question", "answer"):
        if (text := getattr(args, name, None)) is not None:
            body[name] = _text(text)
    return {**body, **({"token": args.task_token} if verb.holds else _owner(args))}


def _create(args: argparse.Namespace, gateway: Gateway) -> int:
    body = {**body_of(args, "title", "role", "workspace", "session"), **_owner(args)}
    body |= {} if args.id is None else {"task": args.id}
    body |= {} if args.description is None else {"description": _text(args.description)}
    view = gateway.object(gateway.call("POST", TASKS, body))
    return _tell(args, view, str(view.get("task")))


def _claim(args: argparse.Namespace, gateway: Gateway) -> int:
    if (args.task is None) == (args.role is None):
        raise HerdrError("say which: herdr task claim TASK, or herdr task claim --role R", "usage")
    body = {**body_of(args, "role", "workspace", "ttl", "wait"), **_owner(args)}
    if args.role is None:
        found = gateway.call("POST", f"{TASKS}/{part_of(args.task)}/claim", body)
    else:
        patient = gateway_of(args, TIMEOUT_S + (args.wait or 0))
        found = patient.call("POST", f"{TASKS}/claim", body)
    if found is None:
        raise HerdrError(f"there is no task for {args.role} now; --wait S waits for one", "no_task")
    view = gateway.object(found)
    if not args.json:
        note(
            f"{view.get('title')}: held until {view.get('expires')}; renew it, hand it over or finish it before"
        )
    task, token = CLAIM_VARIABLES
    return _tell(args, view, f"{task}={view.get('task')} {token}={view.get('token')}")


def _list(args: argparse.Namespace, gateway: Gateway) -> int:
    query = {name: getattr(args, name) for name in ("workspace", "role", "state", "holder", "limit")}
    answer = gateway.read(TASKS, query)
    if args.json:
        print_json(answer)
        return 0
    tasks = answer.get("tasks") or ()
    if not tasks:
        print_line("no tasks")
        return 0
    print_rows(HEADER, [listed(task, SystemClock().wall_us()) for task in tasks])
    return 0


def _show(args: argparse.Namespace, view: Mapping[str, Any]) -> int:
    if args.json:
        print_json(view)
        return 0
    for line in describe(view, SystemClock().wall_us()):
        print_line(line)
    return 0


def _tell(args: argparse.Namespace, view: Mapping[str, Any], line: str) -> int:
    if args.json:
        print_json(view)
    else:
        print_line(line)
    return 0


def _owner(args: argparse.Namespace) -> dict[str, str]:
    owner = lasting_owner(args.owner, has_token=bool(args.token))
    return {} if owner is None else {"owner": owner}


def _text(given: str) -> str:
    return sys.stdin.read().strip() if given == "-" else given
