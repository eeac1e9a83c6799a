"""A test's own place at a real gateway: one model server, and requests that are sent and kept."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from fake_llama import FakeLlama, Script
from gateway import GatewayProcess
from model_asking import Asking
from model_clients import CHAT, Client
from model_gateway import asked, assert_quiet, pool, until_running, wait_for_queue, wait_for_rest, waiting


def serve(stack: ExitStack, servers: dict[str, int]) -> dict[str, FakeLlama]:
    return {name: stack.enter_context(FakeLlama(slots)) for name, slots in servers.items()}


class Desk:
    """Asks one backend of a gateway, and keeps the requests until the end."""

    def __init__(self, gateway: GatewayProcess, fake: FakeLlama, name: str, stack: ExitStack) -> None:
        self.gateway = gateway
        self.fake = fake
        self.name = name
        self._stack = stack

    def ask(
        self,
        text: str,
        client: Client = CHAT,
        agent: str | None = None,
        priority: int | None = None,
        **more: object,
    ) -> Asking:
        """Ask, and return at once; without an agent each text has one of its own."""
        headers = {"x-agent-id": text if agent is None else agent}
        if priority is not None:
            headers["x-priority"] = str(priority)
        if "route" in more:
            headers["x-herdr-route"] = str(more.pop("route"))
        if "retry" in more:
            headers["x-stainless-retry-count"] = str(more.pop("retry"))
        return self._stack.enter_context(
            client.ask(self.gateway, text, headers=headers, model=self.name, **{"stream": True, **more})
        )

    def queue(self, text: str, **more: object) -> Asking:
        """Ask, and wait until one more call waits."""
        before = waiting(self.gateway, self.name)
        asking = self.ask(text, **more)  # type: ignore[arg-type]
        wait_for_queue(self.gateway, before + 1, self.name)
        return asking

    def run(self, text: str, **more: object) -> Asking:
        """Ask, and wait until one more request is held in its slot."""
        before = len(asked(self.fake, lambda one: one.state == "held"))
        asking = self.ask(text, **more)  # type: ignore[arg-type]
        until_running(self.fake, before + 1)
        return asking

    def texts(self) -> list[str]:
        """What was asked, in the order in which it came to the server."""
        return [str(one.body["messages"][-1]["content"]) for one in self.fake.requests]


@contextmanager
def at_desk(gateway: GatewayProcess, fake: FakeLlama, name: str) -> Iterator[Desk]:
    """Work with one server, whose requests are held before their first word; afterwards it is at rest."""
    fake.script(Script(["Hel", "lo", "!"]))
    fake.hold(after=0)
    with ExitStack() as stack:
        yield Desk(gateway, fake, name, stack)
    fake.release()
    wait_for_rest(gateway, name)
    assert fake.violations == []
    assert_quiet(gateway)


def let_it_notice(gateway: GatewayProcess) -> None:
    """Have it serve later requests, so that what came to its sockets before has been dealt with."""
    for _ in range(5):
        pool(gateway)


def at(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("desk", [name], indirect=True, ids=[""])


def heard(asking: Asking, client: Client = CHAT) -> str:
    return client.text(client.assembled(list(asking.events())))
