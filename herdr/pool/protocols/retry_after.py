"""Pure: how long a cloud asks everybody to wait, read from the headers of its refusal."""

import re
from collections.abc import Iterator, Mapping
from email.utils import mktime_tz, parsedate_tz

WAIT_MAX_S = 86_400.0
"""Longer waits are cut to a day: one wrong header must not stop a backend for good."""

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|[dhms]))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[dhms])")
_UNIT_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?\d*(?:[Zz]|([+-])(\d\d):?(\d\d))"
)
_ANTHROPIC = tuple(
    (f"anthropic-ratelimit-{kind}-reset", f"anthropic-ratelimit-{kind}-remaining")
    for kind in ("requests", "tokens", "input-tokens", "output-tokens")
)
_OPENAI = tuple((f"x-ratelimit-reset-{k}", f"x-ratelimit-remaining-{k}") for k in ("requests", "tokens"))


def retry_after(headers: Mapping[str, str], now_unix: float) -> float | None:
    """Return seconds to wait, from 0 to WAIT_MAX_S; None when the server does not say.

    `now_unix` is in seconds since the epoch. In this order: `retry-after-ms`, `retry-after` (seconds or an
    HTTP date, RFC 9110 section 10.2.3), then when the limits reset: Anthropic's (RFC 3339 times) or those
    of OpenAI and its like (durations such as `1m30s`). Of several limits the exhausted ones count, and the
    last of them; when none says that it is exhausted, the first to reset.
    """
    known = {name.lower(): value.strip() for name, value in headers.items()}
    wait_s = _asked(known, now_unix)
    if wait_s is None:
        wait_s = _reset(known, now_unix)
    return None if wait_s is None else min(WAIT_MAX_S, max(0.0, wait_s))


def _asked(known: Mapping[str, str], now_unix: float) -> float | None:
    milliseconds = _number(known.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = known.get("retry-after", "")
    seconds = _number(text)
    return seconds if seconds is not None else _until_http_date(text, now_unix)


def _reset(known: Mapping[str, str], now_unix: float) -> float | None:
    waits = list(_resets(known, now_unix))
    exhausted = [wait_s for wait_s, is_exhausted in waits if is_exhausted]
    if exhausted:
        return max(exhausted)
    return min((wait_s for wait_s, _ in waits), default=None)


def _resets(known: Mapping[str, str], now_unix: float) -> Iterator[tuple[float, bool]]:
    for reset, remaining in _ANTHROPIC:
        if (wait_s := _until_rfc3339(known.get(reset, ""), now_unix)) is not None:
            yield wait_s, _number(known.get(remaining, "")) == 0
    for reset, remaining in _OPENAI:
        if (wait_s := _duration(known.get(reset, ""))) is not None:
            yield wait_s, _number(known.get(remaining, "")) == 0


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _until_http_date(text: str, now_unix: float) -> float | None:
    try:
        parsed = parsedate_tz(text)
        return None if parsed is None else mktime_tz(parsed) - now_unix
    except (ValueError, IndexError, TypeError, OverflowError):
        return None


def _until_rfc3339(text: str, now_unix: float) -> float | None:
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    sign = -1 if match[8] == "-" else 1
    offset_s = sign * (int(match[9]) * 3600 + int(match[10]) * 60) if match[8] else 0
    try:
        whole = mktime_tz((year, month, day, hour, minute, second, 0, 1, -1, offset_s))
    except (ValueError, OverflowError):
        return None
    return whole + float(match[7] or 0) - now_unix


def _duration(text: str) -> float | None:
    if (seconds := _number(text)) is not None:
        return seconds
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(amount) * _UNIT_S[unit] for amount, unit in _DURATION_PART.findall(text))
