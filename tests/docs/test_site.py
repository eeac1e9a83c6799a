"""The documentation as a site: it builds without a warning, asks no other host, and has what the code has."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from herdr.cli.main import GROUPS

ROOT = Path(__file__).parents[2]
ASKED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"[^>]*>"""
)
NOT_ASKED = ("canonical", "prev", "next")  # links that a browser does not load


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    done = subprocess.run([ROOT / "scripts/docs"], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    yield ROOT / "site"


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    wanted = {Path("index.html") if page == Path("README.html") else page for page in pages}
    built = {page.relative_to(site) for page in site.rglob("*.html")}
    assert wanted <= built
    assert len(wanted) > 30


def test_no_page_asks_another_host(site: Path) -> None:
    asked = 0
    for page in site.rglob("*.html"):
        for found in ASKED.finditer(page.read_text()):
            if any(f'rel="{kind}"' in found[0] for kind in NOT_ASKED):
                continue
            asked += 1
            assert not re.match(r"(https?:)?//", found[1] or found[2]), f"{page}: {found[0]}"
    assert asked > 100


def test_the_pages_made_from_the_code_have_all_of_it(site: Path) -> None:
    commands = (site / "reference/all-commands.html").read_text()
    assert all(f">herdr {group}<" in commands for group in GROUPS)
    settings = (site / "reference/all-settings.html").read_text()
    for key in ("server.port", "bus.retention.max_age_s", "workspaces[].roots", "auth.tokens[].scopes"):
        assert f"<code>{key}</code>" in settings
    assert "<code>/v1/events</code>" in (site / "reference/all-endpoints.html").read_text()
    assert "<code>herdr_uptime_seconds</code>" in (site / "reference/all-metrics.html").read_text()
