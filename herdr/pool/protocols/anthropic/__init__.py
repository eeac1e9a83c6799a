"""The client's side of Anthropic's Messages protocol. The module itself is a Dialect."""

from herdr.pool.protocols.anthropic.errors import error_body
from herdr.pool.protocols.anthropic.request import parse
from herdr.pool.protocols.anthropic.stream import encoder
from herdr.pool.protocols.anthropic.whole import count_body, whole

__all__ = ["count_body", "encoder", "error_body", "parse", "whole"]
