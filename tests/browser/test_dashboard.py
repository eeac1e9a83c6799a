"""The dashboard in a browser: live, safe with whatever events hold, one stream for all tabs, over a restart."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_complaints import Complaints
from gateway import GatewayProcess, running_gateway
from playwright.sync_api import Browser, BrowserContext, Page, expect
from wire import call, health, publish, put_route, wait_until

FIRST_VIEW_MAX = 100 * 1024  # bytes, compressed, of everything that the first view loads
VIEWS = ("overview", "live", "routes", "locks", "context", "models", "tasks", "clients")

NAMING = ("live", "routes", "locks", "tasks", "clients")
"""Views that show names which anybody may choose."""

HOSTILE = [
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "javascript:alert(1)",
    "<iframe src=javascript:alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "<style>*{display:none}</style>",
    "<style>@import 'http://example.com/x.css'</style>",
    "<link rel=stylesheet href=http://example.com/x>",
    "<base href=http://example.com/>",
    "<meta http-equiv=refresh content='0;url=http://example.com'>",
    "<form action=http://example.com><button>x",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<math><mi xlink:href=javascript:alert(1)>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<textarea autofocus onfocus=alert(1)>",
    "<select onfocus=alert(1) autofocus>",
    "<!--<img src='--><img src=x onerror=alert(1)>'>",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\u202egnp.exe\u202c",
    "\u2066<script>\u2069",
    "a\u0000b\u0007c\u001b[31mred",
    "\u200bzero\u200bwidth\ufeff",
    "W" * 5000,
    "\u0e47" * 2000,
    "A\u0301" * 1500,
    "日本語" * 500,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 100,
    "line\nbreak\r\n" * 200,
    "\t" * 500,
    "__proto__",
    "constructor",
    "toString",
    '{"__proto__": {"polluted": true}}',
    "=cmd|' /C calc'!A0",
    "../../../../etc/passwd",
    "<x/onclick=alert(1)>a",
    "`-alert(1)-`",
]


class Load:
    """Publishes all the time."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(gateway,), daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self, gateway: GatewayProcess) -> None:
        while not self._over.wait(0.02):
            publish(
                gateway, *[{"type": "tool.result", "source": "load", "data": {"n": n}} for n in range(20)]
            )


def open_view(page: Page, gateway: GatewayProcess, view: str) -> None:
    page.goto(f"{gateway.url}/#/{view}")
    expect(page.locator(f"[data-view={view.partition('?')[0]}]")).to_be_visible()


