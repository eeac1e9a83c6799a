"""What the site has beside the pages in `docs/`: the protocol, and reference pages made from the code itself.

MkDocs calls the functions whose names begin with `on_` (mkdocs.yml). The navigation is made from the list in
docs/README.md, so a page stands in one list only.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generated
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PROTOCOL = "reference/protocol.md"
MADE = {
    "reference/all-commands.md": ("Every command", generated.commands),
    "reference/all-endpoints.md": ("Every endpoint", generated.endpoints),
    "reference/all-settings.md": ("Every setting", generated.settings),
    "reference/all-metrics.md": ("Every metric", generated.metrics),
}
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)*)([^)#:]*)(#[^)]*)?\)")
_HEADING = re.compile(r"^## (.+)$")
_ENTRY = re.compile(r"^- \[(.+?)\]\(([^)#]+\.md)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from docs/README.md."""
    config.nav = [{"Herdr": "README.md"}, *_sections()]
    return config


def _sections() -> Iterator[dict[str, Any]]:
    title, pages = "", list[dict[str, str]]()
    for line in [*(ROOT / "docs/README.md").read_text().splitlines(), "## end"]:
        if found := _HEADING.match(line):
            if pages:
                yield {title: pages}
            title, pages = found[1], []
            if title == "Reference":
                pages.append({"Wire protocol": PROTOCOL})
                pages.extend({name: path} for path, (name, _) in MADE.items())
        elif found := _ENTRY.match(line):
            pages.append({found[1]: found[2]})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the protocol, and what is made from the code."""
    protocol = (ROOT / "spec/protocol.md").read_text()
    files.append(File.generated(config, PROTOCOL, content=protocol))
    with generated.gateway() as url:
        for path, (title, make) in MADE.items():
            files.append(File.generated(config, path, content=f"# {title}\n\n{make(url)}"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the protocol to its page; files of the repository that are no pages are named only."""
    here = page.file.src_uri
    depth = here.count("/")

    def replaced(found: re.Match[str]) -> str:
        words, ups, path, anchor = found[1], len(found[2]) // 3, found[3], found[4] or ""
        if here == PROTOCOL:  # written for its place in spec/
            inside = path.removeprefix("docs/")
            return f"[{words}](../{inside}{anchor})" if ups == 1 and inside != path else found[0]
        if ups <= depth or not path:
            return found[0]
        if path == "spec/protocol.md":
            return f"[{words}]({'../' * depth}{PROTOCOL}{anchor})"
        return f"{words} (`{path}` in the repository)"

    return _LINK.sub(replaced, markdown)
