"""Pure: how a call to a model can fail; each kind has one status, whatever protocol the client speaks."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from herdr.errors import HerdrError

RETRY_AFTER_MIN_S, RETRY_AFTER_MAX_S = 1, 60  # Claude Code gives up at once above 60 s
RETRY_AFTER_S = 5.0  # where nobody knows better: about a short answer of a local model
_TO_BE_TRIED_AGAIN = frozenset({"rate_limited", "queue_timeout", "overloaded", "stopping"})

STATUSES: Mapping[str, int] = MappingProxyType(
    {
        "invalid_request": 400,
        "internal": 500,
        "client_gone": 499,
        "prompt_too_long": 400,
        "unsupported_input": 400,
        "backend_refused": 400,
        "unknown_model": 404,
        "rate_limited": 429,
        "backend_failed": 502,
        "backend_unreachable": 502,
        "queue_timeout": 503,
        "overloaded": 503,
        "stopping": 503,
        "backend_timeout": 504,
    }
)
"""Kind of failure → HTTP status. The kinds are the `code`s of the reference."""


class ModelError(HerdrError):
    """A call that did not, or not wholly, succeed. `code` is one of STATUSES."""

    def __init__(self, code: str, detail: str, retry_after_s: float | None = None) -> None:
        super().__init__(detail, code)
        if retry_after_s is None and code in _TO_BE_TRIED_AGAIN:
            retry_after_s = RETRY_AFTER_S
        self.wait_s = retry_after_s
        """How long to wait, as the backend said it; None: nothing to wait for."""

    @property
    def retry_after_s(self) -> int | None:
        """When to come back, whole seconds from 1 to 60; None: nothing to wait for."""
        return None if self.wait_s is None else whole_seconds(self.wait_s)

    def again(self) -> "ModelError":
        """Return the same error to be raised once more; one that is raised twice drags all its frames along."""
        return ModelError(self.code, self.detail, self.wait_s)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUSES[self.code]


def whole_seconds(seconds: float) -> int:
    """Return a time as `Retry-After` takes it: a whole number from 1 to 60."""
    return math.ceil(max(RETRY_AFTER_MIN_S, min(RETRY_AFTER_MAX_S, seconds)))


def prompt_too_long(tokens: int, limit: int) -> ModelError:
    """Return the error for a prompt that does not fit; Claude Code compacts when it reads this wording."""
    return ModelError("prompt_too_long", f"prompt is too long: {tokens} tokens > {limit} maximum")


def stopping() -> ModelError:
    """Return the error for a gateway that stops."""
    return ModelError("stopping", "the gateway is stopping; ask again in a moment")
