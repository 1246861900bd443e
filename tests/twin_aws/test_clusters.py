"""EKS in the simulated AWS: clusters that change, who may use them, add-ons, and the roles of pods."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.twin_aws.test_resources import CLUSTER, GROUP, ROLE, SUBNET, VPC, Site
from tests.twin_aws.worlds import Engine, Refused, engine
from twin.aws.wire import UNKNOWN

ENTRY = "aws:eks/accessEntry:AccessEntry"
POLICY = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
ADDON = "aws:eks/addon:Addon"
IDENTITY = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@pytest.fixture
def aws() -> Iterator[Engine]:
    with engine() as running:
        yield running


def cluster(site: Site, **more: Any) -> dict[str, Any]:
    return {"name": "other", "roleArn": site.role, "vpcConfig": {"subnetIds": site.subnets}, **more}


# --- clusters -------------------------------------------------------------------------------------------------------


def test_cluster_says_what_eks_decided(aws: Engine) -> None:
    site = Site(aws)
    outputs = site.outputs
    assert outputs["identities"][0]["oidcs"][0]["issuer"].startswith("https://oidc.eks.us-west-2.amazonaws.com/id/")
    assert outputs["accessConfig"] == {"authenticationMode": "CONFIG_MAP"}
    assert outputs["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert outputs["vpcConfig"]["endpointPublicAccess"] is True
    assert outputs["vpcConfig"]["publicAccessCidrs"] == ["0.0.0.0/0"]
    imported = aws.inputs_read(CLUSTER, "train")
    assert set(imported["vpcConfig"]) == {
        "subnetIds",
        "endpointPrivateAccess",
        "endpointPublicAccess",
        "publicAccessCidrs",
    }
    assert imported["version"] == "1.34"


def test_preview_of_a_cluster(aws: Engine) -> None:
    _, outputs = aws.create(CLUSTER, preview=True, name="c", roleArn=UNKNOWN, vpcConfig={"subnetIds": ["a", "b"]})
    assert outputs["version"] == outputs["identities"] == outputs["accessConfig"] == UNKNOWN
    assert outputs["vpcConfig"] == {"subnetIds": ["a", "b"], "clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}
    inputs = {"name": "c", "version": "1.33", "vpcConfig": {"subnetIds": ["a", "b"]}}
    state = {**inputs, "platformVersion": "eks.9", "vpcConfig": {"subnetIds": ["a"], "vpcId": "vpc-1"}}
    changed = aws.update(CLUSTER, "c", state, {**inputs, "version": "1.34"}, inputs, preview=True)
    assert changed["platformVersion"] == UNKNOWN
    assert changed["vpcConfig"] == {"subnetIds": ["a", "b"], "vpcId": "vpc-1"}


KEY = {"provider": {"keyArn": "arn:aws:kms:us-west-2:1:key/k"}, "resources": ["secrets"]}


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ({"name": "a"}, {"name": "b"}, ["name"]),
        ({"roleArn": "a"}, {"roleArn": "b"}, ["roleArn"]),
        ({}, {"bootstrapSelfManagedAddons": False}, ["bootstrapSelfManagedAddons"]),
        ({}, {"bootstrapSelfManagedAddons": True}, []),
        ({}, {"encryptionConfig": KEY}, []),
        ({"encryptionConfig": KEY}, {}, ["encryptionConfig"]),
        ({"encryptionConfig": KEY}, {"encryptionConfig": UNKNOWN}, []),
        ({"version": "1.33"}, {"version": "1.34"}, []),
        ({"enabledClusterLogTypes": ["api"]}, {"enabledClusterLogTypes": ["audit"]}, []),
        ({"upgradePolicy": {"supportType": "STANDARD"}}, {"upgradePolicy": {"supportType": "EXTENDED"}}, []),
        ({"deletionProtection": True}, {"deletionProtection": False}, []),
        ({"vpcConfig": {"publicAccessCidrs": ["1.0.0.0/8"]}}, {"vpcConfig": {"publicAccessCidrs": ["2.0.0.0/8"]}}, []),
        ({"vpcConfig": {"endpointPublicAccess": True}}, {"vpcConfig": {"endpointPublicAccess": False}}, []),
        ({"accessConfig": {"authenticationMode": "API"}}, {"accessConfig": {"authenticationMode": "CONFIG_MAP"}}, []),
        (
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": True}},
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}},
            ["accessConfig"],
        ),
        (
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"}},
            {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"}},
            ["kubernetesNetworkConfig"],
        ),
        ({"kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"}}, {}, []),
    ],
    ids=str,
)
def test_what_of_a_cluster_changes_in_place(
    aws: Engine, old: dict[str, Any], new: dict[str, Any], replaces: list[str]
) -> None:
    assert aws.replaces(CLUSTER, old, new)[1] == replaces


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"enabledClusterLogTypes": ["api", "kubelet"]}, "enabledClusterLogTypes[1]"),
        ({"upgradePolicy": {"supportType": "FOREVER"}}, "upgradePolicy.supportType"),
        ({"encryptionConfig": {**KEY, "resources": ["pods"]}}, "encryptionConfig.resources[0]"),
        ({"kubernetesNetworkConfig": {"ipFamily": "ipv5"}}, "kubernetesNetworkConfig.ipFamily"),
        ({"vpcConfig": {"publicAccessCidrs": [UNKNOWN, "10.0.0.1/8"]}}, "vpcConfig.publicAccessCidrs[1]"),
    ],
    ids=str,
)
def test_words_of_a_cluster_are_checked_before_aws_is_asked(aws: Engine, change: dict[str, Any], path: str) -> None:
    _, failures = aws.check(CLUSTER, {"roleArn": "arn:r", "vpcConfig": {"subnetIds": ["a"]}, **change})
    assert list(failures) == [path]


def test_network_of_a_cluster_is_checked_when_it_is_made_and_when_it_changes(aws: Engine) -> None:
    site = Site(aws)
    neither = {"subnetIds": site.subnets, "endpointPublicAccess": False}
    words = "InvalidParameterException: Private and public endpoint access cannot be false"
    with pytest.raises(Refused, match=f"creating EKS Cluster .*CreateCluster.*{words}"):
        aws.create(CLUSTER, **cluster(site, vpcConfig=neither))
    inputs = cluster(site)
    _, state = aws.create(CLUSTER, **inputs)
    with pytest.raises(Refused, match=rf"updating EKS Cluster \(other\).*UpdateClusterConfig.*{words}"):
        aws.update(CLUSTER, "other", state, {**inputs, "vpcConfig": neither}, inputs)
    with pytest.raises(Refused, match="The security group ID 'sg-none' does not exist"):
        aws.create(CLUSTER, **cluster(site, name="third", vpcConfig={**neither, "securityGroupIds": ["sg-none"]}))
    vpc, _ = aws.create(VPC, cidrBlock="10.30.0.0/16")
    far, _ = aws.create(SUBNET, vpcId=vpc, cidrBlock="10.30.0.0/24", availabilityZone="us-west-2c")
    with pytest.raises(Refused, match="must belong to the same VPC"):
        aws.create(CLUSTER, **cluster(site, name="third", vpcConfig={"subnetIds": [*site.subnets, far]}))


def test_settings_change_in_place_and_go_back_to_what_eks_takes_by_itself(aws: Engine) -> None:
    site = Site(aws)
    closed = {
        "subnetIds": site.subnets,
        "endpointPublicAccess": False,
        "endpointPrivateAccess": True,
        "publicAccessCidrs": ["198.51.100.0/24"],
    }
    inputs = cluster(site, vpcConfig=closed, version="1.33", enabledClusterLogTypes=["api"])
    _, state = aws.create(CLUSTER, **inputs)
    changed = aws.update(CLUSTER, "other", state, cluster(site, encryptionConfig=KEY), inputs)
    assert changed["vpcConfig"]["endpointPublicAccess"] is True
    assert changed["vpcConfig"]["endpointPrivateAccess"] is False
    assert changed["vpcConfig"]["publicAccessCidrs"] == ["198.51.100.0/24"]
    assert changed["vpcConfig"]["clusterSecurityGroupId"] == state["vpcConfig"]["clusterSecurityGroupId"]
    assert changed["version"] == "1.33", "a version that is no longer asked for stays"
    assert changed["encryptionConfig"] == KEY
    assert "enabledClusterLogTypes" not in changed


@pytest.mark.parametrize(("old", "new"), [("1.32", "1.34"), ("1.33", "1.32"), ("1.34", "1.35")])
def test_version_goes_up_one_by_one(aws: Engine, old: str, new: str) -> None:
    site = Site(aws)
    inputs = cluster(site, version=old)
    _, state = aws.create(CLUSTER, **inputs)
    words = f"UpdateClusterVersion.*InvalidParameterException: Unsupported Kubernetes minor version update from {old} "
    with pytest.raises(Refused, match=f"{words}to {new}"):
        aws.update(CLUSTER, "other", state, {**inputs, "version": new}, inputs)
    assert aws.outputs_read(CLUSTER, "other")["version"] == old


def test_cluster_does_not_leave_its_nodes_behind(aws: Engine) -> None:
    site = Site(aws)
    inputs = cluster(site, version="1.30")
    _, state = aws.create(CLUSTER, **inputs)
    aws.create(GROUP, **{**site.group(), "clusterName": "other"})
    for version in ("1.31", "1.32", "1.33"):
        news = {**inputs, "version": version}
        state = aws.update(CLUSTER, "other", state, news, inputs)
        inputs = news
    with pytest.raises(Refused, match=r"Nodegroups \[train-h100-1\] must be updated to match cluster version 1.33"):
        aws.update(CLUSTER, "other", state, {**inputs, "version": "1.34"}, inputs)


@pytest.mark.parametrize(("version", "passes"), [("1.30", False), ("1.31", True), ("1.34", True), ("1.35", False)])
def test_nodes_are_not_newer_and_not_much_older_than_their_cluster(aws: Engine, version: str, passes: bool) -> None:
    site = Site(aws)
    if passes:
        assert aws.create(GROUP, **site.group(version=version))[1]["version"] == version
    else:
        words = f"Requested Kubernetes version {version} is not valid for a node group of a cluster with 1.34"
        with pytest.raises(Refused, match=words):
            aws.create(GROUP, **site.group(version=version))


def test_protected_cluster_is_not_deleted(aws: Engine) -> None:
    site = Site(aws)
    inputs = cluster(site, deletionProtection=True)
    _, state = aws.create(CLUSTER, **inputs)
    with pytest.raises(Refused, match=r"InvalidRequestException: .* deletion protection is enabled"):
        aws.delete(CLUSTER, "other")
    aws.update(CLUSTER, "other", state, {**inputs, "deletionProtection": False}, inputs)
    aws.delete(CLUSTER, "other")
    assert "other" not in aws.world.clusters


def test_access_goes_from_the_config_map_to_the_api_and_not_back(aws: Engine) -> None:
    site = Site(aws)
    inputs = cluster(site)
    _, state = aws.create(CLUSTER, **inputs)
    for mode in ("API_AND_CONFIG_MAP", "API"):
        news = {**inputs, "accessConfig": {"authenticationMode": mode}}
        state = aws.update(CLUSTER, "other", state, news, inputs)
        inputs = news
    words = "Unsupported authentication mode update from API to CONFIG_MAP"
    with pytest.raises(Refused, match=words):
        aws.update(CLUSTER, "other", state, {**inputs, "accessConfig": {"authenticationMode": "CONFIG_MAP"}}, inputs)


def test_cluster_of_an_older_release_of_the_twin_still_changes(aws: Engine) -> None:
    site = Site(aws)
    folder = "aws-eks-cluster-Cluster"
    old = aws.world.store.get(folder, "train")
    assert old
    young = ("accessConfig", "kubernetesNetworkConfig", "upgradePolicy", "identities", "createdAt")
    for name in young:
        del old[name]
    old["vpcConfig"] = {"subnetIds": site.subnets, "vpcId": site.vpc, "clusterSecurityGroupId": "sg-1"}
    aws.world.store.put(folder, "train", old)
    inputs = {"name": "train", "roleArn": site.role, "vpcConfig": {"subnetIds": site.subnets}}
    changed = aws.update(CLUSTER, "train", old, {**inputs, "tags": {"a": "b"}}, inputs)
    assert changed["tagsAll"] == {"a": "b"}
    assert aws.look_up("aws:eks/getCluster:getCluster", name="train")["accessConfigs"] == []


# --- access ---------------------------------------------------------------------------------------------------------


class Guarded(Site):
    """A site whose second cluster keeps access entries, and a person's role."""

    def __init__(self, aws: Engine) -> None:
        super().__init__(aws)
        aws.create(CLUSTER, **cluster(self, version="1.34", accessConfig={"authenticationMode": "API"}))
        _, person = aws.create(ROLE, assumeRolePolicy="{}", name="person")
        self.person = person["arn"]
        self.entry: dict[str, Any] = {"clusterName": "other", "principalArn": self.person}
        self.policy: dict[str, Any] = {**self.entry, "policyArn": ADMIN, "accessScope": {"type": "cluster"}}


