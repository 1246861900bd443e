"""The gate's input: a mirror of the objects that its phases look at, listed once and then watched."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from plumbline.gate.expectation import PoolExpectation
from plumbline.gate.slices import Offer, Slice, offer
from plumbline.gate.snapshot import DaemonSet, Node, Pod, Snapshot
from plumbline.kubernetes.connection import Connection, Denied, Gone, Unreachable, connect
from plumbline.plan.labels import PLUGIN

LOG_LINES = 20
LOGGED_PODS = 8
"""At most so many pods' logs are read: they say the same."""
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_SLICES_AT_ONCE = 500
"""A page of the list of slices: one slice of 32 devices is about 20 kB."""
_RETRY_SECONDS = 1.0
_LIVENESS_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Lost:
    """The cluster cannot be read at the moment."""

    reason: str


class Reader(Protocol):
    """What the gate needs to see."""

    def looks(self, tick: float) -> AsyncIterator[Snapshot | Lost]:
        """A look now, after every change, and at least every `tick` seconds."""
        ...

    async def once(self) -> Snapshot:
        """One look, by plain lists. Raises: Unreachable."""
        ...

    async def log(self, pod: Pod) -> str:
        """The last lines of a pod: of its previous run where it restarts. Empty if there are none."""
        ...


@dataclass
class _Mirror:
    """One collection, as last seen."""

    path: str
    selector: Mapping[str, str]
    objects: dict[str, Any] = field(default_factory=dict)
    """By uid."""
    listed: bool = False
    keep: Callable[[Mapping[str, Any]], Any] = dict
    """What is kept of an object."""
    at_once: int | None = None
    """Objects per page of a list; None for all in one."""
    optional: bool = False
    """Whether a cluster that refuses it can be read all the same."""
    refused: int = 0
    """HTTP status of the refusal, of one that is optional; 0 where there is none."""
    version: int = 0
    """Grows with every change of what is held."""

    async def load(self, connection: Connection) -> str | None:
        """List it. Returns the version to watch from; None for an optional one that is refused."""
        paging: dict[str, Any] = {"limit": self.at_once} if self.at_once else {}
        listed: dict[str, Any] = {}
        try:
            while True:
                listing = await connection.get(self.path, **self.selector, **paging)
                listed |= {item["metadata"]["uid"]: self.keep(item) for item in listing.get("items") or ()}
                following = listing["metadata"].get("continue")
                if not following:
                    break
                paging["continue"] = following
        except Denied as denied:
            if not self.optional or denied.status not in (403, 404):
                raise
            self._hold({}, denied.status)
            return None
        self._hold(listed, 0)
        return str(listing["metadata"]["resourceVersion"])

    def _hold(self, objects: dict[str, Any], refused: int) -> None:
        self.objects, self.refused, self.listed = objects, refused, True
        self.version += 1

    async def follow(self, connection: Connection, changed: asyncio.Event) -> None:
        """Keep it current for ever. Raises: Unreachable."""
        while True:
            version = await self.load(connection)
            changed.set()
            if version is None:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            with suppress(Gone):
                while True:
                    async for event in connection.watch(self.path, version, **self.selector):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if self._take(event):
                            changed.set()

    def _take(self, event: Mapping[str, Any]) -> bool:
        if event["type"] == "BOOKMARK":
            return False
        item = event["object"]
        self.version += 1
        if event["type"] == "DELETED":
            self.objects.pop(item["metadata"]["uid"], None)
        else:
            self.objects[item["metadata"]["uid"]] = self.keep(item)
        return True


