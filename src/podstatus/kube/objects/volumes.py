"""Wire types of `v1.Volume` and its sources."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.containers import VolumeResourceRequirements
from podstatus.kube.objects.meta import (
    LabelSelector,
    LocalObjectReference,
    ObjectFieldSelector,
    ObjectMeta,
    ResourceFieldSelector,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from podstatus.kube.scalars.quantity import Quantity


class HostPathVolumeSource(Wire, frozen=True, kw_only=True):
    path: str = field(default_factory=str)
    type: str | None = None


class EmptyDirVolumeSource(Wire, frozen=True, kw_only=True):
    medium: str = ""
    size_limit: Quantity | None = None


class GCEPersistentDiskVolumeSource(Wire, frozen=True, kw_only=True):
    pd_name: str = field(default_factory=str)
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Wire, frozen=True, kw_only=True):
    volume_id: str = field(default_factory=str, name="volumeID")
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False


class GitRepoVolumeSource(Wire, frozen=True, kw_only=True):
    repository: str = field(default_factory=str)
    revision: str = ""
    directory: str = ""


class KeyToPath(Wire, frozen=True, kw_only=True):
    key: str = field(default_factory=str)
    path: str = field(default_factory=str)
    mode: int | None = None


class SecretVolumeSource(Wire, frozen=True, kw_only=True):
    secret_name: str = ""
    items: tuple[KeyToPath, ...] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class NFSVolumeSource(Wire, frozen=True, kw_only=True):
    server: str = field(default_factory=str)
    path: str = field(default_factory=str)
    read_only: bool = False


class ISCSIVolumeSource(Wire, frozen=True, kw_only=True):
    target_portal: str = field(default_factory=str)
    iqn: str = field(default_factory=str)
    lun: int = field(default_factory=int)
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] | None = None
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(Wire, frozen=True, kw_only=True):
    endpoints: str = field(default_factory=str)
    path: str = field(default_factory=str)
    read_only: bool = False


class PersistentVolumeClaimVolumeSource(Wire, frozen=True, kw_only=True):
    claim_name: str = field(default_factory=str)
    read_only: bool = False


class RBDVolumeSource(Wire, frozen=True, kw_only=True):
    monitors: tuple[str, ...] | None = field(default_factory=nil)
    image: str = field(default_factory=str)
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlexVolumeSource(Wire, frozen=True, kw_only=True):
    driver: str = field(default_factory=str)
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: dict[str, str] | None = None


class CinderVolumeSource(Wire, frozen=True, kw_only=True):
    volume_id: str = field(default_factory=str, name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Wire, frozen=True, kw_only=True):
    monitors: tuple[str, ...] | None = field(default_factory=nil)
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlockerVolumeSource(Wire, frozen=True, kw_only=True):
    dataset_name: str = ""
    dataset_uuid: str = field(default="", name="datasetUUID")


class DownwardAPIVolumeFile(Wire, frozen=True, kw_only=True):
    path: str = field(default_factory=str)
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(Wire, frozen=True, kw_only=True):
    items: tuple[DownwardAPIVolumeFile, ...] | None = None
    default_mode: int | None = None


class FCVolumeSource(Wire, frozen=True, kw_only=True):
    target_wwns: tuple[str, ...] | None = field(default=None, name="targetWWNs")
    lun: int | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: tuple[str, ...] | None = None


class AzureFileVolumeSource(Wire, frozen=True, kw_only=True):
    secret_name: str = field(default_factory=str)
    share_name: str = field(default_factory=str)
    read_only: bool = False


class ConfigMapVolumeSource(Wire, frozen=True, kw_only=True):
    name: str = ""
    items: tuple[KeyToPath, ...] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class VsphereVirtualDiskVolumeSource(Wire, frozen=True, kw_only=True):
    volume_path: str = field(default_factory=str)
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class QuobyteVolumeSource(Wire, frozen=True, kw_only=True):
    registry: str = field(default_factory=str)
    volume: str = field(default_factory=str)
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class AzureDiskVolumeSource(Wire, frozen=True, kw_only=True):
    disk_name: str = field(default_factory=str)
    disk_uri: str = field(default_factory=str, name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class PhotonPersistentDiskVolumeSource(Wire, frozen=True, kw_only=True):
    pd_id: str = field(default_factory=str, name="pdID")
    fs_type: str = ""


class SecretProjection(Wire, frozen=True, kw_only=True):
    name: str = ""
    items: tuple[KeyToPath, ...] | None = None
    optional: bool | None = None


class DownwardAPIProjection(Wire, frozen=True, kw_only=True):
    items: tuple[DownwardAPIVolumeFile, ...] | None = None


class ConfigMapProjection(Wire, frozen=True, kw_only=True):
    name: str = ""
    items: tuple[KeyToPath, ...] | None = None
    optional: bool | None = None


class ServiceAccountTokenProjection(Wire, frozen=True, kw_only=True):
    audience: str = ""
    expiration_seconds: Int64 | None = None
    path: str = field(default_factory=str)


class ClusterTrustBundleProjection(Wire, frozen=True, kw_only=True):
    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str = field(default_factory=str)


class PodCertificateProjection(Wire, frozen=True, kw_only=True):
    signer_name: str = ""
    key_type: str = ""
    max_expiration_seconds: int | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: dict[str, str] | None = None


class VolumeProjection(Wire, frozen=True, kw_only=True):
    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Wire, frozen=True, kw_only=True):
    sources: tuple[VolumeProjection, ...] | None = field(default_factory=nil)
    default_mode: int | None = None


class PortworxVolumeSource(Wire, frozen=True, kw_only=True):
    volume_id: str = field(default_factory=str, name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(Wire, frozen=True, kw_only=True):
    gateway: str = field(default_factory=str)
    system: str = field(default_factory=str)
    secret_ref: LocalObjectReference | None = field(default_factory=nil)
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSVolumeSource(Wire, frozen=True, kw_only=True):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(Wire, frozen=True, kw_only=True):
    driver: str = field(default_factory=str)
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] | None = None
    node_publish_secret_ref: LocalObjectReference | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = field(default_factory=VolumeResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Wire, frozen=True, kw_only=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(Wire, frozen=True, kw_only=True):
    reference: str = ""
    pull_policy: str = ""


class Volume(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = field(default=None, name="downwardAPI")
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = field(default=None, name="scaleIO")
    storageos: StorageOSVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
