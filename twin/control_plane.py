"""A real control plane on loopback: etcd, API server, controller manager, scheduler."""

import asyncio
import base64
import json
import random
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import structlog
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tools import toolbox
from twin.processes import Supervised

log = structlog.get_logger()
_READY_SECONDS = 60.0
_SERVICES = "10.100.0.0/16"
_REQUEST_RATE = ("--kube-api-qps=500", "--kube-api-burst=1000")
"""By default these clients send 20 to 50 requests a second, which is what a few hundred nodes would wait for."""


class PlaneFailed(Exception):
    """The control plane did not become ready; the message says which process ended, and where its log is."""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Where the API server has tokens checked."""

    url: str
    certificate_authority_pem: str


class ControlPlane:
    """One cluster's control plane, in a folder of its own; its processes outlive the daemon that started them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports_file = folder / "ports.json"
        parts = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        self._processes = {name: Supervised(name, folder / f"{name}.pid") for name in parts}

    # --- what others need ----------------------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self._ports()['api']}"

    @property
    def certificate_authority_pem(self) -> str:
        """By which the API server's certificate is checked."""
        return (self.folder / "ca.pem").read_text("utf-8")

    def kubeconfig(self) -> dict[str, Any]:
        """For an administrator, with a client certificate."""
        ca = self.certificate_authority_base64
        pem = (self.folder / "admin.pem").read_bytes()
        key = (self.folder / "admin.key").read_bytes()
        user = {
            "client-certificate-data": base64.b64encode(pem).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "rehearsal", "cluster": {"server": self.endpoint, "certificate-authority-data": ca}}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "rehearsal", "context": {"cluster": "rehearsal", "user": "admin"}}],
            "current-context": "rehearsal",
        }

    @property
    def certificate_authority_base64(self) -> str:
        """As kubeconfigs hold it."""
        return base64.b64encode(self.certificate_authority_pem.encode()).decode()

    def prepare(self) -> None:
        """Decide address and certificates, unless they are decided already."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self.folder / "ca.pem").exists():
            self._issue_certificates()

    async def start(self, webhook: Webhook) -> None:
        """Start what does not run, and return when the API server is ready.

        Raises:
            PlaneFailed: it did not come up.
        """
        self.prepare()
        self._write_webhook(webhook)
        served_before = self.folder / "served"
        for attempts_left in (2, 1, 0):
            try:
                await self._start()
                served_before.touch()
                return
            except PlaneFailed:
                # Somebody may have taken a port between its choice and its use. Later, kubeconfigs know the port.
                if served_before.exists() or not attempts_left:
                    raise
                self.stop()
                self._ports_file.unlink(missing_ok=True)

    async def _start(self) -> None:
        (self.folder / "kubeconfig").write_text(json.dumps(self.kubeconfig()), "utf-8")
        (self.folder / "kubeconfig").chmod(0o600)
        self._launch("etcd", self._etcd())
        self._launch("kube-apiserver", self._api_server())
        await self._ready()
        self._launch("kube-controller-manager", self._controller_manager())
        self._launch("kube-scheduler", self._scheduler())

    def stop(self) -> list[str]:
        """End everything. Returns the names of what ran."""
        order = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
        return [name for name in order if self._processes[name].stop(2.0)]

    def process(self, name: str) -> psutil.Process | None:
        """One of its processes, if it runs."""
        return self._processes[name].process()

    async def cut_off(self) -> None:
        """The fault `api-server-unreachable`: connections are refused.

        Controllers go with it: left alone, they would wait up to half a minute before they look again.
        """
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver"):
            await asyncio.to_thread(self._processes[name].stop, 0.2)

    async def keep_alive(self) -> None:
        """Start again what ended: by `cut_off`, or by itself, as a kubelet does with a control plane's pods."""
        ended = [name for name, process in self._processes.items() if process.process() is None]
        if ended:
            log.warning("started again", folder=self.folder.name, ended=ended)
            await self._start()

    # --- how it is made ------------------------------------------------------------------------------------------

    def _launch(self, name: str, arguments: list[str]) -> None:
        command = [str(toolbox.bin_folder() / name), *arguments]
        self._processes[name].start(command, self.folder / "logs" / f"{name}.log")

    async def _ready(self) -> None:
        context = ssl.create_default_context(cadata=self.certificate_authority_pem)
        context.load_cert_chain(self.folder / "admin.pem", self.folder / "admin.key")
        deadline = asyncio.get_running_loop().time() + _READY_SECONDS
        async with httpx2.AsyncClient(verify=context, trust_env=False) as client:
            while True:
                try:
                    if (await client.get(f"{self.endpoint}/readyz", timeout=2)).is_success:
                        return
                except httpx2.HTTPError:
                    pass
                self._check_alive("etcd", "kube-apiserver")
                if asyncio.get_running_loop().time() > deadline:
                    raise PlaneFailed(f"no API server within {_READY_SECONDS:.0f} s; logs: {self.folder / 'logs'}")
                await asyncio.sleep(0.1)

    def _check_alive(self, *names: str) -> None:
        for name in names:
            if self._processes[name].process() is None:
                log = self.folder / "logs" / f"{name}.log"
                tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
                raise PlaneFailed(f"{name} ended at its start:\n{tail}\nwhole log: {log}")

    def _ports(self) -> dict[str, int]:
        """Ports, chosen once: the processes and the kubeconfigs of a plane outlive its daemon."""
        if not self._ports_file.exists():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            names = ("etcd", "peer", "api")
            self._ports_file.write_text(json.dumps(dict(zip(names, free_ports(len(names)), strict=True))), "utf-8")
        ports: dict[str, int] = json.loads(self._ports_file.read_text("utf-8"))
        return ports

    def _issue_certificates(self) -> None:
        authority = trustme.CA(organization_name="Plumbline rehearsal")
        server = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc", common_name="kube-apiserver")
        admin = authority.issue_cert(
            "admin.rehearsal", common_name="rehearsal-admin", organization_name="system:masters"
        )
        for name, certificate in (("server", server), ("admin", admin)):
            (self.folder / f"{name}.pem").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
            (self.folder / f"{name}.key").write_bytes(certificate.private_key_pem.bytes())
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = serialization.PrivateFormat.PKCS8
        pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (self.folder / "accounts.key").write_bytes(pem)
        for file in self.folder.glob("*.key"):
            file.chmod(0o600)
        authority.cert_pem.write_to_path(self.folder / "ca.pem")

    def _write_webhook(self, webhook: Webhook) -> None:
        ca = base64.b64encode(webhook.certificate_authority_pem.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "iam", "cluster": {"server": webhook.url, "certificate-authority-data": ca}}],
            "users": [{"name": "api-server"}],
            "contexts": [{"name": "webhook", "context": {"cluster": "iam", "user": "api-server"}}],
            "current-context": "webhook",
        }
        (self.folder / "webhook.json").write_text(json.dumps(config), "utf-8")

    def _etcd(self) -> list[str]:
        ports = self._ports()
        client, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['peer']}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        ports = self._ports()
        return [
            f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
            "--bind-address=127.0.0.1",
            f"--secure-port={ports['api']}",
            f"--tls-cert-file={self.folder / 'server.pem'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--client-ca-file={self.folder / 'ca.pem'}",
            f"--cert-dir={self.folder / 'certs'}",
            "--authorization-mode=RBAC",
            f"--authentication-token-webhook-config-file={self.folder / 'webhook.json'}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=5s",
            f"--service-account-key-file={self.folder / 'accounts.key'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={_SERVICES}",
            # The simulated kubelets listen here whatever address a node has on its network.
            "--kubelet-preferred-address-types=ExternalDNS",
            "--allow-privileged=true",
            "--endpoint-reconciler-type=none",
            "--v=0",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            "--secure-port=0",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.folder / 'ca.pem'}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            *_REQUEST_RATE,
            # Simulated kubelets renew their leases rarely, so that a thousand of them cost little.
            "--node-monitor-grace-period=900s",
            "--node-monitor-period=1s",
            "--node-startup-grace-period=900s",
            "--v=0",
        ]

    def _scheduler(self) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            "--secure-port=0",
            "--leader-elect=false",
            *_REQUEST_RATE,
            "--v=0",
        ]


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on now.

    They lie below the range from which the system gives ports to connections: between its choice and its use, one of
    that range may become somebody's end of a connection.
    """
    chosen: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise PlaneFailed(f"no {count} free ports on loopback between {_PORTS[0]} and {_PORTS[-1]}")


_PORTS = range(20000, 32000)
