"""Pure: the outline of a whole project within a budget: its most important definitions, by file.

    src/shop/cart.py:
      class Cart(Basket)
        def total(self, tax: Rate) -> Money
      def load(name: str) -> Cart

There are no line numbers in it and its order is that of paths and of the text, so that an edit within a function
changes no byte of it, and it can stand in a prompt that a model server has cached.
"""

from collections.abc import Iterator, Set
from heapq import nlargest

from herdr.context.graph.map_text import PIECES_MAX, Piece
from herdr.context.graph.modules import Modules
from herdr.context.graph.outline import Outline, qualified_name
from herdr.context.graph.project import Project
from herdr.context.graph.rank import Ranking
from herdr.context.graph.scopes import around

LINE_MAX = 140  # characters of one signature; the file itself tells the rest
KEPT = 1.2  # how much more than its worth what is in the map already counts
UNCALLED = 0.01  # of its file's rank: what an exported definition is worth that no other file calls
UNCALLED_FILES_MAX = 400  # files that are read for such definitions

_VALUES = frozenset({"field", "variable", "constant", "impl"})
_BODIES = frozenset({"function", "method", "constructor", "property"})


def pieces(
    project: Project,
    ranking: Ranking,
    focus: Set[str] = frozenset(),
    previous: Set[str] = frozenset(),
    limit: int = PIECES_MAX,
) -> list[Piece]:
    """Return the best definitions, the best one first.

    `focus` are files of which everything exported counts; `previous` are the ids of what the last map held, which
    stays unless something else is clearly better.
    """
    best: dict[str, Piece] = {}
    for piece in (*_called(project, ranking, limit), *_uncalled(project, ranking, focus)):
        found = best.setdefault(piece.symbol, piece)
        if piece.rank > found.rank:
            best[piece.symbol] = piece
    order = sorted(
        best.values(),
        key=lambda piece: (
            -piece.rank * (KEPT if piece.symbol in previous else 1.0),
            piece.path,
            piece.lines,
        ),
    )
    return order[:limit]


def _called(project: Project, ranking: Ranking, limit: int) -> Iterator[Piece]:
    """Yield what other files call; a name that a file defines several times shares what it is worth."""
    items = nlargest(limit, ranking.symbols.items(), key=lambda item: (item[1], item[0]))
    modules = Modules(project)
    for (path, name), worth in items:
        outline = project.outline(path)
        if outline is not None:
            kinds = project.language(outline.language).callable_kinds
            named = modules.named(path, outline, name)
            places = [p for p in named if outline.symbols[p].kind in kinds and not _is_local(outline, p)]
            yield from (_piece(path, outline, place, worth / len(places)) for place in places)


def _uncalled(project: Project, ranking: Ranking, focus: Set[str]) -> Iterator[Piece]:
    """Yield what the most important files offer, called or not; much of it, or deep in it, is worth less."""
    files = nlargest(UNCALLED_FILES_MAX, ranking.files.items(), key=lambda item: (item[1], item[0]))
    chosen = dict(files) | {path: ranking.files[path] for path in focus if path in ranking.files}
    for path, worth in sorted(chosen.items()):
        outline = project.outline(path)
        if outline is not None:
            offered = [
                p
                for p, s in enumerate(outline.symbols)
                if s.exported and s.kind not in _VALUES and not _is_local(outline, p)
            ]
            for place in offered:
                depth = sum(1 for _ in around(outline, place)) - 1
                yield _piece(path, outline, place, worth * UNCALLED / (depth * len(offered) ** 0.5))


def _is_local(outline: Outline, place: int) -> bool:
    """Tell whether a definition is within a function, where nobody else can name it."""
    return any(
        p >= 0 and outline.symbols[p].kind in _BODIES for p in around(outline, outline.symbols[place].parent)
    )


def _piece(path: str, outline: Outline, place: int, rank: float) -> Piece:
    chain = [p for p in around(outline, place) if p >= 0]
    lines = [(p, _line(outline.symbols[p].signature, depth)) for depth, p in enumerate(reversed(chain))]
    return Piece(path, f"{path}::{qualified_name(outline, place)}", tuple(lines), rank)


def _line(signature: str, depth: int) -> str:
    text = signature if len(signature) <= LINE_MAX else f"{signature[: LINE_MAX - 1]}…"
    return f"{'  ' * (depth + 1)}{text}\n"
