"""Lines of NCCL and of plugins, from 2.12 to the newest, are read for what they say."""

import pytest

from plumbline.probe.fastrak import parse_fastrak
from plumbline.probe.gib import parse_gib
from plumbline.probe.lines import lines
from plumbline.probe.nccl import Channel, NcclProcess, parse_nccl, take_apart
from plumbline.probe.ofi import parse_ofi
from plumbline.probe.rxdm import parse_rxdm
from plumbline.probe.tcpx import parse_tcpx

SAY = "w-0:88:140 [3] NCCL INFO"


def process(*messages: str) -> NcclProcess:
    (one,) = parse_nccl("".join(f"{SAY} {message}\n" for message in messages)).processes
    return one


def channel(message: str) -> Channel | None:
    found = process(message).channels
    return found[0] if found else None


@pytest.mark.parametrize(
    ("message", "network", "nic", "proxy", "direct"),
    [
        ("Channel 01 : 9[101d0] -> 0[101c0] [send] via NET/AWS Libfabric/0", "AWS Libfabric", 0, None, False),
        ("Channel 00/0 : 9[1a000] -> 2[6b000] [send] via NET/IB/0/GDRDMA", "IB", 0, None, True),
        ("Channel 03/1 : 2[2] -> 11[3] [receive] via NET/gIB/3/GDRDMA/Shared", "gIB", 3, None, True),
        ("Channel 15/0 : 2[2] -> 11[3] [send] via NET/FasTrak/7(6)/GDRDMA", "FasTrak", 7, 6, True),
        ("Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0/GDRDMA(PCI)/Shared", "IB", 0, None, True),
        ("Channel 00/0 : 0[0] -> 4[0] [send] via NET/Socket/0/Shared", "Socket", 0, None, False),
        ("Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/0/NOGDRDMA", "IB", 0, None, False),
    ],
)
def test_connection_over_a_network(message: str, network: str, nic: int, proxy: int | None, direct: bool) -> None:
    found = channel(message)
    assert found is not None
    assert (found.transport, found.network, found.nic, found.proxy, found.gpu_direct) == (
        "NET",
        network,
        nic,
        proxy,
        direct,
    )
    assert found.line.text.endswith(message)


@pytest.mark.parametrize(
    ("message", "transport", "how"),
    [
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "P2P", "CUMEM/read"),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", "P2P", "direct pointer"),
        ("Channel 00/0 : 0[0] -> 4[0] via P2P/MNNVL", "P2P", "MNNVL"),
        ("Channel 00 : 0[1a000] -> 1[1b000] via SHM/direct/direct", "SHM", "direct/direct"),
    ],
)
def test_connection_inside_a_node(message: str, transport: str, how: str) -> None:
    found = channel(message)
    assert found is not None
    assert (found.transport, found.network, found.nic, found.gpu_direct) == (transport, how, None, False)


def test_two_sides_of_a_connection_have_the_same_key() -> None:
    sent = channel("Channel 02/0 : 2[2] -> 10[2] [send] via NET/IB/2/GDRDMA")
    received = channel("Channel 02/0 : 2[2] -> 10[2] [receive] via NET/IB/5/GDRDMA")
    assert sent is not None
    assert received is not None
    assert sent.key == received.key
    assert (sent.direction, received.direction) == ("send", "receive")


@pytest.mark.parametrize(
    "message",
    ["Channel 00/16 :    0   1   2   3", "Channel 00/0 : 0[0] -> 4[0] [send] via NET/IB/", "Channel 00/0 : 0[0] -> 4"],
)
def test_what_is_no_connection_is_none(message: str) -> None:
    assert channel(message) is None


@pytest.mark.parametrize(
    "before",
    ["", "[1,0]<stdout>:", "0: ", "[pod/probe-0/nccl] ", "[2026-12-01 05:00:00] ", "(Worker pid=9, ip=10.0.0.7) "],
)
def test_what_launchers_write_before_a_line_is_left_out(before: str) -> None:
    (line,) = lines(f"{before}w-0:88:140 [3] NCCL INFO Using network IB\n")
    said = take_apart(line)
    assert said is not None
    assert (said.host, said.pid, said.device, said.level, said.message) == ("w-0", 88, 3, "INFO", "Using network IB")


@pytest.mark.parametrize("where", ["net.cc:579", "misc/ibvwrap.cc:201", "src/plugin/net.cc:349 (ncclNetInit)"])
def test_warning_says_where_in_the_code(where: str) -> None:
    (one,) = parse_nccl(f"\n[2026-12-01 05:00:00] w-0:88:140 [3] {where} NCCL WARN Error: x\n").processes
    assert [(fact.value, fact.line.number) for fact in one.warnings] == [("Error: x", 2)]


def test_networks_by_the_words_of_each_version() -> None:
    old = process("NCCL version 2.12.12+cuda11.7", "Using network AWS Libfabric")
    assert [fact.value for fact in old.networks] == ["AWS Libfabric"]
    assert old.version is not None
    assert old.version.value == "2.12.12+cuda11.7"
    new = process(
        "NET/Plugin: Loaded net plugin Libfabric (v10)",
        "Initialized NET plugin IB",
        "Assigned NET plugin IB to comm",
        "Using network IB",
    )
    assert [fact.value for fact in new.networks] == ["IB", "IB"]
    assert [fact.value for fact in new.initialized] == ["IB"]
    assert [fact.value for fact in new.loaded] == ["Libfabric"]
    assert parse_nccl("NCCL version 2.30.7+cuda13.0\n").version is not None


