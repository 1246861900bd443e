"""What a review answers with."""

from dataclasses import dataclass
from typing import Literal

from plumbline.site.problems import Problem, spelled


@dataclass(frozen=True, kw_only=True)
class Finding(Problem):
    """A problem of one resource's inputs: which rule found it, in which resource, and the fact it rests on."""

    rule: str
    """The rule's name, in kebab case: what a waiver names."""
    source: str
    """Address of the fact."""
    resource: str = ""
    """Type token and name of the resource, or its URN; empty where there is none."""

    @property
    def where(self) -> str:
        """The property: `networkInterfaces[3].networkCardIndex`."""
        return spelled(self.path).removeprefix(".")

    @property
    def level(self) -> Literal["error", "warning"]:
        """A warning rests on a fact that no primary source confirms."""
        return "warning" if self.warns else "error"

    def __str__(self) -> str:
        head = f"{self.resource}: {self.where}" if self.resource else self.where
        return (
            f"{head} ({self.rule})\n    found:  {self.found}\n    needed: {self.needed}\n"
            f"    next:   {self.next}\n    source: {self.source}"
        )


def finding(problem: Problem, *, rule: str, source: str, resource: str = "", confirmed: bool = True) -> Finding:
    """A problem as a rule's finding."""
    return Finding(
        path=problem.path,
        found=problem.found,
        needed=problem.needed,
        next=problem.next,
        warns=problem.warns or not confirmed,
        rule=rule,
        source=source,
        resource=resource,
    )
