"""One recipe a client: which files, and what goes into them."""

from collections.abc import Mapping
from types import MappingProxyType

from herdr.connect.recipe import Recipe
from herdr.connect.recipes import claude_code, codex, cursor, gemini, opencode, vscode

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.client: recipe
        for module in (claude_code, codex, cursor, gemini, opencode, vscode)
        for recipe in (module.RECIPE,)
    }
)
