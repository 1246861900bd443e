"""EKS managed node groups: instances of a launch template that join a cluster, or a group that fails and is kept."""

import asyncio
import base64
import binascii
import random
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from twin.aws.facts import Machine, machine
from twin.aws.kinds import EKS_VERSIONS, NODES_BEHIND, Call, Kind, Values, admit_nodes, template_version
from twin.aws.launch import Launch, check_launch, is_efa, reservations_of
from twin.aws.refusal import LaunchFailure, Refusal
from twin.world import Instance, Taint

TOKEN = "aws:eks/nodeGroup:NodeGroup"  # noqa: S105 - a type token
_FOLDER = "aws-eks-nodeGroup-NodeGroup"
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
_JOIN_SECONDS = 20 * 60
"""How long EKS waits for instances to join before the node group fails."""
_EFA_HUGE_PAGES_MIB = 5128 * 2
"""https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html"""
_DEFAULT_AMI = "AL2023_x86_64_STANDARD"
_PATCHES = {"1.30": 14, "1.31": 14, "1.32": 11, "1.33": 7, "1.34": 2}
"""Patch of the newest AMI release of a Kubernetes version; made up, apart from that there is one."""


class Kept(Exception):
    """The node group failed, and is kept: its outputs, and the provider's error."""

    def __init__(self, id_: str, outputs: Values, reason: str) -> None:
        super().__init__(reason)
        self.id = id_
        self.outputs = outputs