def width_over(page: Page) -> int:
    """Return how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.fixture
def small(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    yield context.new_page()
    context.close()


def test_the_overview_and_the_tail_move_under_load(
    gateway: GatewayProcess, page: Page, complaints: Complaints
) -> None:
    with Load(gateway):
        open_view(page, gateway, "overview")
        expect(page.locator(".health")).to_contain_text("All is well")
        expect(page.locator(".tile b").first).not_to_have_text("0")
        expect(page.locator(".chart canvas").first).to_be_visible()
        open_view(page, gateway, "live")
        newest = page.locator("tbody tr td").first
        first = newest.inner_text()
        expect(newest).not_to_have_text(first)
        page.get_by_role("button", name="pause").click()
        held = newest.inner_text()
        expect(page.get_by_role("button", name=re.compile(r"go on \([1-9]"))).to_be_visible()
        assert newest.inner_text() == held
    assert complaints == []


def test_an_event_opens_as_a_tree_with_the_chain_of_its_cause(gateway: GatewayProcess, page: Page) -> None:
    about = {"session": "cart-42", "workspace": "shop"}
    said = {"type": "user.message", "source": "me", "data": {"text": "rename it"}}
    done = {"type": "tool.result", "source": "claude", "data": {"exit": {"code": 0}}}
    publish(gateway, said | about, done | about, {"type": "tool.result", "source": "other"})
    open_view(page, gateway, "live?type=user.*")
    row = page.locator("tbody tr")
    expect(row).to_have_count(1)
    row.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="Event 1")
    expect(panel).to_contain_text("rename it")
    expect(panel.locator(".steps li")).to_have_count(2)
    panel.locator(".steps button", has_text="tool.result").click()
    expect(page.get_by_role("region", name="Event 2")).to_contain_text("code: 0")


def test_what_is_redacted_leaves_the_open_page(gateway: GatewayProcess, page: Page) -> None:
    publish(gateway, {"type": "tool.result", "source": "leak", "data": {"password": "hunter2"}})
    open_view(page, gateway, "live")
    page.locator("tbody tr").first.click()
    expect(page.locator("main")).to_contain_text("hunter2")
    assert call(gateway, "POST", "/v1/events/1/redact", {}).status == 200
    expect(page.locator("main")).not_to_contain_text("hunter2")
    expect(page.get_by_role("region", name="Event 1")).to_contain_text("redacted")


def test_a_rule_is_explained(gateway: GatewayProcess, page: Page) -> None:
    put_route(gateway, "failures", event="test.*", target="ide", match={"data.level": "error"})
    open_view(page, gateway, "routes")
    expect(page.get_by_label("rules", exact=True)).to_contain_text("failures")
    box = page.get_by_role("textbox", name="event")
    box.fill(json.dumps({"type": "test.failed", "data": {"level": "warning"}}))
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_label("rules tried")).to_contain_text('data.level is "warning", not "error"')
    box.fill("{")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    assert health(gateway)["head"] == 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_without_anything_says_what_to_run(
    gateway: GatewayProcess, page: Page, complaints: Complaints, view: str
) -> None:
    open_view(page, gateway, view)
    if view != "models":
        expect(page.locator(".empty .code").first).to_contain_text("herdr ")
    assert complaints == []


def test_hostile_payloads_run_nothing_and_break_no_layout(
    gateway: GatewayProcess, page: Page, small: Page, complaints: Complaints
) -> None:
    assert len(HOSTILE) == 50
    complaints.watch(small)
    for number, text in enumerate(HOSTILE):
        name = "".join(c for c in text if c.isprintable())[:100] or "x"
        event = {
            "type": "tool.result",
            "source": name,
            "subject": name[:90],
            "session": name,
            "tags": [name[:40]],
        }
        answer = publish(gateway, event | {"data": {text: text, "list": [text], "n": number}})
        assert answer[0]["status"] == "accepted", answer
        call(
            gateway,
            "PUT",
            f"/v1/routes/r{number}",
            {"event": "*", "target": name, "match": {"source": [name]}},
        )
        body = {"paths": [f"src/{number}.py"], "owner": name, "purpose": name}
        call(gateway, "POST", "/v1/locks", body)
        call(
            gateway, "POST", "/v1/tasks", {"title": name, "description": text, "role": "coder", "owner": name}
        )
    for one in (page, small):
        for view in VIEWS:
            open_view(one, gateway, view)
            shown = one.locator("main")
            expect(shown).to_contain_text("onerror=alert(1)" if view in NAMING else re.compile("[a-z]{3}"))
            assert width_over(one) <= 0, view
    open_view(page, gateway, "live")
    for row in page.locator("tbody tr").all()[:50]:
        row.click()
        assert width_over(page) <= 0
    assert page.title() == "Live · Herdr"
    assert page.evaluate("({}).polluted") is None
    assert complaints == []


def test_two_tabs_share_one_stream_and_the_second_goes_on_alone(
    gateway: GatewayProcess, context: BrowserContext
) -> None:
    first, second = context.new_page(), context.new_page()
    for tab in (first, second):
        open_view(tab, gateway, "live")
        expect(tab.get_by_role("status").first).to_have_text("live")
    publish(gateway, {"type": "tool.result", "source": "for-both"})
    for tab in (first, second):
        expect(tab.locator("tbody")).to_contain_text("for-both")
    assert health(gateway)["connections"]["sse"] == 1
    first.close()
    publish(gateway, {"type": "tool.result", "source": "for-the-second"})
    expect(second.locator("tbody")).to_contain_text("for-the-second")
    wait_until(lambda: health(gateway)["connections"]["sse"] == 1, "one stream")


def test_a_restart_of_the_gateway_is_survived(gateway: GatewayProcess, page: Page, tmp_path: Path) -> None:
    publish(gateway, {"type": "tool.result", "source": "before"})
    open_view(page, gateway, "live")
    expect(page.locator("tbody")).to_contain_text("before")
    port = gateway.port
    gateway.kill()
    expect(page.get_by_role("status").first).to_have_text("not connected")
    with running_gateway(tmp_path / "data", "--port", str(port)) as again:
        expect(page.get_by_role("status").first).to_have_text("live", timeout=30_000)
        publish(again, {"type": "tool.result", "source": "after"})
        expect(page.locator("tbody")).to_contain_text("after")
        expect(page.locator("tbody")).to_contain_text("before")


def test_the_first_view_is_light_and_asks_nobody_else(gateway: GatewayProcess, page: Page) -> None:
    publish(gateway, {"type": "tool.result", "source": "me"})
    asked: list[tuple[str, int]] = []
    page.on("requestfinished", lambda r: asked.append((r.url, r.sizes()["responseBodySize"])))
    open_view(page, gateway, "overview")
    expect(page.locator(".chart canvas").first).to_be_visible()
    page.wait_for_load_state("load")
    assert {url.split("/")[2] for url, _ in asked} == {gateway.url.split("/")[2]}
    files = {
        url: size
        for url, size in asked
        if "/dashboard/" in url or url.rstrip("/").endswith(str(gateway.port))
    }
    assert len(files) >= 8 and 10_000 < sum(files.values()) < FIRST_VIEW_MAX, files


def test_it_is_used_by_keyboard_and_on_a_phone(gateway: GatewayProcess, page: Page, small: Page) -> None:
    open_view(page, gateway, "overview")
    for key, view in (("k", "locks"), ("t", "tasks"), ("l", "live")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator(f"[data-view={view}]")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="keys")).to_be_visible()
    publish(
        gateway,
        {"type": "tool.result", "source": "phone", "subject": "src/a/rather/long/path/to/some/file.py"},
    )
    open_view(small, gateway, "live")
    expect(small.locator("tbody")).to_contain_text("phone")
    assert width_over(small) <= 0


def test_with_tokens_a_link_signs_in(tmp_path: Path, page: Page) -> None:
    config = tmp_path / "herdr.yaml"
    tokens = [{"name": "boss", "token": "boss-secret", "scopes": ["admin"]}]
    config.write_text(json.dumps({"auth": {"tokens": tokens}}))
    with running_gateway(tmp_path / "guarded", "--config", str(config)) as gateway:
        page.goto(gateway.url)
        expect(page.locator("main")).to_contain_text("herdr open")
        link = call(gateway, "POST", "/v1/browser-links", {}, {"authorization": "Bearer boss-secret"}).json()[
            "link"
        ]
        page.goto("about:blank")
        page.goto(f"{gateway.url}{link}")
        expect(page.locator("[data-view=overview]")).to_be_visible()
        assert "login" not in page.url
        expect(page.locator(".state")).to_contain_text("boss")
