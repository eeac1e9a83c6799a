import asyncio
import subprocess
import sys

import pytest

from herdr_sdk import ConnectionFailed, Hub, Unauthorized


@pytest.fixture
async def free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_nobody_there_says_what_to_do(free_port) -> None:
    with pytest.raises(ConnectionFailed, match="herdr serve"):
        async with Hub(f"http://127.0.0.1:{free_port}", connect_timeout_s=0.05):
            pass


async def test_a_gateway_that_comes_late_is_found(faulty) -> None:
    await faulty.stop()
    entering = asyncio.create_task(Hub(name="t", connect_timeout_s=20).__aenter__())
    await asyncio.sleep(0)
    await faulty.start()
    hub = await entering
    assert (await hub.publish("tool.result")).stored
    await hub.close()


async def test_a_restarted_gateway_is_found_again(faulty) -> None:
    async with Hub(name="t") as hub:
        await faulty.stop()
        publishing = asyncio.create_task(hub.publish("tool.result"))
        await faulty.start()
        assert (await publishing).stored


@pytest.mark.parametrize(
    "url", ["localhost:8787", "ftp://x", "http://", "http://[", "http://x:notaport", "nonsense"]
)
async def test_an_address_that_is_none_is_told_at_once(url) -> None:
    with pytest.raises(ConnectionFailed, match="like http://127"):
        Hub(url)


async def test_a_path_in_front_stays(faulty) -> None:
    with pytest.raises(ConnectionFailed, match="HTTP 404"):
        async with Hub(faulty.url + "/herdr/"):
            pass


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_token_is_final(faulty, status) -> None:
    faulty.refuse_status = status
    with pytest.raises(Unauthorized, match="HERDR_GATEWAY_TOKEN"):
        async with Hub(token="wrong"):
            pass
    assert len(faulty.headers) == 1


async def test_the_token_is_sent_as_bearer(faulty, monkeypatch) -> None:
    async with Hub(token="secret"):
        pass
    monkeypatch.setenv("HERDR_GATEWAY_TOKEN", "from-the-environment")
    async with Hub():
        pass
    sent = [headers.get("Authorization") for headers in faulty.headers]
    assert sent == ["Bearer secret", "Bearer from-the-environment"]


async def test_a_token_withdrawn_later_ends_everything(faulty) -> None:
    faulty.silent = True
    async with Hub(name="t") as hub, hub.follow(type="never") as events:
        waiting = asyncio.create_task(anext(events))
        publishing = await hub.submit("tool.result")
        await faulty.wait(lambda: faulty.of("publish"))
        faulty.refuse_status = 401
        faulty.hang_up()
        with pytest.raises(Unauthorized):
            await waiting
        with pytest.raises(Exception, match="may be stored or not"):
            await publishing
        with pytest.raises(Unauthorized):
            await hub.publish("tool.result")
        with pytest.raises(Unauthorized):
            await anext(hub.follow())


async def test_a_gateway_that_is_full_is_tried_again(faulty) -> None:
    faulty.refuse_status = 503
    entering = asyncio.create_task(Hub(name="t", connect_timeout_s=20).__aenter__())
    await faulty.wait(lambda: len(faulty.headers) == 3)
    faulty.refuse_status = None
    await (await entering).close()


async def test_another_websocket_server_is_no_gateway(faulty) -> None:
    faulty.subprotocols = ()
    with pytest.raises(ConnectionFailed, match=r"herdr\.v1\.json"):
        async with Hub():
            pass


async def test_after_goodbye_nothing_more_is_published_and_the_wait_is_the_gateways(
    faulty, monkeypatch
) -> None:
    asked = []
    monkeypatch.setattr("herdr_sdk.backoff.Backoff.after_s", lambda self, wait_s: asked.append(wait_s) or 0.0)
    async with Hub(name="t") as hub, hub.follow() as events:
        await faulty.say_bye(1730)
        await faulty.append({"type": "tool.result", "id": "x"})
        await anext(events)  # so the goodbye has been read
        publishing = await hub.submit("tool.result")
        await hub.set_attrs(a="b")
        await faulty.wait(lambda: faulty.of("attrs"))
        assert not faulty.of("publish")
        await faulty.close()
        assert (await publishing).status == "accepted"
    assert asked == [1.73]


async def test_a_gateway_that_says_goodbye_and_stays_is_left(faulty, monkeypatch, eventually) -> None:
    monkeypatch.setattr("herdr_sdk.connection.BYE_S", 0.01)
    async with Hub(name="t") as hub:
        await faulty.say_bye(1)
        await eventually(lambda: len(faulty.headers) == 2)
        assert (await hub.publish("tool.result")).stored


async def test_connected_tells(faulty) -> None:
    hub = Hub()
    assert not hub.connected
    async with hub:
        assert hub.connected
    assert not hub.connected
    with pytest.raises(ConnectionFailed, match="closed"):
        async with hub:
            pass


async def test_leaving_leaves_no_task_and_no_socket(faulty) -> None:
    before = asyncio.all_tasks()
    async with Hub(name="t") as hub, hub.follow():
        await hub.publish("tool.result")
    await faulty.wait(lambda: not faulty.sockets)
    assert asyncio.all_tasks() - before == set()


async def test_leaving_by_an_error_keeps_the_error(faulty) -> None:
    with pytest.raises(KeyError):
        async with Hub(name="t") as hub:
            await hub.submit("tool.result")
            raise KeyError
    assert len(faulty.log) == 1


def test_importing_needs_nothing_of_the_gateway() -> None:
    code = "import sys, herdr_sdk.blocking; print([m for m in sys.modules if m.split('.')[0] == 'herdr'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
