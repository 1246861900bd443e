"""One rehearsal for each module of life-cycle tests."""

from collections.abc import Iterator

import pytest

from tests.rehearsals import Rehearsal, rehearsal


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with rehearsal(tmp_path_factory.mktemp("rehearsal")) as running:
        running.new_stack()
        yield running