class ClusterReader:
    """Reads a cluster over its API, for one expectation."""

    def __init__(self, kubeconfig: str, expectation: PoolExpectation) -> None:
        self._kubeconfig = kubeconfig
        self._wanted = {(plugin.namespace, plugin.name) for plugin in expectation.plugins}
        self._nodes = _Mirror("/api/v1/nodes", {"labelSelector": _selector(expectation.node_selector)})
        namespaces = sorted({namespace for namespace, _ in self._wanted})
        self._sets = _Mirror("/apis/apps/v1/daemonsets", {})
        self._pods = [_Mirror(f"/api/v1/namespaces/{each}/pods", {"labelSelector": PLUGIN}) for each in namespaces]
        self._slices = {
            driver: _Mirror(
                _SLICES,
                {"fieldSelector": f"spec.driver={driver}"},
                keep=Slice.from_json,
                at_once=_SLICES_AT_ONCE,
                optional=True,
            )
            for driver in sorted(expectation.slices)
        }
        self._offers: dict[str, tuple[int, Offer]] = {}

    @property
    def _mirrors(self) -> list[_Mirror]:
        return [self._nodes, self._sets, *self._pods, *self._slices.values()]

    async def once(self) -> Snapshot:
        """One look. Raises: Unreachable."""
        async with connect(self._kubeconfig) as connection:
            await asyncio.gather(*(mirror.load(connection) for mirror in self._mirrors))
        return self._snapshot()

    async def looks(self, tick: float) -> AsyncIterator[Snapshot | Lost]:
        """A look now, after every change, and every `tick` seconds; `Lost` while the API cannot be read."""
        while True:
            try:
                async for snapshot in self._connected(tick):
                    yield snapshot
            except Unreachable as lost:
                reason = str(lost)
            yield Lost(reason=reason)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _connected(self, tick: float) -> AsyncIterator[Snapshot]:
        for mirror in self._mirrors:
            mirror.listed = False
        changed = asyncio.Event()
        async with connect(self._kubeconfig) as connection:
            workers = [asyncio.create_task(mirror.follow(connection, changed)) for mirror in self._mirrors]
            workers.append(asyncio.create_task(_stay_alive(connection)))
            try:
                while True:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), tick)
                    changed.clear()
                    if failed := [w.exception() for w in workers if w.done() and w.exception()]:
                        raise failed[0] or Unreachable("a watch ended")
                    if all(mirror.listed for mirror in self._mirrors):
                        yield self._snapshot()
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    def _snapshot(self) -> Snapshot:
        sets = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in self._sets.objects.values()}
        nodes = (Node.from_json(o) for o in self._nodes.objects.values())
        pods = (Pod.from_json(o) for mirror in self._pods for o in _oldest_first(mirror.objects.values()))
        return Snapshot(
            nodes=tuple(sorted(nodes, key=lambda node: node.name)),
            daemon_sets={name: DaemonSet.from_json(o) for name, o in sets.items() if name in self._wanted},
            pods=tuple(pods),
            offers={driver: self._offer(driver) for driver in self._slices},
            others=tuple(o for name, o in sorted(sets.items()) if name not in self._wanted),
        )

    def _offer(self, driver: str) -> Offer:
        """What a driver offers; counted again only after a change, for on 5,000 nodes there are 160,000 devices."""
        mirror = self._slices[driver]
        version, counted = self._offers.get(driver, (-1, Offer()))
        if version != mirror.version:
            counted = Offer(refused=mirror.refused) if mirror.refused else offer(driver, mirror.objects.values())
            self._offers[driver] = mirror.version, counted
        return counted

    async def log(self, pod: Pod) -> str:
        """The last lines of the pod's first container; empty when they cannot be read."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
        restarted = any(c.restarts and not c.ready for c in pod.containers)
        with suppress(Unreachable):
            async with connect(self._kubeconfig) as connection:
                return await connection.get_text(path, tailLines=LOG_LINES, previous=str(restarted).lower())
        return ""


async def _stay_alive(connection: Connection) -> None:
    """Notice a server that keeps connections open and answers nothing. Raises: Unreachable."""
    while True:
        await asyncio.sleep(_LIVENESS_SECONDS)
        await connection.get("/version")


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _oldest_first(objects: Any) -> list[dict[str, Any]]:
    return sorted(objects, key=lambda o: (o["metadata"].get("creationTimestamp") or "", o["metadata"]["name"]))
