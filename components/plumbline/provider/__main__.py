"""`pulumi-resource-plumbline`: the executable that the engine starts. It prints its port, and ends with the engine."""

import asyncio
import os
import signal
import sys

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from plumbline.provider.engine import EngineLog, engine_is_gone
from plumbline.provider.servicer import Servicer
from plumbline.provider.session import Session

_MESSAGE_BYTES = 400 * 1024 * 1024
"""What the engine itself allows for one message."""

_GRACE_SECONDS = 2.0
"""For gates that run to record that they were cancelled."""


async def serve(engine: str) -> None:
    """Serve one engine until it ends.

    Args:
        engine: the engine's address, where its log is served.
    """
    parent = os.getppid()
    session = Session.of_engine(parent)
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES), ("grpc.max_send_message_length", _MESSAGE_BYTES)]
    server = grpc.aio.server(options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(EngineLog(engine), session), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    # SIGINT is how the engine asks a plugin to end: Ctrl-C in a terminal comes as Cancel, for plugins have a process
    # group of their own.
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, ended.set)
    gone = asyncio.create_task(engine_is_gone(parent))
    gone.add_done_callback(lambda _: ended.set())
    await ended.wait()
    session.cancelled.set()
    await server.stop(_GRACE_SECONDS)


def main() -> None:
    """Entry point."""
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    asyncio.run(serve(addresses[-1] if addresses else ""))


if __name__ == "__main__":
    main()
