"""Public reports as a review gets them: from a case file and a part of it to the resources, or to the findings.

The files have no ids for what is created with them, and name things of a stack by their names; here each resource gets
the id that the others in its file call it by, and what a file leaves out (the interfaces that carry a group) is added.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plumbline.review import UNKNOWN, Finding, Graph, Resource, Step, from_engine, review, review_steps
from plumbline.review.agreements import SubnetPlace, review_lustre_port, review_memlock, review_reservation
from plumbline.review.groups import review_described_group
from plumbline.review.names import longest_name, review_names
from plumbline.review.types import (
    CLAIM,
    CLUSTER,
    DAEMON_SET,
    JOB,
    LAUNCH_TEMPLATE,
    LUSTRE,
    NODE_GROUP,
    PLACEMENT_GROUP,
    POD,
    SECURITY_GROUP,
    STORAGE_CLASS,
)

CASES = Path(__file__).parent.parent / "cases"
GROUP = "sg-0aaaabbbbccccdd01"


@cache
def _text(name: str) -> str:
    return (CASES / name).read_text("utf-8")


def case(name: str) -> Any:
    """The file; a list where it holds several documents."""
    if name.endswith(".json"):
        return json.loads(_text(name))
    documents = list(yaml.safe_load_all(_text(name)))
    return documents[0] if len(documents) == 1 else documents


def resource(raw: Mapping[str, Any], **more: Any) -> Resource:
    """A resource as the files write it."""
    return Resource(type=raw["type"], name=raw["name"], props=raw["props"], **more)


def single(name: str, part: str) -> Graph:
    return Graph([resource(case(name)[part])])


def several(name: str, part: str) -> Graph:
    """Resources that call each other by ids that the file gives to none of them."""
    document = case(name) if part == "all" else case(name)[part]
    raws = document["resources"]
    calls = next((raw["props"]["launchTemplate"]["id"] for raw in raws if raw["type"] == NODE_GROUP), UNKNOWN)
    ids = {LAUNCH_TEMPLATE: calls, PLACEMENT_GROUP: next((r["name"] for r in raws if r["type"] == PLACEMENT_GROUP), "")}
    resources = [resource(raw, id=ids.get(raw["type"], UNKNOWN)) for raw in raws]
    zones = document.get("subnet_zones") or {"subnet-0aaaa0000000001": "us-west-2a"}
    return Graph(resources, subnet_zones=zones)


def efa_groups(name: str, part: str) -> Graph:
    """The group, on the interfaces of a template."""
    raw = case(name)[part]
    raws = raw if isinstance(raw, list) else [raw]
    resources = []
    for each in raws:
        props = {key: UNKNOWN if str(value).startswith("<unknown") else value for key, value in each["props"].items()}
        waits_for = tuple(each.get("dependsOn", ()))
        dependencies = {key: waits_for for key, value in props.items() if value is UNKNOWN}
        resources.append(resource({**each, "props": props}, dependencies=waits_for, property_dependencies=dependencies))
    interface = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa", "securityGroups": [UNKNOWN]}
    template = Resource(
        type=LAUNCH_TEMPLATE,
        name="pool",
        props={"networkInterfaces": [interface]},
        property_dependencies={"networkInterfaces": ("efa",)},
    )
    return Graph([*resources, template])


def file_system(name: str, part: str) -> Graph:
    """The file system with the group, and the nodes that the group's rules name."""
    document = case(name)
    # The report's file system is older than the version that nodes mount: that is another rule's.
    props = {**document["filesystem"]["props"], "fileSystemTypeVersion": "2.15"}
    interface = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa-only", "securityGroups": [GROUP]}
    primary = {**interface, "interfaceType": "interface"}
    return Graph(
        [
            resource({**document["filesystem"], "props": props}),
            resource(document[part], id=props["securityGroupIds"][0]),
            Resource(
                type=LAUNCH_TEMPLATE,
                name="pool",
                props={"networkInterfaces": [primary, {**interface, "deviceIndex": 1}]},
            ),
        ]
    )


