"""EKS managed node groups: instances of a launch template that join a cluster, or a group that fails and is kept."""

import asyncio
import random
import re
import secrets
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from twin.aws.facts import Machine, machine
from twin.aws.kinds import Call, Kind, Values
from twin.aws.launch import Launch, check_launch, is_efa
from twin.aws.refusal import LaunchFailure, Refusal
from twin.world import Instance, Taint

TOKEN = "aws:eks/nodeGroup:NodeGroup"  # noqa: S105 - a type token
_FOLDER = "aws-eks-nodeGroup-NodeGroup"
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
_JOIN_SECONDS = 20 * 60
"""How long EKS waits for instances to join before the node group fails."""
_EFA_HUGE_PAGES_MIB = 5128 * 2
"""https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html"""


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
        _check_request(call)
        id_ = self.id(call.inputs)
        outputs = self._outputs(call, id_, "CREATING")
        call.world.store.put(_FOLDER, id_, outputs)
        return id_, await self._fill(call, id_, outputs, "create")

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change size, labels or template in place.

        The Auto Scaling group of a group that failed goes on trying, so an update also launches what is missing: after
        the cause is gone, `pulumi up` recovers the group without replacing it.
        """
        outputs = {**state, **self._outputs(call, id_, state.get("status", "ACTIVE"))}
        if state.get("launchTemplate") != call.inputs.get("launchTemplate") and state.get("launchTemplate"):
            for instance in self._instances(call, id_):
                await call.world.terminate(instance)
        return await self._fill(call, id_, outputs, "update")

    async def read(self, call: Call, id_: str) -> Values | None:
        """Its outputs; None when it is gone."""
        return call.world.store.get(_FOLDER, id_)

    async def delete(self, call: Call, id_: str) -> None:
        """End its instances, then the group."""
        for instance in self._instances(call, id_):
            await call.world.terminate(instance)
        await asyncio.sleep(call.world.scaled(self.seconds))
        call.world.store.delete(_FOLDER, id_)

    @staticmethod
    def _instances(call: Call, id_: str) -> list[str]:
        """Ids of the group's machines, those that were launched first at the front."""
        cluster, group = id_.split(":")
        found = call.world.store.list("machine").items()
        return [i for i, m in found if (m["cluster"], m["group"]) == (cluster, group)]

    def _outputs(self, call: Call, id_: str, status: str) -> Values:
        group = call.inputs["nodeGroupName"]
        path = f"nodegroup/{id_.replace(':', '/')}/{secrets.token_hex(8)}"
        return {
            **call.inputs,
            "id": id_,
            "arn": f"arn:aws:eks:{call.region}:{call.account.id}:{path}",
            "resources": [{"autoscalingGroups": [{"name": f"eks-{group}"}], "remoteAccessSecurityGroupId": ""}],
            "status": status,
            "tagsAll": call.inputs.get("tags") or {},
            "releaseVersion": call.inputs.get("releaseVersion") or "1.34.2-20260224",
            "version": call.inputs.get("version") or "1.34",
        }

    async def _fill(self, call: Call, id_: str, outputs: Values, doing: str) -> Values:
        """Bring the group to its desired size."""
        running = self._instances(call, id_)
        missing = int(call.inputs["scalingConfig"]["desiredSize"]) - len(running)
        try:
            for victim in random.sample(running, max(0, -missing)):
                await call.world.terminate(victim)
            if missing > 0:
                await self._launch(call, outputs, missing)
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

    async def _launch(self, call: Call, outputs: Values, count: int) -> None:
        template = _template(call)
        subnet = call.find("aws:ec2/subnet:Subnet", call.inputs["subnetIds"][0])
        assert subnet, "checked before"
        launch = Launch(
            group=call.inputs["nodeGroupName"],
            template=template,
            capacity_type=call.inputs.get("capacityType") or "ON_DEMAND",
            instance_types=tuple(call.inputs.get("instanceTypes") or ("t3.medium",)),
            zone=subnet["availabilityZone"],
            count=count,
            account=call.account,
            used=_used(call),
            reservation_zone=_zone_of_fault(call),
        )
        facts = check_launch(launch)
        addresses = _free_addresses(call, subnet, count)
        for address in addresses:
            instance = _instance(call, outputs, launch, facts, subnet, address)
            document = {"reservation": launch.reservation_id, "address": str(address), "subnet": subnet["id"]}
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


