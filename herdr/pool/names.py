"""Pure: which backend a model's name means."""

from collections.abc import Mapping, Sequence

from herdr.glob import compile_glob, is_glob


class Names:
    """Finds a backend by the model's name: an exact name first, then globs in their order, then the default."""

    def __init__(self, names: Mapping[str, str], backends: Sequence[str]) -> None:
        """`names` maps names and globs to backends; `backends` are all of them, the default first."""
        self.given = dict(names)
        self._globs = [(compile_glob(name), backend) for name, backend in names.items() if is_glob(name)]
        self._default = names.get("*") or (backends[0] if backends else None)

    def find(self, model: str) -> str | None:
        """Return the backend for a model; None when there is none at all."""
        if (backend := self.given.get(model)) is not None:
            return backend
        return next((backend for fits, backend in self._globs if fits(model)), self._default)

    @property
    def listed(self) -> list[str]:
        """The names that a client may choose from, without the globs."""
        return [name for name in self.given if not is_glob(name)]
