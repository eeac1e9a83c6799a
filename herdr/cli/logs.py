"""The gateway's own log: readable lines on a terminal, JSON lines elsewhere, secrets blanked in both."""

import json
import logging
import re
import sys

from herdr.clock import rfc3339

# Best effort, by the shapes that keys of common services have; what is logged should not hold any.
_SECRETS = re.compile(
    r"\b(?:sk-|hrd_|ghp_|gho_|github_pat_|xox[abp]-|AKIA|AIza)[A-Za-z0-9_\-]{8,}|(?i:bearer\s+)[^\s\"']{8,}"
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def blank_secrets(text: str) -> str:
    """Replace what looks like a key or a token."""
    return _SECRETS.sub("[redacted]", text)


class _Lines(logging.Formatter):
    """One line a record, whatever stands in it: line breaks and control characters cannot forge another."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info).replace("\n", " | ")
        text = blank_secrets(_CONTROL.sub(" ", text))
        return f"{rfc3339(int(record.created * 1e6))} {record.levelname.lower():8} {record.name}: {text}"


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "ts": rfc3339(int(record.created * 1e6)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": blank_secrets(record.getMessage()),
        }
        if record.exc_info:
            fields["exception"] = blank_secrets(self.formatException(record.exc_info))
        return json.dumps(fields)


def set_up_logging(form: str | None) -> None:
    """Send everything of level info and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    as_json = form == "json" or (form is None and not sys.stderr.isatty())
    handler.setFormatter(_Json() if as_json else _Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
