"""Locks, context, models, tasks and clients in a browser: live, and safe with whatever names and contents hold."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser_complaints import Complaints
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_asking import Asking
from model_gateway import model_gateway
from playwright.sync_api import Browser, Locator, Page, expect
from wire import all_events, call, publish, put_route, wait_until

CART = """\
def total(lines):
    return sum(price(line) for line in lines)


def price(line):
    return line.price
"""
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</pre></template><script>document.title='pwned'</script>",
    "<svg><script>alert(1)</script></svg>",
    "\"'><b onmouseover=alert(1)>",
    "javascript:alert(1)",
    "\u202egnp.exe\u202c\u2066",
    "W" * 128,
    "A\u0301\u0302\u0303" * 30,
    "\U0001f469\u200d\U0001f467" * 20,
    "__proto__",
    "${alert(1)}",
    "a/../../b?x=1#y&z=%2e%2e",
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all of these tests, with a model and a watched folder; each test has names of its own."""
    folder = tmp_path_factory.mktemp("views")
    shop = folder / "shop"
    shop.mkdir()
    (shop / "cart.py").write_text(CART)
    watched = {"workspaces": [{"name": "shop", "path": str(shop)}]}
    with FakeLlama(slots=2) as fake, model_gateway(folder, {"local": fake}, more=watched) as process:
        fake.script(Script(["Fine", "."]))
        yield process
        assert not [line for line in process.log if "Traceback" in line]


@pytest.fixture
def small(browser: Browser, complaints: Complaints) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    complaints.watch(page)
    yield page
    context.close()


def done(gateway: GatewayProcess, method: str, path: str, body: Any = None) -> Any:
    answer = call(gateway, method, path, body)
    assert answer.status < 300, answer
    return answer.json() if answer.body else None


def lock(gateway: GatewayProcess, owner: str, *paths: str, **more: Any) -> Any:
    return done(gateway, "POST", "/v1/locks", {"paths": paths, "owner": owner, "ttl_s": 600, **more})


def in_line(gateway: GatewayProcess, owner: str, path: str, **more: Any) -> Asking:
    """Ask for a lock, and return once it stands in line."""
    asking = Asking(gateway, "/v1/locks", {"paths": [path], "owner": owner, "wait_s": 60, **more})
    wait_until(lambda: owner in waiting(gateway), f"{owner} to stand in line")
    return asking


def waiting(gateway: GatewayProcess) -> list[str]:
    return [row["owner"] for row in done(gateway, "GET", "/v1/locks")["waiting"]]


def ask_model(gateway: GatewayProcess, agent: str) -> None:
    body = {"model": "local", "max_tokens": 8, "messages": [{"role": "user", "content": "hello"}]}
    answer = call(gateway, "POST", "/v1/messages", body, {"x-agent-id": agent})
    assert answer.status == 200, answer


def open_view(page: Page, gateway: GatewayProcess, view: str) -> Locator:
    page.goto(f"{gateway.url}/#/{view}")
    main = page.locator(f"[data-view={view.partition('?')[0]}]")
    expect(main).to_be_visible()
    return main


def width_over(page: Page) -> int:
    """Return how many pixels the page is wider than its window, or what stands in a panel than the panel."""
    wider = "e => e.scrollWidth - e.clientWidth"
    return int(
        page.evaluate(
            f"Math.max(...[document.documentElement, ...document.querySelectorAll('.panel')].map({wider}))"
        )
    )


