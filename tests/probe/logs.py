"""Logs of probes that pass, to be broken in tests: in the forms of NCCL and aws-ofi-nccl, with names made up."""

from plumbline.probe.fabrics import FabricName
from plumbline.probe.transport import ProbeLog, TransportExpectation, transport

NETWORKS: dict[FabricName, str] = {
    "efa": "Libfabric",
    "tcpx": "GPUDirectTCPX_v7",
    "tcpxo": "FasTrak",
    "rdma": "gIB",
}


def two_ranks(fabric: FabricName = "efa", suffix: str = "/GDRDMA") -> list[str]:
    """The lines of two ranks on two nodes, each of which is needed."""
    network = NETWORKS[fabric]
    found: list[str] = []
    for rank in (0, 1):
        say = f"worker-{rank}:8{rank}:140 [0] NCCL INFO"
        if fabric == "efa":
            found.append(f"{say} NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)")
        found.append(f"{say} Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/{network}/1{suffix}")
        found.append(f"{say} Channel 00/0 : {1 - rank}[0] -> {rank}[0] [receive] via NET/{network}/1{suffix}")
    return found


def expectation(fabric: FabricName = "efa", **changed: object) -> TransportExpectation:
    """What `two_ranks` proves."""
    values: dict[str, object] = {
        "fabric": fabric,
        "ranks": frozenset({0, 1}),
        "nodes": 2,
        "nics": 32 if fabric == "efa" else None,
    }
    return TransportExpectation(**{**values, **changed})  # type: ignore[arg-type]


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def verdict(lines: list[str], fabric: FabricName = "efa", **changed: object) -> str:
    return transport(expectation(fabric, **changed), [ProbeLog(text=text(lines))]).verdict.value
