"""Texts that can stand in a prompt, and what was asked for before, so that the same text is not paid for twice."""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec

from herdr_sdk.errors import ServerError
from herdr_sdk.plain_http import PlainHttp, Reply, Request, part

ENTRIES_MAX = 256  # questions of one hub: a tool asks the same few dozen again and again
BYTES_MAX = 16 * 1024**2  # of answers as they came; the largest window alone has about 3 MB

NOT_MODIFIED = 304


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text, with what it costs."""

    text: str
    ref: str = ""
    """Its SHA-256 in hexadecimal: `Hub.blob` gives the text for it, to other tools too."""
    tokens: int = 0
    tokenizer: str = ""
    """Who counted: `bytes/2.7` (never too few), `o200k_base`, `backend:NAME`."""
    unchanged: bool = False
    """True when this hub has been given this very text for the same question before: a prompt that has it
    needs it no more."""


_Text = TypeVar("_Text", bound=Text)


class Kept(NamedTuple):
    """One answer that was had."""

    etag: str
    value: object
    size: int
    """Bytes, as it came."""


class Answers:
    """Answers by what was asked, those used longest ago given up first: at most 256, and 16 MiB."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Kept] = OrderedDict()
        self._size = 0

    def get(self, key: object) -> Kept | None:
        """Return what was kept, None if nothing was."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, key: object, kept: Kept) -> None:
        """Keep an answer in place of the one before."""
        self.drop(key)
        if kept.size > BYTES_MAX:
            return
        self._kept[key] = kept
        self._size += kept.size
        while len(self._kept) > ENTRIES_MAX or self._size > BYTES_MAX:
            self.drop(next(iter(self._kept)))

    def drop(self, key: object) -> None:
        """Forget an answer."""
        if (old := self._kept.pop(key, None)) is not None:
            self._size -= old.size


class Texts:
    """Asks for texts and for content, and says with each question what it has already."""

    def __init__(self, http: PlainHttp) -> None:
        self._http = http
        self._answers = Answers()

    async def read(self, kind: type[_Text], path: str, query: Mapping[str, object]) -> _Text:
        """Return a text, from what was kept if the gateway says that it is the same."""
        request = Request("GET", path, query)
        kept, reply = await self._ask(request)
        before = kept.value if kept is not None and isinstance(kept.value, kind) else None
        if reply.status == NOT_MODIFIED and before is not None:
            return msgspec.structs.replace(before, unchanged=True)
        answer = self._http.decode(kind, request, reply.body)
        self._keep(request, reply, answer)
        same = before is not None and before.text == answer.text
        return msgspec.structs.replace(answer, unchanged=same)

    async def content(self, path: str, query: Mapping[str, object]) -> bytes:
        """Return the bytes at an address, from what was kept if the gateway says that they are the same."""
        request = Request("GET", path, query)
        kept, reply = await self._ask(request)
        if reply.status == NOT_MODIFIED and kept is not None and isinstance(kept.value, bytes):
            return kept.value
        self._keep(request, reply, reply.body)
        return reply.body

    async def blob(self, ref: str) -> bytes:
        """Return what has this SHA-256; what is kept is not asked for again."""
        kept = self._answers.get(ref)
        if kept is not None and isinstance(kept.value, bytes):
            return kept.value
        body = (await self._http.ask(Request("GET", f"/v1/blobs/{part(ref)}"))).body
        if (found := sha256(body).hexdigest()) != ref.lower():
            detail = f"The gateway gave other content for {ref}: its SHA-256 is {found}. Do not use it."
            raise ServerError("wrong_content", detail)
        self._answers.put(ref, Kept(ref, body, len(body)))
        return body

    async def _ask(self, request: Request) -> tuple[Kept | None, Reply]:
        kept = self._answers.get(_key(request))
        if kept is not None:
            request = request._replace(headers={"If-None-Match": kept.etag})
        return kept, await self._http.ask(request)

    def _keep(self, request: Request, reply: Reply, value: object) -> None:
        if reply.etag is not None:
            self._answers.put(_key(request), Kept(reply.etag, value, len(reply.body)))


def _key(request: Request) -> tuple[str, str]:
    return request.path, repr(sorted(request.query.items()))
