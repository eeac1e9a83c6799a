"""The errors that Herdr raises on purpose; each says what happened, why, and what to do next.

    HerdrError
    ├── InvalidInput      the caller's fault; carries one entry per wrong field
    ├── NotFound          the named thing is not here
    ├── LogUnavailable    the log cannot be written or read now; nothing was acknowledged
    └── StartupError      the gateway cannot start; the CLI prints it as one line and exits 1

The web layer turns them into RFC 9457 problems in one place (`herdr.web.problems`).
"""

from dataclasses import dataclass, field


class HerdrError(Exception):
    """Base of all of them. `code` is stable and documented; `detail` is for people."""

    code = "internal"

    def __init__(self, detail: str, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: where it stands in the request, and what is wrong with it."""

    field: str
    message: str
    index: int | None = None


@dataclass(eq=False)
class InvalidInput(HerdrError):
    """The request cannot be accepted as it is; nothing of it was stored."""

    detail: str
    code: str = "invalid_request"
    errors: list[FieldError] = field(default_factory=list)

    def __post_init__(self) -> None:
        Exception.__init__(self, self.detail)


class NotFound(HerdrError):
    """The named event, route or target does not exist."""

    code = "not_found"


class LogUnavailable(HerdrError):
    """The log cannot be written (full or read-only disk, failed fsync); nothing was acknowledged."""

    code = "log_unavailable"


class StartupError(HerdrError):
    """The gateway cannot start. The message is one line: what, why, and the command that mends it."""

    code = "startup"
