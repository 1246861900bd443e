"""Objects of the simulated nodes."""

import json
from pathlib import Path

import pytest

from tests.recorded.record import HERE
from tests.twin.machines import p5
from twin.daemon import instance_from
from twin.nodes import objects
from twin.nodes.behaviour import EFA, Machine
from twin.nodes.kubelet import Node
from twin.nodes.objects import Json

AUTO = {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["auto"]}
TYPES = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _requiring(*terms: Json) -> Json:
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        _requiring({"matchExpressions": [TYPES, AUTO]}),
        _requiring({"matchExpressions": [TYPES]}, {"matchFields": [{"key": "metadata.name"}]}),
        {"podAntiAffinity": {"x": 1}},
    ],
)
def test_an_edit_of_the_selector_is_undone_without_a_trace(affinity: Json | None) -> None:
    edited = objects.kept_off_all_nodes(affinity)
    assert edited != affinity
    assert objects.kept_off_all_nodes(edited) == edited
    assert objects.let_back_on_nodes(edited) == affinity
    assert objects.let_back_on_nodes(affinity) == affinity


def test_every_alternative_is_closed() -> None:
    edited = objects.kept_off_all_nodes(_requiring({"matchExpressions": [TYPES]}, {"matchExpressions": [AUTO]}))
    terms = edited["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    assert [len(term["matchExpressions"]) for term in terms] == [2, 2]


def test_a_dead_plugin_zeroes_allocatable_and_leaves_capacity() -> None:
    node = Node(Machine(instance=p5("17"), first=True), lost={EFA: (32, 0.0)})
    assert (node.allocatable(), node.capacity()) == ({EFA: 0}, {EFA: 32})


def test_a_node_looks_as_on_eks() -> None:
    node = objects.node(p5("17"), 10250)
    labels, status = node["metadata"]["labels"], node["status"]
    assert node["spec"]["providerID"].startswith("aws:///us-west-2b/i-")
    assert labels["topology.kubernetes.io/zone"] == "us-west-2b"
    assert labels["node.kubernetes.io/instance-type"] == "p5.48xlarge"
    assert "topology.k8s.aws/network-node-layer-3" in labels
    assert "topology.k8s.aws/network-node-layer-4" not in labels
    assert status["allocatable"]["hugepages-2Mi"] == "10256Mi"
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "False"
    assert status["nodeInfo"]["bootID"] == objects.boot_id(p5("17"))


def test_last_words_are_in_the_status_only_on_request() -> None:
    assert objects.terminated(1, "exec format error\n", "FallbackToLogsOnError")["terminated"]["message"]
    assert "message" not in objects.terminated(1, "exec format error\n", "File")["terminated"]


@pytest.mark.parametrize(
    "file", sorted((HERE / "0.1.0" / "cloud" / "machine").glob("*.json")), ids=lambda file: file.stem
)
def test_a_machine_of_an_older_rehearsal_has_no_neuron_devices(file: Path) -> None:
    instance = instance_from(json.loads(file.read_text("utf-8")))
    assert (instance.gpus, instance.neuron_devices, instance.neuron_cores) == (8, 0, 0)


def test_a_slice_is_a_whole_pool_owned_by_its_node() -> None:
    node = {"metadata": {"name": "n", "uid": "u"}}
    published = objects.resource_slice(node, "dra.net", 3, [{"name": "d"}])
    assert published["spec"]["pool"] == {"name": "n", "generation": 3, "resourceSliceCount": 1}
    assert (
        published["metadata"]["ownerReferences"][0] | {"kind": "Node", "uid": "u"}
        == (published["metadata"]["ownerReferences"][0])
    )