def test_bootstrap_is_no_network() -> None:
    one = process("Bootstrap : Using eth0:10.8.10.18<0>", "NET/Socket : Using [0]eth0:10.8.10.18<0>")
    assert (one.networks, one.devices, one.channels) == ((), None, ())


def test_devices_of_a_list_that_is_empty_are_none() -> None:
    assert process("NET/IB : No device found.", "NET/IB : Using ; OOB eth0:10.0.0.2<0>").devices is None
    found = process("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.73.0.9<0>").devices
    assert found is not None
    assert found.value == ("mlx5_0", "mlx5_1")


def test_rank_is_that_of_the_largest_communicator() -> None:
    one = process(
        "ncclCommInitRankConfig comm 0x5e30 rank 9 nranks 16 cudaDev 1 nvmlDev 1 busId 57000 commId 0xad - Init START",
        "ncclCommSplit comm 0x5e31 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 57000 parent 0x5e30 - Init START",
        "Channel 00/0 : 0[1] -> 1[1] [receive] via NET/IB/1/GDRDMA",
    )
    assert one.ranks == {9}
    assert process("comm 0x5e31 rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0").ranks == {3}
    assert process("Channel 00/0 : 0[1] -> 7[1] [receive] via NET/IB/1/GDRDMA").ranks == {7}


def test_ranks_in_one_log_are_told_apart() -> None:
    log = (
        "a:1:9 [0] NCCL INFO Using network IB\n"
        "b:1:9 [0] NCCL INFO Using network Socket\n"
        "a:1:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
        "a:2:9 [1] NCCL INFO Using network gIB\n"
    )
    found = {(one.host, one.pid): one for one in parse_nccl(log).processes}
    assert set(found) == {("a", 1), ("b", 1), ("a", 2)}
    assert [fact.value for fact in found["b", 1].networks] == ["Socket"]
    assert len(found["a", 1].channels) == 1
    assert found["a", 1].channels[0].line.number == 3


def test_two_lines_in_one_are_nobodys() -> None:
    (line,) = lines("a:1:9 [0] NCCL INFO Using networkb:1:9 [0] NCCL INFO Using network IB\n")
    assert take_apart(line) is None


def test_last_line_without_an_end_proves_nothing() -> None:
    (one,) = parse_nccl(f"{SAY} Using network IB").processes
    assert one.networks == ()
    assert one.said[0].message == "Using network IB"


@pytest.mark.parametrize(
    ("message", "name", "fabric", "nics"),
    [
        ("NET/OFI Selected Provider is efa", "efa", None, None),
        ("NET/OFI Selected Provider is efa (found 16 nics)", "efa", None, 16),
        ("NET/OFI Selected provider is efa, fabric is efa-direct (found 8 nics)", "efa", "efa-direct", 8),
        ("NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", "tcp;ofi_rxm", None, 1),
    ],
)
def test_provider_of_aws_ofi_nccl(message: str, name: str, fabric: str | None, nics: int | None) -> None:
    (fact,) = parse_ofi(process(message).said).providers
    assert (fact.value.name, fact.value.fabric, fact.value.nics) == (name, fabric, nics)


def test_versions_and_failures_of_plugins() -> None:
    ofi = parse_ofi(
        process(
            "NET/OFI Initializing aws-ofi-nccl 1.16.2",
            "NET/OFI Using Libfabric version 2.1",
            "NET/OFI Using transport protocol RDMA (platform set)",
            "NET/OFI No eligible providers were found",
        ).said
    )
    assert [fact.value for fact in (ofi.version, ofi.libfabric, ofi.protocol) if fact] == ["1.16.2", "2.1", "RDMA"]
    assert [fact.value for fact in ofi.failures] == ["NET/OFI No eligible providers were found"]
    gib = parse_gib(process("NET/gIB : Initializing gIB v1.0.6", "NET/gIB : No device found.").said)
    assert gib.version is not None
    assert gib.version.value == "1.0.6"
    assert gib.no_device is not None
    tcpx = parse_tcpx(process("NET/GPUDirectTCPX ver. 3.1.8.", "NET/GPUDirectTCPX : GPUDirectTCPX enable: 1").said)
    assert tcpx.version is not None
    assert tcpx.version.value == "3.1.8"
    assert tcpx.enabled is not None
    assert tcpx.enabled.value is True
    fastrak = parse_fastrak(
        process(
            "Initializing network FasTrak, version: 1.0.17",
            "NET/FasTrak connect() error: 111: Connection refused (rxdm_uds_nic_mapping)",
        ).said
    )
    assert fastrak.version is not None
    assert fastrak.version.value == "1.0.17"
    (refused,) = fastrak.refusals
    assert (refused.value.errno, refused.value.text) == (111, "Connection refused")
    assert refused.value.socket == "rxdm_uds_nic_mapping"


def test_daemon_counts_gpus() -> None:
    log = parse_rxdm(
        "I0312 17:02:11.480113      12 fastrak_gpumem_manager.cc:151] Starting RxDM\n"
        "E0312 17:02:13.902201      12 fastrak_gpumem_manager.cc:200] Number of GPUs detected in the PCI tree 7 is not "
        "equal to the actual number of GPUs reported by CUDA 8\n"
    )
    assert log.started is not None
    assert log.started.number == 1
    assert log.short is not None
    assert (log.short.value.found, log.short.value.present, log.short.line.number) == (7, 8, 2)
    assert len(log.errors) == 1
