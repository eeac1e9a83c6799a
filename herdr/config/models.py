"""The `models` section: backends that generate text, and how requests share them (PROTOCOL section 5)."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from herdr.config.routes import Glob

SECONDS_MAX = 86_400  # a day; what is meant to last longer is not a time-out

LOCAL_NAME = "local"
"""Name of the backend that `models.local` starts."""

_ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"

Seconds = Annotated[float, Meta(gt=0, le=SECONDS_MAX)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Timeouts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a backend may take for each part of an answer, in seconds."""

    connect_s: Annotated[Seconds, Meta(description="Seconds to open a connection.")] = 5
    first_byte_s: Annotated[
        Seconds, Meta(description="Seconds to the first byte; a long prompt on a slow machine takes minutes.")
    ] = 300
    between_chunks_s: Annotated[
        Seconds, Meta(description="Seconds between two pieces of an answer; keep-alives do not count.")
    ] = 60
    total_s: Annotated[Seconds, Meta(description="Seconds for the whole answer.")] = 1800


class Backend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One server that generates text."""

    name: Annotated[
        str,
        Meta(
            min_length=1, max_length=128, pattern=r"^[^\s]+$(?!\n)", description="Unique name of the backend."
        ),
    ]
    kind: Annotated[
        Literal["llamacpp", "openai", "anthropic"],
        Meta(description="What it speaks: `llamacpp`, `openai` (any compatible server) or `anthropic`."),
    ]
    url: Annotated[
        str,
        Meta(
            pattern=r"^https?://[^\s@/]+(/[^\s@]*)?$(?!\n)",
            extra={"expected": "an http:// or https:// address without a password"},
            description="Its base address, without a password in it; `/v1` is added where it has no path.",
        ),
    ]
    api_key_env: Annotated[
        Annotated[str, Meta(pattern=_ENV_NAME, extra={"expected": "the name of an environment variable"})]
        | None,
        Meta(description="Name of the environment variable that holds its API key."),
    ] = None
    model: Annotated[
        str | None, Meta(description="Model to ask it for; unset sends the name that the client asked for.")
    ] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None,
        Meta(description="Calls at once, where the backend has no slots (not for `llamacpp`); unset: 4."),
    ] = None
    tool_calls: Annotated[
        Literal["buffer", "stream"],
        Meta(
            description="`buffer` holds tool calls back until they are whole; `stream` passes fragments on."
        ),
    ] = "buffer"
    structured_output: Annotated[
        Literal["json_schema", "json_object"],
        Meta(description="`json_object` lowers strict schemas to JSON mode, for servers that hang on them."),
    ] = "json_schema"
    recover_tool_calls: Annotated[
        bool,
        Meta(description="Find tool calls that the model left inside its text or reasoning."),
    ] = False
    save_slots: Annotated[
        bool,
        Meta(description="Save the slot of an agent that has to give way, and restore it when it returns."),
    ] = True
    fallback: Annotated[
        str | None, Meta(description="Backend that takes over while this one cannot be reached.")
    ] = None
    timeouts: Timeouts = Timeouts()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong) for what the types alone cannot say."""
        if self.kind == "llamacpp" and self.concurrency is not None:
            yield "concurrency", "a llamacpp backend has slots, and their number decides; remove this key"
        if self.kind == "anthropic":
            for key in ("structured_output", "recover_tool_calls"):
                if getattr(self, key) != getattr(_PLAIN, key):
                    yield key, "an anthropic backend does this itself; remove this key"


_PLAIN = Backend("plain", "openai", "http://localhost")
"""To tell a key's default by."""


class Short(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where short requests without tools go: titles and summaries do not need the large model."""

    backend: Annotated[
        str | None, Meta(description="Name of the backend with the smaller model; unset sends nothing there.")
    ] = None
    prompt_max: Annotated[
        int, Meta(ge=1, le=10_000_000, description="Longest prompt that counts as short, in tokens.")
    ] = 2000


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model server that the gateway starts and ends itself (`herdr serve --model`)."""

    model: Annotated[str | None, Meta(description="A GGUF file; unset starts nothing.")] = None
    slots: Annotated[int, Meta(ge=1, le=64, description="KV slots: conversations kept warm at once.")] = 4
    context: Annotated[int, Meta(ge=256, le=10_000_000, description="Tokens that one slot holds.")] = 8192


class ModelsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Backends, names, and how calls share the slots."""

    backends: Annotated[tuple[Backend, ...], Meta(max_length=64)] = ()
    names: Annotated[
        dict[Glob, str],
        Meta(
            max_length=1000,
            description='Glob of a requested model name to backend name; `"*"` is the default, '
            "and without it the first backend.",
        ),
    ] = {}
    queue_timeout_s: Annotated[Seconds, Meta(description="Seconds that a call may wait for a slot.")] = 30
    slot_idle_s: Annotated[
        Seconds, Meta(description="Seconds without a call after which a slot is free.")
    ] = 300
    ageing_s: Annotated[
        Seconds, Meta(description="Seconds of waiting that raise a call's priority by one.")
    ] = 3
    affinity_wait_s: Annotated[
        Annotated[float, Meta(ge=0, le=SECONDS_MAX)],
        Meta(description="Seconds that a call waits for its own busy slot while another is free."),
    ] = 2
    shares: Annotated[
        dict[str, Share],
        Meta(
            max_length=64,
            description="Route to the fraction of the slots, 0 to 1, that it owns; together at most 1.",
        ),
    ] = msgspec.field(default_factory=lambda: {"primary_agent": 0.6})
    background_max: Annotated[
        int, Meta(ge=0, le=1024, description="Background calls that may run at once.")
    ] = 2
    default_max_tokens: Annotated[
        int,
        Meta(ge=1, le=10_000_000, description="Length of an answer, in tokens, when the client names none."),
    ] = 4096
    prewarm: Annotated[
        tuple[str, ...],
        Meta(
            max_length=64,
            description="Files of prompts that are evaluated at start, so that their slots are warm.",
        ),
    ] = ()
    audit: Annotated[
        Literal["full", "turns", "metadata"],
        Meta(description="What is recorded of each call: `full`, its `turns`, or `metadata` only."),
    ] = "turns"
    slots_per_agent: Annotated[int, Meta(ge=1, le=1024, description="Slots that one agent may hold.")] = 2
    short: Short = Short()
    local: Local = Local()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong) for what the types alone cannot say."""
        if (total := sum(self.shares.values())) > 1 + 1e-9:
            yield "shares", f"the shares add up to {total:g}; together they may be at most 1"
        known = [backend.name for backend in self.backends]
        named = [(f"names.{pattern}", name) for pattern, name in self.names.items()]
        named += [(f"backends[{i}].fallback", b.fallback) for i, b in enumerate(self.backends) if b.fallback]
        if self.short.backend is not None:
            named.append(("short.backend", self.short.backend))
        for field, name in named:
            if name not in known and not (name == LOCAL_NAME and self.local.model):
                yield field, f"no backend is named {name!r}; there is {', '.join(known) or 'none'}"
        if self.local.model is not None and LOCAL_NAME in known:
            yield "local.model", f"a backend is named {LOCAL_NAME!r} already, which is this one's name"
