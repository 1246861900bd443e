"""The facts of FSx for Lustre against what AWS's own SDK says of its API, and the arithmetic on them."""

import html
import re
from functools import cache
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plumbline.catalog import FsxCatalogue, fsx_catalogue
from plumbline.catalog.fsx import Capacity

FSX = fsx_catalogue()


@cache
def model() -> Any:
    return botocore.session.get_session().get_service_model("fsx")


def documented(shape: str, member: str) -> str:
    """What the SDK says of one parameter, without its markup."""
    return html.unescape(re.sub(r"<[^>]+>", " ", model().shape_for(shape).members[member].documentation))


def test_deployment_and_storage_types_are_those_of_the_api() -> None:
    assert set(FSX.deployments) == set(model().shape_for("LustreDeploymentType").enum)
    assert {each for name in FSX.deployments for each in FSX.storages(name)} == set(
        model().shape_for("StorageType").enum
    )
    assert FSX.storages("PERSISTENT_3") == ()


def test_tiers_are_those_of_the_api() -> None:
    text = documented("CreateFileSystemLustreConfiguration", "PerUnitStorageThroughput")
    listed = {
        (name, storage): tuple(int(each) for each in tiers.split(","))
        for name, storage, tiers in re.findall(r"For\s+(PERSISTENT_\d)\s+(SSD|HDD)\s+storage: ([\d, ]+)", text)
    }
    assert listed == {
        kind: FSX.tiers(*kind) for kind in [("PERSISTENT_1", "SSD"), ("PERSISTENT_1", "HDD"), ("PERSISTENT_2", "SSD")]
    }
    assert FSX.tiers("SCRATCH_2", "SSD") == ()


def test_a_file_systems_throughput_is_as_the_api_counts_it() -> None:
    text = documented("CreateFileSystemLustreConfiguration", "PerUnitStorageThroughput")
    found = re.search(r"For a ([\d.]+)-TiB .*?provisioning (\d+) MB/s/TiB .*?yields (\d+) MB/s", text)
    assert found
    terabytes, tier, mbps = found.groups()
    assert FSX.throughput.mbps(round(float(terabytes) * 1000), int(tier)) == float(mbps)


def test_limits_are_those_of_the_api() -> None:
    assert model().shape_for("AutomaticBackupRetentionDays").metadata["max"] == FSX.backups.retention_days_max
    assert model().shape_for("MetadataIops").metadata["max"] == FSX.metadata.iops_max
    assert model().shape_for("MetadataIops").metadata["min"] == min(FSX.metadata.small_iops)
    assert model().shape_for("MetadataConfigurationMode").enum == list(FSX.metadata.modes)
    assert model().shape_for("Megabytes").metadata["max"] == FSX.associations.chunk_mib_max
    assert model().shape_for("ThroughputCapacityMbps").metadata["max"] == FSX.intelligent_tiering.throughput_max
    association = html.unescape(
        re.sub(r"<[^>]+>", " ", model().operation_model("CreateDataRepositoryAssociation").documentation)
    )
    assert f"a maximum of {FSX.associations.most} data repository associations" in association


@pytest.mark.parametrize(
    ("kind", "gib", "around"),
    [
        (("SCRATCH_1", "SSD", None), 3600, (3600, 3600)),
        (("SCRATCH_1", "SSD", None), 4800, (3600, 7200)),
        (("SCRATCH_2", "SSD", None), 3600, (2400, 4800)),
        (("SCRATCH_2", "SSD", None), 100, (None, 1200)),
        (("PERSISTENT_1", "HDD", 12), 1800, (None, 6000)),
        (("PERSISTENT_1", "HDD", 40), 1800, (1800, 1800)),
        (("PERSISTENT_2", "SSD", 250), 0, (None, 1200)),
    ],
)
def test_valid_capacities_around_one(
    kind: tuple[str, str, int | None], gib: int, around: tuple[int | None, int]
) -> None:
    row = FSX.capacity(*kind)
    assert row is not None
    assert row.around(gib) == around
    assert row.takes(gib) == (around == (gib, gib))


@given(row=st.sampled_from(FSX.capacities), gib=st.integers(min_value=-10, max_value=500_000))
def test_what_is_around_a_capacity_is_valid_and_nothing_between_is(row: Capacity, gib: int) -> None:
    below, above = row.around(gib)
    assert row.takes(above)
    assert above >= max(gib, row.smallest)
    assert below is None or (row.takes(below) and below <= gib)
    assert row.takes(gib) == (below == gib == above)
    assert not any(row.takes(each) for each in range((below or 0) + 1, above, 100) if each not in (below, above))


def test_with_efa_each_step_is_one_server_of_4800_mbps() -> None:
    rows = [row for row in FSX.capacities if row.efa]
    assert sorted(tier for row in rows for tier in row.tiers) == [125, 250, 500, 1000]
    assert {FSX.throughput.mbps(row.step, tier) for row in rows for tier in row.tiers} == {4800.0}
    assert FSX.capacity("SCRATCH_2", "SSD", None, efa=True) is None


def test_iops_and_throughputs_that_can_be_asked_for() -> None:
    assert [each for each in (0, 1500, 3000, 6000, 9000, 12000, 18000, 192000, 204000) if FSX.metadata.takes(each)] == [
        1500,
        3000,
        6000,
        12000,
        192000,
    ]
    tiering = FSX.intelligent_tiering
    assert [each for each in (0, 1000, 2000, 3000, 4000, 2_004_000) if tiering.takes(each, efa=False)] == [
        1000,
        2000,
        4000,
    ]
    assert [each for each in (0, 1000, 2000, 3000, 4000, 2_004_000) if tiering.takes(each, efa=True)] == [4000]


def test_versions_that_are_taken_when_none_is_named() -> None:
    assert FSX.versions.default_for("SCRATCH_2", metadata=False) == "2.10"
    assert FSX.versions.default_for("PERSISTENT_2", metadata=False) == "2.12"
    assert FSX.versions.default_for("PERSISTENT_2", metadata=True) == "2.15"


def test_clients_over_efa() -> None:
    assert FSX.clients.interfaces("p5.48xlarge", 32) == 8
    assert FSX.clients.interfaces("p6-b300.48xlarge", 17) == 16
    assert FSX.clients.interfaces("p4d.24xlarge", 4) == 0
    assert FSX.clients.interfaces("trn2.48xlarge", 16) == 0
    assert FSX.clients.interfaces("g6e.48xlarge", 4) == 2
    assert FSX.clients.interfaces("g6.48xlarge", 1) == 1


def test_every_fact_has_a_source_with_an_address_and_every_kind_one_row() -> None:
    raw = FSX.model_dump()
    raw["network"]["sources"]["ports"] = "hearsay"
    with pytest.raises(ValidationError, match="sources without an address: hearsay"):
        FsxCatalogue.model_validate(raw)
    raw = FSX.model_dump()
    raw["capacities"][0]["sources"]["step"] = "hearsay"
    with pytest.raises(ValidationError, match="sources without an address: hearsay"):
        FsxCatalogue.model_validate(raw)
    raw = FSX.model_dump()
    raw["capacities"] = [*raw["capacities"], raw["capacities"][0]]
    with pytest.raises(ValidationError, match="two rows of capacities for"):
        FsxCatalogue.model_validate(raw)
    assert FSX.address(FSX.network, "ports").startswith("https://docs.aws.amazon.com/fsx/")
    assert not set(FSX.addresses) - {
        source
        for table in [*FSX.capacities, *(getattr(FSX, name) for name in FsxCatalogue.model_fields)]
        for source in getattr(table, "sources", {}).values()
    }, "an address that no fact names"
