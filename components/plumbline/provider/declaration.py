"""`plumbline:index:Declaration`: tells the provider which generation each pool is declared to have.

Its check is the sign that a program ran, which a plain `pulumi destroy` does not; it depends on nothing, so it is heard
before anything can fail.
"""

from collections.abc import Callable, Mapping

from plumbline.provider.resource import Outcome, Values, changed_inputs
from plumbline.provider.session import Session


class Declaration:
    """The declaration as a resource. Nothing is created for it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(self, inputs: Values) -> dict[str, str]:
        """Generations by pool."""
        generations = inputs.get("generations")
        if not isinstance(generations, Mapping) or not all(isinstance(each, str) for each in generations.values()):
            return {"generations": "a mapping from pools to generations is needed"}
        self._session.declare(dict(generations))
        return {}

    def changes(self, inputs: Values, old_inputs: Values, state: Values) -> dict[str, str]:
        """Other generations."""
        return changed_inputs(inputs, old_inputs)

    def preview(self, inputs: Values) -> Values:
        """Its inputs are all there is."""
        return inputs

    async def create(self, inputs: Values, say: Callable[[str], None]) -> Outcome:
        """Record it."""
        return Outcome(id=str(inputs["site"]), properties=inputs, inputs=inputs)

    async def update(self, id_: str, inputs: Values, state: Values, say: Callable[[str], None]) -> Outcome:
        """Record it anew."""
        return Outcome(id=id_, properties=inputs, inputs=inputs)

    async def read(self, id_: str, inputs: Values, state: Values) -> Outcome:
        """It exists nowhere but in the state."""
        return Outcome(id=id_, properties=state, inputs=inputs)

    async def delete(self, id_: str, state: Values, say: Callable[[str], None]) -> None:
        """Nothing was created."""
