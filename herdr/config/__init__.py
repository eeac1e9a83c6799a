"""The configuration: `herdr.yaml`, the environment and flags, into one frozen, checked `Config`."""

from herdr.config.advice import advice
from herdr.config.load import Loaded, load, parse_routes
from herdr.config.models import LOCAL_NAME, Backend, Local, ModelsSection, Short, Timeouts
from herdr.config.problem import ConfigError, Problem
from herdr.config.routes import Format, MatchValue, RouteRule
from herdr.config.sections import (
    WORKSPACES_MAX,
    AuthSection,
    BusSection,
    Config,
    ContextSection,
    LocksSection,
    RetentionSection,
    Scope,
    ServerSection,
    Token,
    Workspace,
)
from herdr.config.show import config_schema, plain_config, render

__all__ = [
    "LOCAL_NAME",
    "WORKSPACES_MAX",
    "AuthSection",
    "Backend",
    "BusSection",
    "Config",
    "ConfigError",
    "ContextSection",
    "Format",
    "Loaded",
    "Local",
    "LocksSection",
    "MatchValue",
    "ModelsSection",
    "Problem",
    "RetentionSection",
    "RouteRule",
    "Scope",
    "ServerSection",
    "Short",
    "Timeouts",
    "Token",
    "Workspace",
    "advice",
    "config_schema",
    "load",
    "parse_routes",
    "plain_config",
    "render",
]