def test_access_entry_and_policy_are_made_once_and_go_together(aws: Engine) -> None:
    site = Guarded(aws)
    id_, entry = aws.create(ENTRY, **site.entry)
    assert id_ == f"other:{site.person}"
    assert (entry["type"], entry["kubernetesGroups"]) == ("STANDARD", [])
    assert entry["userName"] == site.person.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + (
        "/{{SessionName}}"
    )
    account = site.person.split(":")[4]
    assert f":access-entry/other/role/{account}/person/" in entry["accessEntryArn"]
    with pytest.raises(Refused, match="ResourceInUseException: The specified access entry resource is already in use"):
        aws.create(ENTRY, **site.entry)
    policy, _ = aws.create(POLICY, **site.policy)
    assert policy == f"other#{site.person}#{ADMIN}"
    with pytest.raises(Refused, match="ResourceInUseException"):
        aws.create(POLICY, **site.policy)
    aws.delete(ENTRY, id_)
    assert aws.read(POLICY, policy) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusterName": "none"}, "ResourceNotFoundException: No cluster found for name: none"),
        ({"clusterName": "train"}, r"must be set to one of \[API, API_AND_CONFIG_MAP\]"),
        ({"principalArn": "arn:p"}, "The specified principalArn is invalid: invalid principal"),
        ({"principalArn": "{account}:role/nobody"}, "The specified principalArn is invalid: invalid principal"),
        ({"kubernetesGroups": ["system:masters"]}, "name system:masters is invalid, it cannot start with system:"),
        ({"type": "EC2_LINUX", "kubernetesGroups": ["mine"]}, "of type EC2_LINUX takes no kubernetesGroups"),
    ],
    ids=str,
)
def test_access_entry_that_eks_refuses(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Guarded(aws)
    account = site.person.split(":role/")[0]
    inputs: dict[str, Any] = {
        k: v.format(account=account) if isinstance(v, str) else v for k, v in {**site.entry, **change}.items()
    }
    with pytest.raises(Refused, match=words):
        aws.create(ENTRY, **inputs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"principalArn": "arn:aws:iam::1:role/x"}, "principalArn could not be found. You can view your available"),
        ({"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}, "The policyArn parameter format is not valid"),
        ({"clusterName": "train"}, r"must be set to one of \[API, API_AND_CONFIG_MAP\]"),
    ],
    ids=str,
)
def test_policy_that_eks_does_not_associate(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Guarded(aws)
    aws.create(ENTRY, **site.entry)
    with pytest.raises(Refused, match=words):
        aws.create(POLICY, **{**site.policy, **change})


def test_scope_of_a_policy_is_checked_before_aws_is_asked(aws: Engine) -> None:
    inputs = {"clusterName": "c", "principalArn": "arn:p", "policyArn": ADMIN}
    _, failures = aws.check(POLICY, {**inputs, "accessScope": {"type": "node"}})
    assert list(failures) == ["accessScope.type"]
    _, failures = aws.check(POLICY, {**inputs, "accessScope": {"type": "namespace"}})
    assert list(failures) == ["accessScope.namespaces"]


@pytest.mark.parametrize(
    ("token", "names"),
    [
        (ENTRY, ("clusterName", "principalArn", "type")),
        (POLICY, ("clusterName", "principalArn", "policyArn", "accessScope")),
        (ADDON, ("clusterName", "addonName")),
        (IDENTITY, ("clusterName", "namespace", "serviceAccount")),
    ],
)
def test_what_of_a_clusters_parts_replaces(aws: Engine, token: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert aws.replaces(token, {name: "a"}, {name: "b"}) == ([name], [name])
    for name in ("kubernetesGroups", "addonVersion", "configurationValues", "roleArn", "tags"):
        assert aws.replaces(token, {name: "a"}, {name: "b"}) == ([name], [])


def test_nodes_get_their_access_entry_from_eks(aws: Engine) -> None:
    site = Guarded(aws)
    aws.create(GROUP, **{**site.group(), "clusterName": "other"})
    entry = aws.outputs_read(ENTRY, f"other:{site.role}")
    assert (entry["type"], entry["kubernetesGroups"]) == ("EC2_LINUX", ["system:nodes"])
    assert entry["userName"] == "system:node:{{EC2PrivateDNSName}}"
    with pytest.raises(Refused, match="already in use on this cluster"):
        aws.create(ENTRY, clusterName="other", principalArn=site.role, type="EC2_LINUX")
    with pytest.raises(Refused, match="cannot be associated with an access entry of type EC2_LINUX"):
        aws.create(POLICY, **{**site.policy, "principalArn": site.role})


def test_cluster_without_entries_makes_none(aws: Engine) -> None:
    site = Site(aws)
    aws.create(GROUP, **site.group())
    assert aws.read(ENTRY, f"train:{site.role}") == ""


# --- add-ons and the roles of pods ----------------------------------------------------------------------------------


def trust(*actions: str, service: str = "pods.eks.amazonaws.com") -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Pods(Site):
    """A site with a role for pods."""

    def __init__(self, aws: Engine) -> None:
        super().__init__(aws)
        _, role = aws.create(ROLE, name="pods", assumeRolePolicy=trust("sts:AssumeRole", "sts:TagSession"))
        self.pods = role["arn"]
        self.addon: dict[str, Any] = {"clusterName": "train", "addonName": "aws-fsx-csi-driver"}
        self.driver: dict[str, Any] = {"serviceAccount": "fsx-csi-controller-sa", "roleArn": self.pods}
        self.identity: dict[str, Any] = {"clusterName": "train", "namespace": "kube-system", **self.driver}


def test_addon_is_made_once_changes_in_place_and_goes_with_its_cluster(aws: Engine) -> None:
    site = Pods(aws)
    inputs = {**site.addon, "addonVersion": "v1.9.0-eksbuild.1", "configurationValues": '{"node": {}}'}
    id_, state = aws.create(ADDON, **inputs)
    assert id_ == "train:aws-fsx-csi-driver"
    assert ":addon/train/aws-fsx-csi-driver/" in state["arn"]
    with pytest.raises(Refused, match="ResourceInUseException: Addon already exists"):
        aws.create(ADDON, **inputs)
    changed = aws.update(ADDON, id_, state, {**inputs, "addonVersion": "v1.10.0-eksbuild.2"}, inputs)
    assert (changed["addonVersion"], changed["arn"]) == ("v1.10.0-eksbuild.2", state["arn"])
    aws.delete(CLUSTER, "train")
    assert aws.read(ADDON, id_) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusterName": "none"}, "ResourceNotFoundException: No cluster found for name: none"),
        ({"addonName": "aws-fsx-driver"}, "InvalidParameterException: Addon specified is not supported"),
        ({"addonVersion": "1.9.0"}, "InvalidParameterException: Addon version specified is not supported"),
        ({"configurationValues": "{"}, "ConfigurationValue provided in request is not supported"),
        ({"configurationValues": "[1]"}, "ConfigurationValue provided in request is not supported"),
        ({"serviceAccountRoleArn": "arn:aws:iam::1:role/no"}, "Role provided in the request does not exist"),
    ],
    ids=str,
)
def test_addon_that_eks_refuses(aws: Engine, change: dict[str, Any], words: str) -> None:
    site = Pods(aws)
    with pytest.raises(Refused, match=words):
        aws.create(ADDON, **{**site.addon, **change})
    if not {"clusterName", "addonName"} & set(change):
        id_, state = aws.create(ADDON, **site.addon)
        with pytest.raises(Refused, match=rf"updating EKS Add-On \({id_}\): operation error EKS: UpdateAddon.*{words}"):
            aws.update(ADDON, id_, state, {**site.addon, **change}, site.addon)


