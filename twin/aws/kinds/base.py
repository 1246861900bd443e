"""What every kind of resource of the simulated AWS has in common: how one is made, changed, read and taken away."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from twin.aws.facts import Account, account_in
from twin.aws.refusal import Refusal
from twin.aws.wire import UNKNOWN
from twin.world import World

Values = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Call:
    """One operation on one resource, in the region of the provider instance that asks."""

    world: World
    region: str
    kind: "Kind"
    inputs: Values
    old_inputs: Values = field(default_factory=dict)
    """What was asked for before: empty for a resource that is new."""
    id: str = ""
    """Of the resource that is changed; empty for one that is new."""

    @property
    def account(self) -> Account:
        """The account, with what was made in it."""
        return account_in(self.world.store)

    def find(self, token: str, id_: str) -> Values | None:
        """Outputs of another resource; None for one that does not exist."""
        return self.world.store.get(folder(token), id_)

    def all(self, token: str) -> dict[str, Values]:
        """Outputs of all resources of a kind, by id."""
        return self.world.store.list(folder(token))

    def refuse(self, code: str, message: str, operation: str = "") -> Refusal:
        """The API's error for this operation, or for another that is a part of it."""
        if self.id:
            what = f"{self.kind.doing.replace('creating', 'updating', 1)} ({self.id})"
            return Refusal(operation or self.kind.changing, code, message, what=what)
        name = self.inputs.get(self.kind.named) if self.kind.named else None
        what = f"{self.kind.doing} ({name})" if name else self.kind.doing
        return Refusal(operation or self.kind.operation, code, message, what=what)


def folder(token: str) -> str:
    """Of the store, for a kind's documents."""
    return token.replace("/", "-").replace(":", "-")


RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
Make = Callable[[Call, str], Values]
Rule = Callable[[Call], None]
"""Raises: Refusal."""
Check = Callable[[Values], Iterator[tuple[str, str]]]
"""Paths of inputs, and what is wrong with them as far as the provider sees by itself, before AWS is asked."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of resource that lives in the store and nowhere else."""

    token: str
    prefix: str
    """Of its ids; empty where the id is its name."""
    operation: str
    """The API call that makes it."""
    changed_by: str = ""
    """The API call that changes it, where that is not the first one with `Update` in it."""
    doing: str
    """How the provider begins its errors."""
    required: tuple[str, ...] = ()
    replaces: frozenset[str] = frozenset()
    """Inputs that cannot change in place."""
    named: str = ""
    """The input that holds its physical name, made up by the provider where the program gives none."""
    made_up: str = "{name}"
    """The form of a physical name that the provider makes up."""
    computed: tuple[str, ...] = ("arn",)
    """Outputs that AWS decides: unknown in a preview."""
    defaulted: tuple[str, ...] = ()
    """Inputs that AWS decides where the program gives none; what it decided stays when the program gives none later."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Inputs that the provider fills in: one that is absent is as good as one with this value."""
    checks: tuple[Check, ...] = ()
    make: Make = lambda _call, _id: {}
    """Outputs beside the inputs, the id and the tags."""
    rules: tuple[Rule, ...] = ()
    """What AWS refuses to make."""
    update_rules: tuple[Rule, ...] = ()
    """What AWS refuses to change."""
    holds: tuple[tuple[str, str], ...] = ()
    """Kinds and inputs by which others hold it: AWS does not delete it while they do."""
    held: tuple[str, str] = ("DependencyViolation", "resource {id} has a dependent object")
    """AWS's code and text for that."""
    gone: str = "InvalidParameterValue"
    """AWS's code for one that does not exist."""
    seconds: float = 5.0
    """How long AWS takes."""

    @property
    def changing(self) -> str:
        """The API call that changes it."""
        return self.changed_by or self.operation.replace("Create", "Update", 1)

    def id(self, inputs: Values) -> str:
        """A new id."""
        return f"{self.prefix}-0{secrets.token_hex(8)}" if self.prefix else str(inputs[self.named])

    def replaced(self, old: Values, new: Values, changed: list[str]) -> list[str]:
        """Those of the changed inputs that cannot change in place; values may be unknown."""
        del old, new
        return [name for name in changed if name in self.replaces]

    def named_inputs(self, inputs: Values, state: Values) -> Values:
        """Inputs with the physical name that a prefix gives: made once, as Terraform makes it, and kept."""
        prefix = inputs.get(f"{self.named}Prefix")
        if not prefix or inputs.get(self.named):
            return inputs
        made = f"{prefix}{datetime.now(UTC):%Y%m%d%H%M%S%f}{secrets.token_hex(3)}"
        return {**inputs, self.named: state.get(self.named) or made}

    def preview(self, inputs: Values) -> Values:
        """Outputs as far as they are known before."""
        name = {self.named: UNKNOWN} if self.named and inputs.get(f"{self.named}Prefix") else {}
        decided = dict.fromkeys((*self.computed, *self.defaulted), UNKNOWN)
        return {**decided, **name, **self.defaults, **inputs, "tagsAll": inputs.get("tags") or {}}

    def preview_change(self, inputs: Values, state: Values, changed: frozenset[str]) -> Values:
        """Outputs of an update as far as they are known before. `changed` are the inputs that differ."""
        del changed
        return {**state, **inputs, "tagsAll": inputs.get("tags") or {}}

    def asked(self, outputs: Values) -> Values:
        """What somebody asks for who wants what there is: the inputs of an import."""
        decided = {*self.computed, "id", "tagsAll"}
        return {name: value for name, value in outputs.items() if name not in decided and value not in ({}, [], "")}

    def not_found(self, call: Call, id_: str) -> Refusal:
        """The API's error for one that does not exist."""
        operation = "Describe" + self.operation.removeprefix("Create")
        return Refusal(operation, self.gone, f"The ID '{id_}' does not exist", what=f"reading {id_}")

    async def create(self, call: Call) -> tuple[str, Values]:
        """Make it. Raises: Refusal."""
        for rule in self.rules:
            rule(call)
        id_ = self.id(call.inputs)
        # Kept before the wait: another request that comes meanwhile is judged with this one there.
        outputs = self.keep(call, id_)
        await asyncio.sleep(call.world.scaled(self.seconds))
        return id_, outputs

    def keep(self, call: Call, id_: str) -> Values:
        """Put one into the store as it is made; its outputs."""
        made = self.make(call, id_)
        outputs = {**self.defaults, **call.inputs, **made, "id": id_, "tagsAll": call.inputs.get("tags") or {}}
        call.world.store.put(folder(self.token), id_, outputs)
        return outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place. Raises: Refusal."""
        for rule in self.update_rules:
            rule(call)
        outputs = {**self.defaults, **state, **call.inputs, "tagsAll": call.inputs.get("tags") or {}}
        call.world.store.put(folder(self.token), id_, outputs)
        return outputs

    async def read(self, call: Call, id_: str) -> Values | None:
        """Its outputs; None when it is gone."""
        return call.find(self.token, id_)

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away; what is gone already is no error. Raises: Refusal."""
        for token, field_name in self.holds:
            for outputs in call.all(token).values():
                # A group's rules about itself go with it.
                if id_ in flat(outputs.get(field_name)) and outputs.get("securityGroupId") != id_:
                    what = f"{self.doing.replace('creating', 'deleting', 1)} ({id_})"
                    operation = f"Delete{self.operation.removeprefix('Create')}"
                    code, text = self.held
                    raise Refusal(operation, code, text.format(id=id_), what=what)
        await asyncio.sleep(call.world.scaled(self.seconds / 2))
        call.world.store.delete(folder(self.token), id_)


