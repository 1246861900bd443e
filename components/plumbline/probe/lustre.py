"""What a failed mount of Lustre says, and what follows from it."""

import re
from dataclasses import dataclass

from plumbline.gate.verdict import Certainty, Diagnosis
from plumbline.probe.lines import lines


@dataclass(frozen=True, kw_only=True)
class MountSign:
    """A text that `mount.lustre` or a CSI driver writes, and what follows from it."""

    pattern: re.Pattern[str]
    cause: str
    fix: str
    certainty: Certainty
    source: str


MOUNT_SIGNS: tuple[MountSign, ...] = (
    MountSign(
        pattern=re.compile(r"Is the MGS running\?", re.IGNORECASE),
        cause="the Lustre server does not answer: the network or port between the nodes and the file system is closed, "
        "or differs on the two sides",
        fix="compare the network, the security group or firewall, and the LNet port of the file system with those of "
        "the nodes: AWS has 988 and 1018-1023 open both ways; on Google Cloud both sides have to use 988, or both 6988",
        certainty=Certainty.LIKELY,
        source="https://github.com/GoogleCloudPlatform/lustre-csi-driver/issues/104",
    ),
    MountSign(
        pattern=re.compile(r"mount\.lustre: .*No such device|Are the lustre modules loaded\?", re.IGNORECASE),
        cause="the node has no Lustre client: its kernel module is not loaded",
        fix="use an AMI or image with the Lustre client for its kernel",
        certainty=Certainty.CERTAIN,
        source="https://doc.lustre.org/lustre_manual.xhtml",
    ),
    MountSign(
        pattern=re.compile(r"mount\.lustre: mount .*failed: Invalid argument", re.IGNORECASE),
        cause="the Lustre client refuses the mount: the file system's name or an option is wrong, or the client is "
        "older than the server",
        fix="compare the mount name and the client's version with those of the file system",
        certainty=Certainty.LIKELY,
        source="https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/359",
    ),
)


def mount_failure(text: str, node: str = "") -> Diagnosis | None:
    """Why a mount failed, from its event or its output; None where the text says nothing known."""
    said = lines(text)
    for sign in MOUNT_SIGNS:
        if at := next((line for line in said if sign.pattern.search(line.text)), None):
            errors = [line for line in said if line is not at and "mount.lustre" in line.text and "failed" in line.text]
            return Diagnosis(
                cause=sign.cause,
                certainty=sign.certainty,
                evidence=tuple(line.text.strip() for line in (*errors[:1], at)),
                fix=sign.fix,
                nodes=(node,) if node else (),
            )
    return None
