"""What looks like a secret goes, what does not stays. Nothing here has the form of a live token as it stands.

Every token is put together from its prefix and letters that a generator with a fixed seed gives.
"""

import base64
import random
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdr.context.redact import pieces_of, redact, redact_tree

ROOT = Path(__file__).parent.parent.parent
LETTERS = string.ascii_letters + string.digits


def made(length: int, letters: str = LETTERS, seed: int = 7) -> str:
    """Letters that nobody would type; digits, small and capital ones are among them."""
    chance = random.Random(seed)
    return "".join(chance.choice(letters) for _ in range(length))


def pem(kind: str, lines: int = 6, newline: str = "\n") -> str:
    body = newline.join(made(64, LETTERS + "+/", seed=n) for n in range(lines))
    return f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----"


B64URL = LETTERS + "-_"
PROVIDERS = [
    ("aws key", "AKI" + "A" + made(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")),
    ("github", "gh" + "p_" + made(36)),
    ("github", "github" + "_pat_" + made(22) + "_" + made(59)),
    ("gitlab", "glpat" + "-" + made(20, B64URL)),
    ("slack", "xox" + "b-" + made(12, string.digits) + "-" + made(24)),
    ("slack", "https://hooks.slack" + ".com/services/" + "T" + made(8) + "/B" + made(8) + "/" + made(24)),
    ("google", "AI" + "za" + made(35, B64URL)),
    ("stripe", "sk" + "_live_" + made(24)),
    ("anthropic", "sk-" + "ant-api03-" + made(80, B64URL)),
    ("openai", "sk-" + "proj-" + made(48, B64URL)),
    ("openai", "sk" + "-" + made(48)),
    ("npm", "npm" + "_" + made(36)),
    ("pypi", "pypi" + "-AgE" + made(80, B64URL)),
    ("hugging face", "hf" + "_" + made(34)),
    ("sendgrid", "SG" + "." + made(22, B64URL) + "." + made(43, B64URL)),
    ("jwt", "ey" + "J" + made(30, B64URL) + ".ey" + "J" + made(40, B64URL) + "." + made(43, B64URL)),
]


@pytest.mark.parametrize(("kind", "token"), PROVIDERS)
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", "x={}", '"{}",', "export A={}\n", "https://h/?k={}&b=1", "({})"]
)
def test_tokens_of_providers_go(kind: str, token: str, around: str) -> None:
    text, found = redact(around.format(token))
    assert text == around.format(f"[redacted: {kind}]")
    assert found == 1


# A URL may follow on anything
@pytest.mark.parametrize(("kind", "token"), [one for one in PROVIDERS if not one[1].startswith("https")])
def test_what_only_contains_a_token_is_something_else(kind: str, token: str) -> None:
    assert redact("a" + token) == ("a" + token, 0), "it begins within a word"
    half = token[: len(token) // 4]
    assert redact(half) == (half, 0), "it is too short"


@pytest.mark.parametrize(
    "kind",
    ["RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n    "])
def test_private_keys_go_whole(kind: str, newline: str) -> None:
    text = f'before "{pem(kind, newline=newline)}" after'
    assert redact(text) == ('before "[redacted: private key]" after', 1)


def test_a_private_key_that_is_cut_off_goes_too() -> None:
    key = pem("PRIVATE KEY").removesuffix("\n-----END PRIVATE KEY-----")
    assert redact(f"a\n{key}") == ("a\n[redacted: private key]", 1)
    text, found = redact(f"{key}\nAnd so on: {pem('PRIVATE KEY')}")
    assert (text.split(), found) == (
        ["[redacted:", "private", "key]", "And", "so", "on:", "[redacted:", "private", "key]"],
        2,
    )


def test_public_keys_certificates_and_talk_of_keys_stay() -> None:
    for text in (
        pem("PUBLIC KEY"),
        pem("CERTIFICATE"),
        'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):\n    return "-----END RSA PRIVATE KEY-----"',
    ):
        assert redact(text) == (text, 0)


def test_headers() -> None:
    token = made(32)
    assert redact(f"Authorization: Bearer {token}") == ("Authorization: Bearer [redacted: bearer]", 1)
    assert redact(f"-H 'authorization: token {token}'") == ("-H 'authorization: token [redacted: bearer]'", 1)
    assert redact(f'"Authorization": "Bearer {token}"')[1] == 1
    assert redact(f"the bearer {token} of this")[1] == 1
    basic = base64.b64encode(b"carol:" + made(9).encode()).decode()
    assert redact(f"Authorization: Basic {basic}") == ("Authorization: Basic [redacted: basic]", 1)
    assert redact(f"X-Api-Key: {token}") == ("X-Api-Key: [redacted: secret]", 1)


def test_passwords_in_urls() -> None:
    password = "tr0ub" + "4dor"
    assert redact(f"postgres://carol:{password}@db/shop") == (
        "postgres://carol:[redacted: password]@db/shop",
        1,
    )
    assert redact(f"redis://:{password}@cache")[0] == "redis://:[redacted: password]@cache"


@pytest.mark.parametrize(
    "form",
    [
        "password={}",
        "PASSWORD={}",
        "DB_PASSWORD: {}",
        "  password: '{}'",
        '"clientSecret": "{}",',
        '{{\\"api_key\\": \\"{}\\"}}',
        "aws_secret_access_key = {}",
        'api_key: str = "{}"',
        "const apiKey = `{}`;",
        'config["token"] = "{}"',
        'token := "{}"',
        ":auth_key => '{}'",
        "spring.datasource.password={}",
        "https://host/path?token={}&page=2",
    ],
)
@pytest.mark.parametrize("value", [made(40), made(32, "0123456789abcdef"), "Tr0ub4" + "dor+3!"])
def test_assignments_of_values_that_nobody_invents_go(form: str, value: str) -> None:
    assert redact(form.format(value)) == (form.format("[redacted: secret]"), 1)


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        'password = "changeme"',
        'api_key: "your-api-key-here-1"',
        'api_key = "<YOUR_KEY_1>"',
        "password: ${DB_PASSWORD_1}",
        "password: $DB_PASSWORD_2A",
        "token: {{ secrets.TOKEN_1 }}",
        "token = secrets.GITHUB_TOKEN_2",
        'token = os.environ["API_TOKEN_1"]',
        "token = process.env.API_TOKEN_1",
        "token = make_token(8, seed1)",
        "token = self._tokens_by_name2[name]",
        "token: Mapping[str, Token2] | None = None",
        "secret = previous_secret_version_2",
        "password == Tr0ub4dor3Values",
        "api_key_file: /run/secrets/Api1Key2",
        "token_expires: 2026-11-30T12:00:00Z",
        "max_tokens: 1234567890123456",
        'api_key_id: "k3Yd9fQ2mZx81LpT"',
        'password: "${Db9Pq7Wr2xQ4}"',
        'token = "isOkToGoOnAndOnX"',
        "AKIAIOSFODNN7" + "EXAMPLE",
        "postgres://shop7:shop7@localhost/db",
        "postgres://user:password@localhost/db",
        "https://user:${PASSWORD}@host",
        "http://localhost:8080@evil.example",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <token>",
        "bearer of this letter 12345",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:" + made(64, "0123456789abcdef"),
        "token [redacted: github]",
    ],
)
def test_examples_references_and_code_stay(text: str) -> None:
    assert redact(text) == (text, 0)