def _template(call: Call) -> Values:
    wanted = call.inputs.get("launchTemplate") or {}
    templates = call.all("aws:ec2/launchTemplate:LaunchTemplate")
    if id_ := wanted.get("id"):
        return templates.get(id_) or {}
    return next((t for t in templates.values() if t["name"] == wanted.get("name")), {})


def _instance(
    call: Call, outputs: Values, launch: Launch, facts: Machine, subnet: Values, address: IPv4Address
) -> Instance:
    zone = subnet["availabilityZone"]
    id_ = f"i-0{secrets.token_hex(8)}"
    efa = sum(is_efa(nic) for nic in launch.interfaces)
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
        hugepages_2mi_mib=_EFA_HUGE_PAGES_MIB if efa else 0,
        max_pods=100,
        gpus=facts.gpus,
        efa_interfaces=efa,
        kubelet_version=f"v{outputs['releaseVersion'].split('-')[0]}-eks-0000000",
        os_image="Amazon Linux 2023",
        kernel="6.12.46-66.121.amzn2023",
        group=call.inputs["nodeGroupName"],
    )


def _check_request(call: Call) -> None:
    """What EKS checks when a node group is asked for, before anything is launched.

    https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
    """
    inputs: dict[str, Any] = call.inputs
    cluster = call.find("aws:eks/cluster:Cluster", inputs["clusterName"])
    if cluster is None:
        raise call.refuse("ResourceNotFoundException", f"No cluster found for name: {inputs['clusterName']}.")
    name = inputs["nodeGroupName"]
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}", name):
        raise call.refuse("InvalidParameterException", f"nodegroup name {name} is not valid: 63 characters at most")
    if call.world.store.get(_FOLDER, f"{inputs['clusterName']}:{name}"):
        text = f"NodeGroup already exists with name {name} and cluster name {inputs['clusterName']}"
        raise call.refuse("ResourceInUseException", text)
    for id_ in inputs["subnetIds"]:
        subnet = call.find("aws:ec2/subnet:Subnet", id_)
        if subnet is None or subnet["vpcId"] != cluster["vpcConfig"]["vpcId"]:
            raise call.refuse("InvalidParameterException", f"Subnet {id_} is not in the cluster's VPC")
    _check_template(call, _template(call))
    scaling = inputs["scalingConfig"]
    if not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"] or scaling["maxSize"] < 1:
        raise call.refuse("InvalidParameterException", "desiredSize must lie between minSize and maxSize")


def _check_template(call: Call, template: Values) -> None:
    if call.inputs.get("launchTemplate") and not template:
        raise call.refuse("InvalidRequestException", "Launch template not found")
    if any(nic.get("subnetId") for nic in template.get("networkInterfaces") or ()):
        text = "Launch template with network interfaces must not specify a subnet"
        raise call.refuse("InvalidRequestException", text)
    if template.get("instanceType") and call.inputs.get("instanceTypes"):
        text = "Cannot specify instance types in launch template and API request"
        raise call.refuse("InvalidRequestException", text)
    if template.get("iamInstanceProfile"):
        raise call.refuse("InvalidRequestException", "Launch template must not specify an IAM instance profile")
    named = template.get("instanceType") or (call.inputs.get("instanceTypes") or [None])[0]
    if named and not call.inputs.get("amiType") and machine(named) is None:
        raise Refusal("CreateNodegroup", "InvalidParameterException", f"unknown instance type {named}")


NODE_GROUP = NodeGroupKind(
    token=TOKEN,
    prefix="",
    operation="CreateNodegroup",
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
    computed=("arn", "resources", "status", "releaseVersion"),
)
