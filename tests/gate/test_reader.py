"""The gate's reader against an API server of our own: it lists once, watches, and says when it cannot see."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from plumbline.gate import reader
from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.reader import ClusterReader, Lost
from plumbline.gate.snapshot import Snapshot
from plumbline.kubernetes import connection
from plumbline.kubernetes.connection import Unreachable
from tests.gate.clusters import DRA, EXPECTED, NAMES, daemon_set, node, pod, resource_slice

Look = Snapshot | Lost


class Server:
    """Answers lists from what it holds, and watches from a queue of events."""

    def __init__(self) -> None:
        self.others: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []
        self.slices_status = 200
        self.pages: list[str] = []
        self.nodes = [node(NAMES[0])]
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.lists: list[str] = []
        self.status = 200
        self.frozen = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.frozen:
            await asyncio.sleep(3600)
        if self.status != 200:
            return web.json_response({"message": "no"}, status=self.status)
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.34.4"})
        if request.query.get("watch") == "true":
            return await self._watch(request)
        if request.path.endswith("/resourceslices"):
            return self._slices(request)
        self.lists.append(f"{request.path}?{request.query.get('labelSelector', '')}")
        items = {
            "nodes": self.nodes,
            "daemonsets": [daemon_set(p.name) for p in EXPECTED.plugins]
            + [daemon_set("efa-device-plugin"), *self.others],
            "pods": [pod(p.name, NAMES[0]) for p in EXPECTED.plugins],
        }[request.path.rsplit("/", 1)[1]]
        for index, item in enumerate(items):
            item["metadata"].setdefault("uid", f"{item['metadata']['name']}-{index}")
            item["metadata"].setdefault("resourceVersion", "1")
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": items})

    def _slices(self, request: web.Request) -> web.StreamResponse:
        """One slice per page."""
        if self.slices_status != 200:
            return web.json_response({"message": "no"}, status=self.slices_status)
        self.pages.append(request.query_string)
        start = int(request.query.get("continue") or 0)
        more = {"continue": str(start + 1)} if start + 1 < len(self.slices) else {}
        items = self.slices[start : start + 1]
        return web.json_response({"metadata": {"resourceVersion": "7", **more}, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if not request.path.endswith("/nodes"):
            await asyncio.sleep(3600)
        while True:
            event = await self.events.get()
            await response.write(json.dumps(event).encode() + b"\n")
            if event["type"] == "ERROR":
                return response


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[str]:
    """A kubeconfig for the server."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield config(f"http://127.0.0.1:{runner.addresses[0][1]}", {"token": "t"})
    finally:
        await runner.cleanup()


def config(server: str, user: dict[str, Any]) -> str:
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def watch(
    play: Callable[[Server, Callable[[Callable[[Look], bool]], Awaitable[Look]]], Awaitable[None]],
    expected: PoolExpectation = EXPECTED,
) -> Server:
    """Play a scene: `play` gets the server, and a function that waits for a look that it accepts."""
    server = Server()

    async def main() -> None:
        async with served(server) as kubeconfig:
            looks = ClusterReader(kubeconfig, expected).looks(0.1)

            async def until(accepts: Callable[[Look], bool]) -> Look:
                async with asyncio.timeout(20):
                    async for look in looks:
                        if accepts(look):
                            return look
                raise AssertionError

            try:
                await play(server, until)
            finally:
                await looks.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
    return server


def sees(*names: str) -> Callable[[Look], bool]:
    return lambda look: isinstance(look, Snapshot) and tuple(n.name for n in look.nodes) == names


def added(name: str) -> dict[str, Any]:
    item = node(name)
    item["metadata"] |= {"uid": name, "resourceVersion": "8"}
    return {"type": "ADDED", "object": item}


def test_lists_once_by_label_and_then_watches() -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        first = await until(sees(NAMES[0]))
        assert isinstance(first, Snapshot)
        assert sorted(name for _, name in first.daemon_sets) == ["efa-device-plugin", "nvidia-device-plugin"]
        await server.events.put({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}})
        await server.events.put(added(NAMES[1]))
        await until(sees(*NAMES))
        await server.events.put({**added(NAMES[1]), "type": "DELETED"})
        await until(sees(NAMES[0]))

    server = watch(play)
    assert sorted(server.lists) == [
        "/api/v1/namespaces/kube-system/pods?plumbline.dev/plugin",
        f"/api/v1/nodes?eks.amazonaws.com/nodegroup=train-h100-{EXPECTED.generation}",
        "/apis/apps/v1/daemonsets?",
    ]


