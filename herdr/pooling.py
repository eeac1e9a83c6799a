"""Builds the model pool out of the configuration; a part of the composition root."""

from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from herdr import config as settings
from herdr.clock import Clock
from herdr.errors import InvalidInput, StartupError
from herdr.pool.backend import Backend
from herdr.pool.backends.anthropic import Anthropic
from herdr.pool.backends.chat import Chat
from herdr.pool.backends.llamacpp import LlamaCpp
from herdr.pool.backends.openai import OpenAi
from herdr.pool.line import Line
from herdr.pool.lookout import Lookout
from herdr.pool.names import Names, Short
from herdr.pool.pool import Pool
from herdr.pool.prewarm import prompt_of
from herdr.pool.request import ChatRequest
from herdr.pool.run import Record
from herdr.pool.schedule import Schedule
from herdr.pool.upstream import Limits, Upstream

CONCURRENCY = 4  # requests at once to a backend without slots, where the configuration names no number


def api_keys(models: settings.ModelsSection, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of the backends that need one, by backend; raises StartupError when one is missing."""
    keys = {}
    for backend in models.backends:
        if backend.api_key_env is None:
            continue
        key = environ.get(backend.api_key_env, "").strip()  # files of variables often end in a line break
        if not (key and key.isascii() and key.isprintable()):
            raise StartupError(
                f"models.backends: {backend.name} needs the environment variable {backend.api_key_env}, which is "
                "not set, or holds what no header can carry; set it to the API key, or remove api_key_env"
            )
        keys[backend.name] = key
    return keys


def read_prompts(files: tuple[str, ...]) -> dict[str, ChatRequest]:
    """Return the prompts to evaluate at start, by file name; raises StartupError."""
    prompts = {}
    for name in files:
        try:
            prompts[name] = prompt_of(Path(name).read_bytes())
        except OSError as error:
            raise StartupError(f"models.prewarm: {name} cannot be read: {error.strerror}") from None
        except InvalidInput as error:
            raise StartupError(f"models.prewarm: {name} holds no prompt: {error.detail}") from None
    return prompts


def build_pool(
    models: settings.ModelsSection,
    keys: Mapping[str, str],
    session: aiohttp.ClientSession,
    record: Record,
    clock: Clock,
    new_id: Callable[[], str],
    is_stopping: Callable[[], bool],
) -> Pool:
    """Build every backend with its line, and the pool over them."""
    lines = {}
    for backend in models.backends:
        client = build_backend(backend, keys.get(backend.name), session, clock, new_id)
        schedule = build_schedule(models, backend)
        lookout = Lookout(client, clock)
        lines[backend.name] = Line(client, lookout, schedule, clock, models.queue_timeout_s)
    short = models.short
    return Pool(
        lines,
        Names(
            models.names,
            list(lines),
            {b.name: b.fallback for b in models.backends if b.fallback is not None},
            None if short.backend is None else Short(short.backend, short.prompt_max),
        ),
        queue_timeout_s=models.queue_timeout_s,
        default_max_tokens=models.default_max_tokens,
        record=record,
        clock=clock,
        new_id=new_id,
        is_stopping=is_stopping,
    )


def build_schedule(models: settings.ModelsSection, backend: settings.Backend) -> Schedule:
    """Build the schedule of one backend; it begins with one slot until the backend has been looked at."""
    has_slots = backend.kind == "llamacpp"
    return Schedule(
        1,
        shares=models.shares,
        background_max=models.background_max,
        per_agent=models.slots_per_agent,
        ageing_s=models.ageing_s,
        affinity_wait_s=models.affinity_wait_s,
        slot_idle_s=models.slot_idle_s,
        sticky=has_slots,
        spill=has_slots and backend.save_slots,
    )


def build_backend(
    backend: settings.Backend,
    key: str | None,
    session: aiohttp.ClientSession,
    clock: Clock,
    new_id: Callable[[], str],
) -> Backend:
    """Build the client of one backend."""
    times = backend.timeouts
    limits = Limits(times.connect_s, times.first_byte_s, times.between_chunks_s, times.total_s)
    concurrency = backend.concurrency or CONCURRENCY
    if backend.kind == "anthropic":
        headers = {} if key is None else {"x-api-key": key}
        upstream = Upstream(backend.name, backend.url, headers, limits, session)
        return Anthropic(upstream, clock, backend.model, concurrency, backend.tool_calls)
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    url = backend.url.rstrip("/").removesuffix("/v1") if backend.kind == "llamacpp" else backend.url
    upstream = Upstream(backend.name, url, headers, limits, session)
    chat = Chat(
        backend.kind,
        model=backend.model,
        tool_calls=backend.tool_calls,
        recover=backend.recover_tool_calls,
        lower_schema=backend.structured_output == "json_object",
        new_id=new_id,
    )
    if backend.kind == "openai":
        return OpenAi(upstream, clock, chat, concurrency)
    return LlamaCpp(upstream, chat)
