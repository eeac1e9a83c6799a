"""The tail in a browser: its filter, one event beside it, the chain of a cause, and the log behind it."""

from collections.abc import Iterator
from typing import Any

import pytest
from browser_complaints import Complaints
from gateway import GatewayProcess, running_gateway
from playwright.sync_api import Locator, Page, expect
from wire import accept, publish, put_route

from herdr.glob import compile_glob

pytestmark = pytest.mark.slow  # a minute; what matters most is in test_dashboard.py

TAIL = 600  # events that push everything before them out of what a browser holds (500)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SAME_TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"

PATTERNS = [
    "*",
    "**",
    "tool.*",
    "*.result",
    "src/*",
    "src/**",
    "**/a.py",
    "src/*/a?py",
    "src/**/a.py",
    "?",
    "a*b*c",
]
TEXTS = [
    "",
    "a",
    "tool.result",
    "tool.result.partial",
    "src",
    "src/a.py",
    "src/x/a.py",
    "src/x/y/a.py",
    "aXbYc",
]
TEXTS += ["a/b/c", "abcd", "src/x/[id]/a.py", "a.py"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all of these tests; each has names of its own."""
    with running_gateway(tmp_path_factory.mktemp("live") / "data") as process:
        yield process
        assert not [line for line in process.log if "Traceback" in line]


def bury(gateway: GatewayProcess) -> None:
    publish(gateway, *[{"type": "tool.result", "source": "others"}] * TAIL)


def see(page: Page, gateway: GatewayProcess, place: str) -> None:
    page.goto(f"{gateway.url}/#/{place}")
    expect(page.locator(f"[data-view={place.partition('?')[0]}]")).to_be_visible()


def event_panel(page: Page, seq: int) -> Locator:
    return page.get_by_role("region", name=f"Event {seq}")


def test_the_globs_of_the_filter_are_the_gateways(gateway: GatewayProcess, page: Page) -> None:
    see(page, gateway, "live")
    fits = """async ([pattern, texts]) => {
        const { fitting } = await import("/dashboard/views/match.js");
        const events = texts.map((subject) => ({ subject }));
        return fitting(events, new URLSearchParams({ subject: pattern })).map((event) => event.subject);
    }"""
    for pattern in PATTERNS:
        wanted = [text for text in TEXTS if compile_glob(pattern.lower())(text.lower())]
        assert page.evaluate(fits, [pattern, TEXTS]) == wanted, pattern
    assert page.evaluate(fits, ["X/A", TEXTS]) == ["src/x/a.py"]


def test_the_filter_stands_in_the_address(gateway: GatewayProcess, page: Page) -> None:
    event: dict[str, Any] = {"type": "test.failed", "source": "filtered", "data": {"word": "Needle"}}
    publish(gateway, event, event | {"type": "test.passed"}, event | {"type": "user.message"})
    see(page, gateway, "live?source=filtered")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("type").fill("test.*")
    expect(rows).to_have_count(2)
    assert "type=test.*" in page.url
    page.reload()
    expect(page.get_by_label("type")).to_have_value("test.*")
    expect(rows).to_have_count(2)
    page.get_by_label("type").fill("")
    page.get_by_role("tab", name="P0").click()
    expect(rows).to_have_count(1)
    page.get_by_role("tab", name="all lanes").click()
    page.get_by_label("anything").fill("needle")
    expect(rows).to_have_count(3)
    page.get_by_label("anything").fill("haystack")
    expect(page.locator(".empty")).to_contain_text("None of the newest events fits")


def test_an_event_has_an_address_and_is_left_by_key_or_back(gateway: GatewayProcess, page: Page) -> None:
    seq = accept(gateway, type="tool.result", source="addressed", data={"text": "x" * 3000 + "end"})
    see(page, gateway, "live?source=addressed")
    page.locator("tbody tr").click()
    expect(event_panel(page, seq)).to_contain_text("1,003 more characters")
    expect(event_panel(page, seq)).not_to_contain_text("xend")
    page.get_by_role("button", name="more characters").click()
    expect(event_panel(page, seq)).to_contain_text("xend")
    assert f"event={seq}" in page.url
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(event_panel(page, seq)).to_have_count(0)
    page.go_forward()
    expect(event_panel(page, seq)).to_be_visible()
    page.keyboard.press("Escape")
    expect(event_panel(page, seq)).to_have_count(0)


def test_an_event_that_the_tail_has_not_whole_is_fetched(gateway: GatewayProcess, page: Page) -> None:
    large = accept(gateway, type="tool.result", source="large", data={"text": "x" * 9000, "last": "word"})
    see(page, gateway, f"live?event={large}")
    expect(event_panel(page, large)).to_contain_text("last: “word”")
    bury(gateway)
    page.reload()
    expect(event_panel(page, large)).to_contain_text("last: “word”")
    see(page, gateway, "live?event=99999999")
    expect(event_panel(page, 99999999).get_by_role("alert")).to_contain_text("99999999")


def test_the_chain_of_a_cause_reaches_back_into_the_log(gateway: GatewayProcess, page: Page) -> None:
    root = accept(gateway, type="note.made", source="editor", subject="src/chain.py")
    first = accept(gateway, type="tool.call", source="claude", session="s-chain", trace=TRACE)
    base = accept(gateway, type="user.message", source="ana", task="t-chain", trace=TRACE, based_on=root)
    bury(gateway)
    call = accept(
        gateway, type="tool.call", source="claude", session="s-chain", trace=SAME_TRACE, based_on=base
    )
    told = accept(gateway, type="tool.result", source="claude", session="s-chain", based_on=call)
    accept(gateway, type="tool.result", source="stranger", trace=TRACE.replace("4bf9", "4bf8"))
    see(page, gateway, f"live?event={call}")
    steps = event_panel(page, call).locator(".steps li")
    expect(steps).to_have_count(5)
    chain = {
        root: "what it was based on",
        first: "same trace",
        base: "what it was based on",
        call: "this one",
        told: "based on it",
    }
    for step, (seq, why) in zip(steps.all(), chain.items(), strict=True):
        expect(step).to_contain_text(str(seq))
        expect(step).to_contain_text(why)
    expect(steps.nth(3)).to_have_attribute("aria-current", "step")
    event_panel(page, call).get_by_role("tab", name="session").click()
    expect(steps.nth(1)).to_contain_text("same session")
    expect(steps).to_have_count(5)
    steps.nth(2).get_by_role("button").click()
    expect(event_panel(page, base)).to_contain_text("t-chain")
    expect(event_panel(page, base).locator(".steps")).to_contain_text("same trace")
    event_panel(page, base).get_by_role("link", name="only this trace").click()
    expect(page.get_by_role("button", name="trace 4bf92f")).to_be_visible()


def test_the_log_is_searched_further_back(gateway: GatewayProcess, page: Page) -> None:
    bury(gateway)
    bury(gateway)  # more than the log gives at a time
    accept(gateway, type="tool.result", source="long/ago", subject="src/old.py")
    bury(gateway)
    see(page, gateway, "live?source=ago&subject=src/**")
    expect(page.locator(".empty")).to_contain_text("None of the newest")
    page.get_by_role("button", name="search the last").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("src/old.py")
    page.get_by_label("subject").fill("docs/**")
    page.get_by_role("button", name="search the last").click()
    expect(page.locator(".empty")).to_contain_text("Nothing in that part of the log")


def test_what_nobody_sees_is_shown(gateway: GatewayProcess, page: Page, complaints: Complaints) -> None:
    hidden = {
        "\u202e": "\\u202e",
        "\u200b": "\\u200b",
        "\U000e0041": "\\u{e0041}",
        "\u3164": "\\u3164",
        "\u0007": "\\u0007",
    }
    seq = accept(gateway, type="tool.result", source="hidden", data={f"k{c}": f"v{c}" for c in hidden})
    see(page, gateway, f"live?event={seq}")
    for shown in hidden.values():
        expect(event_panel(page, seq)).to_contain_text(f"k{shown}: “v{shown}”")
    assert complaints == []


def test_it_says_who_gets_an_event(gateway: GatewayProcess, page: Page) -> None:
    put_route(gateway, "builds", event="build.*", target="builder")
    seq = accept(gateway, type="build.done", source="ci", data={"n": 1})
    see(page, gateway, f"live?event={seq}")
    event_panel(page, seq).get_by_role("link", name="who gets it").click()
    expect(page.get_by_role("status").filter(has_text="It would be")).to_contain_text("go to builder")
    expect(page.get_by_role("textbox", name="event")).to_have_value(
        '{\n  "type": "build.done",\n  "source": "ci",\n  "workspace": "default",\n  "data": {\n    "n": 1\n  }\n}'
    )
