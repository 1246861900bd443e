"""IAM: roles, policies, attachments, inline policies, instance profiles."""

import importlib.util
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twin.aws.kinds.base import Call, Kind, Values, arn, folder, together, wanted
from twin.aws.wire import UNKNOWN

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INLINE = "aws:iam/rolePolicy:RolePolicy"
PROFILE = "aws:iam/instanceProfile:InstanceProfile"


def role_of(call: Call, role_arn: str) -> Values | None:
    """The role that has an ARN; None where there is none."""
    return next((role for role in call.all(ROLE).values() if role.get("arn") == role_arn), None)


def trusts(role: Values, service: str, actions: frozenset[str]) -> bool:
    """Whether a role's trust policy lets a service do all of these."""
    document = role.get("assumeRolePolicy")
    document = json.loads(document) if isinstance(document, str) else document
    statements = (document or {}).get("Statement") or []
    allowed: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal") or {}
        if statement.get("Effect") == "Allow" and isinstance(principal, Mapping):
            services = principal.get("Service") or []
            if service in ([services] if isinstance(services, str) else services):
                done = statement.get("Action") or []
                allowed |= {done} if isinstance(done, str) else set(done)
    return actions <= allowed or bool(allowed & {"sts:*", "*"})


@cache
def _managed() -> frozenset[str]:
    """ARNs of AWS's managed policies: moto's copy of what AWS published, read without moto, which is slow to import."""
    spec = importlib.util.find_spec("moto")
    assert spec
    assert spec.submodule_search_locations
    text = (Path(spec.submodule_search_locations[0]) / "iam" / "aws_managed_policies.py").read_text("utf-8")
    policies = json.loads(text[text.index('"""') + 3 : text.rindex('"""')])
    return frozenset(f"arn:aws:iam::aws:policy{fields['Path']}{name}" for name, fields in policies.items())


def _role_name(call: Call) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html ."""
    name = call.inputs["name"]
    if not re.fullmatch(r"[\w+=,.@-]{1,64}", name):
        text = f"Value '{name}' at 'roleName' failed to satisfy constraint: length less than or equal to 64"
        raise call.refuse("ValidationError", text)
    if name in call.all(call.kind.token):
        raise call.refuse("EntityAlreadyExists", f"Role with name {name} already exists.")


def _role_exists(call: Call) -> None:
    """https://docs.aws.amazon.com/IAM/latest/APIReference/API_AttachRolePolicy.html ."""
    if role := call.inputs.get("role"):
        wanted(call, ROLE, role, "NoSuchEntity", "The role with name {id} cannot be found.")


def _policy_exists(call: Call) -> None:
    """https://docs.aws.amazon.com/IAM/latest/APIReference/API_AttachRolePolicy.html ."""
    policy = call.inputs["policyArn"]
    if policy not in _managed() and call.find(POLICY, policy) is None:
        raise call.refuse("NoSuchEntity", f"Policy {policy} does not exist or is not attachable.")


def _policy_is_whole(call: Call) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html ."""
    document = call.inputs["policy"]
    document = json.loads(document) if isinstance(document, str) else document
    statements = document.get("Statement")
    if not statements:
        raise call.refuse("MalformedPolicyDocument", "Syntax errors in policy.")
    for statement in statements if isinstance(statements, list) else [statements]:
        if statement.get("Effect") not in ("Allow", "Deny"):
            raise call.refuse("MalformedPolicyDocument", "Syntax errors in policy.")
        if "Principal" in statement:
            raise call.refuse("MalformedPolicyDocument", "Policy document should not specify a principal.")
        if not {"Action", "NotAction"} & set(statement):
            raise call.refuse("MalformedPolicyDocument", "Policy statement must contain actions.")
        if not {"Resource", "NotResource"} & set(statement):
            raise call.refuse("MalformedPolicyDocument", "Policy statement must contain resources.")


def _json(name: str) -> Any:
    """Terraform's check of a policy document."""

    def check(inputs: Values) -> Iterator[tuple[str, str]]:
        value = inputs.get(name)
        if not isinstance(value, str) or value in ("", UNKNOWN):
            return
        try:
            right = isinstance(json.loads(value), dict)
        except ValueError:
            right = False
        if not right:
            yield name, f'"{name}" contains an invalid JSON policy: not a JSON object'

    return check


def _policy_name(call: Call) -> None:
    name = call.inputs["name"]
    if any(policy["name"] == name for policy in call.all(POLICY).values()):
        text = f"A policy called {name} already exists. Duplicate names are not allowed."
        raise call.refuse("EntityAlreadyExists", text)


def _profile_name(call: Call) -> None:
    name = call.inputs["name"]
    if name in call.all(PROFILE):
        raise call.refuse("EntityAlreadyExists", f"Instance Profile {name} already exists.")


