"""A scriptable imitation of llama.cpp's server, for faults that no real server produces on demand.

It runs in a thread of the test's own process, on a free port of loopback:

    with FakeLlama(slots=2) as fake:
        fake.script(Script(["Hel", "lo", Die()]))
        ...
        fake.until(lambda: fake.requests[0].state == "broken")

What it imitates was measured on llama.cpp b11434 and xllamacpp 2026.10: `tests/pool/test_fake_llama.py` lists it.
A token is a short piece of the rendered prompt, and a slot holds the prompt and what was written after it.
"""

from fake_llama.fake import FakeLlama
from fake_llama.script import (
    ERROR_INSIDE,
    HALF_CHARACTER,
    INVALID_JSON,
    LOADING,
    TOOLS_REFUSED,
    Die,
    Flood,
    Pings,
    Raw,
    Refusal,
    Script,
    Stall,
    Think,
    Tool,
    error,
    rate_limited,
)
from fake_llama.slots import Call

__all__ = [
    "ERROR_INSIDE",
    "HALF_CHARACTER",
    "INVALID_JSON",
    "LOADING",
    "TOOLS_REFUSED",
    "Call",
    "Die",
    "FakeLlama",
    "Flood",
    "Pings",
    "Raw",
    "Refusal",
    "Script",
    "Stall",
    "Think",
    "Tool",
    "error",
    "rate_limited",
]
