"""Pure: how names are looked up in each language, where languages differ."""

import builtins
from types import MappingProxyType
from typing import Literal, NamedTuple

NO_NAMES: frozenset[str] = frozenset()


class Dialect(NamedTuple):
    """The defaults are those of a language with modules in which members are named through their object."""

    family: str = ""
    """Languages of one family call each other's definitions; empty: the language's own name."""
    super_names: frozenset[str] = frozenset({"super"})
    """Receivers that mean what the enclosing class inherits."""
    implicit_self: bool = False
    """Whether a plain name may be a member of the class around it."""
    full_names: bool = False
    """Whether a definition can be named by its module's or package's whole name without an import."""
    stars_override: bool = False
    """Whether a later `import *` silently replaces what an earlier one brought."""
    includes: bool = False
    """Whether an import that binds nothing makes all names of the file visible."""
    class_modules: bool = False
    """Whether the import of `shop.Cart` binds the class, not a module."""
    binds_first: bool = False
    """Whether the import of `shop.cart` binds `shop`."""
    spread: bool = False
    """Whether members of a type may be defined in other files than the type."""
    type_first: bool = False
    """Whether a parameter's type stands before its name."""
    values_apart: bool = False
    """Whether a field and a method of one name do not hide each other."""
    super_call: Literal["base", "method", "builtin"] = "base"
    """What a call of `super` itself runs: the base's constructor, its method of the same name, or neither."""
    prelude: bool = False
    """Whether a capital name that nothing binds or defines is one of the language's or of a library's."""
    default: str = ""
    """Under which name a module gives what it is itself."""
    separator: str = "."
    """Between the parts of a module's name."""
    initialisers: frozenset[str] = NO_NAMES
    """Methods that run when an object is made."""
    makers: frozenset[str] = NO_NAMES
    """Members of every class that make an object of it."""
    bare_bases: frozenset[str] = NO_NAMES
    """Bases from outside that bring no methods that anybody calls."""
    builtins: frozenset[str] = NO_NAMES
    """Plain names that mean the same everywhere unless a file binds them."""


_SCRIPT = Dialect(
    family="javascript",
    prelude=True,
    default="default",
    separator="/",
    initialisers=frozenset({"constructor"}),
    builtins=frozenset(
        [
            "alert",
            "atob",
            "btoa",
            "clearImmediate",
            "clearInterval",
            "clearTimeout",
            "console",
            "decodeURIComponent",
            "document",
            "encodeURIComponent",
            "fetch",
            "globalThis",
            "isFinite",
            "isNaN",
            "localStorage",
            "location",
            "navigator",
            "parseFloat",
            "parseInt",
            "performance",
            "process",
            "queueMicrotask",
            "requestAnimationFrame",
            "sessionStorage",
            "setImmediate",
            "setInterval",
            "setTimeout",
            "structuredClone",
            "window",
        ]
    ),
)

DIALECTS = MappingProxyType(
    {
        "python": Dialect(
            super_call="builtin",
            stars_override=True,
            binds_first=True,
            initialisers=frozenset({"__init__", "__new__"}),
            bare_bases=frozenset({"object", "ABC", "Protocol", "Generic"}),
            builtins=frozenset(dir(builtins)),
        ),
        "javascript": _SCRIPT,
        "typescript": _SCRIPT,
        "tsx": _SCRIPT,
        "go": Dialect(super_names=NO_NAMES, spread=True, separator="/"),
        "rust": Dialect(
            builtins=frozenset({"std", "core", "alloc"}),
            prelude=True,
            super_names=NO_NAMES,
            spread=True,
            values_apart=True,
            full_names=True,
            separator="::",
        ),
        "java": Dialect(
            prelude=True,
            implicit_self=True,
            full_names=True,
            class_modules=True,
            type_first=True,
            values_apart=True,
            bare_bases=frozenset(
                {
                    "Object",
                    "AutoCloseable",
                    "Closeable",
                    "Serializable",
                    "Cloneable",
                    "Comparable",
                    "Runnable",
                }
            ),
        ),
        "csharp": Dialect(
            prelude=True,
            super_names=frozenset({"base"}),
            bare_bases=frozenset({"object", "IDisposable", "IComparable", "IEquatable", "IEnumerable"}),
            implicit_self=True,
            full_names=True,
            class_modules=True,
            spread=True,
            type_first=True,
        ),
        "c": Dialect(family="c", super_names=NO_NAMES, includes=True, type_first=True, separator="/"),
        "cpp": Dialect(
            family="c",
            super_names=NO_NAMES,
            implicit_self=True,
            includes=True,
            spread=True,
            type_first=True,
            separator="/",
            builtins=frozenset({"std"}),
        ),
        "ruby": Dialect(
            prelude=True,
            implicit_self=True,
            includes=True,
            super_call="method",
            separator="/",
            initialisers=frozenset({"initialize"}),
            makers=frozenset({"new"}),
        ),
        "php": Dialect(
            prelude=True,
            super_names=frozenset({"parent"}),
            full_names=True,
            includes=True,
            class_modules=True,
            type_first=True,
            values_apart=True,
            separator="\\",
            initialisers=frozenset({"__construct"}),
        ),
    }
)

_USUAL = Dialect()


def dialect(language: str) -> Dialect:
    """Return how names are looked up in a language; the defaults for one that is not in the table."""
    return DIALECTS.get(language, _USUAL)


def family(language: str) -> str:
    """Return the family that a language belongs to."""
    return dialect(language).family or language


def everyday(kin: str) -> frozenset[str]:
    """Return names that a family's own types and functions have, so that a call of one seldom means ours."""
    return _EVERYDAY.get(kin, NO_NAMES)


_EVERYDAY = MappingProxyType(
    {"python": frozenset(dir(builtins)).union(*(dir(each) for each in (str, bytes, list, dict, set, tuple)))}
)
