"""What fi_info, Lustre, verbs, IOR and fio print is read for what it says."""

import json

from plumbline.probe.fio import parse_fio
from plumbline.probe.ior import parse_ior
from plumbline.probe.libfabric import parse_fi_info
from plumbline.probe.lnet import parse_imports, parse_lnet
from plumbline.probe.verbs import parse_ibv_devinfo, parse_rdma_link


def block(fabric: str, domain: str, kind: str, protocol: str = "FI_PROTO_EFA") -> str:
    return (
        f"provider: efa\n    fabric: {fabric}\n    domain: {domain}\n    version: 203.0\n    type: {kind}\n"
        f"    protocol: {protocol}\n"
    )


def test_devices_are_counted_once_however_often_they_are_listed() -> None:
    text = "".join(
        block(fabric, f"rdmap{n}s0-rdm", "FI_EP_RDM") for n in (16, 17) for fabric in ("efa", "efa-direct")
    ) + block("efa", "rdmap16s0-dgrm", "FI_EP_DGRAM")
    info = parse_fi_info(text)
    assert len(info.endpoints) == 5
    assert info.endpoints[1].line.number == 7
    assert info.devices("efa") == {"rdmap16s0-rdm", "rdmap17s0-rdm"}
    assert info.devices("tcp") == frozenset()
    assert parse_fi_info(text[:-1]).endpoints == info.endpoints[:-1]


def test_no_provider_has_a_device() -> None:
    info = parse_fi_info("fi_getinfo: -61 (No data available)\n")
    assert info.failure is not None
    assert (info.failure.value, info.devices("efa")) == (-61, frozenset())


NET = """net:
    - net type: lo
      local NI(s):
        - nid: 0@lo
          status: up
    - net type: efa
      local NI(s):
        - nid: 10.0.0.5@efa
          status: up
          interfaces:
              0: rdmap79s0
        - nid: 10.0.0.6@efa
          status: down
          interfaces:
              0: rdmap80s0
"""


def test_networks_of_a_lustre_client() -> None:
    found = parse_lnet(NET)
    assert [(each.network, each.nid, each.status, each.devices) for each in found] == [
        ("lo", "0@lo", "up", ()),
        ("efa", "10.0.0.5@efa", "up", ("rdmap79s0",)),
        ("efa", "10.0.0.6@efa", "down", ("rdmap80s0",)),
    ]
    assert [each.line.number for each in found] == [4, 8, 12]
    assert found[1].line.text == "        - nid: 10.0.0.5@efa"


def test_targets_of_a_lustre_client() -> None:
    text = "".join(
        f"osc.train-OST000{n}-osc-ffff8881.import=\nimport:\n    name: train-OST000{n}-osc-ffff8881\n"
        f"    target: train-OST000{n}_UUID\n    state: FULL\n    connect_flags: [ write_grant, version ]\n"
        f'    connection:\n       failover_nids: [ "10.0.0.5@{net}" ]\n       current_connection: "10.0.0.5@{net}"\n'
        for n, net in enumerate(("efa", "tcp"))
    )
    found = parse_imports(text)
    assert [(each.target, each.state, each.network, each.line.number) for each in found] == [
        ("train-OST0000_UUID", "FULL", "efa", 1),
        ("train-OST0001_UUID", "FULL", "tcp", 10),
    ]
    assert [each.network for each in parse_imports(text[:-1])] == ["efa"]


def test_ports_of_verbs_devices() -> None:
    text = (
        "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tlink_layer:\t\tEthernet\n\n"
        "hca_id:\tmlx5_1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n\t\t\tlink_layer:\t\tInfiniBand\n"
    )
    found = parse_ibv_devinfo(text)
    assert [(each.device, each.port, each.state, each.link_layer, each.active) for each in found] == [
        ("mlx5_0", 1, "ACTIVE", "Ethernet", True),
        ("mlx5_1", 1, "DOWN", "InfiniBand", False),
    ]


def test_links_of_rdma_devices() -> None:
    text = (
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth1\n"
        "link rdmap16s27/1 state ACTIVE physical_state LINK_UP\n"
        "1: link mlx5_1/1 state DOWN physical_state DISABLED\n"
    )
    assert [(each.device, each.active, each.netdev) for each in parse_rdma_link(text)] == [
        ("mlx5_0", True, "eth1"),
        ("rdmap16s27", True, None),
        ("mlx5_1", False, None),
    ]
    rows = [{"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "netdev": "eth1"}, {"ifname": 3}, 4]
    (port,) = parse_rdma_link(json.dumps(rows))
    assert (port.device, port.port, port.active, port.netdev, port.line.text) == ("mlx5_0", 1, True, "eth1", "[0]")


def test_speeds_of_ior() -> None:
    rows = [
        {"operation": "write", "bwMinMIB": 100.0, "bwMeanMIB": 110.5, "numTasks": 16},
        {"operation": "read", "bwMinMIB": "fast", "bwMeanMIB": 1},
    ]
    (found,) = parse_ior(json.dumps({"summary": rows}))
    assert (found.operation, found.slowest, found.mean, found.tasks) == ("write", 100 * 2**20, 110.5 * 2**20, 16)
    assert found.line.text == "summary[0]"


def test_speeds_of_fio() -> None:
    idle = {"bw_bytes": 0, "io_bytes": 0}
    busy = {"bw_bytes": 600_000_000, "io_bytes": 2**34}
    text = json.dumps({"jobs": [{"jobname": "a", "error": 5, "write": busy, "read": idle}, {"jobname": "b"}]})
    (found,) = parse_fio(f"fio: a warning\n{text}")
    assert (found.name, found.operation, found.speed, found.moved, found.error) == ("a", "write", 6e8, 2**34, 5)
    assert found.line.text == "jobs[0].write"
    assert parse_fio(text[:-1]) == ()
