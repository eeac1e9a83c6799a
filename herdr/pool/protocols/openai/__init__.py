"""Pure: OpenAI's chat completions, the client's side. The module is a `herdr.pool.protocols.dialect.Dialect`."""

from herdr.pool.protocols.openai.encode import encoder
from herdr.pool.protocols.openai.failures import error_body
from herdr.pool.protocols.openai.parse import parse
from herdr.pool.protocols.openai.whole import whole

__all__ = ["encoder", "error_body", "parse", "whole"]
