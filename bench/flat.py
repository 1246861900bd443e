"""From a stack's state, a flat program: the same resources by plain SDK classes, with their inputs written out."""

import json
import keyword
import pprint
import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_HEAD = '''"""Written by bench/flat.py: what the stack holds, without components and without planning."""

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
'''


def program(resources: Sequence[Json]) -> str:
    """The program's text.

    Args:
        resources: of an exported state, in its order: what depends comes after what it depends on.
    """
    names: dict[str, str] = {}
    lines = [_HEAD]
    for index, each in enumerate(resources):
        if not each.get("custom") or each["type"] == "pulumi:pulumi:Stack":
            continue
        names[each["urn"]] = f"r{index}"
        lines.append(_resource(f"r{index}", each, names))
    return "\n".join(lines) + "\n"


def _resource(variable: str, each: Json, names: Mapping[str, str]) -> str:
    name = each["urn"].split("::")[-1]
    options = []
    after = sorted({names[urn] for urn in each.get("dependencies") or () if urn in names})
    if after:
        options.append(f"depends_on=[{', '.join(after)}]")
    provider = "::".join((each.get("provider") or "").split("::")[:-1])
    if provider in names:
        options.append(f"provider={names[provider]}")
    opts = f"pulumi.ResourceOptions({', '.join(options)})"
    inputs = {key: value for key, value in (each.get("inputs") or {}).items() if not key.startswith("__")}
    kind = each["type"]
    if kind.startswith("plumbline:") or kind == "pulumi:providers:plumbline":
        return _raw(variable, kind, name, inputs, opts)
    arguments = "".join(
        f", {_argument(kind, key)}={_literal(value)}" for key, value in inputs.items() if key != "version"
    )
    if kind == "pulumi:providers:kubernetes":
        arguments = f", kubeconfig={_literal(inputs['kubeconfig'])}, enable_server_side_apply=True"
    if kind == "pulumi:providers:aws":
        arguments = f", region={_literal(inputs['region'])}"
    if "version" in inputs and kind.startswith("aws:eks"):
        arguments += f", version={_literal(inputs['version'])}"
    return f"{variable} = {_class(kind)}({name!r}{arguments}, opts={opts})"


def _raw(variable: str, kind: str, name: str, inputs: Json, opts: str) -> str:
    """A resource of a provider that has no SDK but ours."""
    if kind.startswith("pulumi:providers:"):
        return f'{variable} = pulumi.ProviderResource("plumbline", {name!r}, {{}}, {opts})'
    written = ", ".join(f"{key!r}: {_literal(value)}" for key, value in inputs.items())
    return f"{variable} = pulumi.CustomResource({kind!r}, {name!r}, {{{written}}}, {opts})"


def _class(kind: str) -> str:
    """`aws:ec2/vpc:Vpc` is `aws.ec2.Vpc`."""
    package, module, name = kind.split(":")
    if package == "pulumi":
        return {"aws": "aws.Provider", "kubernetes": "k8s.Provider"}[name]
    if package == "kubernetes":
        return f"k8s.{module.removesuffix('.k8s.io').replace('/', '.').replace('.k8s.io', '')}.{name}".replace(
            "rbac.authorization", "rbac"
        )
    return f"aws.{module.split('/')[0]}.{name}"


def _argument(kind: str, name: str) -> str:
    """Arguments of the Python SDKs are in snake case."""
    if kind.startswith("kubernetes:") and name == "apiVersion":
        return "api_version"
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def _literal(value: Any) -> str:
    """As Python writes it; a secret, which a state holds as JSON text, is revealed and made secret again."""
    if isinstance(value, Mapping) and "plaintext" in value:
        return f"pulumi.Output.secret({_literal(json.loads(value['plaintext']))})"
    return pprint.pformat(value, compact=True, width=1_000_000)