@dataclass(frozen=True, kw_only=True)
class NodeGroupKind(Kind):
    """A managed node group."""

    def id(self, inputs: Values) -> str:
        """`cluster:group`."""
        return f"{inputs['clusterName']}:{inputs['nodeGroupName']}"

    async def create(self, call: Call) -> tuple[str, Values]:
        """Launch its instances and wait until they join.

        Raises:
            Refusal: the request is refused; nothing exists.
            Kept: instances could not be launched, or did not join; the group exists, and has failed.
        """
        _check_new(call)
        _check_request(call)
        id_ = self.id(call.inputs)
        outputs = self._outputs(call, id_)
        call.world.store.put(_FOLDER, id_, outputs)
        admit_nodes(call, call.inputs["nodeRoleArn"])
        return id_, await self._fill(call, id_, outputs, "create")

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change size, or replace machines one after another by those of another template version or AMI release.

        The Auto Scaling group of a group that failed goes on trying, so an update also launches what is missing: after
        the cause is gone, `pulumi up` recovers the group without replacing it.
        """
        _check_request(call)
        outputs = {**state, **call.inputs, "tagsAll": call.inputs.get("tags") or {}}
        if call.inputs.get("version", state["version"]) != state["version"] and "releaseVersion" not in call.inputs:
            outputs["releaseVersion"] = _release(call.inputs["version"])
        return await self._fill(call, id_, outputs, "update")

    def not_found(self, call: Call, id_: str) -> Refusal:
        """The API's error for one that does not exist."""
        text = f"No node group found for name: {id_.split(':')[1]}."
        return Refusal("DescribeNodegroup", "ResourceNotFoundException", text, what=f"reading EKS Node Group ({id_})")

    async def read(self, call: Call, id_: str) -> Values | None:
        """Its outputs; None when it is gone."""
        return call.world.store.get(_FOLDER, id_)

    async def delete(self, call: Call, id_: str) -> None:
        """End its instances, then the group."""
        for instance in self._instances(call, id_):
            await _terminate(call, instance)
        await asyncio.sleep(call.world.scaled(self.seconds))
        call.world.store.delete(_FOLDER, id_)

    @staticmethod
    def _instances(call: Call, id_: str) -> list[str]:
        """Ids of the group's machines, those that were launched first at the front."""
        cluster, group = id_.split(":")
        found = call.world.store.list("machine").items()
        return [i for i, m in found if (m["cluster"], m["group"]) == (cluster, group)]

    def _outputs(self, call: Call, id_: str) -> Values:
        group = call.inputs["nodeGroupName"]
        cluster = call.find("aws:eks/cluster:Cluster", call.inputs["clusterName"])
        assert cluster, "checked before"
        version = call.inputs.get("version") or cluster["version"]
        path = f"nodegroup/{id_.replace(':', '/')}/{secrets.token_hex(8)}"
        return {
            **call.inputs,
            "id": id_,
            "arn": f"arn:aws:eks:{call.region}:{call.account.id}:{path}",
            "resources": [{"autoscalingGroups": [{"name": f"eks-{group}"}], "remoteAccessSecurityGroupId": ""}],
            "status": "CREATING",
            "tagsAll": call.inputs.get("tags") or {},
            "releaseVersion": call.inputs.get("releaseVersion") or _release(version),
            "version": version,
        }

    async def _fill(self, call: Call, id_: str, outputs: Values, doing: str) -> Values:
        """Bring the group to its desired size and to its template's version."""
        running = self._instances(call, id_)
        missing = int(call.inputs["scalingConfig"]["desiredSize"]) - len(running)
        try:
            for victim in random.sample(running, max(0, -missing)):
                await _terminate(call, victim)
            if missing > 0:
                await self._launch(call, outputs, missing)
            await self._replace(call, id_, outputs)
            await self._wait_joined(call, self._instances(call, id_))
        except LaunchFailure as failure:
            outputs["status"] = f"{doing.upper()}_FAILED"
            call.world.store.put(_FOLDER, id_, outputs)
            text = (
                f"waiting for EKS Node Group ({id_}) {doing}: unexpected state '{outputs['status']}', wanted target "
                f"'ACTIVE'. last error: {failure}"
            )
            raise Kept(id_, outputs, text) from None
        outputs["status"] = "ACTIVE"
        call.world.store.put(_FOLDER, id_, outputs)
        return outputs

    async def _replace(self, call: Call, id_: str, outputs: Values) -> None:
        """Replace machines of another version, as many at a time as may be unavailable.

        `MINIMAL` ends old ones first; `DEFAULT` launches new ones first, which a full reservation has no room for.
        https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
        """
        made_of = _made_of(_template(call), outputs)
        documents = call.world.store.list("aws-instance")
        old = [i for i in self._instances(call, id_) if documents.get(i, {}).get("made_of", made_of) != made_of]
        if old:
            # EKS tries a template before it ends what runs.
            check_launch(self._asked(call, 0))
        config = call.inputs.get("updateConfig") or {}
        at_once = int(config.get("maxUnavailable") or 1)
        if share := config.get("maxUnavailablePercentage"):
            at_once = max(1, len(old) * int(share) // 100)
        for batch in (old[i : i + at_once] for i in range(0, len(old), at_once)):
            if config.get("updateStrategy") != "MINIMAL":
                await self._launch(call, outputs, len(batch))
                await self._wait_joined(call, self._instances(call, id_))
            for instance in batch:
                await _terminate(call, instance)
            if config.get("updateStrategy") == "MINIMAL":
                await self._launch(call, outputs, len(batch))
                await self._wait_joined(call, self._instances(call, id_))

    @staticmethod
    def _asked(call: Call, count: int) -> Launch:
        subnet = _subnet(call)
        return Launch(
            group=call.inputs["nodeGroupName"],
            template=_template(call) or {},
            capacity_type=call.inputs.get("capacityType") or "ON_DEMAND",
            instance_types=tuple(call.inputs.get("instanceTypes") or ("t3.medium",)),
            zone=subnet["availabilityZone"],
            count=count,
            account=call.account,
            used=_used(call),
            on_demand=_on_demand(call),
            reservation_zone=_zone_of_fault(call),
        )

    async def _launch(self, call: Call, outputs: Values, count: int) -> None:
        launch = self._asked(call, count)
        _check_user_data(launch.template)
        facts = check_launch(launch)
        subnet = _subnet(call)
        addresses = _free_addresses(call, subnet, count)
        group = launch.placement_group
        for address, reservation in zip(addresses, reservations_of(launch), strict=True):
            instance = _instance(call, outputs, launch, facts, subnet, address)
            document = {
                "reservation": reservation,
                "capacity_type": launch.capacity_type,
                "placement_group": group.name if group else None,
                "tenancy": launch.tenancy,
                "launched": datetime.now(UTC).isoformat(),
                "tags": _tags(call, launch.template),
                "address": str(address),
                "subnet": subnet["id"],
                "groups": sorted({group for nic in launch.interfaces for group in nic.get("securityGroups") or ()}),
                "made_of": _made_of(launch.template, outputs),
            }
            call.world.store.put("aws-instance", instance.id, document)
            await call.world.launch(instance)

    async def _wait_joined(self, call: Call, instances: list[str]) -> None:
        deadline = asyncio.get_running_loop().time() + max(5.0, call.world.scaled(_JOIN_SECONDS))
        while waiting := [i for i in instances if not await call.world.joined(i)]:
            if call.world.fault("node-never-joins") or asyncio.get_running_loop().time() > deadline:
                await asyncio.sleep(call.world.scaled(120))
                waiting = [i for i in instances if not await call.world.joined(i)]
                text = "Instances failed to join the kubernetes cluster"
                raise LaunchFailure("NodeCreationFailure", text, waiting or instances)
            await asyncio.sleep(0.1)


async def _terminate(call: Call, instance: str) -> None:
    await call.world.terminate(instance)
    call.world.store.delete("aws-instance", instance)


def _made_of(template: Mapping[str, Any] | None, outputs: Values) -> list[str]:
    """What a machine was made of: template, its version, and AMI release."""
    template = template or {}
    return [str(template.get("id", "")), str(template.get("latestVersion", "")), outputs["releaseVersion"]]


def _release(version: str) -> str:
    """The newest AMI release for a Kubernetes version."""
    return f"{version}.{_PATCHES[version]}-20260224"


def _subnet(call: Call) -> Values:
    subnet = call.find("aws:ec2/subnet:Subnet", call.inputs["subnetIds"][0])
    assert subnet, "checked before"
    return subnet


def _zone_of_fault(call: Call) -> str | None:
    """The fault `reservation-in-other-zone`: the reservation is not where it was thought to be."""
    if call.world.fault("reservation-in-other-zone") is None:
        return None
    return sorted(call.account.zones[call.region])[-1]


def _used(call: Call) -> Counter[str]:
    """Running instances by reservation."""
    alive = call.world.store.list("machine")
    documents = call.world.store.list("aws-instance")
    return Counter(d["reservation"] for id_, d in documents.items() if id_ in alive and d["reservation"])


def _on_demand(call: Call) -> Counter[str]:
    """Instances of the region that run outside of reservations and count against a quota, by type."""
    machines = call.world.store.list("machine")
    return Counter(
        machines[id_]["machine"]
        for id_, d in call.world.store.list("aws-instance").items()
        if id_ in machines
        and not d["reservation"]
        and d.get("capacity_type") == "ON_DEMAND"
        and machines[id_]["region"] == call.region
    )


def _tags(call: Call, template: Mapping[str, Any]) -> dict[str, str]:
    """What the template puts on instances, and what EKS does.

    https://docs.aws.amazon.com/eks/latest/userguide/eks-using-tags.html#eks-using-tags-billing
    """
    cluster, group = call.inputs["clusterName"], call.inputs["nodeGroupName"]
    specified: dict[str, str] = {}
    for specification in template.get("tagSpecifications") or ():
        if specification.get("resourceType") == "instance":
            specified.update(specification.get("tags") or {})
    return {
        **specified,
        "eks:cluster-name": cluster,
        "eks:nodegroup-name": group,
        f"kubernetes.io/cluster/{cluster}": "owned",
        "aws:autoscaling:groupName": f"eks-{group}",
        "aws:ec2launchtemplate:id": str(template.get("id", "")),
        "aws:ec2launchtemplate:version": str(template.get("latestVersion", "")),
    }


def _free_addresses(call: Call, subnet: Values, count: int) -> list[IPv4Address]:
    """The first addresses that nobody has; AWS keeps the first four and the last of a subnet."""
    alive = call.world.store.list("machine")
    taken = {d["address"] for id_, d in call.world.store.list("aws-instance").items() if id_ in alive}
    hosts = list(IPv4Network(subnet["cidrBlock"]).hosts())[16:-1]
    free = [address for address in hosts if str(address) not in taken]
    if len(free) < count:
        text = f"The specified subnet does not have enough free addresses to satisfy the request: {len(free)} free"
        raise LaunchFailure("InsufficientFreeAddresses", text, [subnet["id"]])
    return free[:count]


def _template(call: Call) -> Values | None:
    """The version of the launch template that the group names; None where there is none."""
    wanted = call.inputs.get("launchTemplate")
    return template_version(call, wanted) if wanted else None


def _instance(
    call: Call, outputs: Values, launch: Launch, facts: Machine, subnet: Values, address: IPv4Address
) -> Instance:
    zone = subnet["availabilityZone"]
    id_ = f"i-0{secrets.token_hex(8)}"
    efa = sum(is_efa(nic) for nic in launch.interfaces)
    nvidia, neuron = (_has_driver(call.inputs, launch.template, of) for of in ("NVIDIA", "NEURON"))
    taints = [
        Taint(key=t["key"], value=t.get("value") or "", effect=_EFFECTS[t["effect"]])
        for t in call.inputs.get("taints") or ()
    ]
    labels = {
        "eks.amazonaws.com/nodegroup": call.inputs["nodeGroupName"],
        "eks.amazonaws.com/nodegroup-image": f"ami-0{secrets.token_hex(8)}",
        "eks.amazonaws.com/capacityType": launch.capacity_type,
        "eks.amazonaws.com/sourceLaunchTemplateId": str(launch.template.get("id", "")),
        "eks.amazonaws.com/sourceLaunchTemplateVersion": str(launch.template.get("latestVersion", "")),
        **(call.inputs.get("labels") or {}),
    }
    return Instance(
        id=id_,
        cluster=call.inputs["clusterName"],
        machine=launch.type_name,
        architecture=facts.architecture,
        region=call.region,
        zone=zone,
        zone_id=subnet.get("availabilityZoneId") or "",
        provider_id=f"aws:///{zone}/{id_}",
        node_name=f"ip-{str(address).replace('.', '-')}.{call.region}.compute.internal",
        private_ip=str(address),
        labels=labels,
        taints=tuple(taints),
        cpus=facts.cpus,
        memory_mib=facts.memory_mib,
        hugepages_2mi_mib=_EFA_HUGE_PAGES_MIB if efa and (nvidia or neuron) else 0,
        max_pods=100,
        gpus=facts.gpus if nvidia else 0,
        efa_interfaces=efa,
        kubelet_version=f"v{outputs['releaseVersion'].split('-')[0]}-eks-0000000",
        os_image="Amazon Linux 2023",
        kernel="6.12.46-66.121.amzn2023",
        group=call.inputs["nodeGroupName"],
        neuron_devices=facts.neuron_devices if neuron else 0,
        neuron_cores=facts.neuron_cores if neuron else 0,
    )


def _check_user_data(template: Mapping[str, Any]) -> None:
    """EKS puts its own part beside the user's, so it needs a format of several parts; its own image has one to join.

    https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-user-data
    """
    encoded = template.get("userData")
    if not encoded or template.get("imageId"):
        return
    try:
        text = base64.b64decode(encoded, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        text = ""
    if not re.match(r"\s*(MIME-Version:|Content-Type:\s*multipart/)", text, re.IGNORECASE):
        message = "User data was not in the MIME multipart format."
        raise LaunchFailure("Ec2LaunchTemplateInvalidConfiguration", message, [])


def _has_driver(inputs: Values, template: Mapping[str, Any], of: str) -> bool:
    """Whether the image is the one for accelerators of that maker, with what EFA needs; one's own image is trusted.

    https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-optimized-ami.html
    """
    return bool(template.get("imageId")) or of in (inputs.get("amiType") or _DEFAULT_AMI)


def _check_new(call: Call) -> None:
    """What EKS checks of a node group's name."""
    inputs = call.inputs
    name = inputs["nodeGroupName"]
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}", name):
        raise call.refuse("InvalidParameterException", f"nodegroup name {name} is not valid: 63 characters at most")
    if call.world.store.get(_FOLDER, f"{inputs['clusterName']}:{name}"):
        text = f"NodeGroup already exists with name {name} and cluster name {inputs['clusterName']}"
        raise call.refuse("ResourceInUseException", text)


def _check_request(call: Call) -> None:
    """What EKS checks when a node group is asked for or changed, before anything is launched.

    https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
    """
    inputs: dict[str, Any] = call.inputs
    cluster = call.find("aws:eks/cluster:Cluster", inputs["clusterName"])
    if cluster is None:
        raise call.refuse("ResourceNotFoundException", f"No cluster found for name: {inputs['clusterName']}.")
    _check_version(call, cluster["version"])
    for id_ in inputs["subnetIds"]:
        subnet = call.find("aws:ec2/subnet:Subnet", id_)
        if subnet is None or subnet["vpcId"] != cluster["vpcConfig"]["vpcId"]:
            raise call.refuse("InvalidParameterException", f"Subnet {id_} is not in the cluster's VPC")
    _check_template(call, _template(call))
    _check_market(call, _template(call) or {})
    scaling = inputs["scalingConfig"]
    if scaling["maxSize"] < 1:
        # https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupScalingConfig.html : at least 1
        raise call.refuse("InvalidParameterException", "maxSize: valid range is at least 1")
    if not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"]:
        raise call.refuse("InvalidParameterException", "desiredSize must lie between minSize and maxSize")


def _check_version(call: Call, of_cluster: str) -> None:
    """https://kubernetes.io/releases/version-skew-policy/#kubelet : never newer than their cluster, nor much older."""
    version = call.inputs.get("version") or of_cluster
    behind = EKS_VERSIONS.index(of_cluster) - EKS_VERSIONS.index(version) if version in EKS_VERSIONS else -1
    if not 0 <= behind <= NODES_BEHIND:
        text = f"Requested Kubernetes version {version} is not valid for a node group of a cluster with {of_cluster}"
        raise call.refuse("InvalidParameterException", text)


def _check_template(call: Call, template: Values | None) -> None:
    if template is None:
        if call.inputs.get("launchTemplate"):
            raise call.refuse("InvalidRequestException", "Launch template not found")
        template = {}
    if any(nic.get("subnetId") for nic in template.get("networkInterfaces") or ()):
        text = "Launch template with network interfaces must not specify a subnet"
        raise call.refuse("InvalidRequestException", text)
    if template.get("instanceType") and call.inputs.get("instanceTypes"):
        text = "Cannot specify instance types in launch template and API request"
        raise call.refuse("InvalidRequestException", text)
    if template.get("iamInstanceProfile"):
        raise call.refuse("InvalidRequestException", "Launch template must not specify an IAM instance profile")
    names = [template["instanceType"]] if template.get("instanceType") else call.inputs.get("instanceTypes") or []
    ami = call.inputs.get("amiType") or _DEFAULT_AMI
    for name in names:
        facts = machine(name)
        arm = "_ARM_64" in ami
        if facts and ami != "CUSTOM" and not template.get("imageId") and (facts.architecture == "arm64") is not arm:
            # https://github.com/eksctl-io/eksctl/issues/5302 and many others quote it.
            text = f"[{name}] is not a valid instance type for requested amiType {ami}"
            raise call.refuse("InvalidParameterException", text)


def _check_market(call: Call, template: Values) -> None:
    """A group of Capacity Blocks needs a template that says so in all its parts, and only such a group may have one.

    https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """
    of_block = (call.inputs.get("capacityType") or "ON_DEMAND") == "CAPACITY_BLOCK"
    market = (template.get("instanceMarketOptions") or {}).get("marketType")
    target = (template.get("capacityReservationSpecification") or {}).get("capacityReservationTarget") or {}
    code = "InvalidParameterException"
    if of_block and not call.inputs.get("launchTemplate"):
        raise call.refuse(code, "Capacity type CAPACITY_BLOCK needs a launch template")
    if of_block and call.inputs.get("instanceTypes"):
        raise call.refuse(code, "With capacity type CAPACITY_BLOCK the instance type is that of the launch template")
    if of_block and not template.get("instanceType"):
        raise call.refuse(code, "With capacity type CAPACITY_BLOCK the launch template must specify an instance type")
    if of_block and market != "capacity-block":
        text = "With capacity type CAPACITY_BLOCK the market type of the launch template must be capacity-block"
        raise call.refuse(code, text)
    if of_block and not any(target.values()):
        text = "With capacity type CAPACITY_BLOCK the launch template must specify a capacity reservation target"
        raise call.refuse(code, text)
    if market == "capacity-block" and not of_block:
        text = "A launch template with market type capacity-block needs capacity type CAPACITY_BLOCK"
        raise call.refuse(code, text)


NODE_GROUP = NodeGroupKind(
    token=TOKEN,
    prefix="",
    operation="CreateNodegroup",
    changed_by="UpdateNodegroupConfig",
    doing="creating EKS Node Group",
    required=("clusterName", "nodeRoleArn", "scalingConfig", "subnetIds"),
    replaces=frozenset(
        {
            "clusterName",
            "nodeGroupName",
            "nodeGroupNamePrefix",
            "nodeRoleArn",
            "subnetIds",
            "amiType",
            "capacityType",
            "diskSize",
            "instanceTypes",
            "remoteAccess",
        }
    ),
    named="nodeGroupName",
    computed=("arn", "resources", "status", "releaseVersion", "version"),
)
