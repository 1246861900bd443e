"""Resource kinds of the simulated AWS: what each needs, gives and replaces, and the rules it is made under."""

import asyncio
import base64
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Network
from typing import Any

from twin.aws.facts import Account, account_in, machine
from twin.aws.refusal import Refusal
from twin.aws.wire import UNKNOWN, known
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

    @property
    def account(self) -> Account:
        """The account, with what was made in it."""
        return account_in(self.world.store)

    def find(self, token: str, id_: str) -> Values | None:
        """Outputs of another resource; None for one that does not exist."""
        return self.world.store.get(_folder(token), id_)

    def all(self, token: str) -> dict[str, Values]:
        """Outputs of all resources of a kind, by id."""
        return self.world.store.list(_folder(token))

    def refuse(self, code: str, message: str) -> Refusal:
        """The API's error for this operation."""
        name = self.inputs.get(self.kind.named) if self.kind.named else None
        return Refusal(
            self.kind.operation, code, message, what=f"{self.kind.doing} ({name})" if name else self.kind.doing
        )


def _folder(token: str) -> str:
    return token.replace("/", "-").replace(":", "-")


RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
Make = Callable[[Call, str], Values]
Rule = Callable[[Call], None]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of resource that lives in the store and nowhere else."""

    token: str
    prefix: str
    """Of its ids; empty where the id is its name."""
    operation: str
    """The API call that makes it."""
    doing: str
    """How the provider begins its errors."""
    required: tuple[str, ...] = ()
    replaces: frozenset[str] = frozenset()
    """Inputs that cannot change in place."""
    named: str = ""
    """The input that holds its physical name, made up by the provider where the program gives none."""
    computed: tuple[str, ...] = ("arn",)
    """Outputs that AWS decides: unknown in a preview."""
    make: Make = lambda _call, _id: {}
    """Outputs beside the inputs, the id and the tags."""
    rules: tuple[Rule, ...] = ()
    holds: tuple[tuple[str, str], ...] = ()
    """Kinds and inputs by which others hold it: AWS does not delete it while they do."""
    gone: str = "InvalidParameterValue"
    """AWS's code for one that does not exist."""
    seconds: float = 5.0
    """How long AWS takes."""

    def id(self, inputs: Values) -> str:
        """A new id."""
        return f"{self.prefix}-0{secrets.token_hex(8)}" if self.prefix else str(inputs[self.named])

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
        return {**dict.fromkeys(self.computed, UNKNOWN), **name, **inputs, "tagsAll": inputs.get("tags") or {}}

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
        outputs = {**call.inputs, **self.make(call, id_), "id": id_, "tagsAll": call.inputs.get("tags") or {}}
        # Kept before the wait: another request that comes meanwhile is judged with this one there.
        call.world.store.put(_folder(self.token), id_, outputs)
        await asyncio.sleep(call.world.scaled(self.seconds))
        return id_, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place. Raises: Refusal."""
        outputs = {**state, **call.inputs, "tagsAll": call.inputs.get("tags") or {}}
        call.world.store.put(_folder(self.token), id_, outputs)
        return outputs

    async def read(self, call: Call, id_: str) -> Values | None:
        """Its outputs; None when it is gone."""
        return call.find(self.token, id_)

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away; what is gone already is no error. Raises: Refusal."""
        for token, field_name in self.holds:
            for other, outputs in call.all(token).items():
                # A group's rules about itself go with it.
                if id_ in _flat(outputs.get(field_name)) and outputs.get("securityGroupId") != id_:
                    text = f"resource {id_} has a dependent object ({other})"
                    what = f"{self.doing.replace('creating', 'deleting')} ({id_})"
                    operation = f"Delete{self.operation.removeprefix('Create')}"
                    raise Refusal(operation, "DependencyViolation", text, what=what)
        await asyncio.sleep(call.world.scaled(self.seconds / 2))
        call.world.store.delete(_folder(self.token), id_)


def _flat(value: Any) -> list[Any]:
    """Every value in a nested one."""
    if isinstance(value, Mapping):
        return [each for inner in value.values() for each in _flat(inner)]
    return [each for inner in value for each in _flat(inner)] if isinstance(value, list) else [value]


