"""EKS: clusters, who may use them, add-ons, and the roles of pods."""

import base64
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import yaml

from twin.aws.kinds.base import Call, Kind, Values, folder, wanted
from twin.aws.kinds.ec2 import SUBNET, group_exists
from twin.aws.kinds.iam import role_of, trusts
from twin.aws.refusal import Refusal
from twin.aws.wire import UNKNOWN, known

CLUSTER, NODE_GROUP = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
ACCESS_ENTRY = "aws:eks/accessEntry:AccessEntry"
ACCESS_POLICY = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
ADDON = "aws:eks/addon:Addon"
POD_IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"

EKS_VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34")
"""https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html"""
NODES_BEHIND = 3
"""Minor versions that nodes may be older than the control plane: https://kubernetes.io/releases/version-skew-policy/"""


CNI = "aws-node"
"""The DaemonSet of the VPC CNI, which EKS puts into every cluster.

https://docs.aws.amazon.com/eks/latest/userguide/managing-vpc-cni.html
"""
_OWN_CNI = "v1.20.1-eksbuild.3"
"""The version that a new cluster has before anybody asks for another."""


def cni_image(version: str) -> str:
    """Of a version of the add-on."""
    return f"602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:{version}"


_ENDPOINT = {"endpointPrivateAccess": False, "endpointPublicAccess": True}
"""What EKS takes where a program says nothing."""


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _minor(version: str) -> int:
    return int(version.split(".")[1])


# --- clusters -------------------------------------------------------------------------------------------------------


