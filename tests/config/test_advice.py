from herdr.config import AuthSection, Config, Token, advice


def test_short_tokens_are_named_and_not_shown() -> None:
    tokens = (Token("ci", "x" * 15), Token("me", "y" * 16), Token("unread", token_env="T"))
    (said,) = advice(Config(auth=AuthSection(tokens)))
    assert "'ci'" in said and "15 characters" in said
    assert "xxx" not in said


def test_the_defaults_need_no_advice() -> None:
    assert advice(Config()) == ()