def test_addon_resolves_conflicts_as_it_can(aws: Engine) -> None:
    inputs = {"clusterName": "train", "addonName": "vpc-cni"}
    _, failures = aws.check(ADDON, {**inputs, "resolveConflictsOnCreate": "PRESERVE"})
    assert failures == {
        "resolveConflictsOnCreate": 'expected resolveConflictsOnCreate to be one of ["NONE" "OVERWRITE"], got PRESERVE'
    }
    assert aws.check(ADDON, {**inputs, "resolveConflictsOnUpdate": "PRESERVE"})[1] == {}


@pytest.mark.parametrize("document", [trust("sts:AssumeRole"), trust("sts:AssumeRole", service="ec2.amazonaws.com")])
def test_role_of_pods_has_to_trust_eks(aws: Engine, document: str) -> None:
    site = Pods(aws)
    _, role = aws.create(ROLE, name="wrong", assumeRolePolicy=document)
    words = "Trust policy of the role provided is invalid. Follow the official documentation to resolve the issue."
    with pytest.raises(Refused, match=f"CreatePodIdentityAssociation.*{words}"):
        aws.create(IDENTITY, **{**site.identity, "roleArn": role["arn"]})
    with pytest.raises(Refused, match=f"CreateAddon.*{words}"):
        aws.create(ADDON, **site.addon, podIdentityAssociations=[{**site.driver, "roleArn": role["arn"]}])
    with pytest.raises(Refused, match="Role provided in the request does not exist"):
        aws.create(IDENTITY, **{**site.identity, "roleArn": "arn:aws:iam::1:role/none"})


