"""The handlers of `/v1/sessions`."""

from dataclasses import replace

import msgspec
from msgspec import Raw

from herdr.errors import FieldError, HerdrError, InvalidInput
from herdr.event import Draft, Name
from herdr.web.asgi import Receive, Reply, Scope, read_body, respond, respond_json
from herdr.web.auth import Caller
from herdr.web.bodies import read_body_as, wrong
from herdr.web.context_api import read
from herdr.web.context_bodies import (
    EXPECTED,
    MESSAGES_BODY_MAX,
    MESSAGES_MAX,
    MessageBody,
    MessagesBody,
    PageQuery,
    SessionsQuery,
    WindowQuery,
)
from herdr.web.context_desk import Pictures, Sessions
from herdr.web.etag import respond_json_tagged

TYPE = "session.message"
ADVICE = f"send fewer messages a request (at most {MESSAGES_MAX}), or shorter ones"

_encode = msgspec.json.Encoder().encode


class SessionsApi:
    """Histories of what was said, and their windows."""

    def __init__(self, sessions: Sessions, pictures: Pictures, data_max: int) -> None:
        """`data_max`: the largest message, in bytes, as for any event."""
        self._sessions = sessions
        self._pictures = pictures
        self._data_max = data_max

    async def say(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Record messages; answered once they are in the log."""
        session = _session(scope)
        said = _messages(await read_body(scope, receive, MESSAGES_BODY_MAX, ADVICE))
        drafts = [self._draft(session, body, place) for place, body in enumerate(said)]
        receipts = await self._sessions.say(session, drafts, caller.name)
        if any(receipt.status == "dropped" for receipt in receipts):
            raise HerdrError(
                "too many events wait for the log, and some messages were not taken; send them all again in a "
                "second, with the same ids if they have any",
                "overloaded",
            )
        rows = [{"seq": r.seq, "id": r.id, "status": r.status} for r in receipts]
        await respond_json(send, 201, {"session": session, "messages": rows})

    def _draft(self, session: str, body: MessageBody, place: int) -> Draft:
        data = {"role": body.role, "content": body.content}
        data |= {name: value for name in ("files", "tool") if (value := getattr(body, name))}
        raw = _encode(data)
        if len(raw) > self._data_max:
            raise wrong(
                FieldError(
                    "content",
                    f"the message has {len(raw)} bytes, the most is {self._data_max}; put what is long into an "
                    "artifact and name it",
                    place,
                )
            )
        return Draft(
            TYPE,
            id=body.id,
            workspace=body.workspace,
            session=session,
            task=body.task,
            time=body.time,
            data=Raw(raw),
        )

    async def list(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """List sessions, most recently updated first."""
        query = read(SessionsQuery, scope)
        await respond_json_tagged(scope, send, await self._sessions.listed(query.workspace, query.limit))

    async def window(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with a session's summary and newest messages within a budget."""
        query = read(WindowQuery, scope)
        await respond_json_tagged(scope, send, await self._pictures.window(_session(scope), query.tokens))

    async def messages(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Answer with whole messages, oldest first."""
        query = read(PageQuery, scope)
        await respond_json_tagged(
            scope, send, await self._sessions.messages(_session(scope), query.after, query.limit)
        )

    async def delete(self, scope: Scope, receive: Receive, send: Reply, caller: Caller) -> None:
        """Remove a session's messages and summary."""
        await self._sessions.delete(_session(scope))
        await respond(send, 204, b"", [])


def _session(scope: Scope) -> str:
    try:
        return msgspec.convert(scope["path_params"]["session"], Name)
    except msgspec.ValidationError:
        raise wrong(FieldError("session", EXPECTED["session"])) from None


def _messages(body: bytes) -> list[MessageBody]:
    """Read one message, or `{"messages": […]}`; raises InvalidInput that names the wrong one."""
    try:
        is_many = "messages" in msgspec.json.decode(body or b"{}", type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        is_many = False  # the decoder below says what is wrong
    if not is_many:
        return [read_body_as(MessageBody, body, EXPECTED)]
    found = []
    for place, raw in enumerate(read_body_as(MessagesBody, body, EXPECTED).messages):
        try:
            found.append(read_body_as(MessageBody, bytes(raw), EXPECTED))
        except InvalidInput as error:
            raise wrong(*(replace(wrong_field, index=place) for wrong_field in error.errors)) from None
    return found
