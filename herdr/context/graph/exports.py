"""Pure: what imports bring into a file, and what a module gives to those who import it."""

from collections.abc import Callable, Sequence

import msgspec

from herdr.context.graph.dialects import Dialect, dialect
from herdr.context.graph.meaning import OUTSIDE, UNKNOWN, Meaning, agreed, settled, together
from herdr.context.graph.modules import Modules
from herdr.context.graph.outline import Import, Outline
from herdr.context.graph.project import Project
from herdr.context.graph.scopes import SPACES, around, scope_at, tops

STEPS_MAX = 2_000  # looked-up names for one question; the longest in Django takes 90
FEW_FILES = 8  # of one module; a package of more is made of whole files, which pass nothing on
PASSED_ON_MAX = 32  # modules that pass one name on behind one another


class Steps:
    """Counts what one question may look up, so that circles and towers end."""

    def __init__(self) -> None:
        self._left = STEPS_MAX

    def take(self) -> bool:
        """Count one step; False when there is none left."""
        self._left -= 1
        return self._left >= 0


class Exports:
    """Follows imports for one question."""

    def __init__(
        self,
        project: Project,
        modules: Modules,
        steps: Steps,
        name: Callable[[str, int, str], Meaning],
        member: Callable[[Meaning, str], Meaning],
    ) -> None:
        """`name` looks a name up in a scope of a file, `member` one behind another name."""
        self._project = project
        self._modules = modules
        self._steps = steps
        self._name = name
        self._member = member
        self._exporting: set[tuple[str, str]] = set()

    def bound(self, path: str, outline: Outline, here: Sequence[int], imports: Sequence[Import]) -> Meaning:
        """Return what one scope binds a name to; two kinds of binding in one scope leave it open."""
        if here and imports:
            return UNKNOWN
        if here:
            meaning = settled(path, outline, here)
            spaces = all(outline.symbols[p].kind in SPACES for p in here)
            if spaces and dialect(outline.language).includes:
                more = self.starred(path, outline, -1, outline.symbols[here[0]].name)
                return together([meaning, more])
            return meaning
        return agreed([self.imported(path, found) for found in imports])

    def starred(self, path: str, outline: Outline, scope: int, name: str) -> Meaning:
        """Look in the modules from which everything is imported."""
        scopes = set(around(outline, scope))
        rules = dialect(outline.language)
        found = []
        for star in outline.imports:
            if _is_star(star, rules) and scope_at(outline, star.line) in scopes:
                files = self._modules.files(path, star)
                if not files and rules.stars_override:
                    return UNKNOWN  # it may come from there
                found.append(self._member(self._module(path, star.module, files), name))
        known = [meaning for meaning in found if meaning.kind != "unknown"]
        if not known or rules.includes:
            return together(known)
        return agreed(known)

    def imported(self, path: str, found: Import) -> Meaning:
        """Return what an import binds its name to."""
        outline = self._project.outline(path)
        if outline is None or not self._steps.take():
            return UNKNOWN
        if not found.module:  # one of the file's own names, given out under another
            return self._name(path, -1, found.name)
        rules = dialect(outline.language)
        files = self._modules.files(path, found)
        if found.name and found.name != "*":
            return self._taken(path, found, files, rules)
        if rules.binds_first and found.module.startswith(f"{found.alias}."):
            first = msgspec.structs.replace(found, module=found.alias)
            its = self._modules.files(path, first)
            return Meaning("module", (), its, found.alias, path) if its or files else OUTSIDE
        return self._module(path, found.module, files) if files else OUTSIDE

    def _module(self, path: str, module: str, files: tuple[str, ...]) -> Meaning:
        """Return what a module's name means by itself: in some languages the class that is called like it."""
        outline = self._project.outline(path)
        rules = dialect(outline.language if outline is not None else "")
        if rules.class_modules:
            named = self.exported(files, module.rpartition(rules.separator)[2])
            if named.kind == "symbols":
                return named
        return Meaning("module", (), files, module, path)

    def _taken(self, path: str, found: Import, files: Sequence[str], rules: Dialect) -> Meaning:
        """Return what one name from a module means: one of its definitions, or a module under it."""
        module = self._modules.files(path, msgspec.structs.replace(found, name=""))
        meaning = self.exported(files if rules.class_modules else module or files, found.name)
        if meaning.kind == "unknown" and module:
            meaning = self._member(self._module(path, found.module, module), found.name)
        if meaning.kind != "unknown":
            return meaning
        if files and set(files) != set(module):
            under = _joined(found.module, found.name, rules.separator)
            return Meaning("module", (), tuple(files), under, path)
        return UNKNOWN if files else OUTSIDE

    def exported(self, files: Sequence[str], name: str) -> Meaning:
        """Return what others get who take a name from a module, also where it only passes it on."""
        found = []
        if len(files) > FEW_FILES:
            defining = set(self._project.defining(name))
            files = [path for path in files if path in defining]
        for path in files:
            outline = self._project.outline(path)
            if outline is None or (path, name) in self._exporting or not self._steps.take():
                continue
            self._exporting.add((path, name))
            if len(self._exporting) <= PASSED_ON_MAX:
                found.append(self._exported_by(path, outline, name))
            self._exporting.discard((path, name))
        known = [meaning for meaning in found if meaning.kind != "unknown"]
        return known[0] if len(known) == 1 else together(known)

    def _exported_by(self, path: str, outline: Outline, name: str) -> Meaning:
        named = [i for i in outline.imports if name in (i.alias, "" if i.alias else i.name)]
        renamed = [i for i in named if not i.module]
        imports = [i for i in named if not i.module or scope_at(outline, i.line) < 0]
        here = tops(outline, self._modules.named(path, outline, name)) if not renamed else []
        if here or imports:
            return self.bound(path, outline, here, renamed or imports)
        return self.starred(path, outline, -1, name)

    def in_full(self, path: str, outline: Outline, parts: Sequence[str]) -> Meaning:
        """Read a chain that begins with a package's or a module's own name instead of a bound one."""
        separator = dialect(outline.language).separator
        for size in range(len(parts) - 1, 0, -1):
            files = self._modules.files(path, Import(separator.join(parts[:size]), 0))
            if files:
                meaning = self._module(path, separator.join(parts[:size]), files)
                for part in parts[size:]:
                    meaning = self._member(meaning, part)
                return meaning
        return UNKNOWN

    def member(self, meaning: Meaning, name: str) -> Meaning:
        """Return what a name means behind that of a module."""
        found = self.exported(meaning.files, name)
        if found.kind != "unknown":
            return found
        itself = self.itself(meaning)
        if itself.kind == "symbols":
            return self._member(itself, name)
        files = self._modules.files(meaning.at, Import(meaning.module, 0, name, name))
        outline = self._project.outline(meaning.at)
        if not files or outline is None or set(files) == set(meaning.files):
            return UNKNOWN
        module = _joined(meaning.module, name, dialect(outline.language).separator)
        return Meaning("module", (), files, module, meaning.at)

    def itself(self, meaning: Meaning) -> Meaning:
        """Return what a module means where it is used like a function or a class."""
        outline = self._project.outline(meaning.at)
        default = dialect(outline.language).default if outline is not None else ""
        return self.exported(meaning.files, default) if default and meaning.kind == "module" else UNKNOWN


def _is_star(found: Import, rules: Dialect) -> bool:
    return not found.alias and (found.name == "*" or (not found.name and rules.includes))


def _joined(module: str, name: str, separator: str) -> str:
    return module + name if module.endswith(separator) else f"{module}{separator}{name}"
