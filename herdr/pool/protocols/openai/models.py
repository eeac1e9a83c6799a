"""Pure: the list of models, in one form that OpenAI's and Anthropic's clients both read."""

from collections.abc import Sequence

import msgspec

from herdr.clock import rfc3339

_encode = msgspec.json.Encoder().encode


class Model(msgspec.Struct):
    """One model. `object`, `created` and `owned_by` are OpenAI's; `type` and the rest are Anthropic's."""

    id: str
    display_name: str
    created: int
    created_at: str
    object: str = "model"
    type: str = "model"
    owned_by: str = "herdr"


class ModelList(msgspec.Struct):
    """All models, as one page."""

    data: list[Model]
    first_id: str | None
    last_id: str | None
    object: str = "list"
    has_more: bool = False


def models_body(names: Sequence[str], created: int) -> bytes:
    """Return the body of `GET /v1/models`; `created` is in seconds since the Unix epoch."""
    since = rfc3339(created * 1_000_000)
    models = [Model(name, name, created, since) for name in names]
    return _encode(ModelList(models, names[0] if names else None, names[-1] if names else None))
