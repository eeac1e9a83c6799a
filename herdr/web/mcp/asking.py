"""Calls of tools: who calls, whether they may, what comes back, and what waits for them."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, PaginatedRequestParams

from herdr.bus.inbox import Inbox
from herdr.errors import HerdrError
from herdr.hooks.words import bodies_of, news
from herdr.web.auth import Caller
from herdr.web.mcp.agents import Agents, Who
from herdr.web.mcp.around import Tool
from herdr.web.mcp.freed import Freed
from herdr.web.mcp.schemas import read_arguments, schema_of
from herdr.web.mcp.words import DESCRIPTIONS

CALLER = "herdr.mcp.caller"
"""Under which the endpoint puts the caller into the scope."""

COMPLETE: Mapping[str, str] = MappingProxyType({"resultType": "complete"})
"""What the newer era wants of every result; of the older one the SDK takes it out."""

NEWS_MAX = 10  # events that one answer may bring; more come with the next
LINE_MAX = 500  # characters of one of them

_log = logging.getLogger("herdr.mcp")

Context = ServerRequestContext[Any, Any]


class Asking:
    """Answers `tools/list` and `tools/call`."""

    def __init__(self, tools: Sequence[Tool], agents: Agents, inbox: Inbox, freed: Freed) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._agents = agents
        self._inbox = inbox
        self._freed = freed
        self._listed = [_listed(tool) for tool in tools]

    async def list(self, ctx: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """Return what there is."""
        return {**COMPLETE, "tools": self._listed}

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return what a tool takes."""
        return next((tool["inputSchema"] for tool in self._listed if tool["name"] == name), None)

    async def call(self, ctx: Context, params: CallToolRequestParams) -> dict[str, Any]:
        """Call a tool. What goes wrong is an answer, too, which says what to do."""
        caller = caller_of(ctx)
        tool = self._tools.get(params.name)
        if tool is None:
            names = ", ".join(self._tools)
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!r}; there are {names}")
        who: Who | None = None
        try:
            check_scope(caller, tool.scope)
            asked = read_arguments(tool.arguments, params.arguments or {}, tool.words)
            who = self._agents.find(getattr(asked, "agent", None), caller)
            said = await tool.run(who, asked)
            answer = {**COMPLETE, "content": [_text(said.text)], "structuredContent": said.data}
        except HerdrError as error:
            answer = _refused(error)
        except Exception:  # noqa: BLE001 - the border: a client gets no traceback, and the log has it
            _log.exception("the tool %s failed", params.name[:64])
            answer = _refused(HerdrError("the gateway made a mistake; its log says which"))
        return await self._with_news(answer, who)

    async def _with_news(self, answer: dict[str, Any], who: Who | None) -> dict[str, Any]:
        """Put what waits for whoever called beside the answer."""
        if who is None or who.name is None:
            return answer
        try:
            waiting = await self._inbox.take(who.name, NEWS_MAX)
        except HerdrError as error:  # the answer is worth more than what waits, which goes on waiting
            _log.warning("what waits for %s could not be taken: %s", who.name, error.detail)
            return answer
        told = [*self._freed.take(who.name), *news(bodies_of(waiting.events), waiting.more)]
        lines = [_clean(line) for line in told]
        if waiting.lost:
            lines.append(f"{waiting.lost} older events were too many to be kept; the tool `events` has them.")
        if lines:
            answer["content"].append(_text("Waiting for you:\n" + "\n".join(f"- {line}" for line in lines)))
            if "structuredContent" in answer:
                answer["structuredContent"] = {**answer["structuredContent"], "waiting": lines}
        return answer


def caller_of(ctx: Context) -> Caller:
    """Return who sent a request."""
    assert ctx.request is not None  # over HTTP there always is one
    caller: Caller = ctx.request.scope[CALLER]
    return caller


def check_scope(caller: Caller, scope: str | None) -> None:
    """Raise HerdrError when a caller may not do something."""
    if scope is not None and not caller.may(scope):
        raise HerdrError(
            f"the token {caller.name!r} lacks the scope {scope!r}, which this needs; a user can add it under "
            "auth.tokens",
            "missing_scope",
        )


def _listed(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": DESCRIPTIONS[tool.name],
        "inputSchema": schema_of(tool.arguments, tool.words),
        "annotations": {"readOnlyHint": tool.reads, "destructiveHint": False, "openWorldHint": False},
    }


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _refused(error: HerdrError) -> dict[str, Any]:
    return {**COMPLETE, "content": [_text(f"{error.code}: {error.detail}")], "isError": True}


def _clean(line: str) -> str:
    return "".join(c if c.isprintable() else " " for c in line)[:LINE_MAX]
