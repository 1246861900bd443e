"""A daemon's world on a real control plane, driven from ordinary test functions."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

from twin.daemon import Daemon, LiveWorld
from twin.nodes.kubelet import Timing
from twin.state import StateFolder

T = TypeVar("T")
EFA_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
NVIDIA_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
DRANET_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0-eksbuild.2"
NEURON_IMAGE = "public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0"


class Rehearsal:
    """One cluster, `train`, in an event loop of its own."""

    def __init__(self, root: Path, timing: Timing) -> None:
        self.state = StateFolder(root)
        self.state.prepare()
        self.timing = timing
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.wait(self._start(), 60)

    async def _start(self) -> None:
        await self._resume()
        await self.world.create_cluster("train", "1.34")
        config = KubeConfig.from_dict(self.world._planes["train"].kubeconfig()).get()
        assert config
        self._api = AsyncClient(config, ConnectionParams(timeout=httpx2.Timeout(10)))

    async def _resume(self) -> None:
        self._daemon = Daemon(self.state, self.timing)
        port, webhook, self._tls = await self._daemon._serve_tls()
        self.world = self._daemon._world = LiveWorld(self.state, webhook, port, self.timing)
        await self.world.resume()
        self._acting = asyncio.create_task(self.world.obey_switches())

    def wait(self, work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
        """Run in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def pause(self) -> None:
        """As the daemon does when it ends."""

        async def end() -> None:
            self._acting.cancel()
            await self.world.pause()
            await self._tls.cleanup()

        self.wait(end())

    def resume(self) -> None:
        """As the next daemon does."""
        self.wait(self._resume(), 60)

    def close(self) -> None:
        self.pause()
        for plane in self.world._planes.values():
            plane.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def api(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Ask the API server."""
        answer = self.wait(self._api.request(method, path, json=body, headers={"Content-Type": kind}))
        if answer.is_error:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.headers["content-type"].startswith("application/json") else answer.text

    def faults(self, *names: str) -> None:
        async def switch() -> None:
            self.world.switches.set(frozenset(names))

        self.wait(switch())

    def allocatable(self, node: str, resource: str) -> str | None:
        found: str | None = self.api("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"].get(resource)
        return found

    def capacity(self, node: str, resource: str) -> str | None:
        found: str | None = self.api("GET", f"/api/v1/nodes/{node}")["status"]["capacity"].get(resource)
        return found

    def offered(self, node: str) -> list[int]:
        """Devices in each ResourceSlice of a node."""
        path = f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D{node}"
        return [len(each["spec"].get("devices") or ()) for each in self.api("GET", path)["items"]]

    def pods(self, app: str) -> dict[str, Any]:
        items = self.api("GET", f"/api/v1/pods?labelSelector=app%3D{app}")["items"]
        return {pod["spec"].get("nodeName", ""): pod for pod in items}

    def daemon_set(self, app: str, image: str, **pod: Any) -> None:
        """A device plugin's DaemonSet, as the product makes it."""
        container = {
            "name": app,
            "image": image,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"}],
        }
        volume = {"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
        template = {
            "metadata": {"labels": {"app": app}},
            "spec": {"containers": [container], "volumes": [volume], **pod},
        }
        spec = {"selector": {"matchLabels": {"app": app}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": app}, "spec": spec}
        self.api("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body)


def eventually(seen: Callable[[], T], wanted: Callable[[T], bool], seconds: float = 120) -> T:
    """Look until it is so. The limit is wide: after an outage, controllers list anew only after half a minute."""
    end = time.monotonic() + seconds
    while True:
        value = seen()
        if wanted(value):
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds:g} s still {value!r}")
        time.sleep(0.1)
