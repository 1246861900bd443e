"""What fio measured, from `--output-format=json`.

https://fio.readthedocs.io/en/latest/fio_doc.html#json-output
"""

from dataclasses import dataclass

from plumbline.probe.documents import items, number, place, read_json
from plumbline.probe.lines import Line


@dataclass(frozen=True, kw_only=True)
class Job:
    """One direction of one job."""

    line: Line
    name: str
    operation: str
    """`write` or `read`."""
    speed: float
    """Bytes per second."""
    moved: float
    """Bytes."""
    error: int
    """The job's first error; 0 where there was none."""


def parse_fio(text: str) -> tuple[Job, ...]:
    """The jobs that moved something; nothing where the text is cut or is no output of fio."""
    # With warnings fio prints lines before the document.
    document = read_json(text[max(text.find("{"), 0) :])
    found: list[Job] = []
    for index, job in items(document, "jobs"):
        name, error = job.get("jobname"), number(job, "error")
        for operation in ("write", "read"):
            speed, moved = number(job, operation, "bw_bytes"), number(job, operation, "io_bytes")
            if isinstance(name, str) and error and speed and moved and moved.value > 0:
                found.append(
                    Job(
                        line=Line(0, place("jobs", index, operation)),
                        name=name,
                        operation=operation,
                        speed=speed.value,
                        moved=moved.value,
                        error=int(error.value),
                    )
                )
    return tuple(found)
