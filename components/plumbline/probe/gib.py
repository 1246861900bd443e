"""What Google's gIB plugin says by NCCL's logger.

https://docs.cloud.google.com/ai-hypercomputer/docs/nccl/overview; its lines are known from public logs only:
https://github.com/NVIDIA-NeMo/Automodel/issues/3843, https://github.com/AI-Hypercomputer/gpu-recipes/issues/5.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.probe.lines import Fact
from plumbline.probe.nccl import Said, texts

_VERSION = re.compile(r"NET/gIB : Initializing gIB v?([0-9][0-9A-Za-z.+-]*)")
_NONE = re.compile(r"NET/gIB : No device found\.?")


@dataclass(frozen=True, kw_only=True)
class GibPlugin:
    """What gIB said in one process."""

    version: Fact[str] | None
    no_device: Fact[str] | None
    """The line that says that it found none."""


def parse_gib(said: Iterable[Said]) -> GibPlugin:
    """The plugin's facts among the lines of one process."""
    every = list(said)
    return GibPlugin(
        version=next((Fact(m.value[1], m.line) for m in texts(every, _VERSION)), None),
        no_device=next((Fact(m.value[0], m.line) for m in texts(every, _NONE)), None),
    )