def test_overlapping_finds_are_one() -> None:
    token = "gh" + "p_" + made(36)
    assert redact(f'token = "{token}"') == ('token = "[redacted: github]"', 1)
    assert redact(f"https://x:{token}@github.com/a") == ("https://x:[redacted: github]@github.com/a", 1)


def test_a_value_that_goes_on_after_a_token_goes_whole() -> None:
    value = "AKI" + "A" + made(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    value += "-" + made(40, "0123456789abcdef")
    assert redact(f'token = "{value}"') == ('token = "[redacted: aws key]"', 1)


def test_a_token_that_ends_where_a_key_begins_is_seen_once_the_key_is_out() -> None:
    token = "AI" + "za" + made(35, B64URL)
    assert redact(token + pem("PRIVATE KEY")) == ("[redacted: google][redacted: private key]", 2)


def test_tokens_without_anything_between_them_all_go() -> None:
    token = "AKI" + "A" + made(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    glued = pem("PRIVATE KEY") + pem("EC PRIVATE KEY") + "-----BEGIN PRIVATE KEY-----"
    assert redact(glued).secrets == 2
    chain = pem("PRIVATE KEY") + token + "." + token
    assert redact(chain) == ("[redacted: private key][redacted: aws key].[redacted: aws key]", 3)


def test_letters_whose_lower_case_is_longer_do_not_shift_anything() -> None:
    value = made(40)
    assert redact(f"İİİ PASSWORD={value}") == ("İİİ PASSWORD=[redacted: secret]", 1)


def test_json_values_are_judged_by_their_names_too() -> None:
    value, token = made(40), "np" + "m_" + made(36)
    before = {
        "apiKey": value,
        "env": {"DB_PASSWORD": value, "HOME": "/home/carol", "n": 3, "none": None},
        "list": [f"x {token} y", {"deep": [token]}, True],
        "tokens": [value],
        "token_count": value,
        "note": value,
        "secret": "see the wiki, page Abc123defg456",
    }
    kept = repr(before)
    after, found = redact_tree(before)
    assert after == {
        "apiKey": "[redacted: secret]",
        "env": {"DB_PASSWORD": "[redacted: secret]", "HOME": "/home/carol", "n": 3, "none": None},
        "list": ["x [redacted: npm] y", {"deep": ["[redacted: npm]"]}, True],
        "tokens": ["[redacted: secret]"],
        "token_count": value,
        "note": value,
        "secret": "see the wiki, page Abc123defg456",
    }
    assert (found, repr(before)) == (5, kept)
    assert redact_tree(after) == (after, 0)
    assert redact_tree(token) == ("[redacted: npm]", 1)


def test_a_value_nested_deeper_than_calls_may_be() -> None:
    deep: list[Any] = ["np" + "m_" + made(36)]
    for _ in range(100_000):
        deep = [deep]
    cleaned, found = redact_tree(deep)
    assert found == 1
    while isinstance(cleaned, list):
        (cleaned,) = cleaned
    assert cleaned == "[redacted: npm]"


PIECES = [
    *(token for _, token in PROVIDERS),
    *(
        "password=",
        "token: ",
        '"',
        "'",
        "-",
        "_",
        ".",
        " ",
        "\n",
        "a",
        "://u:",
        "@",
        "Bearer ",
        "authorization: ",
    ),
    *(
        pem("PRIVATE KEY", 1),
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        made(40),
        "[",
        "]",
        "İ",
    ),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text())
def test_a_second_time_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once.text) == (once.text, 0)


FIXTURES_WITH_SECRETS = {"tests/config/test_load.py", "tests/docs/test_stop_two_agents.py"}


def test_source_code_without_secrets_is_unchanged() -> None:
    sources = [*(path for top in ("herdr", "sdk", "tests", "bench") for path in (ROOT / top).rglob("*.py"))]
    sources += [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*.toml")]
    sources = [path for path in sources if not {"results", "cache"} & {*path.parts}]  # a bench's downloads
    changed = set()
    for path in sources:
        text = path.read_text()
        if redact(text).text != text:
            changed.add(str(path.relative_to(ROOT)))
    assert len(sources) > 300
    assert changed == FIXTURES_WITH_SECRETS


HOSTILE = [
    "ey" + "J",
    "ey" + "Ja" * 20 + ".",
    "gh" + "p_",
    "sk-" + "ant-",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----" + "A" * 40,
    "-----BEGIN " + "A" * 20,
    "token",
    "token:",
    "token: a",
    "token: str | a ",
    "password=aA1!",
    "://",
    "://a:",
    "://a:" + "b" * 200,
    "bearer ",
    "a",
    "=",
    '\\"',
    " ",
    "-",
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", HOSTILE)
def test_five_megabytes_of_beginnings_take_seconds(unit: str) -> None:
    """Each takes about one second; were it a square of the length, none would end within the timeout."""
    token = "np" + "m_" + made(36)
    text, found = redact(unit * (5_000_000 // len(unit)) + f"\n;{token}")
    assert text.endswith("\n;[redacted: npm]")
    assert found >= 1


def test_a_long_text_is_cleaned_in_pieces_as_it_is_whole() -> None:
    rng = random.Random(7)
    rows = [base64.b64encode(rng.randbytes(48)).decode() for _ in range(25)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *rows, "-----END RSA PRIVATE KEY-----", ""])
    token = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z0123"
    filler = "def f(x):\n    return x + 1  # nothing to hide\n" * 1_350
    for shift in range(0, 2400, 300):  # the cut wanders through the key and the token
        text = filler + "#" * shift + "\n" + key + filler + f"token = '{token}'\n" + filler
        pieces = list(pieces_of(text))
        assert "".join(pieces) == text and len(pieces) >= 3
        assert "".join(redact(piece)[0] for piece in pieces) == redact(text)[0]
        assert not any(row in redact(text)[0] for row in rows)
