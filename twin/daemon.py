"""The daemon of a rehearsal: it holds the simulated cloud, runs the control planes, and acts for the nodes."""

import asyncio
import json
import secrets
import shutil
import signal
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import grpc
import structlog
import trustme
from aiohttp import web

from twin.control_plane import ControlPlane, PlaneFailed, Webhook
from twin.credentials import check_token
from twin.faults import FAULTS, Switches
from twin.nodes.kubelet import Kubelets, Timing
from twin.state import StateFolder
from twin.store import FileStore
from twin.world import ClusterAccess, Document, Fault, Instance, Taint

log = structlog.get_logger()
_LOOK_AT_PLANES_SECONDS = 2.0
SPEED = 60.0
"""A minute of the cloud takes a second here."""


class LiveWorld:
    """The world that simulated clouds act in: see `twin.world.World`."""

    def __init__(self, state: StateFolder, webhook: Webhook, kubelet_port: int, timing: Timing) -> None:
        self.state = state
        self.store = FileStore(state.documents)
        self.switches = Switches(self.store)
        self._webhook = webhook
        self._kubelet_port = kubelet_port
        self._timing = timing
        self._planes: dict[str, ControlPlane] = {}
        self._kubelets: dict[str, Kubelets] = {}
        self._spare: asyncio.Task[tuple[str, ControlPlane]] | None = None
        self._lock = asyncio.Lock()

    # --- what clouds ask ------------------------------------------------------------------------------------------

    async def create_cluster(self, name: str, version: str) -> ClusterAccess:
        """Give a cluster its control plane; the spare one, if there is one."""
        async with self._lock:
            if name not in self._planes:
                coming, self._spare = self._spare or asyncio.create_task(self._new_plane()), None
                folder, plane = await coming
                self.store.put("plane", name, {"folder": folder, "version": version, "since": time.time()})
                self._serve(name, plane)
            plane = self._planes[name]
        return ClusterAccess(endpoint=plane.endpoint, certificate_authority_pem=plane.certificate_authority_pem)

    async def delete_cluster(self, name: str) -> None:
        """Take a cluster away with everything in it."""
        async with self._lock:
            plane = self._planes.pop(name, None)
            if plane is None:
                return
            if kubelets := self._kubelets.pop(name, None):
                await kubelets.stop()
            await asyncio.to_thread(plane.stop)
            shutil.rmtree(plane.folder, ignore_errors=True)
            self.store.delete("plane", name)
        self._write_kubeconfig()

    async def install(self, cluster: str, name: str, image: str) -> None:
        """Run a program of the cloud's own on every node of a cluster."""
        await self._kubelets[cluster].install(name, image)

    async def launch(self, instance: Instance) -> None:
        """Boot a machine, which registers a little later."""
        document = {**vars(instance), "labels": dict(instance.labels), "taints": [vars(t) for t in instance.taints]}
        peers = [instance_from(d) for d in self.store.list("machine").values()]
        group = [peer for peer in peers if peer.group == instance.group and peer.cluster == instance.cluster]
        first = not group
        counts = instance.gpus or instance.neuron_devices or instance.efa_interfaces
        never = "node-never-joins" in self.switches.on and first and bool(counts)
        self.store.put("machine", instance.id, {**document, "first": first, "never_joins": never})
        self._adopt(instance)

    async def joined(self, instance_id: str) -> bool:
        """Whether the machine is registered as a node that is Ready."""
        document = self.store.get("machine", instance_id)
        if document is None:
            return False
        kubelets = self._kubelets.get(document["cluster"])
        return kubelets is not None and kubelets.joined(document["node_name"])

    async def terminate(self, instance_id: str) -> None:
        """End a machine."""
        document = self.store.get("machine", instance_id)
        if document is None:
            return
        self.store.delete("machine", instance_id)
        if kubelets := self._kubelets.get(document["cluster"]):
            await kubelets.remove(document["node_name"])

    def fault(self, name: str) -> Fault | None:
        """The fault while it is on."""
        fault = FAULTS[name]
        return fault if name in self.switches.on else None

    def scaled(self, seconds: float) -> float:
        """Cloud seconds as seconds of the rehearsal."""
        return seconds / SPEED

    # --- life of the world ----------------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Take over what an earlier daemon left: control planes that run, and their machines."""
        for name, document in self.store.list("plane").items():
            _, plane = await self._plane(document["folder"])
            self._serve(name, plane)
        await self._obey()

    def keep_a_spare(self) -> None:
        """Start a control plane ahead, so that the first cluster is there quickly."""
        if not self._planes and self._spare is None:
            known = {document["folder"] for document in self.store.list("plane").values()}
            left = next((f.name for f in self.state.planes.iterdir() if f.name not in known), None)
            self._spare = asyncio.create_task(self._plane(left) if left else self._new_plane())

    async def spare_ready(self) -> None:
        """Wait until the spare control plane is ready, if one is being started."""
        if self._spare is not None:
            await asyncio.shield(self._spare)

    async def obey_switches(self) -> None:
        """Act on faults that concern a whole control plane, and start again what ended by itself, for ever."""
        while True:
            seen = self.switches.version
            try:
                await self._obey()
            except PlaneFailed:
                log.exception("a control plane did not come back")
            await self.switches.changed(_LOOK_AT_PLANES_SECONDS, seen)

    async def _obey(self) -> None:
        off = "api-server-unreachable" in self.switches.on
        async with self._lock:  # a cluster that is being deleted stays down
            for plane in self._planes.values():
                await (plane.cut_off() if off else plane.keep_alive())
        if "node-never-joins" not in self.switches.on:
            # What kept the machine out is gone, and its kubelet never gave up.
            for id_, document in self.store.list("machine").items():
                if document["never_joins"]:
                    self.store.put("machine", id_, {**document, "never_joins": False})
                    self._adopt(instance_from(document))

    async def pause(self) -> None:
        """Stop acting; control planes go on, for the next daemon."""
        for kubelets in self._kubelets.values():
            await kubelets.stop()

    def read_log(self, namespace: str, pod: str, container: str, *, previous: bool) -> str | None:
        """A container's log, from whichever cluster has it."""
        for kubelets in self._kubelets.values():
            if (text := kubelets.read_log(namespace, pod, container, previous=previous)) is not None:
                return text
        return None

    async def _new_plane(self) -> tuple[str, ControlPlane]:
        return await self._plane(f"plane-{secrets.token_hex(3)}")

    async def _plane(self, folder: str) -> tuple[str, ControlPlane]:
        plane = ControlPlane(self.state.planes / folder)
        webhook = Webhook(
            url=f"{self._webhook.url}/{folder}", certificate_authority_pem=self._webhook.certificate_authority_pem
        )
        await plane.start(webhook)
        return folder, plane

    def _serve(self, name: str, plane: ControlPlane) -> None:
        self._planes[name] = plane
        kubelets = Kubelets(plane.kubeconfig(), self._kubelet_port, self.switches, self._timing)
        kubelets.start()
        self._kubelets[name] = kubelets
        for document in self.store.list("machine").values():
            if document["cluster"] == name:
                self._adopt(instance_from(document))
        self._write_kubeconfig()
        self.switches.wake()

    def _adopt(self, instance: Instance) -> None:
        document = self.store.get("machine", instance.id)
        kubelets = self._kubelets.get(instance.cluster)
        if kubelets is None or document is None or document["never_joins"]:
            return
        kubelets.adopt(instance, first=document["first"])

    def cluster_of(self, folder: str) -> str | None:
        """The cluster whose control plane lies in this folder."""
        return next((n for n, d in self.store.list("plane").items() if d["folder"] == folder), None)

    def _write_kubeconfig(self) -> None:
        """For people: an administrator's kubeconfig of the newest cluster."""
        planes = self.store.list("plane")
        self.state.kubeconfig.unlink(missing_ok=True)
        if planes:
            newest = max(planes, key=lambda name: float(planes[name]["since"]))
            self.state.kubeconfig.touch(mode=0o600)
            self.state.kubeconfig.write_text(json.dumps(self._planes[newest].kubeconfig()), "utf-8")


