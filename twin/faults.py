"""The ways in which the rehearsal can go wrong: each named, off by default, switched on from outside."""

import asyncio

from twin.world import Fault, Store

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            name="plugin-image-missing",
            description="the image of the EFA device plugin or driver is no longer in its registry: ImagePullBackOff",
            bites="registry",
        ),
        Fault(
            name="plugin-wrong-architecture",
            description="the tag of the EFA device plugin or driver was published for arm64 only: exec format error",
            bites="registry",
        ),
        Fault(
            name="plugin-crashloop",
            description="the EFA device plugin finds no device on any node, or the EFA driver no NRI, and crash-loops",
            bites="pods",
        ),
        Fault(
            name="plugin-selector-matches-nothing",
            description="something edits the DaemonSet of the EFA device plugin or driver: it matches no node",
            bites="cluster",
        ),
        Fault(
            name="one-node-without-efa",
            description="one node was launched without its EFA interfaces",
            bites="devices",
        ),
        Fault(
            name="one-node-advertises-fewer",
            description="one node's EFA device plugin or driver offers one device less",
            bites="devices",
        ),
        Fault(
            name="api-server-unreachable",
            description="the API server refuses connections",
            bites="control plane",
        ),
        Fault(
            name="advertised-then-lost",
            description="the EFA devices of one node come and go",
            bites="devices",
        ),
        Fault(
            name="node-never-joins",
            description="one instance of a new node group with accelerators never joins the cluster",
            bites="nodes",
        ),
        Fault(
            name="reservation-in-other-zone",
            description="the pool's reservation turns out to be in another zone than its subnet",
            bites="aws",
        ),
        Fault(
            name="no-right-to-read-reservations",
            description="the credentials may not read capacity reservations: UnauthorizedOperation",
            bites="aws reads",
        ),
    )
}


class Switches:
    """Which faults are on. Whoever acts on them waits for `changed`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._on = set((store.get("daemon", "faults") or {}).get("on", ())) & set(FAULTS)
        self._changed = asyncio.Event()
        self.version = 0
        """Grows with every change: what was decided at an older version is to be decided again."""

    @property
    def on(self) -> frozenset[str]:
        """Names of the faults that are on."""
        return frozenset(self._on)

    def set(self, names: frozenset[str]) -> None:
        """Switch exactly these on.

        Raises:
            KeyError: no fault has that name.
        """
        for name in names:
            FAULTS[name]
        self._on = set(names)
        self._store.put("daemon", "faults", {"on": sorted(names)})
        self.wake()

    def wake(self) -> None:
        """Let everybody look again: something was switched, or the nodes that a fault concerns are others now."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, at_most: float, since: int) -> None:
        """Return once something changed after that version, or after so many seconds."""
        if self.version != since:
            return
        try:
            await asyncio.wait_for(self._changed.wait(), at_most)
        except TimeoutError:
            return
