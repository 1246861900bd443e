"""Short-lived tokens: good for one cluster and for a quarter of an hour."""

import json
from pathlib import Path

import pytest

from twin.credentials import LIFETIME_SECONDS, check_token, main, make_token


def test_a_token_is_good_for_its_cluster_until_it_ends(tmp_path: Path) -> None:
    token = make_token(tmp_path, "train", 1000.0)
    assert check_token(tmp_path, token, "train", 1000.0 + LIFETIME_SECONDS - 1)
    assert check_token(tmp_path, token, "train", 1000.0 + LIFETIME_SECONDS) is None
    assert check_token(tmp_path, token, "other", 1000.0) is None
    assert check_token(tmp_path / "another-rehearsal", token, "train", 1000.0) is None


@pytest.mark.parametrize("token", ["", "x", "k8s-aws-v1.", "k8s-aws-v1.!!!", "k8s-aws-v1." + "A" * 80, "k8s-aws-v1.ü"])
def test_junk_is_refused(tmp_path: Path, token: str) -> None:
    assert check_token(tmp_path, token, "train", 0) is None


def test_a_changed_token_is_refused(tmp_path: Path) -> None:
    token = make_token(tmp_path, "train", 0)
    assert check_token(tmp_path, token[:-2] + ("AA" if token[-2:] != "AA" else "BB"), "train", 0) is None


def test_the_executable_serves_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eks", "get-token", "--cluster-name", "train", "--region", "us-west-2", "--output", "json"]
    assert main([str(tmp_path), *words]) == 0
    assert json.loads(capsys.readouterr().out)["status"]["token"].startswith("k8s-aws-v1.")
    assert main([str(tmp_path), "s3", "ls"]) == 252
    assert "eks get-token" in capsys.readouterr().err