def _cluster_is_new(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html ."""
    if call.inputs["name"] in call.all(call.kind.token):
        raise call.refuse("ResourceInUseException", f"Cluster already exists with name: {call.inputs['name']}")
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", call.inputs["name"]):
        raise call.refuse("InvalidParameterException", "The name parameter contains invalid characters")
    version = call.inputs.get("version")
    if version and version not in EKS_VERSIONS:
        raise call.refuse("InvalidParameterException", f"unsupported Kubernetes version {version}")


def _cluster_network(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html , cluster-endpoint.html ."""
    config, zones, networks = call.inputs["vpcConfig"], set(), set()
    for id_ in config["subnetIds"]:
        subnet = wanted(call, SUBNET, id_, "InvalidParameterException", "The subnet ID '{id}' does not exist")
        zones.add(subnet["availabilityZone"])
        networks.add(subnet["vpcId"])
    if len(zones) < 2:
        text = "Subnets specified must be in at least two different AZs"
        raise call.refuse("InvalidParameterException", text)
    if len(networks) > 1:
        raise call.refuse("InvalidParameterException", "Subnets specified must belong to the same VPC")
    for group in config.get("securityGroupIds") or ():
        if not group_exists(call, group):
            raise call.refuse("InvalidParameterException", f"The security group ID '{group}' does not exist")
    if config.get("endpointPublicAccess") is False and not config.get("endpointPrivateAccess"):
        raise call.refuse("InvalidParameterException", "Private and public endpoint access cannot be false")


def _cluster_version(call: Call) -> None:
    """One minor version up at a time, never down, and not away from nodes that are too old for it.

    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html . The words for nodes are those that people
    quoted for Kubernetes before 1.28, when nodes could be less far behind.
    """
    cluster = call.find(CLUSTER, call.id) or {}
    old, new = cluster["version"], call.inputs.get("version") or cluster["version"]
    if new == old:
        return
    if new not in EKS_VERSIONS or _minor(new) != _minor(old) + 1:
        text = f"Unsupported Kubernetes minor version update from {old} to {new}"
        raise call.refuse("InvalidParameterException", text, "UpdateClusterVersion")
    groups = [group for group in call.all(NODE_GROUP).values() if group["clusterName"] == call.id]
    late = sorted(g["nodeGroupName"] for g in groups if _minor(new) - _minor(g["version"]) > NODES_BEHIND)
    if late:
        text = f"Nodegroups [{', '.join(late)}] must be updated to match cluster version {old} before updating cluster "
        raise call.refuse("InvalidRequestException", f"{text}version", "UpdateClusterVersion")


def authentication(cluster: Values) -> str:
    """Where a cluster looks up who may use it. EKS's default is the ConfigMap."""
    return str((cluster.get("accessConfig") or {}).get("authenticationMode") or "CONFIG_MAP")


_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def _cluster_access(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html : there is no way back."""
    old, new = authentication(call.find(CLUSTER, call.id) or {}), authentication(call.inputs)
    if call.inputs.get("accessConfig") and _MODES.index(new) < _MODES.index(old):
        text = f"Unsupported authentication mode update from {old} to {new}"
        raise call.refuse("InvalidParameterException", text, "UpdateClusterConfig")


def _cluster_ranges(inputs: Values) -> Iterator[tuple[str, str]]:
    config = inputs.get("vpcConfig")
    for index, value in enumerate((config.get("publicAccessCidrs") if isinstance(config, Mapping) else None) or ()):
        try:
            right = value == UNKNOWN or bool(ip_network(value))
        except ValueError:
            right = False
        if not right:
            place = f"vpcConfig.publicAccessCidrs[{index}]"
            yield place, f'"{value}" is not a valid CIDR block'


@dataclass(frozen=True, kw_only=True)
class ClusterKind(Kind):
    """An EKS cluster: a real control plane."""

    def replaced(self, old: Values, new: Values, changed: list[str]) -> list[str]:
        """What forces another cluster: some parts of some inputs.

        `ForceNew` of Terraform's `aws_eks_cluster`, and its `CustomizeDiff`: an encryption is not taken back.
        """
        found = Kind.replaced(self, old, new, changed)

        def differs(name: str, part: str) -> bool:
            before, after = old.get(name) or {}, new.get(name) or {}
            if not isinstance(before, Mapping) or not isinstance(after, Mapping):
                return False
            return before.get(part) != after.get(part)

        if differs("accessConfig", "bootstrapClusterCreatorAdminPermissions"):
            found.append("accessConfig")
        # Where the program gives none, what EKS decided stays.
        if new.get("kubernetesNetworkConfig") and any(
            differs("kubernetesNetworkConfig", part) for part in ("ipFamily", "serviceIpv4Cidr")
        ):
            found.append("kubernetesNetworkConfig")
        if old.get("encryptionConfig") and not new.get("encryptionConfig"):
            found.append("encryptionConfig")
        return found

    def preview(self, inputs: Values) -> Values:
        """Outputs as far as they are known before. A cluster's vpcConfig gets its security group from AWS."""
        outputs = Kind.preview(self, inputs)
        config = inputs.get("vpcConfig")
        decided = {"clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}
        outputs["vpcConfig"] = {**config, **decided} if isinstance(config, Mapping) and known(config) else UNKNOWN
        return outputs

    def preview_change(self, inputs: Values, state: Values, changed: frozenset[str]) -> Values:
        """Outputs of an update as far as they are known before; a version brings a platform version of its own."""
        outputs = Kind.preview_change(self, inputs, state, changed)
        if isinstance(inputs.get("vpcConfig"), Mapping):
            outputs["vpcConfig"] = {**(state.get("vpcConfig") or {}), **inputs["vpcConfig"]}
        if "version" in changed:
            outputs["platformVersion"] = UNKNOWN
        return outputs

    def asked(self, outputs: Values) -> Values:
        """The inputs of an import: without what AWS decides inside of vpcConfig."""
        inputs = Kind.asked(self, outputs)
        decided = ("clusterSecurityGroupId", "vpcId")
        inputs["vpcConfig"] = {k: v for k, v in outputs["vpcConfig"].items() if k not in decided}
        return inputs

    def not_found(self, call: Call, id_: str) -> Refusal:
        """The API's error for one that does not exist."""
        text = f"No cluster found for name: {id_}."
        return Refusal("DescribeCluster", "ResourceNotFoundException", text, what=f"reading EKS Cluster ({id_})")

    async def create(self, call: Call) -> tuple[str, Values]:
        """Start it."""
        for rule in self.rules:
            rule(call)
        name = call.inputs["name"]
        version = call.inputs.get("version") or EKS_VERSIONS[-1]
        access = await call.world.create_cluster(name, version)
        first = call.find(SUBNET, call.inputs["vpcConfig"]["subnetIds"][0])
        assert first
        config = {
            **_ENDPOINT,
            "publicAccessCidrs": ["0.0.0.0/0"],
            **call.inputs["vpcConfig"],
            "clusterSecurityGroupId": f"sg-0{secrets.token_hex(8)}",
            "vpcId": first["vpcId"],
        }
        issuer = f"https://oidc.eks.{call.region}.amazonaws.com/id/{secrets.token_hex(16).upper()}"
        outputs = {
            **self.defaults,
            "accessConfig": {"authenticationMode": authentication(call.inputs)},
            "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"},
            "upgradePolicy": {"supportType": "EXTENDED"},
            **call.inputs,
            "id": name,
            "arn": f"arn:aws:eks:{call.region}:{call.account.id}:cluster/{name}",
            "createdAt": _now(),
            "endpoint": access.endpoint,
            "certificateAuthority": {"data": base64.b64encode(access.certificate_authority_pem.encode()).decode()},
            "identities": [{"oidcs": [{"issuer": issuer}]}],
            "vpcConfig": config,
            "status": "ACTIVE",
            "platformVersion": "eks.9",
            "version": version,
            "tagsAll": call.inputs.get("tags") or {},
        }
        await call.world.install(name, CNI, cni_image(_OWN_CNI))
        call.world.store.put(folder(self.token), name, outputs)
        return name, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place; what AWS decided in vpcConfig stays. Raises: Refusal."""
        for rule in self.update_rules:
            rule(call)
        decided = ("publicAccessCidrs", "clusterSecurityGroupId", "vpcId")
        kept = {name: value for name, value in state["vpcConfig"].items() if name in decided}
        config = {**_ENDPOINT, **kept, **call.inputs["vpcConfig"]}
        outputs = {
            **self.defaults,
            **state,
            **call.inputs,
            "vpcConfig": config,
            "tagsAll": call.inputs.get("tags") or {},
        }
        call.world.store.put(folder(self.token), id_, outputs)
        return outputs

    async def delete(self, call: Call, id_: str) -> None:
        """End it, and what it has. Raises: Refusal.

        That a protected cluster is not deleted is documented
        (https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html); in which words is not.
        """
        what = f"deleting EKS Cluster ({id_})"
        if (call.find(CLUSTER, id_) or {}).get("deletionProtection"):
            text = f"Cluster {id_} cannot be deleted because deletion protection is enabled"
            raise Refusal("DeleteCluster", "InvalidRequestException", text, what=what)
        if any(group["clusterName"] == id_ for group in call.all(NODE_GROUP).values()):
            raise Refusal("DeleteCluster", "ResourceInUseException", "Cluster has nodegroups attached", what=what)
        await call.world.delete_cluster(id_)
        call.world.store.delete(folder(self.token), id_)
        for token in (ACCESS_POLICY, ACCESS_ENTRY, POD_IDENTITY, ADDON):
            for other, outputs in call.all(token).items():
                if outputs["clusterName"] == id_:
                    call.world.store.delete(folder(token), other)


# --- what a cluster has ---------------------------------------------------------------------------------------------


def _cluster_of(call: Call) -> Values:
    text = "No cluster found for name: {id}."
    return wanted(call, CLUSTER, call.inputs["clusterName"], "ResourceNotFoundException", text)


@dataclass(frozen=True, kw_only=True)
class OfClusterKind(Kind):
    """What EKS keeps for a cluster by names: `cluster:name`, and for an association `cluster#principal#policy`."""

    def id(self, inputs: Values) -> str:
        """Its id."""
        if "policyArn" in inputs:
            return "#".join(str(inputs[name]) for name in ("clusterName", "principalArn", "policyArn"))
        return ":".join(str(inputs[name]) for name in self.required)


def _arn_of(call: Call, noun: str, name: str) -> str:
    path = f"{call.inputs['clusterName']}/{name}/{secrets.token_hex(8)}"
    return f"arn:aws:eks:{call.region}:{call.account.id}:{noun}/{path}"


# --- access ---------------------------------------------------------------------------------------------------------

_NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX")


def _access_by_api(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html ."""
    if authentication(_cluster_of(call)) == "CONFIG_MAP":
        text = (
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
            "operation."
        )
        raise call.refuse("InvalidRequestException", text)


def _entry_is_new(call: Call) -> None:
    if call.find(ACCESS_ENTRY, call.kind.id(call.inputs)):
        text = "The specified access entry resource is already in use on this cluster."
        raise call.refuse("ResourceInUseException", text)


def _entry_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html ."""
    inputs = call.inputs
    principal = inputs["principalArn"]
    ours = re.fullmatch(r"arn:aws:iam::(\d{12}):(role|user)/\S+", principal)
    if not ours or (ours.groups() == (call.account.id, "role") and role_of(call, principal) is None):
        text = "The specified principalArn is invalid: invalid principal."
        raise call.refuse("InvalidParameterException", text)
    for group in inputs.get("kubernetesGroups") or ():
        if str(group).startswith("system:"):
            text = f"The kubernetes group name {group} is invalid, it cannot start with system:"
            raise call.refuse("InvalidParameterException", text)
    kind = inputs.get("type") or "STANDARD"
    if kind in _NODE_TYPES and (inputs.get("kubernetesGroups") or inputs.get("userName")):
        text = f"An access entry of type {kind} takes no kubernetesGroups and no username"
        raise call.refuse("InvalidParameterException", text)


def _entry_made(call: Call, _id: str) -> Values:
    principal = call.inputs["principalArn"]
    kind = call.inputs.get("type") or "STANDARD"
    of_account = re.fullmatch(r"arn:aws:iam::(\d+):(\w+)/(.+)", principal)
    path = "/".join(of_account.group(2, 1, 3)) if of_account else principal
    session = re.sub(r":iam::(\d+):role/(?:.*/)?", r":sts::\1:assumed-role/", principal) + "/{{SessionName}}"
    user = "system:node:{{EC2PrivateDNSName}}" if kind in _NODE_TYPES else session if ":role/" in principal else ""
    return {
        "accessEntryArn": _arn_of(call, "access-entry", path),
        "createdAt": _now(),
        "modifiedAt": _now(),
        "kubernetesGroups": ["system:nodes"] if kind in _NODE_TYPES else call.inputs.get("kubernetesGroups") or [],
        "type": kind,
        "userName": call.inputs.get("userName") or user or principal,
    }


def admit_nodes(call: Call, role: str) -> None:
    """The access entry that EKS makes by itself for the role of a managed node group, if the cluster keeps entries.

    https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
    """
    cluster = _cluster_of(call)
    id_ = f"{cluster['name']}:{role}"
    if authentication(cluster) == "CONFIG_MAP" or call.find(ACCESS_ENTRY, id_):
        return
    inputs = {"clusterName": cluster["name"], "principalArn": role, "type": "EC2_LINUX"}
    made = _entry_made(Call(world=call.world, region=call.region, kind=call.kind, inputs=inputs), id_)
    outputs = {**inputs, **made, "id": id_, "tagsAll": {}}
    call.world.store.put(folder(ACCESS_ENTRY), id_, outputs)


@dataclass(frozen=True, kw_only=True)
class EntryKind(OfClusterKind):
    """An access entry: what is associated with it goes with it."""

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away."""
        await Kind.delete(self, call, id_)
        cluster, principal = id_.split(":", 1)
        for other, outputs in call.all(ACCESS_POLICY).items():
            if (outputs["clusterName"], outputs["principalArn"]) == (cluster, principal):
                call.world.store.delete(folder(ACCESS_POLICY), other)


def _policy_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_AssociateAccessPolicy.html ."""
    inputs = call.inputs
    entry = call.find(ACCESS_ENTRY, f"{inputs['clusterName']}:{inputs['principalArn']}")
    if entry is None:
        text = (
            "The specified principalArn could not be found. You can view your available access entries with "
            "'list-access-entries'."
        )
        raise call.refuse("ResourceNotFoundException", text)
    if entry.get("type", "STANDARD") in _NODE_TYPES:
        text = f"Access policies cannot be associated with an access entry of type {entry['type']}"
        raise call.refuse("InvalidRequestException", text)
    if not re.fullmatch(r"arn:aws:eks::aws:cluster-access-policy/\w+", inputs["policyArn"]):
        raise call.refuse("InvalidParameterException", "The policyArn parameter format is not valid")
    if call.find(call.kind.token, call.kind.id(inputs)):
        text = "The specified AccessPolicyAssociation already exists on this cluster."
        raise call.refuse("ResourceInUseException", text)


def _scope(inputs: Values) -> Iterator[tuple[str, str]]:
    scope = inputs.get("accessScope")
    if isinstance(scope, Mapping) and scope.get("type") == "namespace" and not scope.get("namespaces"):
        yield "accessScope.namespaces", "a scope of type namespace needs namespaces"


# --- add-ons and the roles of pods ----------------------------------------------------------------------------------

_ADDONS = frozenset(
    [
        "adot",
        "amazon-cloudwatch-observability",
        "amazon-sagemaker-hyperpod-taskgovernance",
        "amazon-sagemaker-hyperpod-training-operator",
        "aws-ebs-csi-driver",
        "aws-efs-csi-driver",
        "aws-fsx-csi-driver",
        "aws-guardduty-agent",
        "aws-mountpoint-s3-csi-driver",
        "aws-network-flow-monitoring-agent",
        "aws-privateca-connector-for-kubernetes",
        "aws-secrets-store-csi-driver-provider",
        "cert-manager",
        "coredns",
        "eks-node-monitoring-agent",
        "eks-pod-identity-agent",
        "external-dns",
        "fluent-bit",
        "kube-proxy",
        "kube-state-metrics",
        "metrics-server",
        "prometheus-node-exporter",
        "snapshot-controller",
        "vpc-cni",
    ]
)
"""AWS's own and community add-ons; those of the Marketplace need a subscription.
https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html"""


def _addon_is_new(call: Call) -> None:
    if call.inputs["addonName"] not in _ADDONS:
        raise call.refuse("InvalidParameterException", "Addon specified is not supported")
    if call.find(ADDON, call.kind.id(call.inputs)):
        raise call.refuse("ResourceInUseException", "Addon already exists.")


def _addon_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAddon.html .

    There is no published list of versions here: any that is well formed is accepted, for every version of Kubernetes.
    Values are only read, not held against the add-on's own schema; EKS takes JSON and YAML.
    """
    version = call.inputs.get("addonVersion")
    if version and not re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", version):
        raise call.refuse("InvalidParameterException", "Addon version specified is not supported")
    text = call.inputs.get("configurationValues")
    if text:
        try:
            right = isinstance(yaml.safe_load(text), dict)
        except yaml.YAMLError:
            right = False
        if not right:
            message = "ConfigurationValue provided in request is not supported: it is no JSON object"
            raise call.refuse("InvalidParameterException", message)
    for association in call.inputs.get("podIdentityAssociations") or ():
        _check_pod_role(call, association["roleArn"])
        found = _association_of(call, association["serviceAccount"], _namespace(call.inputs))
        if found and found.get("ownerArn") != (call.find(ADDON, call.id) or {}).get("arn", ""):
            raise call.refuse("ResourceInUseException", f"Association already exists: {found['associationId']}")
    if role := call.inputs.get("serviceAccountRoleArn"):
        _check_exists(call, role)


def _check_exists(call: Call, role_arn: str) -> Values:
    role = role_of(call, role_arn)
    if role is None:
        raise call.refuse("InvalidParameterException", "Role provided in the request does not exist.")
    return role


def _check_pod_role(call: Call, role_arn: str) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html ."""
    role = _check_exists(call, role_arn)
    if not trusts(role, "pods.eks.amazonaws.com", frozenset({"sts:AssumeRole", "sts:TagSession"})):
        text = "Trust policy of the role provided is invalid. Follow the official documentation to resolve the issue."
        raise call.refuse("InvalidParameterException", text)


def _association_of(call: Call, account: str, namespace: str) -> Values | None:
    """The pod identity of a service account."""
    place = (call.inputs["clusterName"], namespace, account)
    for found in call.all(POD_IDENTITY).values():
        if (found["clusterName"], found["namespace"], found["serviceAccount"]) == place:
            return found
    return None


_NAMESPACES = {
    "adot": "opentelemetry-operator-system",
    "amazon-cloudwatch-observability": "amazon-cloudwatch",
    "aws-guardduty-agent": "amazon-guardduty",
    "cert-manager": "cert-manager",
    "external-dns": "external-dns",
}
"""Where add-ons live that are not in kube-system: the pages of workloads-add-ons-available-eks.html."""


def _namespace(addon: Values) -> str:
    """Where an add-on's pods are: in its own namespace, unless the program gives another."""
    config = addon.get("namespaceConfig") or {}
    return str(config.get("namespace") or _NAMESPACES.get(addon["addonName"], "kube-system"))


@dataclass(frozen=True, kw_only=True)
class AddonKind(OfClusterKind):
    """An add-on. Of its pods only the CNI's run here; its pod identities are made with it, and go with it."""

    async def create(self, call: Call) -> tuple[str, Values]:
        """Make it. Raises: Refusal."""
        id_, outputs = await Kind.create(self, call)
        self._associate(call, outputs)
        await self._run(call, outputs)
        return id_, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place. Raises: Refusal."""
        outputs = {**await Kind.update(self, call, id_, state), "modifiedAt": _now()}
        call.world.store.put(folder(ADDON), id_, outputs)
        self._associate(call, outputs)
        await self._run(call, outputs)
        return outputs

    @staticmethod
    async def _run(call: Call, addon: Values) -> None:
        if addon["addonName"] == "vpc-cni":
            await call.world.install(addon["clusterName"], CNI, cni_image(addon["addonVersion"]))

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away. Raises: Refusal."""
        addon = call.find(ADDON, id_)
        await Kind.delete(self, call, id_)
        if addon:
            self._associate(call, {**addon, "podIdentityAssociations": []})

    @staticmethod
    def _associate(call: Call, addon: Values) -> None:
        """Bring the add-on's pod identities to what it asks for."""
        asked = {each["serviceAccount"]: each["roleArn"] for each in addon.get("podIdentityAssociations") or ()}
        for id_, found in call.all(POD_IDENTITY).items():
            if found.get("ownerArn") and found["ownerArn"] == addon.get("arn"):
                if found["serviceAccount"] in asked:
                    role = asked.pop(found["serviceAccount"])
                    call.world.store.put(folder(POD_IDENTITY), id_, {**found, "roleArn": role})
                else:
                    call.world.store.delete(folder(POD_IDENTITY), id_)
        for account, role in asked.items():
            inputs = {
                "clusterName": addon["clusterName"],
                "namespace": _namespace(addon),
                "serviceAccount": account,
                "roleArn": role,
            }
            id_ = f"a-{secrets.token_hex(9)[:17]}"
            owned = Call(world=call.world, region=call.region, kind=call.kind, inputs=inputs)
            outputs = {**inputs, **_identity_made(owned, id_), "id": id_, "ownerArn": addon["arn"], "tagsAll": {}}
            call.world.store.put(folder(POD_IDENTITY), id_, outputs)


def _addon_made(call: Call, _id: str) -> Values:
    vpc_cni = call.inputs["addonName"] == "vpc-cni"
    return {
        "arn": _arn_of(call, "addon", call.inputs["addonName"]),
        "addonVersion": call.inputs.get("addonVersion") or (_OWN_CNI if vpc_cni else "v1.0.0-eksbuild.1"),
        "createdAt": _now(),
        "modifiedAt": _now(),
    }


def _identity_is_new(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html ."""
    found = _association_of(call, call.inputs["serviceAccount"], call.inputs["namespace"])
    if found:
        raise call.refuse("ResourceInUseException", f"Association already exists: {found['associationId']}")


def _identity_role(call: Call) -> None:
    _check_pod_role(call, call.inputs["roleArn"])


def _identity_made(call: Call, id_: str) -> Values:
    made: dict[str, Any] = {
        "associationArn": f"arn:aws:eks:{call.region}:{call.account.id}:podidentityassociation/"
        f"{call.inputs['clusterName']}/{id_}",
        "associationId": id_,
        "disableSessionTags": call.inputs.get("disableSessionTags", False),
    }
    if call.inputs.get("targetRoleArn"):
        made["externalId"] = f"{call.region}/{call.account.id}/{call.inputs['clusterName']}/{id_}"
    return made


@dataclass(frozen=True, kw_only=True)
class IdentityKind(Kind):
    """A role for the pods of a service account."""

    def id(self, inputs: Values) -> str:
        """A new id."""
        return f"a-{secrets.token_hex(9)[:17]}"


def _exists(call: Call) -> None:
    _cluster_of(call)


def kinds() -> tuple[Kind, ...]:
    """All kinds of EKS, without node groups."""
    return (
        ClusterKind(
            token=CLUSTER,
            prefix="",
            operation="CreateCluster",
            changed_by="UpdateClusterConfig",
            doing="creating EKS Cluster",
            required=("roleArn", "vpcConfig"),
            replaces=frozenset({"name", "roleArn", "bootstrapSelfManagedAddons", "outpostConfig"}),
            named="name",
            checks=(_cluster_ranges,),
            rules=(_cluster_is_new, _cluster_network),
            update_rules=(_cluster_version, _cluster_access, _cluster_network),
            computed=(
                "arn",
                "certificateAuthority",
                "createdAt",
                "endpoint",
                "identities",
                "platformVersion",
                "status",
            ),
            defaulted=("accessConfig", "kubernetesNetworkConfig", "upgradePolicy", "version"),
            defaults={"bootstrapSelfManagedAddons": True},
        ),
        EntryKind(
            token=ACCESS_ENTRY,
            prefix="",
            operation="CreateAccessEntry",
            doing="creating EKS Access Entry",
            required=("clusterName", "principalArn"),
            replaces=frozenset({"clusterName", "principalArn", "type"}),
            rules=(_access_by_api, _entry_is_new, _entry_rules),
            update_rules=(_entry_rules,),
            make=_entry_made,
            computed=("accessEntryArn", "createdAt", "modifiedAt"),
            defaulted=("kubernetesGroups", "userName"),
            defaults={"type": "STANDARD"},
            gone="ResourceNotFoundException",
        ),
        OfClusterKind(
            token=ACCESS_POLICY,
            prefix="",
            operation="AssociateAccessPolicy",
            doing="creating EKS Access Policy Association",
            required=("clusterName", "policyArn", "principalArn", "accessScope"),
            replaces=frozenset({"clusterName", "policyArn", "principalArn", "accessScope"}),
            checks=(_scope,),
            rules=(_access_by_api, _policy_rules),
            make=lambda _c, _id: {"associatedAt": _now(), "modifiedAt": _now()},
            computed=("associatedAt", "modifiedAt"),
            gone="ResourceNotFoundException",
        ),
        AddonKind(
            token=ADDON,
            prefix="",
            operation="CreateAddon",
            doing="creating EKS Add-On",
            required=("clusterName", "addonName"),
            replaces=frozenset({"clusterName", "addonName", "namespaceConfig"}),
            rules=(_exists, _addon_is_new, _addon_rules),
            update_rules=(_addon_rules,),
            make=_addon_made,
            computed=("arn", "createdAt", "modifiedAt"),
            defaulted=("addonVersion", "configurationValues"),
            gone="ResourceNotFoundException",
            seconds=30.0,
        ),
        IdentityKind(
            token=POD_IDENTITY,
            prefix="",
            operation="CreatePodIdentityAssociation",
            doing="creating EKS Pod Identity Association",
            required=("clusterName", "namespace", "roleArn", "serviceAccount"),
            replaces=frozenset({"clusterName", "namespace", "serviceAccount"}),
            rules=(_exists, _identity_is_new, _identity_role),
            update_rules=(_identity_role,),
            make=_identity_made,
            computed=("associationArn", "associationId", "externalId"),
            gone="ResourceNotFoundException",
            seconds=1.0,
        ),
    )
