from collections.abc import Iterator
from itertools import count

import pytest
from handlers import ask, scope_of
from hypothesis import given
from hypothesis import strategies as st

from herdr.clock import SystemClock
from herdr.errors import InvalidInput
from herdr.web.auth import ANYONE, COOKIE, Caller, Token, make_token
from herdr.web.browser_sessions import LINKS_MAX, BrowserSessions, opened, seal
from herdr.web.problems import Refused

NOW = 1_700_000_000
READER = make_token("reader", "reader-secret", ["events:follow"])
BOSS = make_token("bö.ss", "boss-secret", ["admin"])
TOKENS = (READER, BOSS)


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.passed = 0.0

    def wall_us(self) -> int:
        return int((NOW + self.passed) * 1_000_000)

    def monotonic(self) -> float:
        return 5.0 + self.passed


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> BrowserSessions:
    tickets: Iterator[int] = count(1)
    return BrowserSessions(TOKENS, clock, lambda: f"ticket-{next(tickets)}")


async def ticket_of(sessions: BrowserSessions, token: Token = READER) -> str:
    answer = await ask(sessions.link, scope_of("POST"), {}, Caller(token.name, token.scopes))
    assert answer.status == 201 and answer.json()["link"] == f"/#login={answer.json()['ticket']}"
    return str(answer.json()["ticket"])


async def signed_in(sessions: BrowserSessions, ticket: str, scheme: str = "http") -> str:
    answer = await ask(sessions.sign_in, scope_of("POST", scheme=scheme), {"ticket": ticket})
    assert (answer.status, answer.body) == (204, b"")
    return answer.headers["set-cookie"]


def value_of(cookie: str) -> str:
    return cookie.partition(";")[0].removeprefix(f"{COOKIE}=")


@pytest.mark.parametrize("token", TOKENS)
def test_a_cookie_stands_for_its_token_until_it_ends(token: Token) -> None:
    cookie = seal(token, NOW + 10)
    assert opened(cookie, TOKENS, NOW + 9.9) is token
    assert opened(cookie, TOKENS, NOW + 10) is None
    assert opened(cookie, (), NOW) is None
    assert cookie.isascii() and not set(' ";,\\') & set(cookie)


def test_a_cookie_dies_with_its_secret() -> None:
    renewed = make_token(READER.name, "another-secret", ["events:follow"])
    assert opened(seal(READER, NOW + 10), [renewed], NOW) is None


@given(st.integers(0, 200), st.characters(codec="utf-8"))
def test_no_character_of_a_cookie_may_be_another(place: int, character: str) -> None:
    cookie = seal(BOSS, NOW + 10)
    changed = cookie[:place] + character + cookie[place + 1 :]
    assert (opened(changed, TOKENS, NOW) is BOSS) == (changed == cookie)


@given(st.text(max_size=90))
def test_any_text_is_no_cookie(text: str) -> None:
    assert opened(text, TOKENS, 0) is None


def test_one_tokens_seal_is_not_anothers() -> None:
    name = seal(BOSS, NOW + 10).partition(".")[0]
    rest = seal(READER, NOW + 10).partition(".")[2]
    assert opened(f"{name}.{rest}", TOKENS, NOW) is None


@pytest.mark.parametrize(("scheme", "is_secure"), [("http", False), ("https", True)])
async def test_the_cookie_fits_the_scheme(sessions: BrowserSessions, scheme: str, is_secure: bool) -> None:
    cookie = await signed_in(sessions, await ticket_of(sessions), scheme)
    said = [part.strip() for part in cookie.split(";")[1:]]
    assert said[:4] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    assert said[4:] == (["Secure"] if is_secure else [])
    assert sessions.by_cookie(value_of(cookie)) is READER


async def test_a_session_ends_after_half_a_day(sessions: BrowserSessions, clock: HandClock) -> None:
    value = value_of(await signed_in(sessions, await ticket_of(sessions)))
    clock.passed = 12 * 3600 - 1
    assert sessions.by_cookie(value) is READER
    clock.passed += 2
    assert sessions.by_cookie(value) is None


async def test_a_link_works_once_and_for_five_minutes(sessions: BrowserSessions, clock: HandClock) -> None:
    used, late, in_time = [await ticket_of(sessions) for _ in range(3)]
    await signed_in(sessions, used)
    with pytest.raises(Refused):
        await signed_in(sessions, used)
    clock.passed = 299
    await signed_in(sessions, in_time)
    clock.passed = 301
    for ticket in (used, late, in_time):
        with pytest.raises(Refused) as refused:
            await signed_in(sessions, ticket)
        assert refused.value.code == "unauthorized" and "herdr open" in refused.value.detail


async def test_guesses_use_nothing_up(sessions: BrowserSessions) -> None:
    ticket = await ticket_of(sessions)
    for n in range(1000):
        with pytest.raises(Refused):
            await signed_in(sessions, f"guess-{n}")
    await signed_in(sessions, ticket)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"x", {"ticket": ""}, {"ticket": "x" * 201}, {"ticket": 1}]
)
async def test_what_is_no_ticket_is_refused(sessions: BrowserSessions, body: object) -> None:
    with pytest.raises(InvalidInput):
        await ask(sessions.sign_in, scope_of("POST"), body)


async def test_a_large_body_is_refused_unread(sessions: BrowserSessions) -> None:
    with pytest.raises(Refused) as refused:
        await ask(sessions.sign_in, scope_of("POST"), {"ticket": "x" * 5000})
    assert refused.value.code == "too_large"


async def test_so_many_links_wait_and_the_oldest_go(sessions: BrowserSessions) -> None:
    tickets = [await ticket_of(sessions) for _ in range(LINKS_MAX + 1)]
    with pytest.raises(Refused):
        await signed_in(sessions, tickets[0])
    await signed_in(sessions, tickets[1])
    await signed_in(sessions, tickets[-1])


async def test_signing_out_has_the_browser_forget(sessions: BrowserSessions) -> None:
    answer = await ask(sessions.sign_out, scope_of("DELETE"))
    assert answer.status == 204
    assert answer.headers["set-cookie"].startswith(f"{COOKIE}=; Path=/; Max-Age=0")


async def test_without_tokens_the_page_itself_is_the_link(clock: HandClock) -> None:
    sessions = BrowserSessions((), clock, lambda: "never")
    answer = await ask(sessions.link, scope_of("POST"), {})
    assert answer.json() == {"link": "/", "ticket": None, "expires": None}
    me = (await ask(sessions.me, scope_of())).json()
    assert (me["name"], me["scopes"], me["open"]) == (ANYONE.name, None, True)


async def test_it_says_who_asks(sessions: BrowserSessions) -> None:
    me = (await ask(sessions.me, scope_of(), None, Caller("reader", frozenset({"locks", "context"})))).json()
    assert (me["name"], me["scopes"], me["open"]) == ("reader", ["context", "locks"], False)