def fsx(name: str, part: str) -> Graph:
    row = next(each for each in case(name)["cases"] if each["n"] == part)
    keys = {
        "deploymentType": "deploymentType",
        "storageType": "storageType",
        "capacityGib": "storageCapacity",
        "throughput": "perUnitStorageThroughput",
        "efaEnabled": "efaEnabled",
        "subnetIds": "subnetIds",
    }
    props = {ours: row[theirs] for theirs, ours in keys.items() if row.get(theirs) is not None}
    props.setdefault("subnetIds", "subnet-0aaaa0000000001")
    props["fileSystemTypeVersion"] = "2.15"
    if row.get("efaEnabled"):
        props["metadataConfiguration"] = {"mode": "AUTOMATIC"}
    return Graph([Resource(type=LUSTRE, name="scratch", props=props)])


def tolerations(name: str, part: str) -> Graph:
    pool, discovery, plugin = case(name)
    taints = [{**each, "effect": {"NoSchedule": "NO_SCHEDULE"}[each["effect"]]} for each in pool["pool"]["taints"]]
    group = Resource(type=NODE_GROUP, name=pool["pool"]["name"], props={"taints": taints})
    sets = [plugin] if part == "plugin" else [discovery, plugin]
    return Graph([group, *(Resource(type=DAEMON_SET, name=each["metadata"]["name"], props=each) for each in sets)])


def architectures(name: str, _: str) -> Graph:
    document = case(name)
    image = document["pod"]["status"]["containerStatuses"][0]["image"]
    platforms = [
        f"{each['platform']['os']}/{each['platform']['architecture']}" for each in document["image_index"]["manifests"]
    ]
    ami = {"arm64": "AL2023_ARM_64_NVIDIA"}[document["node"]["metadata"]["labels"]["kubernetes.io/arch"]]
    spec = {"containers": [{"name": "device-plugin", "image": image}]}
    return Graph(
        [
            Resource(type=NODE_GROUP, name="gb", props={"amiType": ami}),
            Resource(type=DAEMON_SET, name="plugin", props={"spec": {"template": {"spec": spec}}}),
        ],
        image_platforms={image: platforms},
    )


def job(name: str, _: str) -> Graph:
    return Graph([Resource(type=JOB, name="nccl-gate", props=case(name))])


def locked_pod(name: str, _: str) -> Graph:
    return Graph([Resource(type=POD, name="worker", props={"spec": case(name)["pod_spec"]})])


def claim(name: str, part: str) -> Graph:
    document = case(name)
    storage, wanted = document["storageClass"], document["pvc"]
    for key, value in ({} if part == "all" else document["good"][int(part)]).items():
        if key == "annotations":
            wanted["metadata"]["annotations"] = value
        else:
            storage[key] = value
    return Graph(
        [Resource(type=STORAGE_CLASS, name="class", props=storage), Resource(type=CLAIM, name="claim", props=wanted)]
    )


def release(name: str, part: str) -> Graph:
    raw, cluster = case(name)[part], case(name)["good"]["options"]["deletedWith"]
    return Graph(
        [
            Resource(type=CLUSTER, name="train", props={}, urn=cluster),
            resource(raw, deleted_with=raw["options"].get("deletedWith")),
        ]
    )


def unknowns(name: str, _: str) -> Graph:
    """The report's inputs, as inputs of each of two resources that have such properties."""
    news = from_engine(case(name)["check_during_preview"]["news"])
    subnets = {"subnetIds": news["nested"]["subnets"], "launchTemplate": news["kubeconfig"]}
    return Graph(
        [
            Resource(type=NODE_GROUP, name="group", props={**news, **subnets}),
            Resource(
                type=LUSTRE,
                name="system",
                props={**news, "subnetIds": news["kubeconfig"], "fileSystemTypeVersion": "2.15"},
            ),
            Resource(type=SECURITY_GROUP, name="security", props=news),
        ]
    )


GRAPHS: Mapping[str, Callable[[str, str], Graph]] = {
    "06": tolerations,
    "10": architectures,
    "16": single,
    "20": single,
    "21": single,
    "22": single,
    "24": several,
    "25": efa_groups,
    "27": several,
    "34": job,
    "41": file_system,
    "45": fsx,
    "55": unknowns,
    "57": claim,
    "64": release,
}
"""By the first two characters of a file's name."""


