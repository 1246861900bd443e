"""The simulated kubelets of one cluster: they register nodes, run pods, advertise devices and serve logs.

One object acts for all nodes, with one watch of all pods, so that a thousand nodes cost little more than ten.
"""

import asyncio
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import structlog
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

from twin.faults import Switches
from twin.nodes import objects
from twin.nodes.behaviour import EFA, GPU, NEURON, NEURON_CORE, TOKEN, Behaviour, Exits, Machine, Runs, behave
from twin.nodes.objects import Json
from twin.nodes.registry import PullFailure
from twin.world import Instance

log = structlog.get_logger()
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
LEASE_SECONDS = 600
_TRY_AGAIN_SECONDS = 0.5
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass
class Timing:
    """How long things take on the nodes, in seconds of the rehearsal."""

    ready: float = 1.0
    """From a node's registration to its being Ready."""
    start: float = 0.3
    """From a pod's binding, or a restart, to its containers' running."""
    back_off: float = 0.5
    """First delay of a restart; it doubles, as the kubelet's does from 10 s."""
    back_off_at_most: float = 5.0
    flap: float = 2.0
    """How long devices that come and go stay, and stay away."""
    capacity_kept: float = 300.0
    """How long a resource without a plugin stays in a node's capacity."""
    slices_kept: float = 1.0
    """How long the ResourceSlices of a driver that is gone stay; a kubelet keeps them for 30 s.

    https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/cm/dra/manager.go
    """


@dataclass
class Node:
    """A registered machine."""

    machine: Machine
    devices: dict[str, int] = field(default_factory=dict)
    """What plugins advertise now."""
    lost: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Resources whose plugin is gone: their last count, and when capacity forgets them."""
    published: dict[str, int] = field(default_factory=dict)
    """How often drivers have published so far: what is to be wiped later is not, if that has grown meanwhile."""
    ready: bool = False
    since: str = field(default_factory=objects.now)
    """When it became Ready or, before that, when it was registered."""
    posting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A kubelet posts one status at a time: two at once could arrive in the wrong order."""

    def capacity(self) -> dict[str, int]:
        """Counts in capacity: a resource whose plugin died stays for a while."""
        return {**{name: count for name, (count, _) in self.lost.items()}, **self.devices}

    def allocatable(self) -> dict[str, int]:
        """Counts in allocatable: a resource whose plugin died is at 0 at once."""
        return {**dict.fromkeys(self.lost, 0), **self.devices}


@dataclass
class Container:
    """A container that runs, or tries to."""

    spec: Json
    status: Json
    log: str = ""
    previous_log: str = ""


@dataclass
class Run:
    """A pod on a node of ours."""

    pod: Json
    node: Node
    containers: list[Container]
    task: asyncio.Task[None] | None = None
    ended: bool = False
    """Whether it succeeded, failed or was refused: it holds no devices then."""


