"""`plumbline report`, `kubeconfig` and `init`: what they read from a state, and what they say."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plumbline import cli
from plumbline.project import ProjectUnchanged, add_provider
from plumbline.report import as_json, gates, kubeconfig
from tests.gate.clusters import CRASH, EXPECTED, NAMES, snapshot, with_pods
from tests.gate.test_prove import run

RUNNER = CliRunner()
PROVEN = run(lambda _: snapshot())[0]
BLOCKED = run(lambda _: snapshot(pods=with_pods("efa-device-plugin", {NAMES[0]: {"container": CRASH}})))[0]
URN = "urn:pulumi:local::plumbline::plumbline:index:FabricGate::train-h100"


def gate(proof: Any = PROVEN, **more: Any) -> dict[str, Any]:
    outputs = {"proof": proof.model_dump(mode="json", by_alias=True)} if proof else {}
    secret = {"plaintext": json.dumps("the kubeconfig")}
    inputs = {**EXPECTED.inputs(), "kubeconfig": secret}
    return {"urn": URN, "type": "plumbline:index:FabricGate", "inputs": inputs, "outputs": outputs, **more}


def state(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"deployment": {"resources": list(resources)}}


def shown(monkeypatch: pytest.MonkeyPatch, exported: dict[str, Any], *words: str) -> tuple[int, str]:
    monkeypatch.setattr(cli, "export_state", lambda *_, **__: exported)
    result = RUNNER.invoke(cli.app, [*words], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_proven_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = shown(monkeypatch, state(gate()), "report")
    assert code == 0
    assert "2 of 2" in text
    assert f"{NAMES[0]}: nvidia.com/gpu 8, vpc.amazonaws.com/efa 32" in text


def test_blocked_stack_shows_the_whole_message_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = shown(monkeypatch, state(gate(BLOCKED, initErrors=["…"])), "report")
    assert code == 1
    assert BLOCKED.headline in text
    assert "CrashLoopBackOff" in text


def test_gate_that_a_later_look_found_broken_is_no_longer_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = state(gate(initErrors=["no longer as proven: a plugin died"]))
    code, text = shown(monkeypatch, broken, "report")
    assert code == 1
    assert "no longer proven" in text
    assert "a plugin died" in text
    assert as_json(gates(broken))["proven"] is False


@pytest.mark.parametrize("exported", [{}, state(), {"deployment": None}, state(gate(None)), state(gate(delete=True))])
def test_nothing_recorded_is_never_a_pass(monkeypatch: pytest.MonkeyPatch, exported: dict[str, Any]) -> None:
    code, _ = shown(monkeypatch, exported, "report")
    assert code == 1
    document = json.loads(shown(monkeypatch, exported, "report", "--json")[1])
    assert document["proven"] is False


def test_kubeconfig_comes_from_the_gate_or_from_what_is_there_before_it() -> None:
    provider = {
        "urn": "u",
        "type": "pulumi:providers:kubernetes",
        "inputs": {"kubeconfig": {"plaintext": json.dumps("of the provider")}},
    }
    assert kubeconfig(state(provider, gate())) == "the kubeconfig"
    assert kubeconfig(state(provider)) == "of the provider"
    assert kubeconfig(state(gate()), "another-pool") is None
    assert kubeconfig({}) is None


def test_stack_that_cannot_be_read_says_what_was_tried(tmp_path: Path) -> None:
    result = RUNNER.invoke(cli.app, ["report", "--cwd", str(tmp_path)], env={"PATH": str(tmp_path)})
    assert result.exit_code == 2
    assert "no pulumi on PATH" in result.output


def test_init_appends_and_keeps_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.yaml"
    file.write_text("# ours\nname: other\nruntime: python")
    add_provider(tmp_path)
    assert file.read_text().startswith(
        "# ours\nname: other\nruntime: python\nplugins:\n  providers:\n    - name: plumbline\n"
    )
    assert "nothing was changed" in add_provider(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "no Pulumi.yaml"), ("name: x\nplugins:\n  providers: []\n", "add to its providers by hand")],
)
def test_init_leaves_alone_what_it_cannot_change_safely(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "Pulumi.yaml").write_text(text)
    with pytest.raises(ProjectUnchanged, match=words):
        add_provider(tmp_path)