def flat(value: Any) -> list[Any]:
    """Every value in a nested one."""
    if isinstance(value, Mapping):
        return [each for inner in value.values() for each in flat(inner)]
    return [each for inner in value for each in flat(inner)] if isinstance(value, list) else [value]


def arn(service: str, path: str, *, of_account: bool = True) -> Make:
    """Makes an ARN from a path in which {id}, {name} and IAM's {path} are filled in."""

    def make(call: Call, id_: str) -> Values:
        place = f"{call.account.id if of_account else ''}"
        region = "" if service == "iam" else call.region
        inputs = call.inputs
        name = inputs.get(call.kind.named) if call.kind.named else id_
        filled = path.format(id=id_, name=name, path=inputs.get("path") or "/")
        return {"arn": f"arn:aws:{service}:{region}:{place}:{filled}"}

    return make


def together(*makers: Make) -> Make:
    """What several makers make."""

    def make(call: Call, id_: str) -> Values:
        return {key: value for maker in makers for key, value in maker(call, id_).items()}

    return make


def exactly_one(*names: str) -> Check:
    """Terraform's `ExactlyOneOf`: one of these inputs has to be there, and no second one.

    https://developer.hashicorp.com/terraform/plugin/framework/migrating/attributes-blocks/validators-predefined
    """

    def check(inputs: Values) -> Iterator[tuple[str, str]]:
        there = [name for name in names if inputs.get(name) not in (None, "", [])]
        if len(there) != 1:
            found = f"{len(there)} attributes" if there else "No attribute"
            wanted = f"one (and only one) of [{','.join(names)}] is required"
            yield (there or names)[0], f"Invalid Attribute Combination: {found} specified when {wanted}"

    return check


def wanted(call: Call, token: str, id_: str, code: str, text: str) -> Values:
    """Outputs of a resource that another one names.

    Raises:
        Refusal: it does not exist; in `text`, {id} is filled in.
    """
    found = call.find(token, id_)
    if found is None:
        raise call.refuse(code, text.format(id=id_))
    return found
