"""Pure: one file's outline as text for a prompt.

src/shop/cart.py (python, 120 lines)
imports: shop.price (Price, Rate as R), json
imported by: src/shop/order.py
  12  class Cart(Basket)
  14    def total(self, tax: Rate) -> Money
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from herdr.context.graph.outline import Import, Outline
from herdr.context.graph.scopes import around

LINES_MAX = 2_000  # definitions; a file with more of them is generated
NAMED_MAX = 40  # modules or importers; beyond it their number says more


def outline_text(path: str, outline: Outline, importers: Sequence[str] = ()) -> str:
    """Return the text; it depends on its arguments alone."""
    lines = [f"{path} ({outline.language}, {outline.lines} lines)"]
    if outline.broken:
        lines.append("a part of it cannot be parsed, so something may be missing here")
    if outline.imports:
        lines.append(f"imports: {_listed(_modules(outline.imports))}")
    if importers:
        lines.append(f"imported by: {_listed(importers)}")
    width = len(str(outline.lines))
    for place, symbol in enumerate(outline.symbols[:LINES_MAX]):
        depth = sum(1 for _ in around(outline, place)) - 1
        lines.append(f"{symbol.line:>{width + 2}}{'  ' * depth}{symbol.signature}")
    if len(outline.symbols) > LINES_MAX:
        lines.append(f"… and {len(outline.symbols) - LINES_MAX} more definitions")
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    waiting = iter(names)
    shown = list(islice(waiting, NAMED_MAX))
    rest = sum(1 for _ in waiting)
    return ", ".join(shown) + (f", … and {rest} more" if rest else "")


def _modules(imports: Sequence[Import]) -> Iterator[str]:
    """Yield each module once with all that is taken from it."""
    taken: dict[str, list[str]] = {}
    for found in imports:
        names = taken.setdefault(found.module, [])
        if found.name:
            names.append(
                f"{found.name} as {found.alias}" if found.alias not in ("", found.name) else found.name
            )
    for module, names in taken.items():
        yield f"{module} ({', '.join(dict.fromkeys(names))})" if names else module