def test_watch_that_is_too_old_is_begun_anew() -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        await until(sees(NAMES[0]))
        server.nodes = [node(NAMES[1])]
        await server.events.put({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})
        await until(sees(NAMES[1]))

    watch(play)


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "the credentials were refused"), (403, "the credentials lack a right"), (500, "the API server refused")],
)
def test_refusal_is_lost_and_its_end_is_seen(status: int, words: str) -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        server.status = status
        lost = await until(lambda look: isinstance(look, Lost))
        assert isinstance(lost, Lost)
        assert words in lost.reason
        server.status = 200
        await until(sees(NAMES[0]))

    watch(play)


def test_server_that_keeps_connections_and_answers_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.5)

    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        await until(sees(NAMES[0]))
        server.frozen = True
        lost = await until(lambda look: isinstance(look, Lost))
        assert isinstance(lost, Lost)
        assert lost.reason == "the API server gave no answer in time"
        server.frozen = False
        await until(sees(NAMES[0]))

    watch(play)


@pytest.mark.parametrize(
    ("kubeconfig", "words"),
    [
        ("", "the kubeconfig cannot be used"),
        ("{}", "the kubeconfig cannot be used"),
        ("a: [", "the kubeconfig cannot be used"),
        (config("https://127.0.0.1:1", {"token": "t"}), "no connection to the API server"),
        (
            config(
                "https://127.0.0.1:1",
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "/no/such/aws", "args": []}},
            ),
            "no credentials",
        ),
        (
            config(
                "https://127.0.0.1:1",
                {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "false", "args": []}},
            ),
            "no credentials: Exec false returned 1",
        ),
    ],
    ids=["empty", "nothing in it", "no YAML", "nobody listens", "no such program", "program fails"],
)
def test_what_cannot_be_used_is_unreachable_with_the_reason(kubeconfig: str, words: str) -> None:
    expected: PoolExpectation = EXPECTED
    with pytest.raises(Unreachable, match=words):
        asyncio.run(ClusterReader(kubeconfig, expected).once())


def test_what_is_wrong_with_a_kubeconfig_is_said_without_quoting_it() -> None:
    with pytest.raises(Unreachable) as caught:
        asyncio.run(ClusterReader("users: [{token: very-secret", EXPECTED).once())
    assert "very-secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_slices_are_listed_page_by_page_for_the_driver_that_is_expected_and_only_then() -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        server.slices = [resource_slice(name) for name in NAMES]
        look = await until(lambda look: isinstance(look, Snapshot))
        assert isinstance(look, Snapshot)
        if server.pages:
            assert [look.offers["dra.net"].on(name) for name in NAMES] == [32, 32]

    assert watch(play, EXPECTED).pages == []
    first, second = watch(play, DRA).pages
    assert "fieldSelector=spec.driver%3Ddra.net" in first
    assert "limit=500" in first
    assert "continue" not in first
    assert "continue=1" in second


@pytest.mark.parametrize("status", [403, 404])
def test_slices_that_are_refused_hide_nothing_else_and_are_asked_for_again(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_RETRY_SECONDS", 0.05)

    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        server.slices, server.slices_status = [resource_slice(NAMES[0])], status
        look = await until(sees(NAMES[0]))
        assert isinstance(look, Snapshot)
        assert look.offers["dra.net"].refused == status
        assert look.offers["dra.net"].on(NAMES[0]) is None
        server.slices_status = 200
        await until(lambda look: isinstance(look, Snapshot) and look.offers["dra.net"].on(NAMES[0]) == 32)

    watch(play, DRA)


def test_slices_that_fail_otherwise_leave_nothing_known() -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        server.slices_status = 500
        lost = await until(lambda look: isinstance(look, Lost))
        assert isinstance(lost, Lost)
        assert "HTTP 500 for /apis/resource.k8s.io/v1/resourceslices" in lost.reason

    watch(play, DRA)


def test_daemon_sets_of_others_are_seen_in_every_namespace_and_kept_apart() -> None:
    async def play(server: Server, until: Callable[[Callable[[Look], bool]], Awaitable[Look]]) -> None:
        foreign = daemon_set("efa-device-plugin")
        foreign["metadata"]["namespace"] = "elsewhere"
        server.others = [foreign]
        look = await until(sees(NAMES[0]))
        assert isinstance(look, Snapshot)
        assert [each["metadata"]["namespace"] for each in look.others] == ["elsewhere"]
        assert {namespace for namespace, _ in look.daemon_sets} == {"kube-system"}

    watch(play)