def instance_from(document: Document) -> Instance:
    """An instance from its document."""
    fields = {key: value for key, value in document.items() if key not in ("first", "never_joins")}
    return Instance(**{**fields, "taints": tuple(Taint(**t) for t in fields["taints"])})


class Daemon:
    """Serves one state folder until it is told to end."""

    def __init__(self, state: StateFolder, timing: Timing) -> None:
        self._state = state
        self._timing = timing
        self._ended = asyncio.Event()
        self._token = secrets.token_hex(16)

    async def run(self) -> None:
        """Serve."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ended.set)
        aws_port = self._take_aws_port()
        tls_port, webhook, tls = await self._serve_tls()
        self._world = world = LiveWorld(self._state, webhook, tls_port, self._timing)
        await world.resume()
        world.keep_a_spare()
        await asyncio.sleep(0)  # its processes start now, while the clouds below are imported
        acting = asyncio.create_task(world.obey_switches())
        clouds, grpc_port = await self._serve_clouds(world)
        control, http_port = await self._serve_control()
        aws = await self._serve_aws(world, aws_port)
        address = {"grpc": f"127.0.0.1:{grpc_port}", "http": f"http://127.0.0.1:{http_port}", "token": self._token}
        self._state.address_file.unlink(missing_ok=True)
        self._state.address_file.touch(mode=0o600)
        self._state.address_file.write_text(json.dumps(address), "utf-8")
        log.info("ready", **{key: value for key, value in address.items() if key != "token"})
        await self._ended.wait()
        self._state.address_file.unlink(missing_ok=True)
        acting.cancel()
        await clouds.stop(1)
        await world.pause()
        await control.cleanup()
        await aws.cleanup()
        await tls.cleanup()

    async def _serve_clouds(self, world: LiveWorld) -> tuple[grpc.aio.Server, int]:
        from pulumi.runtime.proto import provider_pb2_grpc

        from twin.aws import furnish, servicer

        furnish(world)

        size = 64 * 1024 * 1024
        server = grpc.aio.server(
            options=[("grpc.max_receive_message_length", size), ("grpc.max_send_message_length", size)]
        )
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer(world), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    def _take_aws_port(self) -> socket.socket:
        """The port that environments of this rehearsal name: taken first, as there is no other that would do."""
        port = self._state.aws_port
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
        except OSError:
            taken.close()
            text = f"port {port}, which AWS_ENDPOINT_URL of this rehearsal names, is taken: end what listens there, or"
            raise SystemExit(f"{text} let `make down` forget the port") from None
        return taken

    @staticmethod
    async def _serve_aws(world: LiveWorld, at: socket.socket) -> web.AppRunner:
        """AWS's own API."""
        from twin.aws.api import application

        runner = web.AppRunner(application(world), access_log=None)
        await runner.setup()
        await web.SockSite(runner, at).start()
        return runner

    # --- over TLS: what API servers call ---------------------------------------------------------------------------

    async def _serve_tls(self) -> tuple[int, Webhook, web.AppRunner]:
        """Logs of the simulated kubelets, and the check of tokens; at the same port after a restart, for the nodes
        and the API servers know it.
        """
        files = {name: self._state.root / f"kubelet.{name}" for name in ("ca", "pem", "key", "port")}
        if not files["ca"].exists():
            authority = trustme.CA(organization_name="Plumbline rehearsal")
            certificate = authority.issue_cert("127.0.0.1", "localhost")
            files["pem"].write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
            files["key"].touch(mode=0o600)
            files["key"].write_bytes(certificate.private_key_pem.bytes())
            authority.cert_pem.write_to_path(files["ca"])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(files["pem"], files["key"])
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._container_log)
        app.router.add_post("/authenticate/{plane}", self._authenticate)
        wanted = int(files["port"].read_text()) if files["port"].exists() else 0
        runner, port = await _serve(app, wanted, context)
        files["port"].write_text(str(port))
        webhook = Webhook(
            url=f"https://127.0.0.1:{port}/authenticate", certificate_authority_pem=files["ca"].read_text("utf-8")
        )
        return port, webhook, runner

    async def _container_log(self, request: web.Request) -> web.Response:
        where = request.match_info
        previous = request.query.get("previous") == "true"
        text = self._world.read_log(where["namespace"], where["pod"], where["container"], previous=previous)
        if text is None:
            return web.Response(status=404, text=f"container {where['container']} in pod {where['pod']} is not here")
        lines = text.splitlines(keepends=True)
        tail = int(request.query.get("tailLines") or 0)
        return web.Response(text="".join(lines[-tail:] if tail else lines))

    async def _authenticate(self, request: web.Request) -> web.Response:
        """https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication ."""
        review: dict[str, Any] = await request.json()
        cluster = self._world.cluster_of(request.match_info["plane"])
        user = check_token(self._state.root, review["spec"]["token"], cluster or "", time.time())
        status: dict[str, Any] = {"authenticated": user is not None}
        if user is not None:
            status["user"] = {"username": user, "groups": ["system:masters"]}
        return web.json_response({**review, "status": status})

    # --- for the command line --------------------------------------------------------------------------------------

    async def _serve_control(self) -> tuple[web.AppRunner, int]:
        @web.middleware
        async def with_token(request: web.Request, handler: Any) -> web.StreamResponse:
            if not secrets.compare_digest(request.headers.get("Authorization", ""), f"Bearer {self._token}"):
                raise web.HTTPUnauthorized
            response: web.StreamResponse = await handler(request)
            return response

        app = web.Application(middlewares=[with_token])
        app.router.add_get("/faults", self._get_faults)
        app.router.add_put("/faults", self._put_faults)
        app.router.add_get("/ready", self._get_ready)
        app.router.add_get("/state", self._get_state)
        return await _serve(app, 0, None)

    async def _get_ready(self, _: web.Request) -> web.Response:
        self._world.keep_a_spare()
        await self._world.spare_ready()
        return web.json_response({})

    async def _get_state(self, _: web.Request) -> web.Response:
        store = self._world.store
        return web.json_response({"clusters": store.list("plane"), "machines": store.list("machine")})

    async def _get_faults(self, _: web.Request) -> web.Response:
        return web.json_response({"on": sorted(self._world.switches.on)})

    async def _put_faults(self, request: web.Request) -> web.Response:
        names = frozenset((await request.json())["on"])
        if unknown := names - set(FAULTS):
            text = f"no fault {', '.join(sorted(unknown))}; there are: {', '.join(FAULTS)}"
            return web.json_response({"error": text}, status=422)
        self._world.switches.set(names)
        return web.json_response({"on": sorted(names)})


async def _serve(app: web.Application, port: int, tls: ssl.SSLContext | None) -> tuple[web.AppRunner, int]:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    return runner, int(runner.addresses[0][1])


def run(root: Path, timing: Timing) -> None:
    """Serve a state folder, in the foreground."""
    asyncio.run(Daemon(StateFolder(root), timing).run())
