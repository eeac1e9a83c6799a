"""Which languages there are, and which one a file is written in."""

from types import MappingProxyType

from herdr.context.graph.language import Language
from herdr.context.graph.languages import (
    c,
    cpp,
    csharp,
    go,
    java,
    javascript,
    manifests,
    markdown,
    npm,
    php,
    python,
    ruby,
    rust,
    typescript,
)

LANGUAGES: tuple[Language, ...] = (
    python.LANGUAGE,
    javascript.LANGUAGE,
    typescript.LANGUAGE,
    typescript.TSX,
    go.LANGUAGE,
    rust.LANGUAGE,
    java.LANGUAGE,
    csharp.LANGUAGE,
    c.LANGUAGE,
    cpp.LANGUAGE,
    ruby.LANGUAGE,
    php.LANGUAGE,
    markdown.LANGUAGE,
    npm.PACKAGE,
    manifests.GO_MODULE,
    manifests.CARGO,
)

_BY_NAME = MappingProxyType({language.name: language for language in LANGUAGES})
_BY_SUFFIX = MappingProxyType({end: language for language in LANGUAGES for end in language.suffixes})
_BY_FILENAME = MappingProxyType({name: language for language in LANGUAGES for name in language.filenames})


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name (`Rakefile`) or ending (`.py`, in any case)."""
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    if found := _BY_FILENAME.get(name):
        return found
    return _BY_SUFFIX.get(f".{ending.lower()}") if stem and dot else None


def by_name(name: str) -> Language:
    """Return the language of this name; KeyError when there is none."""
    return _BY_NAME[name]
