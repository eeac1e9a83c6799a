"""A real browser over a real gateway: the system's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_complaints import Complaints
from gateway import GatewayProcess, running_gateway
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@pytest.fixture(scope="module")  # Playwright's loop runs on in the meantime, and no other may
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed; .ci/run installs it (as root, with apt-get) and runs this")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with running_gateway(tmp_path / "data") as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def page(context: BrowserContext, complaints: Complaints) -> Page:
    page = context.new_page()
    complaints.watch(page)
    return page
