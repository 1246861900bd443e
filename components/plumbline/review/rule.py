"""What a rule is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from plumbline.review.finding import Finding, finding
from plumbline.review.graph import Graph, Resource
from plumbline.site.problems import Problem

Judge = Callable[[Resource, Graph], Iterator[Problem]]
"""From a resource and the graph it is in to what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that has to hold for resources of some types."""

    id: str
    """In kebab case."""
    types: tuple[str, ...]
    """Type tokens; one that ends with `*` stands for all that begin like it."""
    judge: Judge
    source: str
    """Address of the fact that it rests on."""
    relates: bool = False
    """Whether it looks at other resources, so that it can be asked only when all of them are known."""
    confirmed: bool = True
    """False where no primary source confirms the fact: it warns then."""

    def concerns(self, type_: str) -> bool:
        """Whether it is about resources of this type."""
        return any(type_ == each or (each[-1] == "*" and type_.startswith(each[:-1])) for each in self.types)

    def findings(self, resource: Resource, graph: Graph) -> list[Finding]:
        """All that it finds."""
        return [self.finding(problem, resource.label) for problem in self.judge(resource, graph)]

    def finding(self, problem: Problem, resource: str = "") -> Finding:
        """A problem as this rule's finding."""
        return finding(problem, rule=self.id, source=self.source, resource=resource, confirmed=self.confirmed)
