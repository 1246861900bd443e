"""A provider plugin that forwards every call to the daemon: the engine starts one for each instance of a provider.

Calls pass as raw bytes, so nothing of Pulumi is imported and it starts fast. The daemon tells instances apart by the
metadata that is added here. Runs as a script.
"""

import json
import os
import signal
import sys
import threading
import uuid
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_PASSED_ON = ("AWS_REGION", "AWS_DEFAULT_REGION")


def _raw(message: bytes) -> bytes:
    return message


class Forwarder(grpc.GenericRpcHandler):
    """Answers any unary method by asking the daemon."""

    def __init__(self, channel: grpc.Channel, metadata: tuple[tuple[str, str], ...]) -> None:
        self._channel = channel
        self._metadata = metadata

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Handle whatever method it is."""
        method = handler_call_details.method
        call = self._channel.unary_unary(method, request_serializer=_raw, response_deserializer=_raw)

        def forward(request: bytes, context: grpc.ServicerContext) -> bytes:
            try:
                answer: bytes = call(request, metadata=self._metadata)
            except grpc.RpcError as error:
                failed: Any = error  # an RpcError of a call has its status too, which its type does not say
                context.set_trailing_metadata(failed.trailing_metadata() or ())
                context.abort(failed.code(), self._explained(failed))
                raise
            return answer

        return grpc.unary_unary_rpc_method_handler(forward, request_deserializer=_raw, response_serializer=_raw)

    @staticmethod
    def _explained(error: Any) -> str:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            return "the rehearsal's daemon does not answer: run `make rehearse`, or `python -m twin start`"
        return str(error.details())


def main() -> None:
    """Serve one engine until it asks to end, or is gone."""
    state = Path(os.environ["PLUMBLINE_TWIN_STATE"])
    try:
        address = json.loads((state / "daemon.json").read_text("utf-8"))["grpc"]
    except FileNotFoundError:
        sys.exit(f"no rehearsal runs in {state}: run `make rehearse`, or `python -m twin start`")
    metadata = [("plumbline-instance", uuid.uuid4().hex)]
    metadata += [
        (f"env-{name.lower().replace('_', '-')}", os.environ[name]) for name in _PASSED_ON if name in os.environ
    ]
    channel = grpc.insecure_channel(address, options=_UNLIMITED)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=_UNLIMITED)
    server.add_generic_rpc_handlers((Forwarder(channel, tuple(metadata)),))
    port = server.add_insecure_port("127.0.0.1:0")
    ended, parent = threading.Event(), os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    print(port, flush=True)
    while not ended.wait(0.5) and os.getppid() == parent:
        pass
    server.stop(0)


if __name__ == "__main__":
    main()
