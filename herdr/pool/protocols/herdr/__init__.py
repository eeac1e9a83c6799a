"""Pure: Herdr's own `/v1/chat`. The module is a `herdr.pool.protocols.dialect.Dialect`."""

from herdr.pool.protocols.herdr.encode import encoder, error_body
from herdr.pool.protocols.herdr.parse import parse
from herdr.pool.protocols.herdr.whole import whole

__all__ = ["encoder", "error_body", "parse", "whole"]
