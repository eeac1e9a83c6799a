"""What a configuration may say and probably should not."""

from herdr.config.sections import Config

TOKEN_LENGTH_MIN = 16  # characters; 16 random hex digits are 64 bits, too many to try over a network


def advice(config: Config) -> tuple[str, ...]:
    """Return one sentence for each such thing, for whoever checks the file or starts the gateway."""
    return tuple(
        f"auth.tokens: the token of {token.name!r} has {len(token.token)} characters, which can be guessed; "
        f"take a random one of {TOKEN_LENGTH_MIN} or more"
        for token in config.auth.tokens
        if token.token is not None and len(token.token) < TOKEN_LENGTH_MIN
    )