def test_pod_identity_is_one_to_a_service_account(aws: Engine) -> None:
    site = Pods(aws)
    id_, outputs = aws.create(IDENTITY, **site.identity)
    assert id_.startswith("a-")
    assert outputs["associationId"] == id_
    assert outputs["associationArn"].endswith(f":podidentityassociation/train/{id_}")
    with pytest.raises(Refused, match=f"ResourceInUseException: Association already exists: {id_}"):
        aws.create(IDENTITY, **site.identity)
    with pytest.raises(Refused, match=f"ResourceInUseException: Association already exists: {id_}"):
        aws.create(ADDON, **site.addon, podIdentityAssociations=[site.driver])
    aws.create(IDENTITY, **{**site.identity, "namespace": "another"})
    elsewhere = {**site.addon, "namespaceConfig": {"namespace": "storage"}}
    aws.create(ADDON, **elsewhere, podIdentityAssociations=[site.driver])
    with pytest.raises(Refused, match="No cluster found for name: none"):
        aws.create(IDENTITY, **{**site.identity, "clusterName": "none"})


def test_pod_identity_of_an_addon_comes_and_goes_with_it(aws: Engine) -> None:
    site = Pods(aws)
    inputs = {**site.addon, "podIdentityAssociations": [site.driver]}
    id_, state = aws.create(ADDON, **inputs)
    with pytest.raises(Refused, match="ResourceInUseException: Association already exists: a-"):
        aws.create(IDENTITY, **site.identity)
    same = aws.update(ADDON, id_, state, {**inputs, "tags": {"a": "b"}}, inputs)
    assert same["podIdentityAssociations"] == [site.driver]
    changed = aws.update(ADDON, id_, same, site.addon, inputs)
    assert "podIdentityAssociations" not in changed
    own, _ = aws.create(IDENTITY, **site.identity)
    aws.delete(ADDON, id_)
    assert aws.read(IDENTITY, own) == own
