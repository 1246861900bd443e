"""A connection to an API server from a kubeconfig, exec credentials included, that reads raw JSON.

lightkube does the kubeconfig, the credentials and TLS. Answers are left as JSON: at 5,000 nodes a typed list costs
three times the time and twice the memory of the plain one.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import yaml
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError

REQUEST_SECONDS = 10.0
"""How long one request may take: past that the API server counts as unreachable for the moment."""

WATCH_SECONDS = 300
"""How long the server keeps one watch open."""


class Unreachable(Exception):
    """The API server gave no answer that can be used: no connection, no credentials, or a refusal."""


class Denied(Unreachable):
    """The API server answered, and the answer is a refusal."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Gone(Exception):
    """A watch is too old to go on from its version: list again."""


class Connection:
    """Reads objects, watches them, and evicts pods. Made by `connect`."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def get(self, path: str, **params: Any) -> dict[str, Any]:
        """The object at `path`.

        Raises:
            Denied: the API server refuses it.
            Unreachable: no usable answer.
        """
        return cast(dict[str, Any], (await self._send("GET", path, params)).json())

    async def get_text(self, path: str, **params: Any) -> str:
        """A text, such as a log. Raises: as `get`."""
        return (await self._send("GET", path, params)).text

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        """Send a body; the answer is returned whatever its status, for the caller to tell refusals apart.

        Raises:
            Unreachable: no answer at all.
        """
        with _explained():
            return await self._client.post(path, json=body)

    async def watch(self, path: str, version: str, **params: Any) -> AsyncIterator[dict[str, Any]]:
        """Events since `version`, until the server ends the watch.

        Raises:
            Gone: the version is too old.
            Unreachable: the connection broke.
        """
        timeout = httpx2.Timeout(REQUEST_SECONDS, read=WATCH_SECONDS + REQUEST_SECONDS)
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
            **params,
        }
        with _explained():
            async with self._client.stream("GET", path, params=query, timeout=timeout) as response:
                if response.status_code == 410:
                    raise Gone
                _raise_for(response)
                async for line in response.aiter_lines():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        if event["object"].get("code") == 410:
                            raise Gone
                        raise Unreachable(event["object"].get("message", "the watch ended with an error"))
                    yield event

    async def _send(self, method: str, path: str, params: Mapping[str, Any]) -> httpx2.Response:
        with _explained():
            response = await self._client.request(method, path, params=dict(params))
            _raise_for(response)
            return response


def _raise_for(response: httpx2.Response) -> None:
    if response.is_success:
        return
    reasons = {401: "the credentials were refused", 403: "the credentials lack a right"}
    reason = reasons.get(response.status_code, "the API server refused")
    text = f"{reason}: HTTP {response.status_code} for {response.request.url.path}"
    raise Denied(response.status_code, text)


class _explained:  # noqa: N801 - a context manager, used as a statement
    """Turns what the libraries raise into `Unreachable`, in words that name what was tried."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        match error:
            case httpx2.TimeoutException():
                raise Unreachable("the API server gave no answer in time") from error
            case httpx2.HTTPError() as http:
                raise Unreachable(f"no connection to the API server: {http or type(http).__name__}") from error
            case ConfigError() | FileNotFoundError() | json.JSONDecodeError() | KeyError():
                raise Unreachable(f"no credentials: {error}") from error
            case _:
                return


@asynccontextmanager
async def connect(kubeconfig: str) -> AsyncIterator[Connection]:
    """A connection by the current context of a kubeconfig (YAML or JSON).

    Proxies named by the environment are honoured, as kubectl does.

    Raises:
        Unreachable: the kubeconfig cannot be used.
    """
    try:
        config = KubeConfig.from_dict(yaml.safe_load(kubeconfig)).get()
        if config is None:
            raise Unreachable("the kubeconfig has no current context")
        client = AsyncClient(config, ConnectionParams(timeout=httpx2.Timeout(REQUEST_SECONDS)))
    except Unreachable:
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the text, it is the same to the caller
        # A parser quotes what it could not read, and that may be a token.
        raise Unreachable(f"the kubeconfig cannot be used ({type(error).__name__})") from None
    async with client:
        yield Connection(client)
