"""Pure: how tokens are to be drawn, as the bodies of chat completions and of `/v1/chat` say it."""

import msgspec

from herdr.pool.request import Sampling


class SamplingFields(msgspec.Struct, kw_only=True):
    """The fields of a body that say it."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: list[str] | str | None = None


def sampling_of(asked: SamplingFields) -> Sampling:
    """Return them in neutral form; an empty stop sequence is none."""
    stop = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    return Sampling(
        temperature=asked.temperature,
        top_p=asked.top_p,
        top_k=asked.top_k,
        min_p=asked.min_p,
        seed=asked.seed,
        presence_penalty=asked.presence_penalty,
        frequency_penalty=asked.frequency_penalty,
        stop=tuple([text for text in stop if text]),
    )