@dataclass(frozen=True, kw_only=True)
class RoleKind(Kind):
    """A role. Terraform takes it out of instance profiles first, and with `forceDetachPolicies` off its policies."""

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away. Raises: Refusal."""
        role = call.find(ROLE, id_) or {}
        for token in (ATTACHMENT, INLINE) if role.get("forceDetachPolicies") else ():
            for other, outputs in call.all(token).items():
                if outputs["role"] == id_:
                    call.world.store.delete(folder(token), other)
        for name, profile in call.all(PROFILE).items():
            if profile.get("role") == id_:
                call.world.store.put(folder(PROFILE), name, {**profile, "role": ""})
        await Kind.delete(self, call, id_)


@dataclass(frozen=True, kw_only=True)
class PolicyKind(Kind):
    """A policy of the account: its id is its ARN."""

    async def create(self, call: Call) -> tuple[str, Values]:
        """Make it. Raises: Refusal."""
        for rule in self.rules:
            rule(call)
        id_ = arn("iam", "policy{path}{name}")(call, "")["arn"]
        made = {
            "arn": id_,
            "attachmentCount": 0,
            "id": id_,
            "path": call.inputs.get("path") or "/",
            "policyId": f"ANPA{secrets.token_hex(8).upper()}",
            "tagsAll": call.inputs.get("tags") or {},
        }
        outputs = {**call.inputs, **made}
        call.world.store.put(folder(self.token), id_, outputs)
        return id_, outputs


@dataclass(frozen=True, kw_only=True)
class InlineKind(Kind):
    """A policy inside of a role: `role:name`."""

    def id(self, inputs: Values) -> str:
        """Its id."""
        return f"{inputs['role']}:{inputs['name']}"


def kinds() -> tuple[Kind, ...]:
    """All kinds of IAM."""
    created = "2026-01-05T09:00:00Z"
    return (
        RoleKind(
            token=ROLE,
            prefix="",
            operation="CreateRole",
            gone="NoSuchEntity",
            doing="creating IAM Role",
            required=("assumeRolePolicy",),
            replaces=frozenset({"name", "namePrefix", "path"}),
            named="name",
            checks=(_json("assumeRolePolicy"),),
            rules=(_role_name,),
            make=together(
                arn("iam", "role{path}{name}"),
                lambda _c, _id: {"uniqueId": f"AROA{secrets.token_hex(8).upper()}", "createDate": created},
            ),
            computed=("arn", "uniqueId", "createDate"),
            holds=((ATTACHMENT, "role"), (INLINE, "role")),
            held=("DeleteConflict", "Cannot delete entity, must detach all policies first."),
        ),
        PolicyKind(
            token=POLICY,
            prefix="",
            operation="CreatePolicy",
            changed_by="CreatePolicyVersion",
            gone="NoSuchEntity",
            doing="creating IAM Policy",
            required=("policy",),
            replaces=frozenset({"name", "namePrefix", "path", "description"}),
            named="name",
            checks=(_json("policy"),),
            rules=(_policy_name, _policy_is_whole),
            update_rules=(_policy_is_whole,),
            computed=("arn", "attachmentCount", "policyId"),
            holds=((ATTACHMENT, "policyArn"),),
            held=("DeleteConflict", "Cannot delete a policy attached to entities."),
        ),
        Kind(
            token=ATTACHMENT,
            prefix="attachment",
            operation="AttachRolePolicy",
            gone="NoSuchEntity",
            doing="attaching IAM Policy to IAM Role",
            required=("role", "policyArn"),
            replaces=frozenset({"role", "policyArn"}),
            rules=(_role_exists, _policy_exists),
            computed=(),
            seconds=1.0,
        ),
        InlineKind(
            token=INLINE,
            prefix="",
            operation="PutRolePolicy",
            gone="NoSuchEntity",
            doing="creating IAM Role Policy",
            required=("role", "policy"),
            replaces=frozenset({"role", "name", "namePrefix"}),
            named="name",
            checks=(_json("policy"),),
            rules=(_role_exists, _policy_is_whole),
            update_rules=(_policy_is_whole,),
            computed=(),
            seconds=1.0,
        ),
        Kind(
            token=PROFILE,
            prefix="",
            operation="CreateInstanceProfile",
            changed_by="AddRoleToInstanceProfile",
            gone="NoSuchEntity",
            doing="creating IAM Instance Profile",
            replaces=frozenset({"name", "namePrefix", "path"}),
            named="name",
            rules=(_profile_name, _role_exists),
            update_rules=(_role_exists,),
            make=together(
                arn("iam", "instance-profile{path}{name}"),
                lambda _c, _id: {"uniqueId": f"AIPA{secrets.token_hex(8).upper()}", "createDate": created},
            ),
            computed=("arn", "uniqueId", "createDate"),
            seconds=1.0,
        ),
    )
