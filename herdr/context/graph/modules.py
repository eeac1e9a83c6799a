"""Pure: which files belong to a name: a module's, a package's, those that define it."""

from collections.abc import Iterator, Sequence

from herdr.context.graph.dialects import family
from herdr.context.graph.outline import Import, Outline
from herdr.context.graph.project import Project

FILES_MAX = 200  # files that define one name; a name that is defined in more of them tells nothing


class Modules:
    """Keeps what it found; to be thrown away when the project changes."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._files: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._neighbours: dict[str, frozenset[str]] = {}
        self._imported: dict[str, frozenset[str]] = {}
        self._named: dict[str, dict[str, list[int]]] = {}

    def files(self, path: str, found: Import) -> tuple[str, ...]:
        """Return the files that an import in the file at this path brings in."""
        key = (path, found.module, found.name)
        if key not in self._files:
            outline = self._project.outline(path)
            language = self._project.language(outline.language) if outline is not None else None
            self._files[key] = tuple(language.find_module(found, path, self._project)) if language else ()
        return self._files[key]

    def imported(self, path: str) -> frozenset[str]:
        """Return all files that the file at this path imports."""
        if path not in self._imported:
            outline = self._project.outline(path)
            imports = outline.imports if outline is not None else ()
            self._imported[path] = frozenset(file for each in imports for file in self.files(path, each))
        return self._imported[path]

    def named(self, path: str, outline: Outline, name: str) -> Sequence[int]:
        """Return the symbols of a file with this name, in the order of the text."""
        if path not in self._named:
            by_name: dict[str, list[int]] = {}
            for place, symbol in enumerate(outline.symbols):
                by_name.setdefault(symbol.name, []).append(place)
            self._named[path] = by_name
        return self._named[path].get(name, ())

    def neighbours(self, path: str) -> frozenset[str]:
        """Return the files whose names are seen in a file without an import."""
        if path not in self._neighbours:
            outline = self._project.outline(path)
            language = self._project.language(outline.language) if outline is not None else None
            self._neighbours[path] = frozenset(language.neighbours(path, self._project) if language else ())
        return self._neighbours[path]

    def definers(self, language: str, name: str) -> Iterator[tuple[str, Outline]]:
        """Yield the files of a language's family that define a name; none if it is all over the place."""
        paths = self._project.defining(name)
        for path in paths if len(paths) <= FILES_MAX else ():
            outline = self._project.outline(path)
            if outline is not None and family(outline.language) == family(language):
                yield path, outline

    def is_defined(self, language: str, name: str) -> bool:
        """Tell whether a file of the language's family defines a name, not only adds to something called so."""
        paths = self._project.defining(name)
        return len(paths) > FILES_MAX or any(
            outline.symbols[place].kind != "impl"
            for path, outline in self.definers(language, name)
            for place in self.named(path, outline, name)
        )