class Kubelets:
    """All simulated nodes of one cluster."""

    def __init__(self, kubeconfig: Json, port: int, switches: Switches, timing: Timing) -> None:
        config = KubeConfig.from_dict(kubeconfig).get()
        assert config
        self._client = AsyncClient(config, ConnectionParams(timeout=httpx2.Timeout(20)))
        self._port = port
        self._switches = switches
        self._timing = timing
        self._nodes: dict[str, Node] = {}
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    # --- nodes ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to act."""
        for work in (self._watch_pods, self._renew_leases, self._forget_capacity, self._edit_daemon_sets):
            self._keep(self._forever(work))

    async def install(self, name: str, image: str) -> None:
        """Put a DaemonSet into the cluster, or give it another image."""
        path = f"/apis/apps/v1/namespaces/kube-system/daemonsets/{name}?fieldManager=cloud&force=true"
        answer = await self._client.request(
            "PATCH",
            path,
            json=objects.daemon_set(name, image),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        answer.raise_for_status()

    async def stop(self) -> None:
        """Stop acting; objects stay as they are."""
        self._stopping = True
        tasks = [*self._tasks, *(run.task for run in self._runs.values() if run.task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.aclose()

    def adopt(self, instance: Instance, *, first: bool) -> None:
        """Let a machine register as a node, or take care of a node that it registered earlier."""
        self._nodes[instance.node_name] = Node(Machine(instance=instance, first=first))
        self._keep(self._register(instance.node_name))

    def joined(self, node_name: str) -> bool:
        """Whether a node is registered and Ready."""
        return node_name in self._nodes and self._nodes[node_name].ready

    async def remove(self, node_name: str) -> None:
        """A machine is gone: its node and its pods go."""
        self._nodes.pop(node_name, None)
        for uid, run in list(self._runs.items()):
            if run.node.machine.instance.node_name == node_name:
                await self._end_run(uid)
                await self._delete_pod(run.pod)
        # Slices go with the Node that owns them, by the garbage collector.
        for path in (f"/api/v1/nodes/{node_name}", f"{_LEASES}/{node_name}"):
            await self._retry("DELETE", path)

    async def _register(self, name: str) -> None:
        node = self._nodes[name]
        await self._retry("POST", "/api/v1/nodes", objects.node(node.machine.instance, self._port))
        await self._lease(name)
        await asyncio.sleep(self._timing.ready)
        node.since = objects.now()
        await self._post_status(node)
        node.ready = True

    async def _post_status(self, node: Node) -> None:
        instance = node.machine.instance
        async with node.posting:
            status = objects.node_status(
                instance, self._port, node.allocatable(), node.capacity(), ready=True, since=node.since
            )
            gone = dict.fromkeys({EFA, GPU, NEURON, NEURON_CORE} - set(node.capacity()))
            for part in ("capacity", "allocatable"):
                status[part] |= gone
            await self._retry("PATCH", f"/api/v1/nodes/{instance.node_name}/status", {"status": status})

    async def _lease(self, name: str) -> None:
        stamp = objects.now().replace("Z", ".000000Z")
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": stamp}
        lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec}
        answer = await self._retry("PATCH", f"{_LEASES}/{name}", {"spec": spec})
        if answer.status_code == httpx2.codes.NOT_FOUND:
            await self._retry("POST", _LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})

    async def _renew_leases(self) -> None:
        await asyncio.sleep(LEASE_SECONDS / 4)
        for name in list(self._nodes):
            await self._lease(name)

    # --- devices -------------------------------------------------------------------------------------------------

    async def _advertise(self, node: Node, devices: Mapping[str, int]) -> None:
        """A plugin registered, or tells of other devices."""
        if all(node.devices.get(name) == count for name, count in devices.items()):
            return
        for name, count in devices.items():
            node.devices[name] = count
            node.lost.pop(name, None)
        await self._post_status(node)

    async def _withdraw(self, node: Node, devices: Mapping[str, int]) -> None:
        """A plugin is gone: allocatable goes to 0 at once, and capacity stays for a while.

        Not when the rehearsal itself stops acting: the next daemon finds the nodes as they were.
        """
        gone = [name for name in devices if name in node.devices]
        if self._stopping or not gone:
            return
        for name in gone:
            node.lost[name] = (node.devices.pop(name), time.monotonic() + self._timing.capacity_kept)
        if node.machine.instance.node_name in self._nodes:
            await self._post_status(node)

    async def _forget_capacity(self) -> None:
        await asyncio.sleep(min(1.0, self._timing.capacity_kept))
        for node in list(self._nodes.values()):
            over = [name for name, (_, until) in node.lost.items() if time.monotonic() >= until]
            for name in over:
                del node.lost[name]
            if over:
                await self._post_status(node)

    # --- devices by DRA --------------------------------------------------------------------------------------------

    async def _publish(self, run: Run, container: Container, driver: str, devices: Sequence[Mapping[str, Any]]) -> bool:
        """A driver publishes its devices, with the rights of its pod's account. Returns whether it could.

        https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-slice-v1/
        """
        node, name = run.node, run.node.machine.instance.node_name
        account = run.pod["spec"].get("serviceAccountName") or "default"
        user = f"system:serviceaccount:{run.pod['metadata']['namespace']}:{account}"
        async with node.posting:
            node.published[driver] = node.published.get(driver, 0) + 1
            try:
                mine = await self._as(user, "GET", f"/api/v1/nodes/{name}")
                selector = f"?fieldSelector=spec.driver%3D{driver},spec.nodeName%3D{name}"
                before = (await self._as(user, "GET", _SLICES + selector))["items"]
                if [each["spec"].get("devices") or [] for each in before] == [list(devices)]:
                    return True
                generation = max((each["spec"]["pool"]["generation"] for each in before), default=0) + 1
                wanted = objects.resource_slice(mine, driver, generation, devices)
                if before:
                    wanted["metadata"]["resourceVersion"] = before[0]["metadata"]["resourceVersion"]
                    await self._as(user, "PUT", f"{_SLICES}/{wanted['metadata']['name']}", wanted)
                else:
                    await self._as(user, "POST", _SLICES, wanted)
            except _Refused as refused:
                said = f"E0105 09:12:44.986562       1 resourceslicecontroller.go:619] {refused}\n"
                container.log += "" if container.log.endswith(said) else said
                return False
        return True

    async def _wipe(self, node: Node, driver: str) -> None:
        """The kubelet removes what a driver published, some time after the driver is gone for good."""
        seen = node.published.get(driver, 0)
        await asyncio.sleep(self._timing.slices_kept)
        async with node.posting:
            if node.published.get(driver, 0) == seen:
                name = objects.slice_name(node.machine.instance.node_name, driver)
                await self._retry("DELETE", f"{_SLICES}/{name}")

    async def _as(self, user: str, method: str, path: str, body: Json | None = None) -> Json:
        """Ask the API server as somebody else, who may have fewer rights. Raises: _Refused."""
        headers = {"Impersonate-User": user}
        try:
            answer = await self._client.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            raise _Refused(str(error)) from error
        if answer.is_error:
            kind = answer.headers.get("content-type", "")
            raise _Refused(answer.json().get("message") if kind.startswith("application/json") else answer.text)
        found: Json = answer.json()
        return found

    # --- pods ----------------------------------------------------------------------------------------------------

    async def _watch_pods(self) -> None:
        listing = (await self._send("GET", "/api/v1/pods")).json()
        for pod in listing["items"]:
            await self._see(pod)
        known = {pod["metadata"]["uid"] for pod in listing["items"]}
        for uid in set(self._runs) - known:
            await self._end_run(uid)
        params = {"watch": "true", "resourceVersion": listing["metadata"]["resourceVersion"]}
        async with self._client.stream("GET", "/api/v1/pods", params=params, timeout=None) as stream:
            async for line in stream.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] == "DELETED":
                    await self._end_run(event["object"]["metadata"]["uid"])
                else:
                    await self._see(event["object"])

    async def _see(self, pod: Json) -> None:
        """React to a pod as it is now."""
        uid, name = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        node = self._nodes.get(name) if name else None
        if node is None:
            return
        if pod["metadata"].get("deletionTimestamp"):
            await self._end_run(uid)
            self._keep(self._delete_pod(pod))
        elif uid not in self._runs and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            run = Run(pod, node, [self._container(pod, spec) for spec in pod["spec"]["containers"]])
            self._runs[uid] = run
            run.task = asyncio.create_task(self._run_pod(run))

    @staticmethod
    def _container(pod: Json, spec: Json) -> Container:
        """A container that has not started; after a restart of the rehearsal, one that is started anew."""
        before = {c["name"]: c for c in (pod.get("status") or {}).get("containerStatuses") or ()}
        status = {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": before.get(spec["name"], {}).get("restartCount", 0),
            "state": objects.waiting("ContainerCreating"),
            "lastState": {},
        }
        return Container(spec, status)

    async def _end_run(self, uid: str) -> None:
        run = self._runs.pop(uid, None)
        if run and run.task:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)

    async def _delete_pod(self, pod: Json) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        await self._retry("DELETE", path, body)

    async def _run_pod(self, run: Run) -> None:
        """Run a pod until it ends or is taken away."""
        if refusal := self._refused(run):
            run.ended = True
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": refusal}
            await self._patch_pod(run, status)
            return
        results = await asyncio.gather(*(self._run_container(run, c) for c in run.containers))
        run.ended = True
        phase = "Succeeded" if all(code == 0 for code in results) else "Failed"
        await self._say(run, phase)

    def _refused(self, run: Run) -> str | None:
        """The kubelet checks again what the scheduler decided: devices may have gone meanwhile.

        A pod that started before was admitted then; only the daemon is new.
        """
        if (run.pod.get("status") or {}).get("startTime"):
            return None
        used: dict[str, int] = defaultdict(int)
        for other in self._runs.values():
            if other.node is run.node and other is not run and not other.ended:
                for name, amount in _devices(other.pod).items():
                    used[name] += amount
        for name, amount in _devices(run.pod).items():
            free = run.node.allocatable().get(name, 0) - used[name]
            if amount > free:
                return (
                    f"Allocate failed due to requested number of devices unavailable for {name}. "
                    f"Requested: {amount}, Available: {free}"
                )
        return None

    async def _run_container(self, run: Run, container: Container) -> int:
        """Start, run and restart a container. Returns the exit code with which it stays ended."""
        delay = self._timing.back_off
        policy = run.pod["spec"].get("restartPolicy", "Always")
        while True:
            await asyncio.sleep(self._timing.start)
            does = self._behaviour(run, container)
            code = 0
            if isinstance(does, PullFailure):
                await self._wait_for_image(run, container, does, delay)
                delay = min(delay * 2, self._timing.back_off_at_most)
                continue
            container.status["imageID"] = f"{container.spec['image']}@sha256:{_digest(container.spec['image'])}"
            if isinstance(does, Runs):
                code = await self._while_running(run, container, does)
                delay = self._timing.back_off
            else:
                container.log, code = does.log, does.code
            if policy == "Never" or (policy == "OnFailure" and code == 0):
                container.status |= {"ready": False, "state": self._ended(container, code)}
                return code
            await self._crash(run, container, code, delay)
            delay = min(delay * 2, self._timing.back_off_at_most)

    def _behaviour(self, run: Run, container: Container) -> Behaviour:
        annotations = run.pod["metadata"].get("annotations") or {}
        return behave(
            container.spec["image"],
            run.node.machine,
            self._switches.on,
            annotations,
            mounted=_mounted(run.pod, container.spec),
        )

    async def _wait_for_image(self, run: Run, container: Container, failure: PullFailure, delay: float) -> None:
        seen = self._switches.version
        container.status |= {"ready": False, "state": objects.waiting("ErrImagePull", failure.message)}
        await self._say(run, "Pending")
        await asyncio.sleep(min(0.5, delay))
        text = f'Back-off pulling image "{container.spec["image"]}": ErrImagePull: {failure.message}'
        container.status |= {"state": objects.waiting("ImagePullBackOff", text)}
        await self._say(run, "Pending")
        await self._switches.changed(delay, seen)

    async def _while_running(self, run: Run, container: Container, does: Runs) -> int:
        """Until it ends by itself, or a fault makes it another program. Returns its exit code."""
        container.log = does.log
        container.status |= {"ready": True, "started": True, "state": {"running": {"startedAt": objects.now()}}}
        until = time.monotonic() + does.seconds if does.seconds is not None else None
        shown, drivers = False, set[str]()
        try:
            await self._say(run, "Running")
            while True:
                seen = self._switches.version
                after = self._behaviour(run, container)
                if not isinstance(after, Runs):
                    return after.code if isinstance(after, Exits) else 137
                if after.log != does.log:
                    container.log += after.log
                does, shown = after, not (after.flaps and shown)
                await (self._advertise if shown else self._withdraw)(run.node, does.advertises)
                left = max(0.0, until - time.monotonic()) if until is not None else 3600.0
                # A driver that found devices once publishes it too when there are none any more.
                for driver in {*does.publishes, *drivers}:
                    drivers.add(driver)
                    devices = does.publishes.get(driver, ()) if shown else ()
                    if not await self._publish(run, container, driver, devices):
                        left = min(left, _TRY_AGAIN_SECONDS)
                await self._switches.changed(min(left, self._timing.flap) if does.flaps else left, seen)
                if until is not None and time.monotonic() >= until:
                    return 0
        finally:
            await self._withdraw(run.node, does.advertises)
            if not self._stopping:
                for driver in drivers:
                    self._keep(self._wipe(run.node, driver))

    def _ended(self, container: Container, code: int) -> Json:
        return objects.terminated(code, container.log, container.spec.get("terminationMessagePolicy", "File"))

    async def _crash(self, run: Run, container: Container, code: int, delay: float) -> None:
        seen = self._switches.version
        if isinstance(after := self._behaviour(run, container), Exits):
            container.log, code = after.log, after.code
        ended = self._ended(container, code)
        container.status |= {"ready": False, "started": False, "state": ended}
        await self._say(run, "Running")
        # Until the next start, the log asked for is that of the container that ended, as with a kubelet.
        container.previous_log = container.log
        meta = run.pod["metadata"]
        names = f"container={container.spec['name']} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
        text = f"back-off {delay:g}s restarting failed {names}"
        container.status |= {"lastState": ended, "state": objects.waiting("CrashLoopBackOff", text)}
        await asyncio.sleep(min(0.2, delay))
        await self._say(run, "Running")
        await self._switches.changed(delay, seen)
        container.status["restartCount"] += 1

    async def _say(self, run: Run, phase: str) -> None:
        statuses = [container.status for container in run.containers]
        await self._patch_pod(run, objects.pod_status(run.pod, run.node.machine.instance, phase, statuses))

    async def _patch_pod(self, run: Run, status: Json) -> None:
        meta = run.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        await self._retry("PATCH", path, {"metadata": {"uid": meta["uid"]}, "status": status})

    def read_log(self, namespace: str, pod: str, container: str, *, previous: bool) -> str | None:
        """A container's log; None for a container that is not here."""
        for run in self._runs.values():
            meta = run.pod["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, pod):
                for each in run.containers:
                    if each.spec["name"] == container:
                        return each.previous_log if previous else each.log
        return None

    # --- what else happens in a cluster --------------------------------------------------------------------------

    async def _edit_daemon_sets(self) -> None:
        """The fault `plugin-selector-matches-nothing`: another controller edits the plugin's DaemonSet."""
        seen, on = self._switches.version, "plugin-selector-matches-nothing" in self._switches.on
        listing = (await self._send("GET", "/apis/apps/v1/daemonsets")).json()
        for each in listing.get("items") or ():
            pod = each["spec"]["template"]["spec"]
            images = [container["image"] for container in pod["containers"]]
            if not any(name in image for image in images for name in ("aws-efa-k8s-device-plugin", "eks/dranet")):
                continue
            before = pod.get("affinity")
            after = (objects.kept_off_all_nodes if on else objects.let_back_on_nodes)(before)
            if after != before:
                meta = each["metadata"]
                path = f"/apis/apps/v1/namespaces/{meta['namespace']}/daemonsets/{meta['name']}"
                # A test of what was read, then a replacement: a merge would keep what is to go.
                patch = [
                    {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
                    {"op": "replace" if after else "remove", "path": "/spec/template/spec/affinity", "value": after}
                    if before
                    else {"op": "add", "path": "/spec/template/spec/affinity", "value": after},
                ]
                await self._client.request("PATCH", path, json=patch, headers=JSON_PATCH)
        await self._switches.changed(0.5 if on else 3600, seen)

    # --- the API server ------------------------------------------------------------------------------------------

    async def _send(self, method: str, path: str, body: Json | None = None) -> httpx2.Response:
        headers = MERGE if method == "PATCH" else {}
        return await self._client.request(method, path, json=body, headers=headers)

    async def _retry(self, method: str, path: str, body: Json | None = None) -> httpx2.Response:
        """Send until the API server answers: a kubelet does not give up either."""
        while True:
            try:
                answer = await self._send(method, path, body)
            except httpx2.HTTPError:
                await asyncio.sleep(0.5)
                continue
            if answer.status_code >= 500 or answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
                await asyncio.sleep(0.5)
                continue
            if answer.is_error and answer.status_code not in (404, 409):
                log.warning("the API server refused", method=method, path=path, answer=answer.text[:300])
            return answer

    async def _forever(self, work: Any) -> None:
        """Repeat a piece of work, also after the API server was away."""
        while True:
            try:
                await work()
            except httpx2.HTTPError:
                await asyncio.sleep(0.5)
            except Exception:
                log.exception("a simulated kubelet stumbled", work=work.__name__)
                await asyncio.sleep(1)

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Refused(Exception):
    """The API server did not do what a program in a pod asked for; the message is its own."""


def _mounted(pod: Json, container: Json) -> frozenset[str]:
    """Folders of the host's that are mounted in a container, and the token's if that is."""
    volumes = pod["spec"].get("volumes") or ()
    paths = {volume["name"]: (volume.get("hostPath") or {}).get("path", "").rstrip("/") for volume in volumes}
    mounts = container.get("volumeMounts") or ()
    token = {TOKEN} & {mount["mountPath"] for mount in mounts}
    return frozenset({path for mount in mounts if (path := paths.get(mount["name"]))} | token)


def _devices(pod: Json) -> dict[str, int]:
    """Devices that a pod asks for."""
    wanted: dict[str, int] = defaultdict(int)
    for container in pod["spec"]["containers"]:
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if "/" in name:
                wanted[name] += int(amount)
    return wanted


def _digest(reference: str) -> str:
    """A digest for an image, always the same for a reference."""
    return hashlib.sha256(reference.encode()).hexdigest()