def _reservation(part: str) -> list[Finding]:
    document = case("17-reservation-az-mismatch.yaml")
    pool, found = document["stack_config"]["pools"]["train"], document["describe_capacity_reservation"]
    subnets = [
        SubnetPlace(id=each["id"], zone=each["zone"], zone_id=each["zoneId"])
        for each in document["stack_config"]["network"]["subnets"]
    ]
    if part != "all":
        # Each variant changes one thing of a reservation that fits.
        found |= {"AvailabilityZone": "eu-west-1a", "AvailabilityZoneId": "euw1-az2"}
        change = document["variants"][int(part)]["change"]
        if change.startswith("subnets gains"):
            subnets.append(SubnetPlace(id="subnet-0bbbb0000000002", zone=change.split()[-1]))
        else:
            found |= {
                key: type(found[key])(value) for key, value in (each.split(" -> ") for each in change.split(", "))
            }
    return review_reservation(found, machine=pool["instanceType"], nodes=pool["count"], subnets=subnets)


def _memlock(part: str) -> list[Finding]:
    document = case("46-memlock.yaml")
    probe = document if part == "probe" else document["must_pass"][int(part)]
    limit = probe["rlimit_memlock_kib"]
    mask = probe["capabilities"]["effective_mask"] if part == "probe" else probe["effective_mask"]
    return review_memlock(
        uid=probe["uid"], memlock_kib=None if limit == "unlimited" else limit, effective_mask=int(mask, 16)
    )


def _node_group(part: str) -> list[Finding]:
    document = case("51-fixed-name-nodegroup.json")
    if part in ("good", "first"):
        return review(Graph([resource(document["new" if part == "first" else "good"])]))
    options = document[part]["options"]
    step = Step(
        op="replace",
        type=NODE_GROUP,
        name="train-a",
        old=document["old"]["props"],
        new=document["new"]["props"],
        replace_keys=tuple(document["diff"]["replaceKeys"]),
        delete_before_replace=options["deleteBeforeReplace"],
    )
    return review_steps([step])


def _taint(_: str) -> list[Finding]:
    document = case("52-taint-replace.json")
    preview = document["preview_step"]
    step = Step(
        op=preview["op"],
        type=document["resource"],
        name=document["name"],
        old=document["old"],
        new=document["new"],
        replace_keys=tuple(preview["replaceReasons"]),
    )
    return review_steps([step])


def _lustre_port(_: str) -> list[Finding]:
    config = case("43-lustre-port.yaml")["stack_config"]
    return review_lustre_port(
        gke_support_enabled=config["storage"]["lustre"]["gkeSupportEnabled"],
        client_port=config["pools"]["train"]["lustreClient"]["accPort"],
    )


def _names(part: str) -> list[Finding]:
    row = next(each for each in case("65-name-limits.yaml")["cases"] if each["n"] == part)
    names = [row[key] for key in ("name", "blue", "green") if key in row]
    if "logical" in row:
        assert len(longest_name(row["logical"])) == len(row["logical"] + row["suffix"])
        names.append(longest_name(row["logical"]))
    return review_names(row["kind"], names)


OTHERS: Mapping[str, Callable[[str], list[Finding]]] = {
    "17": _reservation,
    "43": _lustre_port,
    "46": _memlock,
    "51": _node_group,
    "52": _taint,
    "65": _names,
}


def findings(name: str, part: str) -> list[Finding]:
    """What a review finds in a part of a case."""
    number = name[:2]
    if number == "46" and part == "pod_spec":
        return review(locked_pod(name, part))
    if number == "25" and "GroupId" in case(name)[part]:
        return list(review_described_group(case(name)[part]))
    return review(GRAPHS[number](name, part)) if number in GRAPHS else OTHERS[number](part)


def paths(value: Any, so_far: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every path in a value, the value itself left out."""
    children = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in children:
        yield (*so_far, key)
        yield from paths(each, (*so_far, key))


def masked(props: Mapping[str, Any], path: tuple[str | int, ...], value: Any) -> Any:
    """The inputs, with another value at the path."""
    changed = copy.deepcopy(dict(props))
    holder: Any = changed
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    return changed
