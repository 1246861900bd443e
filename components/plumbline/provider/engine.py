"""The engine at the other end: its log, and its death."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

_POLL_SECONDS = 0.5


class EngineLog:
    """Writes lines beside a resource in the engine's display."""

    def __init__(self, address: str) -> None:
        # The generated stub serves both kinds of channel and is typed for the other one.
        self._stub: Any = engine_pb2_grpc.EngineStub(grpc.aio.insecure_channel(address)) if address else None
        self._pending: set[asyncio.Task[None]] = set()

    def progress(self, urn: str) -> Callable[[str], None]:
        """A function that shows what a resource waits for; nothing of it stays in the update's summary."""

        def say(line: str) -> None:
            if self._stub is not None:
                task = asyncio.create_task(self._log(urn, line))
                self._pending.add(task)
                task.add_done_callback(self._pending.discard)

        return say

    async def _log(self, urn: str, line: str) -> None:
        request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=line, urn=urn, ephemeral=True)
        try:
            await self._stub.Log(request)
        except grpc.RpcError:
            return  # a line of progress that did not arrive changes nothing


async def engine_is_gone(parent: int) -> None:
    """Return when the process that started this one has ended.

    A killed engine tells nobody. Its orphans are given to another parent, which is what is looked for.
    """
    while os.getppid() == parent:
        await asyncio.sleep(_POLL_SECONDS)
