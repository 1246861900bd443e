"""What containers do on a machine, with and without faults."""

import dataclasses

from tests.twin.machines import p5
from tests.twin.rehearsal import EFA_IMAGE, NVIDIA_IMAGE
from twin.nodes.behaviour import EFA, GPU, RUN_SECONDS, Exits, Machine, Runs, behave

MACHINE = Machine(instance=p5("17"), first=True)
OTHER = Machine(instance=p5("18"), first=False)


def test_plugins_advertise_what_the_machine_has() -> None:
    efa, nvidia = behave(EFA_IMAGE, MACHINE, ()), behave(NVIDIA_IMAGE, MACHINE, ())
    assert isinstance(efa, Runs)
    assert isinstance(nvidia, Runs)
    assert (efa.advertises, nvidia.advertises) == ({EFA: 32}, {GPU: 8})


def test_without_devices_the_efa_plugin_ends_and_the_nvidia_plugin_waits() -> None:
    bare = Machine(instance=p5("19", efa=0, gpus=0), first=False)
    efa, nvidia = behave(EFA_IMAGE, bare, ()), behave(NVIDIA_IMAGE, bare, ())
    assert isinstance(efa, Exits)
    assert efa.code == 1
    assert "No valid EFA devices found" in efa.log
    assert isinstance(nvidia, Runs)
    assert nvidia.advertises == {}
    assert "No devices found. Waiting indefinitely." in nvidia.log


def test_a_plugin_that_cannot_reach_the_kubelet_advertises_nothing() -> None:
    assert isinstance(behave(EFA_IMAGE, MACHINE, (), sees_kubelet=False), Exits)


def test_an_image_of_another_architecture_cannot_be_executed() -> None:
    does = behave(EFA_IMAGE, MACHINE, {"plugin-wrong-architecture"})
    assert isinstance(does, Exits)
    assert "exec format error" in does.log
    arm = dataclasses.replace(MACHINE, instance=dataclasses.replace(p5("20"), architecture="arm64"))
    assert isinstance(behave(EFA_IMAGE, arm, {"plugin-wrong-architecture"}), Runs)


def test_faults_of_one_node_leave_the_others_alone() -> None:
    assert isinstance(behave(EFA_IMAGE, MACHINE, {"one-node-without-efa"}), Exits)
    fewer = behave(EFA_IMAGE, MACHINE, {"one-node-advertises-fewer"})
    assert isinstance(fewer, Runs)
    assert fewer.advertises == {EFA: 31}
    for fault in ("one-node-without-efa", "one-node-advertises-fewer", "advertised-then-lost"):
        assert behave(EFA_IMAGE, OTHER, {fault}) == behave(EFA_IMAGE, OTHER, ())


def test_other_programs_run_for_ever_unless_told_otherwise() -> None:
    assert behave("busybox:1", MACHINE, ()) == Runs()
    assert behave("busybox:1", MACHINE, (), {RUN_SECONDS: "1.5"}) == Runs(seconds=1.5)