def arn(service: str, path: str, *, of_account: bool = True) -> Make:
    """Makes an ARN from a path in which {id} and {name} are filled in."""

    def make(call: Call, id_: str) -> Values:
        place = f"{call.account.id if of_account else ''}"
        region = "" if service == "iam" else call.region
        name = call.inputs.get(call.kind.named) if call.kind.named else id_
        return {"arn": f"arn:aws:{service}:{region}:{place}:{path.format(id=id_, name=name)}"}

    return make


def _with(*makers: Make) -> Make:
    def make(call: Call, id_: str) -> Values:
        return {key: value for maker in makers for key, value in maker(call, id_).items()}

    return make


# --- rules, each with the address that it comes from ----------------------------------------------------------------


def _vpc_range(call: Call) -> None:
    """https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html ."""
    if not 16 <= IPv4Network(call.inputs["cidrBlock"]).prefixlen <= 28:
        raise call.refuse("InvalidVpc.Range", f"The CIDR '{call.inputs['cidrBlock']}' is invalid.")


def _subnet_place(call: Call) -> None:
    """https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html ."""
    vpc = call.find("aws:ec2/vpc:Vpc", call.inputs["vpcId"])
    if vpc is None:
        raise call.refuse("InvalidVpcID.NotFound", f"The vpc ID '{call.inputs['vpcId']}' does not exist")
    zone = call.inputs.get("availabilityZone")
    if zone and zone not in call.account.zones.get(call.region, {}):
        raise call.refuse("InvalidParameterValue", f"Value ({zone}) for parameter availabilityZone is invalid.")
    wanted = IPv4Network(call.inputs["cidrBlock"])
    if not wanted.subnet_of(IPv4Network(vpc["cidrBlock"])):
        raise call.refuse("InvalidSubnet.Range", f"The CIDR '{wanted}' is invalid.")
    for other in call.all("aws:ec2/subnet:Subnet").values():
        if other["vpcId"] == call.inputs["vpcId"] and wanted.overlaps(IPv4Network(other["cidrBlock"])):
            text = f"The CIDR '{wanted}' conflicts with another subnet"
            raise call.refuse("InvalidSubnet.Conflict", text)


