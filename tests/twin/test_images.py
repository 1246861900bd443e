"""What the simulated registries answer, in every form in which an image can be named."""

import pytest

from twin.nodes.registry import Image, PullFailure, pull

EFA = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"


@pytest.mark.parametrize(
    ("reference", "plugin"),
    [
        (f"{EFA}:v0.5.20", "efa"),
        (f"{EFA}:v0.5.20@sha256:{'0' * 64}", "efa"),
        (f"{EFA}@sha256:{'0' * 64}", "efa"),
        (EFA.replace("us-west-2", "eu-west-1") + ":v0.5.20", "efa"),
        (EFA.replace("aws-efa-k8s-device-plugin", "dranet") + ":v1.2.0-eksbuild.2", "dranet"),
        ("public.ecr.aws/neuron/neuron-device-plugin:2.28.27.0", "neuron"),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "nvidia"),
        ("registry.example.com:5000/team/train", ""),
        ("busybox", ""),
    ],
)
def test_an_image_is_known_by_its_repository(reference: str, plugin: str) -> None:
    image = pull(reference, ())
    assert isinstance(image, Image)
    assert image.plugin == plugin


@pytest.mark.parametrize("reference", [f"{EFA}:v9", EFA, "nvcr.io/nvidia/k8s-device-plugin:latest"])
def test_a_tag_that_was_never_published_is_not_found(reference: str) -> None:
    failure = pull(reference, ())
    assert isinstance(failure, PullFailure)
    assert "not found: manifest unknown" in failure.message
    assert reference in failure.message


def test_the_image_faults_concern_the_efa_plugin_only() -> None:
    assert isinstance(pull(f"{EFA}:v0.5.20", {"plugin-image-missing"}), PullFailure)
    assert isinstance(pull("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", {"plugin-image-missing"}), Image)
    wrong = pull(f"{EFA}:v0.5.20", {"plugin-wrong-architecture"})
    assert isinstance(wrong, Image)
    assert not wrong.runs_on("amd64")
    assert wrong.runs_on("arm64")
