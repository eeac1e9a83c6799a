"""Cutting a map to a budget, as the gateway does it with counters that may be elsewhere."""

from collections.abc import Callable, Sequence

from herdr.context.graph.map_text import Piece, render


def fit(found: Sequence[Piece], count: Callable[[str], int], budget: int) -> list[Piece]:
    """Return as many of the best pieces as the budget holds, by whatever counts it.

    What is counted is the text as it will be, a few times: a sum over pieces would be another number, and a
    tokenizer may be slow.
    """
    fitting, too_many = 0, 1
    while too_many <= len(found) and count(render(found[:too_many])) <= budget:
        fitting, too_many = too_many, too_many * 2
    too_many = min(too_many, len(found) + 1)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if count(render(found[:middle])) <= budget:
            fitting = middle
        else:
            too_many = middle
    return list(found[:fitting])
