import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from virtual_time import VirtualClock

from herdr.config.models import ModelsSection
from herdr.errors import StartupError
from herdr.pool.backends.anthropic import Anthropic
from herdr.pool.backends.llamacpp import LlamaCpp
from herdr.pool.backends.openai import OpenAi
from herdr.pool.upstream import Limits, client_session
from herdr.pooling import CONCURRENCY, api_keys, build_backend, build_pool, build_schedule, read_prompts


def models(*backends: dict[str, Any], **more: Any) -> ModelsSection:
    given = [{"name": "b", "kind": "openai", "url": "http://there", **backend} for backend in backends]
    return msgspec.convert({"backends": given, **more}, ModelsSection)


# -- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["sk-1", "sk-1\n", " sk-1\r\n", "sk-1 \t"])
def test_keys_come_without_the_line_breaks_around_them(value: str) -> None:
    section = models({"api_key_env": "KEY"}, {"name": "open"})
    assert api_keys(section, {"KEY": value}) == {"b": "sk-1"}


@pytest.mark.parametrize(
    "value", [None, "", " \n", "a\nb", "a\x00b", "a\x7fb", "sch\u00fcssel", "a\r\nx-evil: 1"]
)
def test_a_key_that_is_missing_or_no_header_can_carry_ends_the_start(value: str | None) -> None:
    section = models({"api_key_env": "KEY"})
    with pytest.raises(StartupError, match="b needs the environment variable KEY") as told:
        api_keys(section, {} if value is None else {"KEY": value})
    assert not value or value.strip() == "" or value not in told.value.detail, (
        "it may be the key all the same"
    )


# -- prompts ------------------------------------------------------------------------------------------------


def test_prompts_are_read_from_their_files(tmp_path: Path) -> None:
    text, chat = tmp_path / "kind.txt", tmp_path / "chat.json"
    text.write_text("You are kind.")
    chat.write_text('{"messages": [{"role": "user", "content": "Hi"}]}')
    found = read_prompts((str(text), str(chat)))
    assert list(found) == [str(text), str(chat)]
    assert [len(request.messages) for request in found.values()] == [2, 1]


@pytest.mark.parametrize("content", [None, b"\xff", b'{"messages": 7}'])
def test_a_prompt_that_cannot_be_read_ends_the_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "prompt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StartupError, match=r"models\.prewarm: .*prompt"):
        read_prompts((str(file),))


def test_a_folder_is_no_prompt(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read"):
        read_prompts((str(tmp_path),))


# -- building -----------------------------------------------------------------------------------------------


async def build(backend: dict[str, Any], key: str | None = None) -> Any:
    async with client_session() as session:
        (it,) = models(backend).backends
        return build_backend(it, key, session, VirtualClock(), lambda: "id")


@pytest.mark.parametrize(
    ("kind", "class_", "headers"),
    [
        ("llamacpp", LlamaCpp, {"authorization": "Bearer k"}),
        ("openai", OpenAi, {"authorization": "Bearer k"}),
        ("anthropic", Anthropic, {"x-api-key": "k"}),
    ],
)
async def test_each_kind_and_its_key(kind: str, class_: type, headers: dict[str, str]) -> None:
    with_key, without = await build({"kind": kind}, "k"), await build({"kind": kind})
    assert type(with_key) is class_ and with_key.kind == kind
    assert with_key._upstream._headers == headers and without._upstream._headers == {}


async def test_time_limits_are_those_of_the_configuration() -> None:
    times = {"connect_s": 1, "first_byte_s": 2, "between_chunks_s": 3, "total_s": 4}
    backend = await build({"timeouts": times})
    assert backend._upstream.limits == Limits(1, 2, 3, 4)


@pytest.mark.parametrize(("given", "places"), [({}, CONCURRENCY), ({"concurrency": 9}, 9)])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_how_many_requests_at_once(kind: str, given: dict[str, Any], places: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        backend = await build({"kind": kind, "url": url, **given})
        assert (await backend.look()).total == places


@pytest.mark.parametrize("url", ["http://there", "http://there/", "http://there/v1", "http://there/v1/"])
async def test_llamacpps_address_may_end_in_the_version(url: str) -> None:
    assert (await build({"kind": "llamacpp", "url": url}))._upstream.url == "http://there"


@pytest.mark.parametrize(
    ("kind", "saves", "restores"), [("llamacpp", True, True), ("llamacpp", False, False)]
)
def test_slots_are_saved_where_there_are_any(kind: str, saves: bool, restores: bool) -> None:
    section = models({"kind": kind, "save_slots": saves})
    assert build_schedule(section, section.backends[0]).snapshot(0.0).restores == restores


def test_places_are_not_sticky() -> None:
    section = models({"kind": "openai"})
    assert not build_schedule(section, section.backends[0]).snapshot(0.0).restores


async def test_names_fallbacks_and_short_requests() -> None:
    section = models(
        {"name": "big", "fallback": "cloud"},
        {"name": "cloud"},
        {"name": "small"},
        names={"gpt-*": "cloud"},
        short={"backend": "small", "prompt_max": 10},
    )

    async def record(outcome: object) -> None:
        raise AssertionError

    async with client_session() as session:
        pool = build_pool(section, {}, session, record, VirtualClock(), lambda: "id", lambda: False)
    assert list(pool.lines) == ["big", "cloud", "small"]
    assert pool.names.choices("any", 11, False) == ["big", "cloud"]
    assert pool.names.choices("gpt-5", 11, False) == ["cloud"]
    assert pool.names.choices("any", 10, False) == ["small"]
    assert pool.names.choices("any", 10, True) == ["big", "cloud"]


async def test_without_a_small_backend_nothing_is_short() -> None:
    async with client_session() as session:
        pool = build_pool(
            models({}),
            {},
            session,
            lambda outcome: asyncio.sleep(0),
            VirtualClock(),
            lambda: "id",
            lambda: False,
        )
    assert pool.names.choices("any", 1, False) == ["b"]
