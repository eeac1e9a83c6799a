"""`herdr open`: the dashboard's address; where the gateway asks for tokens, a link that signs a browser in once."""

import argparse
import webbrowser

from herdr.cli.client import add_connection, gateway_of
from herdr.cli.terminal import note, print_json, print_line

_EPILOG = """\
examples:
  herdr open
  herdr open --browser

The link works once, for five minutes, and signs in with the rights of the token that asked for it.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "open",
        help="the dashboard's address",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--browser", action="store_true", help="open it in the browser of this machine, too")
    add_connection(parser)


def run(args: argparse.Namespace) -> int:
    """Print the address."""
    gateway = gateway_of(args)
    link = gateway.object(gateway.call("POST", "/v1/browser-links", {}))
    url = f"{args.url}{link.get('link') or '/'}"
    if args.json:
        print_json({"url": url, "expires": link.get("expires")})
    else:
        print_line(url)
        if link.get("ticket"):
            note("it signs a browser in once, within five minutes")
    if args.browser and not webbrowser.open(url):
        note("no browser could be opened here")
    return 0
