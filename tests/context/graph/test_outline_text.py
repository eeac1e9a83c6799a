"""One file's outline as text."""

from herdr.context.graph.languages import python
from herdr.context.graph.outline import Import, Outline, Symbol
from herdr.context.graph.outline_text import LINES_MAX, outline_text
from herdr.context.graph.parse import Reader

SOURCE = b"""\
import json
from shop.price import Price, Rate as R
from shop.price import Price
from . import views

class Cart(Base):
    def total(self, tax: R) -> Price:
        pass


def load(name: str) -> Cart:
    pass
"""


def test_an_outline_is_told_with_line_numbers() -> None:
    outline = Reader(python.LANGUAGE).read(SOURCE)
    assert outline_text("shop/cart.py", outline, ["shop/order.py", "shop/till.py"]) == (
        "shop/cart.py (python, 12 lines)\n"
        "imports: json, shop.price (Price, Rate as R), . (views)\n"
        "imported by: shop/order.py, shop/till.py\n"
        "   6  class Cart(Base)\n"
        "   7    def total(self, tax: R) -> Price\n"
        "  11  def load(name: str) -> Cart\n"
    )


def test_an_empty_file_is_one_line() -> None:
    assert outline_text("a.py", Outline("python", 0)) == "a.py (python, 0 lines)\n"


def test_a_file_that_cannot_be_parsed_in_full_says_so() -> None:
    assert "cannot be parsed" in outline_text("a.py", Outline("python", 1, broken=True))


def test_lists_that_nobody_reads_to_their_end_are_counted_instead() -> None:
    symbols = tuple(Symbol(f"f{n}", "function", n, n, f"def f{n}()") for n in range(LINES_MAX + 5))
    imports = tuple(Import(f"m{n}", n) for n in range(100))
    text = outline_text("a.py", Outline("python", 9_999, symbols, imports), [f"{n}.py" for n in range(50)])
    assert "… and 5 more definitions" in text
    assert "m39, … and 60 more" in text
    assert "39.py, … and 10 more" in text
    assert len(text.splitlines()) == LINES_MAX + 4
