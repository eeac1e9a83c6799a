"""What the rows of a graph depend on beside the files' bytes: our own code's form and the grammars."""

from importlib.metadata import version

from herdr.context.graph.outline import OUTLINE_FORMAT

STORE_FORMAT = 1
"""Raised whenever the tables of a graph's file change."""

GRAMMARS = (
    "tree-sitter", "tree-sitter-c", "tree-sitter-c-sharp", "tree-sitter-cpp", "tree-sitter-go",
    "tree-sitter-java", "tree-sitter-javascript", "tree-sitter-markdown", "tree-sitter-php",
    "tree-sitter-python", "tree-sitter-ruby", "tree-sitter-rust", "tree-sitter-typescript",
)  # fmt: skip


def outline_form() -> str:
    """Return what outlines depend on: snapshots of another form are parsed anew."""
    return f"{OUTLINE_FORMAT} " + " ".join(
        f"{name.removeprefix('tree-sitter-')}-{version(name)}" for name in GRAMMARS
    )


def graph_form() -> str:
    """Return what a stored graph depends on."""
    return f"{STORE_FORMAT} {outline_form()}"
