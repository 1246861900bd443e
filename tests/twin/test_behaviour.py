"""What containers do on a machine, with and without faults."""

import dataclasses

import pytest

from tests.twin.machines import p5, trn1
from tests.twin.rehearsal import DRANET_IMAGE, EFA_IMAGE, NEURON_IMAGE, NVIDIA_IMAGE
from twin.nodes.behaviour import (
    DRIVERS,
    EFA,
    EFA_DRIVER,
    GPU,
    NEURON,
    NEURON_CORE,
    PLUGINS,
    RUN_SECONDS,
    TOKEN,
    Exits,
    Machine,
    Runs,
    behave,
)

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
    assert isinstance(behave(EFA_IMAGE, MACHINE, (), mounted=()), Exits)


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


# --- DRA


def published(*faults: str, machine: Machine = MACHINE) -> int:
    does = behave(DRANET_IMAGE, machine, faults)
    assert isinstance(does, Runs)
    return len(does.publishes.get(EFA_DRIVER, ()))


def test_the_driver_publishes_each_device_by_its_own_name_and_as_efa() -> None:
    does = behave(DRANET_IMAGE, MACHINE, ())
    assert isinstance(does, Runs)
    devices = does.publishes[EFA_DRIVER]
    assert does.advertises == {}
    assert len({device["name"] for device in devices}) == len(devices) == 32
    kinds = {device["attributes"]["dra.net/pciDevice"]["string"] for device in devices}
    assert kinds == {"Elastic Fabric Adapter (EFA)"}


def test_faults_of_the_efa_plugin_bite_for_the_driver_too() -> None:
    assert published("one-node-advertises-fewer") == 31
    assert published("one-node-without-efa") == 0
    for fault in ("one-node-advertises-fewer", "one-node-without-efa", "advertised-then-lost"):
        assert behave(DRANET_IMAGE, OTHER, {fault}) == behave(DRANET_IMAGE, OTHER, ())
    lost = behave(DRANET_IMAGE, MACHINE, {"advertised-then-lost"})
    assert isinstance(lost, Runs)
    assert lost.flaps
    crash = behave(DRANET_IMAGE, MACHINE, {"plugin-crashloop"})
    assert isinstance(crash, Exits)
    assert "NRI plugin failed for 5 times to be restarted" in crash.log
    wrong = behave(DRANET_IMAGE, MACHINE, {"plugin-wrong-architecture"})
    assert isinstance(wrong, Exits)
    assert "exec /dranet: exec format error" in wrong.log


def test_without_devices_the_driver_runs_and_says_so() -> None:
    bare = behave(DRANET_IMAGE, Machine(instance=p5("19", efa=0), first=False), ())
    assert isinstance(bare, Runs)
    assert bare.publishes == {}
    assert "] Found 0 devices" in bare.log


@pytest.mark.parametrize("lacking", [*DRIVERS, TOKEN])
def test_the_driver_needs_the_kubelets_folders_the_runtimes_and_a_token(lacking: str) -> None:
    rest = [folder for folder in (*DRIVERS, TOKEN) if folder != lacking]
    assert isinstance(behave(DRANET_IMAGE, MACHINE, (), mounted=rest), Exits)
    assert isinstance(behave(DRANET_IMAGE, MACHINE, (), mounted=[*rest, lacking]), Runs)


# --- other machines


def test_the_neuron_plugin_advertises_devices_and_cores() -> None:
    machine = Machine(instance=trn1("21"), first=True)
    does = behave(NEURON_IMAGE, machine, ())
    assert isinstance(does, Runs)
    assert does.advertises == {NEURON: 16, NEURON_CORE: 32}
    bare = behave(NEURON_IMAGE, MACHINE, ())
    assert isinstance(bare, Exits)
    assert "No devices found." in bare.log
    assert isinstance(behave(NEURON_IMAGE, machine, (), mounted=[PLUGINS]), Exits), "it reads its Node"


def test_an_old_efa_plugin_takes_nvlink_devices_of_a_b200_machine_for_efa() -> None:
    old = EFA_IMAGE.replace("v0.5.20", "v0.4.4")
    b200 = Machine(instance=dataclasses.replace(p5("22", efa=8), machine="p6-b200.48xlarge"), first=True)
    counts = [behave(image, machine, ()) for image in (old, EFA_IMAGE) for machine in (b200, MACHINE)]
    assert [does.advertises[EFA] for does in counts if isinstance(does, Runs)] == [10, 32, 8, 32]