def test_locks_come_by_themselves_and_waits_are_drawn(
    gateway: GatewayProcess, page: Page, complaints: Complaints
) -> None:
    view = open_view(page, gateway, "locks?q=drawn")
    lock(gateway, "ann", "drawn/a.py", purpose="rounding")
    held = view.get_by_role("table", name="locks")
    expect(held).to_contain_text("rounding")
    expect(held.locator("time")).to_have_count(2)
    done(gateway, "POST", "/v1/waits", {"owner": "cid", "on": "bob", "purpose": "drawn verdict"})
    with in_line(gateway, "bob", "drawn/a.py"):
        picture = view.locator(".picture svg[role=group]")
        expect(picture).to_have_attribute("aria-label", "bob waits for ann; cid waits for bob")
        expect(picture.locator(".box")).to_have_count(3)
        expect(picture.locator(".wait.declared")).to_have_count(1)
        expect(picture.get_by_role("link", name="bob: waits")).to_be_visible()
        picture.get_by_role("link", name="cid: waits").click()
        expect(page).to_have_url(re.compile("owner=cid"))
        expect(view).to_contain_text("No lock fits the filter")
        page.reload()
        expect(view.get_by_role("table", name="declared waits")).to_contain_text("drawn verdict")
    assert complaints == []


def test_a_ring_that_was_refused_is_shown(
    gateway: GatewayProcess, page: Page, complaints: Complaints
) -> None:
    view = open_view(page, gateway, "locks?owner=ring-a")
    done(gateway, "POST", "/v1/waits", {"owner": "ring-a", "on": "ring-b"})
    assert call(gateway, "POST", "/v1/waits", {"owner": "ring-b", "on": "ring-a"}).status == 409
    ring = view.get_by_role("region", name="Refused rings").get_by_role("listitem")
    expect(ring.get_by_role("link", name="ring")).to_have_text(["ring-b", "ring-a", "ring-b"])
    ring.get_by_role("link", name="#").click()
    expect(page.locator("[data-view=live]")).to_contain_text("closed_by")
    assert complaints == []


def test_a_lock_is_released_by_force_for_a_reason_only(gateway: GatewayProcess, page: Page) -> None:
    taken = lock(gateway, "crashed", "forced/a.py")
    with in_line(gateway, "heir", "forced/a.py", ttl_s=60):
        view = open_view(page, gateway, "locks?q=forced")
        view.get_by_role("button", name="release forced/a.py of crashed by force").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("heir is next in line")
        dialog.get_by_role("button", name="Release by force").click()
        expect(dialog.get_by_role("alert")).to_contain_text("Say why")
        assert done(gateway, "GET", f"/v1/locks/{taken['lock']}")["owner"] == "crashed"
        dialog.get_by_role("textbox").fill("its tool & all <b>crashed</b>")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(view.get_by_role("button", name="release forced/a.py of heir by force")).to_be_visible()
    told = [
        event["data"] for event in all_events(gateway, "type=lock.*") if taken["lock"] in json.dumps(event)
    ]
    assert "its tool & all <b>crashed</b>" in json.dumps(told)


