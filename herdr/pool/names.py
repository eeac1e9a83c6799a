"""Pure: which backends a request may go to, the first choice first."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from herdr.glob import compile_glob, is_glob


class Short(NamedTuple):
    """Where short requests without tools go instead."""

    backend: str
    prompt_max: int
    """Estimated tokens of the prompt at most."""


class Names:
    """Finds backends by the model's name: an exact name first, then globs in their order, then the default."""

    def __init__(
        self,
        names: Mapping[str, str],
        backends: Sequence[str],
        fallbacks: Mapping[str, str] = MappingProxyType({}),
        short: Short | None = None,
    ) -> None:
        """`names` maps names and globs to backends; `backends` are all of them, the default first."""
        self.given = dict(names)
        self._globs = [(compile_glob(name), backend) for name, backend in names.items() if is_glob(name)]
        self._default = names.get("*") or (backends[0] if backends else None)
        self._fallbacks = fallbacks
        self._short = short

    def find(self, model: str) -> str | None:
        """Return the backend for a model; None when there is none at all."""
        if (backend := self.given.get(model)) is not None:
            return backend
        return next((backend for fits, backend in self._globs if fits(model)), self._default)

    def choices(self, model: str, prompt_tokens: int, has_tools: bool) -> list[str]:
        """Return the backend for a request and its fallbacks in their order; empty when there is none at all."""
        name = self.find(model)
        short = self._short
        if short is not None and not has_tools and prompt_tokens <= short.prompt_max:
            name = short.backend
        found: list[str] = []
        while name is not None and name not in found:
            found.append(name)
            name = self._fallbacks.get(name)
        return found

    @property
    def listed(self) -> list[str]:
        """The names that a client may choose from, without the globs."""
        return [name for name in self.given if not is_glob(name)]
