"""What nccl-tests prints: the table, and the JSON of `-J`.

https://github.com/NVIDIA/nccl-tests/blob/master/src/util.cu; what bus bandwidth is:
https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

import re
from dataclasses import dataclass

from plumbline.probe.documents import items, number, place, read_json
from plumbline.probe.lines import Fact, Line, lines

_LAUNCHER = r"(?:\[[0-9]+,[0-9]+\]<\w+>: ?|[0-9]+: ?)?"
"""mpirun's and srun's mark of who printed it."""
_SPEED = r"([0-9]+(?:\.[0-9]+)?|N/A)"
_WRONG = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?|N/A)"
_ROW = re.compile(
    rf"{_LAUNCHER}\s*([0-9]{{1,18}})\s+([0-9]{{1,18}})\s+(\w+)\s+(\w+)\s+(-?[0-9]{{1,9}})"
    rf"\s+{_SPEED}\s+{_SPEED}\s+{_SPEED}\s+{_WRONG}\s+{_SPEED}\s+{_SPEED}\s+{_SPEED}\s+{_WRONG}\s*"
)
_COLLECTIVE = re.compile(rf"{_LAUNCHER}# Collective test starting: (\w+?)(?:_perf)?\s*")
_BOUNDS = re.compile(rf"{_LAUNCHER}# Out of bounds values : ([0-9]{{1,18}}) (OK|FAILED)\s*")


@dataclass(frozen=True, kw_only=True)
class Speed:
    """One message size."""

    line: Line
    size: int
    """Bytes."""
    out_of_place: float | None
    """Bus bandwidth in GB/s (10^9 bytes); None where it was not measured."""
    in_place: float | None
    wrong: int | None
    """Elements whose value is wrong, of both; None where nobody checked."""

    @property
    def bus(self) -> float | None:
        """The lower of the two bus bandwidths."""
        return min((each for each in (self.out_of_place, self.in_place) if each is not None), default=None)


@dataclass(frozen=True, kw_only=True)
class NcclTests:
    """What one run measured."""

    collective: Fact[str] | None
    """Such as `all_reduce`; None where the version does not say."""
    speeds: tuple[Speed, ...]
    out_of_bounds: Fact[int] | None
    """Wrong values that the run counted as a whole."""


def parse_nccl_tests(text: str) -> NcclTests:
    """The speeds of a run, from its table or its JSON."""
    return _from_json(text) if text.lstrip()[:1] == "{" else _from_table(text)


def _from_table(text: str) -> NcclTests:
    found = lines(text)
    rows = [(m, line) for line in found if line.whole and (m := _ROW.fullmatch(line.text))]
    bounds = [Fact(int(m[1]), line) for line in found if line.whole and (m := _BOUNDS.fullmatch(line.text))]
    return NcclTests(
        collective=next(
            (Fact(m[1], line) for line in found if line.whole and (m := _COLLECTIVE.fullmatch(line.text))), None
        ),
        speeds=tuple(
            Speed(
                line=line,
                size=int(m[1]),
                out_of_place=_float(m[8]),
                in_place=_float(m[12]),
                wrong=_wrong(_float(m[9]), _float(m[13])),
            )
            for m, line in rows
        ),
        out_of_bounds=bounds[-1] if bounds else None,
    )


def _from_json(text: str) -> NcclTests:
    document = read_json(text)
    speeds: list[Speed] = []
    for index, row in items(document, "results"):
        size = number(row, "size")
        if size is None or size.value != int(size.value):
            continue
        out, inside = (number(row, where, "bus_bw") for where in ("out_of_place", "in_place"))
        wrong = [number(row, where, "nwrong") for where in ("out_of_place", "in_place")]
        speeds.append(
            Speed(
                line=Line(0, place("results", index)),
                size=int(size.value),
                out_of_place=out.value if out else None,
                in_place=inside.value if inside else None,
                wrong=_wrong(*(each.value if each else None for each in wrong)),
            )
        )
    return NcclTests(collective=None, speeds=tuple(speeds), out_of_bounds=None)


def _float(text: str) -> float | None:
    return None if text == "N/A" else float(text)


def _wrong(*counts: float | None) -> int | None:
    known = [each for each in counts if each is not None]
    # One that was checked and is wrong counts, whatever the other was.
    return int(min(sum(known), 2**62)) if known else None