def test_a_task_is_created_answered_and_canceled(gateway: GatewayProcess, page: Page) -> None:
    view = open_view(page, gateway, "tasks")
    view.get_by_role("button", name="New task").click()
    view.get_by_label("Title").fill("Round the totals")
    view.get_by_label("Role").last.fill("rounder")
    view.get_by_label("Your name").fill("olga")
    view.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(r"#/tasks\?task=\w+$"))
    task = page.url.rpartition("=")[2]
    at = f"/v1/tasks/{task}"
    note = {
        "summary": "it is twice",
        "decisions": ["once only"],
        "files": ["cart.py"],
        "artifacts": ["fix.patch"],
    }
    token = done(gateway, "POST", f"{at}/claim", {"owner": "ann"})["token"]
    done(gateway, "POST", f"{at}/hand-over", {"token": token, "role": "coder", "note": note})
    token = done(gateway, "POST", f"{at}/claim", {"owner": "bob"})["token"]
    done(gateway, "POST", f"{at}/ask", {"token": token, "question": "Up or down?", "to": "olga"})
    steps = view.locator(".steps > li")
    expect(steps).to_have_count(5)
    for said in ("ann", "handed it over to coder", "it is twice", "once only", "cart.py"):
        expect(steps.nth(2)).to_contain_text(said)
    link = re.compile("tab=artifacts&artifact=fix.patch")
    expect(steps.nth(2).get_by_role("link", name="fix.patch")).to_have_attribute("href", link)
    expect(view.get_by_role("region", name="Asks")).to_contain_text("Up or down?")
    view.get_by_label("Answer", exact=True).fill("Half to even")
    view.get_by_role("button", name="Answer").click()
    expect(steps.last).to_contain_text("Half to even")
    expect(view.get_by_role("region", name="In work")).to_contain_text("Round the totals")
    answered = done(gateway, "GET", at)
    assert (answered["state"], answered["steps"][-1]["by"]) == ("working", "olga")
    view.get_by_role("button", name="Cancel task…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()
    expect(view.get_by_role("region", name="Ended")).to_contain_text("Round the totals")
    assert done(gateway, "GET", at)["state"] == "canceled"


def test_the_board_is_by_role_too(gateway: GatewayProcess, page: Page) -> None:
    for title, role in (("Plan it", "architect"), ("Shelve it", "archivist"), ("Drop it", "architect")):
        done(
            gateway,
            "POST",
            "/v1/tasks",
            {"title": title, "role": role, "owner": "ana", "workspace": "by-role"},
        )
    dropped = done(gateway, "GET", "/v1/tasks?workspace=by-role&role=architect")["tasks"][0]
    done(gateway, "POST", f"/v1/tasks/{dropped['task']}/cancel", {"owner": "ana"})
    view = open_view(page, gateway, "tasks?workspace=by-role")
    view.get_by_role("tab", name="By role").click()
    columns = view.locator(".column")
    expect(columns.locator("h2")).to_have_text(["architect 2", "archivist 1"])
    cards = columns.first.locator(".card")
    expect(cards.locator("b")).to_have_text(["Plan it", "Drop it"])
    expect(cards.last).to_contain_text("canceled")
    page.reload()
    expect(columns).to_have_count(2)


def test_map_and_symbols_are_shown(gateway: GatewayProcess, page: Page, complaints: Complaints) -> None:
    view = open_view(page, gateway, "context?workspace=shop")
    expect(view.get_by_role("region", name="Index")).to_contain_text("ready")
    expect(view.get_by_role("region", name="Map")).to_contain_text("def total(lines)")
    expect(view.get_by_role("region", name="Map")).to_contain_text(re.compile(r"\d+ tokens, 1 of 1 files"))
    view.get_by_role("tab", name="Symbols").click()
    view.get_by_label("Name").fill("pri")
    view.get_by_role("link", name="price").click()
    called_by = view.get_by_role("region", name="Called by")
    expect(called_by).to_contain_text("cart.py:2")
    called_by.get_by_role("link", name="total").click()
    expect(view.get_by_role("region", name="Calls")).to_contain_text("price")
    expect(view.get_by_role("region", name="Calls").get_by_text("elsewhere")).to_be_visible()
    page.reload()
    expect(view.get_by_label("Name")).to_have_value("pri")
    assert complaints == []


def test_a_session_shows_its_decisions_with_reasons(gateway: GatewayProcess, page: Page) -> None:
    said = [
        {"role": "user", "content": "Should vouchers lower the tax?", "workspace": "talk"},
        {
            "role": "assistant",
            "content": "I decided to round per line because invoices are.",
            "workspace": "talk",
        },
    ]
    view = open_view(page, gateway, "context?tab=sessions&session=talk/1&workspace=talk")
    done(gateway, "POST", "/v1/sessions/talk%2F1/messages", {"messages": said})
    summary = view.get_by_role("region", name="Summary")
    expect(summary.locator(".decisions")).to_contain_text("because invoices are")
    expect(summary.locator(".questions")).to_contain_text("Should vouchers lower the tax?")
    done(
        gateway,
        "POST",
        "/v1/sessions/talk%2F1/messages",
        {"role": "user", "content": "one more", "workspace": "talk"},
    )
    expect(view.locator(".message").first).to_contain_text("one more")


def test_the_session_that_is_read_stays_when_another_says_something(
    gateway: GatewayProcess, page: Page
) -> None:
    def say(session: str, text: str) -> None:
        message = {"role": "user", "content": text, "workspace": "stays"}
        done(gateway, "POST", f"/v1/sessions/{session}/messages", message)

    say("first", "I am read")
    view = open_view(page, gateway, "context?workspace=stays&tab=sessions")
    expect(view.locator(".message")).to_contain_text("I am read")
    say("second", "I am newer")
    expect(view.locator(".found a")).to_have_count(2)
    expect(view.locator(".found a").first).to_contain_text("second")
    expect(view.locator(".message")).to_contain_text("I am read")


def test_an_artifact_is_read_taken_along_and_deleted(gateway: GatewayProcess, page: Page) -> None:
    for name, content in (("a/../b", b"<h1>no page</h1>\n"), ("b", b"stays"), ("raw", b"\x00\xff")):
        assert (
            call(gateway, "PUT", f"/v1/artifacts/{name.replace('/', '%2F')}?workspace=left", content).status
            == 201
        )
    view = open_view(page, gateway, "context?workspace=left&tab=artifacts")
    view.get_by_role("row", name="raw").click()
    expect(view).to_contain_text("It is not a text")
    view.get_by_role("row", name="a/../b").press("Enter")
    expect(view.locator("pre")).to_have_text("<h1>no page</h1>\n")
    with page.expect_download() as download:
        view.get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_bytes() == b"<h1>no page</h1>\n"
    view.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(view.locator("tbody tr")).to_have_count(2)
    left = done(gateway, "GET", "/v1/artifacts?workspace=left")["artifacts"]
    assert {artifact["name"] for artifact in left} == {"b", "raw"}


def test_a_name_cannot_become_a_command(gateway: GatewayProcess, page: Page) -> None:
    name = "x'; touch pwned #"
    done(
        gateway, "POST", "/v1/sessions/quoted/messages", {"role": "user", "content": "hi", "workspace": name}
    )
    view = open_view(page, gateway, f"context?{urlencode({'workspace': name, 'tab': 'map'})}")
    command = view.locator(".empty code").inner_text()
    assert shlex.split(command, comments=True) == ["herdr", "workspace", "add", ".", "--name", name]


def test_slots_and_calls_are_shown_with_why_a_cache_missed(gateway: GatewayProcess, page: Page) -> None:
    ask_model(gateway, "coder")
    view = open_view(page, gateway, "models?agent=coder")
    slots = view.get_by_role("region", name="local").locator(".slot")
    expect(slots).to_have_count(2)
    expect(slots.filter(has_text="coder")).to_contain_text("warm")
    rows = view.get_by_role("table", name="calls").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("not known")
    ask_model(gateway, "coder")
    expect(rows).to_have_count(2)
    expect(view.locator(".chart canvas")).to_have_count(2)
    rows.first.press("Enter")
    expect(view.get_by_role("region", name="call", exact=True)).to_contain_text("from the cache")


def test_clients_are_listed_with_how_far_behind_they_are(gateway: GatewayProcess, page: Page) -> None:
    put_route(gateway, "for-mail", event="test.failed", target="mailer")
    view = open_view(page, gateway, "clients")
    publish(gateway, *[{"type": "test.failed", "source": "runner", "session": "ci/7", "workspace": "ci"}] * 3)
    runner = view.get_by_role("row").filter(has_text="runner")
    expect(runner.locator("td.num")).to_have_text("3")
    expect(runner.get_by_role("link", name="ci/7")).to_have_attribute("href", re.compile("session=ci%2F7"))
    cursor = done(gateway, "GET", "/v1/events?after=0&limit=1")["cursor"]
    done(gateway, "POST", "/v1/targets/mailer/ack", {"cursor": cursor})
    expect(view.get_by_role("row").filter(has_text="mailer")).to_contain_text(re.compile(r"\d+ events"))
    view.get_by_role("tab", name="Targets").click()
    expect(runner).to_have_count(0)


def test_what_is_addressed_to_a_target_is_listed_before_it_reads(gateway: GatewayProcess, page: Page) -> None:
    put_route(gateway, "for-nobody-yet", event="lock.*", target="absent")
    view = open_view(page, gateway, "clients?q=lock.*")
    row = view.get_by_role("row").filter(has_text="absent")
    expect(row).to_contain_text("not known")
    rule = row.get_by_role("link", name="lock.*")
    expect(rule).to_have_attribute("title", "rule for-nobody-yet")
    expect(view.get_by_role("tab", name="Hooks")).to_have_count(0)


def fill_with(gateway: GatewayProcess, number: int, text: str) -> str:
    """Put a text wherever people and tools may put one; return the id of the task that has it."""
    name = "".join(c for c in text if c.isprintable())[:128]
    lock(gateway, name, f"hostile/{number}/{name}", purpose=text)
    done(gateway, "POST", "/v1/waits", {"owner": f"{number} waits", "on": name, "purpose": text})
    note = {
        "summary": text,
        "decisions": [text],
        "files": [text],
        "artifacts": [text],
        "open_questions": [text],
    }
    body = {"title": name, "description": text, "role": name, "owner": name, "note": note, "workspace": name}
    task = str(done(gateway, "POST", "/v1/tasks", body)["task"])
    token = done(gateway, "POST", f"/v1/tasks/{task}/claim", {"owner": name})["token"]
    done(gateway, "POST", f"/v1/tasks/{task}/ask", {"token": token, "question": text, "to": name})
    said = {
        "role": "user",
        "content": f"We decided on {text} because {text}. Is {text} right?",
        "workspace": "hostile",
    }
    done(gateway, "POST", f"/v1/sessions/hostile-{number}/messages", said)
    headers = {"content-type": "text/html"}
    path = f"/v1/artifacts/hostile-{number}?workspace=hostile"
    assert call(gateway, "PUT", path, (text * 3).encode(), headers).status == 201
    publish(gateway, {"type": "tool.result", "source": name, "session": name, "workspace": name})
    ask_model(gateway, name.encode("ascii", "replace").decode())
    return task


def test_hostile_names_and_contents_run_nothing_and_break_no_layout(
    gateway: GatewayProcess, page: Page, small: Page, complaints: Complaints
) -> None:
    tasks = [fill_with(gateway, number, text) for number, text in enumerate(HOSTILE)]
    views = ["locks", "clients", "models", "tasks", "context?workspace=hostile&tab=artifacts"]
    for window in (page, small):
        for place in views:
            main = open_view(window, gateway, place)
            expect(main.locator("tbody tr, .card").first).to_be_visible()
            assert width_over(window) <= 0, place
    for number, task in enumerate(tasks):
        view = open_view(page, gateway, f"tasks?task={task}")
        expect(view.locator(".steps > li")).to_have_count(3)
        assert width_over(page) <= 0, HOSTILE[number]
        view = open_view(small, gateway, f"context?workspace=hostile&tab=artifacts&artifact=hostile-{number}")
        expect(view.locator("pre")).not_to_be_empty()
        assert width_over(small) <= 0, HOSTILE[number]
        view = open_view(small, gateway, f"context?workspace=hostile&tab=sessions&session=hostile-{number}")
        expect(view.locator(".message")).to_have_count(1)
        assert width_over(small) <= 0, HOSTILE[number]
    open_view(page, gateway, "context?workspace=hostile&tab=artifacts&artifact=hostile-0")
    expect(page.locator("pre")).to_have_text(HOSTILE[0] * 3)
    assert page.title().startswith("Context")
    assert complaints == []
