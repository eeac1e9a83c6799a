"""Pure: what models are told about tools and their arguments."""

from collections.abc import Mapping
from types import MappingProxyType

from herdr.web.mcp.arguments import PATHS_MAX, WAIT_MAX_S

INSTRUCTIONS = (
    "Herdr is the gateway that the coding tools working on this project share: events, write locks, a map of the "
    "code, session histories, artifacts and tasks. Call `register` once, and pass the handle that it gives as "
    "`agent` in every later call. Before you change files, `lock` them, unless your client's hooks do that; "
    "`unlock` them when you are done. For questions about the code, `project_map`, `find_symbol` and `callers` "
    "cost fewer tokens than reading files. Answers may end with what is waiting for you (conflicts, freed locks, "
    "tasks): read it."
)

AGENT = "Your handle from `register`."
WORKSPACE = "The project; not needed when there is only one or `register` knows it."
SESSION = "The conversation it belongs to."
PATHS = (
    f"1 to {PATHS_MAX} paths relative to the project's folder; a folder ends in /, globs work (src/**/*.py)"
)
WAIT = f"Seconds to stand in line, 0 to {WAIT_MAX_S}."
_GENERAL = {"agent": AGENT, "workspace": WORKSPACE, "session": SESSION}

REGISTER: Mapping[str, str] = MappingProxyType(
    {
        "name": "The name that a hook told you, such as claude-code/1a2b3c4d; else your tool's name, such as cursor.",
        "workspace": "The project's name in Herdr.",
        "folder": "Or the absolute path of the project's folder, and Herdr finds the name.",
        "session": "Your conversation's id, if you know it.",
    }
)
PUBLISH: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "type": "Dotted lower case: file.changed, test.failed, lint.error, tool.result, or your own.",
        "data": "Any JSON.",
        "subject": "What it is about; for files the path relative to the project's folder.",
        "priority": "P0, P1 or P2; P0 is for what must reach others at once.",
        "task": "The task that it belongs to.",
        "tags": "At most 16 short labels.",
        "based_on": "The highest seq that you had seen about the subject; an older one is refused as stale.",
    }
)
EVENTS: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "mine": "true: only what is addressed to you.",
        "type": "A type or a glob, such as test.* or handoff.*.",
        "subject": "A path or a glob.",
        "source": "Who published it; a name or a glob.",
        "session": "The conversation that it belongs to.",
        "after": "The cursor of the answer before, to go on from there; left out: the newest.",
        "limit": "At most so many, 1 to 100.",
    }
)
LOCK: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "paths": PATHS,
        "purpose": "Why, in a few words: others who want the files read it.",
        "wait_s": WAIT,
        "ttl_s": "The lock ends by itself after so many seconds, up to 3600; locking again begins anew.",
    }
)
UNLOCK: Mapping[str, str] = MappingProxyType(
    {**_GENERAL, "paths": "Paths whose locks you give back.", "lock": "Or the id of one lock."}
)
CHECK_PATHS: Mapping[str, str] = MappingProxyType({**_GENERAL, "paths": PATHS})
PROJECT_MAP: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "tokens": "How long the map may be.",
        "focus": "Paths that you work on: what they use comes first.",
        "names": "Names of symbols that matter to you.",
    }
)
FIND_SYMBOL: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "name": "total, Cart.total, or a glob: *Handler.",
        "kind": "Only class, function, method …",
        "path": "Only in this file or folder.",
        "limit": "At most so many.",
    }
)
CALLERS: Mapping[str, str] = MappingProxyType(
    {**_GENERAL, "symbol": "A name, Cart.total, or src/cart.py::Cart.total.", "limit": "At most so many."}
)
SESSION_WINDOW: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "session": "Which one; left out: a list of the sessions.",
        "tokens": "How long it may be.",
    }
)
ARTIFACT: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "action": "save, read or list.",
        "name": "Such as patches/fix-42.diff.",
        "content": "The text to save.",
        "kind": "patch, log_digest, error_analysis, or another word; for list: only these.",
        "ttl_s": "Kept for so many seconds; a week by default.",
        "offset": "For read: go on after so many characters.",
    }
)
TASK: Mapping[str, str] = MappingProxyType(
    {
        **_GENERAL,
        "action": "What to do.",
        "task": "The task's id. create: optional, and makes it safe to repeat. list: one whole task.",
        "title": "create: one line.",
        "description": "create: what is to be done, and when it is done.",
        "role": "Who is to work on it: architect, coder, reviewer, tester, or any name. Needed by create and "
        "hand_over, and by claim without a task.",
        "note": "What whoever has it next should know.",
        "question": "ask: what you need to know.",
        "to": "ask: a name or a role; left out: who handed the task over, else who created it.",
        "answer": "answer: the answer to what was asked.",
        "reason": "fail, release: why.",
        "wait_s": "claim: " + WAIT.lower(),
        "ttl_s": "claim: how long you may be silent before the task goes back, up to 3600; claim again begins anew.",
    }
)
DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "register": "Tell Herdr who you are; do it once at the start, or again when your handle is not known. "
        "Returns your `agent` handle for all other tools, and your name, under which locks, events and tasks run.",
        "publish": "Tell the other tools what happened: a changed file, failed tests, a finding, a decision. Use it "
        "when others would want to know; locks and tasks tell of themselves. Returns the event's seq.",
        "events": "What happened lately: mine=true for what is addressed to you, a filter for all of the project's. "
        "Use it to catch up. Returns events, oldest first, and a cursor to go on from.",
        "lock": "Take the right to write files, all of them or none, before you change them. Refused with who has "
        "them, why and until when; you hear in a later answer when they are free. Returns the lock and when it ends.",
        "unlock": "Give files back as soon as you are done with them. Returns what was released.",
        "check_paths": "See whether others hold files, without locking. Use it to plan. Returns who is in the way, "
        "why and until when.",
        "project_map": "An outline of the project: its most used files and symbols within a budget of tokens. Use it "
        "first in a project, or with `focus` before you work on files. Returns text.",
        "find_symbol": "Where something is defined, with its signature. Use it instead of searching in files.",
        "callers": "Who calls a function, a method or a class, and where. Use it before you change a signature.",
        "session_window": "What was said and decided in a conversation, yours or another tool's, as a summary and "
        "the newest messages. Use it to go on where somebody stopped. Without `session`: which ones there are.",
        "artifact": "Texts that tools leave for each other: patches, log digests, analyses. save what is too long "
        "for an event or a note, and name it there; read; list.",
        "task": "Work that goes from hand to hand. create it for a role; claim the oldest of a role (or a named "
        "one); hand_over to the next role with a note; ask back, answer; finish, fail or release it; list them.",
    }
)
