"""The dashboard's frame in a browser: keys, focus, theme, signing in and out, and a gateway that changes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway import GatewayProcess, running_gateway
from playwright.sync_api import Page, Route, expect
from wire import call, publish

pytestmark = pytest.mark.slow  # a minute; what matters most is in test_dashboard.py

TOKENS = [
    {"name": "boss", "token": "boss-secret", "scopes": ["admin"]},
    {"name": "robot", "token": "robot-secret", "scopes": ["locks"]},
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with tokens, for all of these tests."""
    folder = tmp_path_factory.mktemp("guarded")
    config = folder / "herdr.yaml"
    config.write_text(json.dumps({"auth": {"tokens": TOKENS}}))
    with running_gateway(folder / "data", "--config", str(config)) as process:
        yield process


def link(gateway: GatewayProcess, token: str) -> str:
    answer = call(gateway, "POST", "/v1/browser-links", {}, {"authorization": f"Bearer {token}"})
    return gateway.url + str(answer.json()["link"])


def see(page: Page, gateway: GatewayProcess, view: str) -> None:
    page.goto(f"{gateway.url}/#/{view}")
    expect(page.locator(f"[data-view={view}]")).to_be_visible()


def test_it_is_used_by_keys_alone(gateway: GatewayProcess, page: Page) -> None:
    publish(gateway, *[{"type": "tool.result", "source": f"tool-{n}"} for n in range(3)])
    see(page, gateway, "live")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_label("type")).to_be_focused()
    page.keyboard.type("tool.g?p")
    expect(page.get_by_label("type")).to_have_value("tool.g?p")
    page.get_by_label("type").fill("")
    rows = page.locator("tbody tr")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Event 3")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="go on")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="pause")).to_be_visible()
    page.keyboard.press("Control+g")
    page.keyboard.press("o")
    expect(page.locator("[data-view=live]")).to_be_visible()


def test_a_dialog_gives_the_focus_back(gateway: GatewayProcess, page: Page) -> None:
    call(gateway, "POST", "/v1/locks", {"paths": ["a.py"], "owner": "ann", "ttl_s": 600})
    see(page, gateway, "locks")
    button = page.locator("button.force")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").press(
        "Enter"
    )  # it is taken away, not closed
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()


def test_a_chosen_theme_stays(gateway: GatewayProcess, page: Page) -> None:
    see(page, gateway, "overview")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="light or dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.route("**/dashboard/app.js", lambda route: route.abort())  # the theme does not wait for it
    page.reload()
    assert page.evaluate(background) == dark


def test_a_view_that_is_none_is_said(gateway: GatewayProcess, page: Page) -> None:
    page.goto(f"{gateway.url}/#/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("There is no view called nowhere")


def test_a_gateway_that_does_not_answer_is_asked_again(gateway: GatewayProcess, page: Page) -> None:
    asked: list[str] = []

    def refuse_once(route: Route) -> None:
        asked.append(route.request.url)
        route.abort() if len(asked) == 1 else route.continue_()

    page.route("**/v1/me", refuse_once)
    page.goto(gateway.url)
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.locator("[data-view=overview]")).to_be_visible()


def test_another_log_begins_anew(gateway: GatewayProcess, page: Page, tmp_path: Path) -> None:
    publish(gateway, {"type": "tool.result", "source": "of-the-old-log"})
    see(page, gateway, "live")
    expect(page.locator("tbody")).to_contain_text("of-the-old-log")
    port = gateway.port
    gateway.kill()
    with running_gateway(tmp_path / "other", "--port", str(port)) as other:
        expect(page.get_by_role("status").first).to_have_text("live", timeout=30_000)
        publish(other, {"type": "tool.result", "source": "of-the-new-log"})
        expect(page.locator("tbody")).to_contain_text("of-the-new-log")
        expect(page.locator("tbody")).not_to_contain_text("of-the-old-log")


def test_samples_are_joined_in_order(gateway: GatewayProcess, page: Page) -> None:
    see(page, gateway, "overview")
    join = """async ([known, told]) => {
        const { joined } = await import("/dashboard/store.js");
        const samples = (times) => times.map((t) => ({ t }));
        return joined(samples(known), samples(told)).map((sample) => sample.t);
    }"""
    assert page.evaluate(join, [["1", "2", "3"], ["2", "3", "4"]]) == ["1", "2", "3", "4"]  # told again
    assert page.evaluate(join, [["1", "2"], ["5", "6"]]) == ["1", "2", "5", "6"]  # another process
    assert page.evaluate(join, [["1", "2"], []]) == ["1", "2"]
    assert page.evaluate(join, [[], ["1"]]) == ["1"]


def test_a_session_that_is_over_asks_to_sign_in_and_a_link_in_the_same_tab_does(
    guarded: GatewayProcess, page: Page
) -> None:
    page.goto(link(guarded, "boss-secret"))
    expect(page.locator(".state")).to_contain_text("boss")
    page.context.clear_cookies()
    page.goto(f"{guarded.url}/#/clients")
    expect(page.locator("main")).to_contain_text("herdr open")
    page.goto(link(guarded, "boss-secret"))  # only the part behind # changes: the page is not loaded again
    expect(page.locator("[data-view=overview]")).to_be_visible()
    assert "login" not in page.url
    page.get_by_role("button", name="sign out").click()
    expect(page.locator("main")).to_contain_text("herdr open")


def test_a_link_that_was_used_says_so(guarded: GatewayProcess, page: Page) -> None:
    once = link(guarded, "boss-secret")
    page.goto(once)
    expect(page.locator("[data-view=overview]")).to_be_visible()
    page.context.clear_cookies()
    page.goto("about:blank")
    page.goto(once)
    expect(page.get_by_role("alert")).to_contain_text("used already")


def test_a_token_that_may_not_follow_is_told(guarded: GatewayProcess, page: Page) -> None:
    page.goto(link(guarded, "robot-secret"))
    expect(page.get_by_role("status")).to_have_text("not live")
    see(page, guarded, "locks")
    expect(page.locator(".empty")).to_be_visible()
