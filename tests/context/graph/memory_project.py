"""A whole project in memory: {path: bytes} behind the `Project` protocol, file by file as the store does it.

from context.graph.memory_project import MemoryProject
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from herdr.context.graph.import_keys import import_keys
from herdr.context.graph.language import Language
from herdr.context.graph.languages.registry import LANGUAGES, language_of
from herdr.context.graph.outline import Outline
from herdr.context.graph.parse import Reader
from herdr.context.graph.project import Pair

_reader = cache(Reader)  # compiling a query takes 50 ms
_Index = defaultdict[str, list[str]]


class MemoryProject:
    """Files can be written and removed; every index follows."""

    def __init__(
        self,
        files: Mapping[str, bytes | str] = {},
        languages: Sequence[Language] = LANGUAGES,
        find_language: Callable[[str], Language | None] | None = None,
    ) -> None:
        by_suffix = {end: language for language in languages for end in language.suffixes}
        self._language_of = find_language or (
            language_of
            if languages is LANGUAGES
            else lambda path: by_suffix.get(f".{path.rpartition('.')[2]}")
        )
        self._languages = {language.name: language for language in languages}
        self.sources: dict[str, bytes] = {}
        self._outlines: dict[str, Outline] = {}
        self._named, self._folders = _Index(list), _Index(list)
        self._defining, self._calling, self._importing = _Index(list), _Index(list), _Index(list)
        self._packaged = _Index(list)
        for path, source in files.items():
            self.write(path, source)

    def write(self, path: str, source: bytes | str) -> None:
        """Put a file there, or other bytes in one that is there."""
        self.remove(path)
        self.sources[path] = source.encode() if isinstance(source, str) else source
        folder, _, name = path.rpartition("/")
        insort(self._named[name], path)
        insort(self._folders[folder], path)
        language = self._language_of(path)
        if language is not None:
            outline = _reader(language).read(self.sources[path])
            self._outlines[path] = outline
            for index, key in self._keys(outline):
                insort(index[key], path)

    def remove(self, path: str) -> None:
        """Take a file away; nothing happens when it is not there."""
        if self.sources.pop(path, None) is None:
            return
        folder, _, name = path.rpartition("/")
        self._named[name].remove(path)
        self._folders[folder].remove(path)
        outline = self._outlines.pop(path, None)
        for index, key in self._keys(outline) if outline is not None else ():
            index[key].remove(path)

    def _keys(self, outline: Outline) -> Iterator[tuple[_Index, str]]:
        yield from ((self._defining, name) for name in sorted({s.name for s in outline.symbols}))
        yield from ((self._calling, name) for name in sorted({c.name for c in outline.calls}))
        yield from ((self._importing, key) for key in import_keys(outline))
        yield from ((self._packaged, key) for key in (outline.package,) if key)

    def has(self, path: str) -> bool:
        return path in self.sources

    def named(self, name: str) -> Sequence[str]:
        return tuple(self._named.get(name, ()))

    def folder(self, path: str) -> Sequence[str]:
        return tuple(self._folders.get(path, ()))

    def packaged(self, name: str) -> Sequence[str]:
        return tuple(self._packaged.get(name, ()))

    def outline(self, path: str) -> Outline | None:
        return self._outlines.get(path)

    def language(self, name: str) -> Language:
        return self._languages[name]

    def paths(self) -> Iterable[str]:
        return sorted(self._outlines)

    def defining(self, name: str) -> Sequence[str]:
        return tuple(self._defining.get(name, ()))

    def calling(self, name: str) -> Sequence[str]:
        return tuple(self._calling.get(name, ()))

    def importing(self, key: str) -> Sequence[str]:
        return tuple(self._importing.get(key, ()))

    def names(self) -> Iterable[str]:
        return sorted(name for name, paths in self._defining.items() if paths)

    def pairs(self, definers_max: int) -> Iterable[Pair]:
        calls: Counter[tuple[str, str]] = Counter()
        for path, outline in self._outlines.items():
            for call in outline.calls:
                calls[path, call.name] += len(call.lines)
        for (source, name), count in sorted(calls.items()):
            targets = self._defining.get(name, ())
            if len(targets) <= definers_max:
                yield from (Pair(source, target, name, count) for target in targets if target != source)