def _rule_is_whole(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpPermission.html ."""
    if str(call.inputs["ipProtocol"]) == "-1" and {"fromPort", "toPort"} & set(call.inputs):
        raise call.refuse("InvalidParameterValue", "You may not specify ports when specifying all protocols.")
    group = call.inputs["securityGroupId"]
    if call.find("aws:ec2/securityGroup:SecurityGroup", group) is None:
        raise call.refuse("InvalidGroup.NotFound", f"The security group '{group}' does not exist")


def _template_groups_in_one_place(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html ."""
    on_interfaces = any(nic.get("securityGroups") for nic in call.inputs.get("networkInterfaces") or ())
    if call.inputs.get("vpcSecurityGroupIds") and on_interfaces:
        text = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise call.refuse("InvalidParameterCombination", text)


def _template_name_free(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplate.html ."""
    name = call.inputs["name"]
    if any(other["name"] == name for other in call.all(call.kind.token).values()):
        text = f"Launch template name already in use: {name}"
        raise call.refuse("InvalidLaunchTemplateName.AlreadyExistsException", text)
    if not re.fullmatch(r"[a-zA-Z0-9()./_-]{3,128}", name):
        raise call.refuse("InvalidLaunchTemplateName.MalformedException", f"'{name}' is not a valid name")


def _role_name(call: Call) -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html ."""
    name = call.inputs["name"]
    if not re.fullmatch(r"[\w+=,.@-]{1,64}", name):
        text = f"Value '{name}' at 'roleName' failed to satisfy constraint: length less than or equal to 64"
        raise call.refuse("ValidationError", text)
    if name in call.all(call.kind.token):
        raise call.refuse("EntityAlreadyExists", f"Role with name {name} already exists.")


def _cluster_rules(call: Call) -> None:
    """https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html ."""
    if call.inputs["name"] in call.all(call.kind.token):
        raise call.refuse("ResourceInUseException", f"Cluster already exists with name: {call.inputs['name']}")
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", call.inputs["name"]):
        raise call.refuse("InvalidParameterException", "The name parameter contains invalid characters")
    version = call.inputs.get("version")
    if version and version not in EKS_VERSIONS:
        raise call.refuse("InvalidParameterException", f"unsupported Kubernetes version {version}")
    zones = set()
    for id_ in call.inputs["vpcConfig"]["subnetIds"]:
        subnet = call.find("aws:ec2/subnet:Subnet", id_)
        if subnet is None:
            raise call.refuse("InvalidParameterException", f"The subnet ID '{id_}' does not exist")
        zones.add(subnet["availabilityZone"])
    if len(zones) < 2:
        text = "Subnets specified must be in at least two different AZs"
        raise call.refuse("InvalidParameterException", text)


EKS_VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34")
"""https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html"""


@dataclass(frozen=True, kw_only=True)
class LaunchTemplateKind(Kind):
    """A launch template: every change of what it launches is a version, and the earlier ones stay.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-launch-template-versions.html
    """

    async def create(self, call: Call) -> tuple[str, Values]:
        """Make it, with version 1."""
        id_, outputs = await Kind.create(self, call)
        call.world.store.put(_VERSIONS, f"{id_}@1", outputs)
        return id_, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """A new version, if what it launches changed.

        Tags and the like make none: `updateKeys` of Terraform's `aws_launch_template`.
        """
        outputs = {**state, **call.inputs, "tagsAll": call.inputs.get("tags") or {}}
        names = {*call.inputs, *call.old_inputs} - _NOT_LAUNCHED
        if any(call.inputs.get(name) != call.old_inputs.get(name) for name in names):
            outputs["latestVersion"] = state["latestVersion"] + 1
        if call.inputs.get("updateDefaultVersion"):
            outputs["defaultVersion"] = outputs["latestVersion"]
        call.world.store.put(_folder(self.token), id_, outputs)
        call.world.store.put(_VERSIONS, f"{id_}@{outputs['latestVersion']}", outputs)
        return outputs

    async def delete(self, call: Call, id_: str) -> None:
        """Take it away with its versions."""
        await Kind.delete(self, call, id_)
        for version in call.world.store.list(_VERSIONS):
            if version.startswith(f"{id_}@"):
                call.world.store.delete(_VERSIONS, version)

    def preview_change(self, inputs: Values, state: Values, changed: frozenset[str]) -> Values:
        """A version that is to come is unknown, also after a change of tags, which then makes none.

        `CustomizeDiff` of Terraform's `aws_launch_template`.
        """
        outputs = Kind.preview_change(self, inputs, state, changed)
        if changed - {"name", "namePrefix", "description", "defaultVersion", "updateDefaultVersion"}:
            outputs["latestVersion"] = UNKNOWN
            if inputs.get("updateDefaultVersion"):
                outputs["defaultVersion"] = UNKNOWN
        return outputs


_VERSIONS = "aws-launch-template-version"
_NOT_LAUNCHED = {"name", "namePrefix", "tags", "defaultVersion", "updateDefaultVersion", "region"}


def template_version(call: Call, wanted: Values) -> Values | None:
    """The version of a launch template that a node group names, `$Latest` and `$Default` too; None for none."""
    templates = call.all("aws:ec2/launchTemplate:LaunchTemplate")
    if id_ := wanted.get("id"):
        found = templates.get(id_)
    else:
        found = next((t for t in templates.values() if t["name"] == wanted.get("name")), None)
    if found is None:
        return None
    asked = str(wanted.get("version") or "$Default")
    numbers = {"$Latest": found["latestVersion"], "$Default": found["defaultVersion"]}
    number = str(numbers.get(asked, asked))
    kept = call.world.store.get(_VERSIONS, f"{found['id']}@{number}")
    # A state folder of an earlier release of the twin has only the newest.
    newest = found if number == str(found["latestVersion"]) else None
    version = kept or newest
    return {**version, "latestVersion": int(number)} if version else None


@dataclass(frozen=True, kw_only=True)
class ClusterKind(Kind):
    """An EKS cluster: a real control plane."""

    def not_found(self, call: Call, id_: str) -> Refusal:
        """The API's error for one that does not exist."""
        text = f"No cluster found for name: {id_}."
        return Refusal("DescribeCluster", "ResourceNotFoundException", text, what=f"reading EKS Cluster ({id_})")

    async def create(self, call: Call) -> tuple[str, Values]:
        """Start it."""
        for rule in self.rules:
            rule(call)
        name = call.inputs["name"]
        access = await call.world.create_cluster(name, call.inputs.get("version") or EKS_VERSIONS[-1])
        first = call.find("aws:ec2/subnet:Subnet", call.inputs["vpcConfig"]["subnetIds"][0])
        assert first
        config = {
            **call.inputs["vpcConfig"],
            "clusterSecurityGroupId": f"sg-0{secrets.token_hex(8)}",
            "vpcId": first["vpcId"],
        }
        outputs = {
            **call.inputs,
            "id": name,
            "arn": f"arn:aws:eks:{call.region}:{call.account.id}:cluster/{name}",
            "endpoint": access.endpoint,
            "certificateAuthority": {"data": base64.b64encode(access.certificate_authority_pem.encode()).decode()},
            "vpcConfig": config,
            "status": "ACTIVE",
            "platformVersion": "eks.9",
            "version": call.inputs.get("version") or EKS_VERSIONS[-1],
            "tagsAll": call.inputs.get("tags") or {},
        }
        call.world.store.put(_folder(self.token), name, outputs)
        return name, outputs

    async def update(self, call: Call, id_: str, state: Values) -> Values:
        """Change it in place; what AWS decided in vpcConfig stays."""
        config = {**state["vpcConfig"], **call.inputs["vpcConfig"]}
        outputs = {**state, **call.inputs, "vpcConfig": config, "tagsAll": call.inputs.get("tags") or {}}
        call.world.store.put(_folder(self.token), id_, outputs)
        return outputs

    async def delete(self, call: Call, id_: str) -> None:
        """End it. Raises: Refusal."""
        groups = [g for g in call.all("aws:eks/nodeGroup:NodeGroup").values() if g["clusterName"] == id_]
        if groups:
            text = "Cluster has nodegroups attached"
            raise Refusal("DeleteCluster", "ResourceInUseException", text, what=f"deleting EKS Cluster ({id_})")
        await call.world.delete_cluster(id_)
        call.world.store.delete(_folder(self.token), id_)


_RULE = "aws:vpc/securityGroup"


def _group_rule(token: str, operation: str) -> Kind:
    return Kind(
        token=token,
        prefix="sgr",
        operation=operation,
        doing="creating VPC Security Group Rule",
        gone="InvalidSecurityGroupRuleId.NotFound",
        required=("securityGroupId", "ipProtocol"),
        replaces=frozenset({"securityGroupId"}),
        rules=(_rule_is_whole,),
        make=_with(arn("ec2", "security-group-rule/{id}"), lambda _c, id_: {"securityGroupRuleId": id_}),
        computed=("arn", "securityGroupRuleId"),
        seconds=1.0,
    )


@dataclass(frozen=True, kw_only=True)
class OfClusterKind(Kind):
    """What EKS keeps for a cluster by names: `cluster:name`, and for an association `cluster#principal#policy`."""

    def id(self, inputs: Values) -> str:
        """Its id."""
        parts = (inputs["clusterName"], *(str(inputs[name]) for name in self.required[1:] if name != "accessScope"))
        if "policyArn" in inputs:
            return "#".join((parts[0], str(inputs["principalArn"]), str(inputs["policyArn"])))
        return ":".join(parts)


def _of_cluster(name: str, noun: str, operation: str, needs: tuple[str, ...], computed: tuple[str, ...]) -> Kind:
    def make(call: Call, id_: str) -> Values:
        where = f"arn:aws:eks:{call.region}:{call.account.id}:{noun.lower()}/{id_.replace(':', '/')}"
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return {
            key: where if key.lower().endswith("arn") else now if key.endswith("At") else "v1.0.0" for key in computed
        }

    def rule(call: Call) -> None:
        cluster = call.inputs["clusterName"]
        if call.find("aws:eks/cluster:Cluster", cluster) is None:
            raise call.refuse("ResourceNotFoundException", f"No cluster found for name: {cluster}.")
        if call.find(call.kind.token, call.kind.id(call.inputs)):
            raise call.refuse("ResourceInUseException", f"The specified {noun} already exists on this cluster.")

    token = f"aws:eks/{name}:{noun}"
    return OfClusterKind(
        token=token,
        prefix="",
        operation=operation,
        doing=f"creating EKS {noun}",
        required=("clusterName", *needs),
        replaces=frozenset(
            {"clusterName", *needs} - {"accessScope"} | ({"accessScope"} if "policyArn" in needs else set())
        ),
        rules=(rule,),
        make=make,
        computed=computed,
        gone="ResourceNotFoundException",
    )


def _reservation_place(call: Call) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html ."""
    zone, name = call.inputs["availabilityZone"], call.inputs["instanceType"]
    if zone not in call.account.zones.get(call.region, {}):
        raise call.refuse("InvalidParameterValue", f"Value ({zone}) for parameter availabilityZone is invalid.")
    if machine(name) is None:
        raise call.refuse("InvalidParameterValue", f"The following supplied instance types do not exist: [{name}]")


def _kinds() -> tuple[Kind, ...]:
    subnet_holders = (
        ("aws:eks/cluster:Cluster", "vpcConfig"),
        ("aws:eks/nodeGroup:NodeGroup", "subnetIds"),
        ("aws:ec2/natGateway:NatGateway", "subnetId"),
    )
    vpc_holders = (
        ("aws:ec2/subnet:Subnet", "vpcId"),
        ("aws:ec2/securityGroup:SecurityGroup", "vpcId"),
        ("aws:ec2/internetGateway:InternetGateway", "vpcId"),
        ("aws:ec2/routeTable:RouteTable", "vpcId"),
    )
    return (
        Kind(
            token="aws:ec2/vpc:Vpc",
            prefix="vpc",
            operation="CreateVpc",
            gone="InvalidVpcID.NotFound",
            doing="creating EC2 VPC",
            replaces=frozenset({"cidrBlock"}),
            rules=(_vpc_range,),
            make=_with(
                arn("ec2", "vpc/{id}"),
                lambda c, _: {
                    "ownerId": c.account.id,
                    "mainRouteTableId": f"rtb-0{secrets.token_hex(8)}",
                    "defaultSecurityGroupId": f"sg-0{secrets.token_hex(8)}",
                },
            ),
            computed=("arn", "ownerId", "mainRouteTableId", "defaultSecurityGroupId"),
            holds=vpc_holders,
        ),
        Kind(
            token="aws:ec2/subnet:Subnet",
            prefix="subnet",
            operation="CreateSubnet",
            gone="InvalidSubnetID.NotFound",
            doing="creating EC2 Subnet",
            required=("vpcId",),
            replaces=frozenset({"vpcId", "cidrBlock", "availabilityZone"}),
            rules=(_subnet_place,),
            make=_with(
                arn("ec2", "subnet/{id}"),
                lambda c, _: {
                    "ownerId": c.account.id,
                    "availabilityZoneId": c.account.zone_id(c.inputs.get("availabilityZone", "")) or "",
                },
            ),
            computed=("arn", "ownerId", "availabilityZoneId"),
            holds=subnet_holders,
        ),
        Kind(
            token="aws:ec2/internetGateway:InternetGateway",
            prefix="igw",
            operation="CreateInternetGateway",
            gone="InvalidInternetGatewayID.NotFound",
            doing="creating EC2 Internet Gateway",
            make=arn("ec2", "internet-gateway/{id}"),
        ),
        Kind(
            token="aws:ec2/eip:Eip",
            prefix="eipalloc",
            operation="AllocateAddress",
            gone="InvalidAllocationID.NotFound",
            doing="creating EC2 EIP",
            replaces=frozenset({"domain"}),
            make=_with(
                arn("ec2", "elastic-ip/{id}"),
                lambda _c, id_: {"allocationId": id_, "publicIp": f"203.0.113.{secrets.randbelow(254) + 1}"},
            ),
            computed=("arn", "allocationId", "publicIp"),
            holds=(("aws:ec2/natGateway:NatGateway", "allocationId"),),
        ),
        Kind(
            token="aws:ec2/natGateway:NatGateway",
            prefix="nat",
            operation="CreateNatGateway",
            gone="NatGatewayNotFound",
            doing="creating EC2 NAT Gateway",
            required=("subnetId",),
            replaces=frozenset({"subnetId", "allocationId"}),
            make=lambda _c, _id: {
                "networkInterfaceId": f"eni-0{secrets.token_hex(8)}",
                "publicIp": "203.0.113.1",
                "privateIp": "10.0.0.4",
            },
            computed=("networkInterfaceId", "publicIp", "privateIp"),
            seconds=60.0,
        ),
        Kind(
            token="aws:ec2/routeTable:RouteTable",
            prefix="rtb",
            operation="CreateRouteTable",
            gone="InvalidRouteTableID.NotFound",
            doing="creating EC2 Route Table",
            required=("vpcId",),
            replaces=frozenset({"vpcId"}),
            make=_with(arn("ec2", "route-table/{id}"), lambda c, _: {"ownerId": c.account.id}),
            computed=("arn", "ownerId"),
        ),
        Kind(
            token="aws:ec2/route:Route",
            prefix="r-rtb",
            operation="CreateRoute",
            gone="InvalidRoute.NotFound",
            doing="creating EC2 Route",
            required=("routeTableId",),
            replaces=frozenset({"routeTableId", "destinationCidrBlock"}),
            make=lambda _c, _id: {"state": "active", "origin": "CreateRoute"},
            computed=("state", "origin"),
        ),
        Kind(
            token="aws:ec2/routeTableAssociation:RouteTableAssociation",
            prefix="rtbassoc",
            operation="AssociateRouteTable",
            gone="InvalidAssociationID.NotFound",
            doing="creating EC2 Route Table Association",
            required=("routeTableId",),
            replaces=frozenset({"subnetId", "gatewayId"}),
            computed=(),
            seconds=1.0,
        ),
        Kind(
            token="aws:ec2/securityGroup:SecurityGroup",
            prefix="sg",
            operation="CreateSecurityGroup",
            doing="creating EC2 Security Group",
            replaces=frozenset({"vpcId", "name", "description"}),
            named="name",
            make=_with(lambda c, id_: {**arn("ec2", "security-group/{id}")(c, id_), "ownerId": c.account.id}),
            computed=("arn", "ownerId"),
            # Interfaces of what runs hold it; a launch template that names it does not.
            holds=(
                ("aws-instance", "groups"),
                ("aws:eks/cluster:Cluster", "vpcConfig"),
                (f"{_RULE}IngressRule:SecurityGroupIngressRule", "referencedSecurityGroupId"),
                (f"{_RULE}EgressRule:SecurityGroupEgressRule", "referencedSecurityGroupId"),
            ),
            gone="InvalidGroup.NotFound",
        ),
        _group_rule("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "AuthorizeSecurityGroupIngress"),
        _group_rule("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "AuthorizeSecurityGroupEgress"),
        Kind(
            token="aws:iam/role:Role",
            prefix="",
            operation="CreateRole",
            gone="NoSuchEntity",
            doing="creating IAM Role",
            required=("assumeRolePolicy",),
            replaces=frozenset({"name", "namePrefix", "path"}),
            named="name",
            rules=(_role_name,),
            make=_with(
                arn("iam", "role/{name}"),
                lambda _c, _id: {
                    "uniqueId": f"AROA{secrets.token_hex(8).upper()}",
                    "createDate": "2026-01-05T09:00:00Z",
                },
            ),
            computed=("arn", "uniqueId", "createDate"),
            holds=(("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "role"),),
        ),
        Kind(
            token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            prefix="attachment",
            operation="AttachRolePolicy",
            gone="NoSuchEntity",
            doing="attaching IAM Policy to IAM Role",
            required=("role", "policyArn"),
            replaces=frozenset({"role", "policyArn"}),
            computed=(),
            seconds=1.0,
        ),
        LaunchTemplateKind(
            token="aws:ec2/launchTemplate:LaunchTemplate",
            prefix="lt",
            operation="CreateLaunchTemplate",
            doing="creating EC2 Launch Template",
            replaces=frozenset({"name", "namePrefix"}),
            named="name",
            rules=(_template_name_free, _template_groups_in_one_place),
            make=_with(
                lambda c, id_: {**arn("ec2", "launch-template/{id}")(c, id_), "latestVersion": 1, "defaultVersion": 1}
            ),
            computed=("arn", "latestVersion", "defaultVersion"),
            gone="InvalidLaunchTemplateId.NotFound",
            seconds=1.0,
        ),
        Kind(
            token=RESERVATION,
            prefix="cr",
            operation="CreateCapacityReservation",
            doing="creating EC2 Capacity Reservation",
            required=("availabilityZone", "instanceCount", "instancePlatform", "instanceType"),
            replaces=frozenset(
                {
                    "availabilityZone",
                    "ebsOptimized",
                    "ephemeralStorage",
                    "instanceMatchCriteria",
                    "instancePlatform",
                    "instanceType",
                    "outpostArn",
                    "placementGroupArn",
                    "tenancy",
                }
            ),
            rules=(_reservation_place,),
            make=_with(arn("ec2", "capacity-reservation/{id}"), lambda c, _: {"ownerId": c.account.id}),
            computed=("arn", "ownerId"),
            gone="InvalidCapacityReservationId.NotFound",
        ),
        _of_cluster("accessEntry", "AccessEntry", "CreateAccessEntry", ("principalArn",), ("accessEntryArn",)),
        _of_cluster(
            "accessPolicyAssociation",
            "AccessPolicyAssociation",
            "AssociateAccessPolicy",
            ("policyArn", "principalArn", "accessScope"),
            ("associatedAt", "modifiedAt"),
        ),
        _of_cluster("addon", "Addon", "CreateAddon", ("addonName",), ("arn", "addonVersion")),
        Kind(
            token="aws:ec2/placementGroup:PlacementGroup",
            prefix="",
            operation="CreatePlacementGroup",
            gone="InvalidPlacementGroup.Unknown",
            doing="creating EC2 Placement Group",
            named="name",
            replaces=frozenset({"name", "strategy"}),
            make=_with(
                arn("ec2", "placement-group/{name}"),
                lambda _c, _id: {"placementGroupId": f"pg-0{secrets.token_hex(8)}"},
            ),
            computed=("arn", "placementGroupId"),
            seconds=1.0,
        ),
        ClusterKind(
            token="aws:eks/cluster:Cluster",
            prefix="",
            operation="CreateCluster",
            doing="creating EKS Cluster",
            required=("roleArn", "vpcConfig"),
            replaces=frozenset({"name", "roleArn", "kubernetesNetworkConfig", "encryptionConfig"}),
            named="name",
            rules=(_cluster_rules,),
            computed=("arn", "endpoint", "certificateAuthority", "status", "platformVersion"),
        ),
    )


def preview_of(kind: Kind, inputs: Values) -> Values:
    """Outputs in a preview. A cluster's vpcConfig gets its security group from AWS."""
    outputs = kind.preview(inputs)
    if isinstance(kind, ClusterKind) and known(inputs.get("vpcConfig")):
        outputs["vpcConfig"] = {**inputs["vpcConfig"], "clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}
    elif isinstance(kind, ClusterKind):
        outputs["vpcConfig"] = UNKNOWN
    return outputs


KINDS: Mapping[str, Kind] = {kind.token: kind for kind in _kinds()}
