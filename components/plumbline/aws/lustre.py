"""FSx for Lustre: the file system, who may reach it, and the volume by which pods mount it."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from plumbline.aws.network import AwsNetwork
from plumbline.catalog import fsx_catalogue
from plumbline.site import ExistingLustre, Lustre
from plumbline.site.rules import LUSTRE_DEPLOYMENT, LUSTRE_STORAGE

_DRIVER = "fsx.csi.aws.com"


class AwsLustre(pulumi.ComponentResource):
    """A file system that nodes mount: made here and protected, or adopted and left as it is."""

    id: pulumi.Output[str]
    dns_name: pulumi.Output[str]
    mount_name: pulumi.Output[str]
    capacity_gib: pulumi.Output[int]
    serving: list[pulumi.Resource]
    """What mounts rest on. Depend on these and not on the component: claims, which come late, are its children too."""

    def __init__(
        self,
        name: str,
        storage: Lustre | ExistingLustre,
        *,
        site: str,
        network: AwsNetwork,
        kubernetes: k8s.Provider,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("plumbline:index:AwsLustre", name, None, opts)
        self._name = name
        self._kubernetes = kubernetes
        self._tags = {"plumbline.dev/site": site, "plumbline.dev/storage": storage.name, "Name": name}
        system = self._make(name, storage, network) if isinstance(storage, Lustre) else self._adopt(name, storage)
        self.id, self.dns_name, self.mount_name = system.id, system.dns_name, system.mount_name
        self.capacity_gib = system.storage_capacity.apply(lambda gib: gib or 0)
        self._class = k8s.storage.v1.StorageClass(
            f"{name}-class",
            metadata={"name": name},
            # The volume is the file system that is there: nothing makes another one behind anybody's back.
            provisioner="kubernetes.io/no-provisioner",
            reclaim_policy="Retain",
            volume_binding_mode="Immediate",
            opts=pulumi.ResourceOptions(parent=self, provider=kubernetes),
        )
        self.serving = [system, self._class]
        self.register_outputs({"id": self.id})

    def claim(self, namespace: str, opts: pulumi.ResourceOptions | None = None) -> k8s.core.v1.PersistentVolumeClaim:
        """A volume and a claim by which pods of a namespace mount it, under the storage's name.

        A volume serves one claim, so that every namespace has one of its own; the file system is the same.

        Args:
            namespace: name of the namespace, which has to exist: depend on it in `opts`.
            opts: for both.
        """
        own = pulumi.ResourceOptions.merge(
            pulumi.ResourceOptions(parent=self, provider=self._kubernetes, depends_on=[self._class]),
            opts or pulumi.ResourceOptions(),
        )
        size = self.capacity_gib.apply(lambda gib: f"{gib}Gi")
        name = f"{self._name}-{namespace}"
        volume = k8s.core.v1.PersistentVolume(
            name,
            metadata={"name": name, "labels": {"app.kubernetes.io/managed-by": "plumbline"}},
            spec={
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": self._name,
                "mountOptions": ["flock"],
                "claimRef": {"namespace": namespace, "name": self._name},
                "csi": {
                    "driver": _DRIVER,
                    "volumeHandle": self.id,
                    "volumeAttributes": {"dnsname": self.dns_name, "mountname": self.mount_name},
                },
            },
            opts=own,
        )
        return k8s.core.v1.PersistentVolumeClaim(
            name,
            metadata={"name": self._name, "namespace": namespace},
            spec={
                "accessModes": ["ReadWriteMany"],
                "storageClassName": self._name,
                "volumeName": name,
                "resources": {"requests": {"storage": size}},
            },
            opts=pulumi.ResourceOptions.merge(own, pulumi.ResourceOptions(depends_on=[volume])),
        )

    def _adopt(self, name: str, storage: ExistingLustre) -> aws.fsx.LustreFileSystem:
        """Read a file system; nothing of it is managed here."""
        return aws.fsx.LustreFileSystem.get(name, storage.id, opts=pulumi.ResourceOptions(parent=self))

    def _make(self, name: str, storage: Lustre, network: AwsNetwork) -> aws.fsx.LustreFileSystem:
        group, rules = self._group(name, network, efa=storage.efa)
        system = aws.fsx.LustreFileSystem(
            name,
            subnet_ids=network.subnets[storage.zone],
            deployment_type=LUSTRE_DEPLOYMENT,
            storage_type=LUSTRE_STORAGE,
            storage_capacity=storage.capacity_gib,
            per_unit_storage_throughput=storage.throughput_mbps_per_tib,
            file_system_type_version=fsx_catalogue().versions.recommended,
            efa_enabled=storage.efa,
            metadata_configuration=aws.fsx.LustreFileSystemMetadataConfigurationArgs(
                mode="USER_PROVISIONED" if storage.metadata_iops else "AUTOMATIC", iops=storage.metadata_iops
            ),
            data_compression_type="LZ4" if storage.compression == "lz4" else "NONE",
            automatic_backup_retention_days=storage.backup_days,
            skip_final_backup=storage.backup_days == 0,
            security_group_ids=[group.id],
            tags=self._tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=rules,
                # Protected, it is neither deleted nor replaced: the engine says so in preview.
                protect=storage.on_destroy == "refuse",
                retain_on_delete=storage.on_destroy == "keep",
                # FSx refuses it only when it is tried, in the middle of an update: better that preview says it.
                replace_on_changes=["perUnitStorageThroughput"] if storage.efa else None,
            ),
        )
        if storage.repository:
            aws.fsx.DataRepositoryAssociation(
                name,
                file_system_id=system.id,
                file_system_path=storage.repository.path,
                data_repository_path=storage.repository.s3,
                batch_import_meta_data_on_create=True,
                s3=aws.fsx.DataRepositoryAssociationS3Args(
                    auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(
                        events=list(storage.repository.imports)
                    )
                    if storage.repository.imports
                    else None,
                    auto_export_policy=aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(
                        events=list(storage.repository.exports)
                    )
                    if storage.repository.exports
                    else None,
                ),
                tags=self._tags,
                opts=pulumi.ResourceOptions(parent=self),
            )
        return system

    def _group(
        self, name: str, network: AwsNetwork, *, efa: bool
    ) -> tuple[aws.ec2.SecurityGroup, Sequence[pulumi.Resource]]:
        """Who may reach it: its own servers, and the nodes of pools. FSx looks at the rules before it makes anything.

        https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
        """
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(
            name,
            vpc_id=network.vpc_id,
            description="File servers of FSx for Lustre: among themselves, and with nodes of GPU pools",
            tags=self._tags,
            opts=child,
        )
        facts = fsx_catalogue().network
        directions = {"in": aws.vpc.SecurityGroupIngressRule, "out": aws.vpc.SecurityGroupEgressRule}
        # EFA is matched by no port: all traffic, and by reference.
        ports = [(None, None)] if efa else list(facts.ports)
        nodes = network.fabric_group.id
        rules: list[pulumi.Resource] = [
            kind(
                f"{name}-{who}" + (f"-{first}" if first else "") + f"-{direction}",
                security_group_id=group.id,
                referenced_security_group_id=peer,
                ip_protocol="-1" if efa else facts.protocol,
                from_port=first,
                to_port=last,
                opts=child,
            )
            for who, peer in (("servers", group.id), ("nodes", nodes))
            for first, last in ports
            for direction, kind in directions.items()
        ]
        # And on the nodes' side: what file servers open towards them and, for EFA, what they open by reference.
        rules += [
            kind(
                f"{name}-to-nodes-{direction}",
                security_group_id=nodes,
                referenced_security_group_id=group.id,
                ip_protocol="-1",
                opts=child,
            )
            for direction, kind in directions.items()
            if efa or direction == "in"
        ]
        return group, rules
