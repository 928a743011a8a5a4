"""The workload controllers that are tested beside gangsched: the source of each, and how it is started."""

from __future__ import annotations

from dataclasses import dataclass

CONFIGURED = ("--config={config}",)
"""The arguments of a controller that reads its addresses from a configuration file."""


@dataclass(frozen=True, kw_only=True)
class Controller:
    """One controller, as in the Go module of its release.

    In `arguments`, {probe} and {webhook} stand for ports on 127.0.0.1, and {config} for the file that begins with
    `config` and continues with those addresses.
    """

    name: str
    module: str
    version: str
    sum: str
    """Checksum of the module's content, in go.sum's format; the module's own go.sum fixes its dependencies."""
    package: str
    crds: str
    """The module's folder with its CustomResourceDefinitions."""
    webhooks: str = ""
    """The module's manifest of webhooks; empty if it has none."""
    pods_with: str = ""
    """The label of the pods for which its webhooks are called, as in its release; empty: all pods."""
    arguments: tuple[str, ...]
    config: str = ""
    """The apiVersion of its configuration file; empty if it has none."""
    own_certificates: str = "internalCertManagement"
    """The field of that file that says whether the controller makes its own certificates."""
    names_certificates: bool = True
    """Whether that file names the folder of the webhooks' certificates; it is below TMPDIR in any case."""
    converts: bool = False
    """Whether it starts only if its CustomResourceDefinitions name a conversion webhook, whose certificate it sets.

    That is the certificate of a Service, so the conversion works for nobody here: manifests have the stored version.
    """
    ready: str = "http://127.0.0.1:{probe}/readyz"
    secret: str = ""
    """NAMESPACE/NAME of the Secret for its own certificates, which are for a Service and not used here."""
    beside: tuple[str, ...] = ()
    """Other controllers that it needs."""
    quick: bool = False
    """Whether its build is fast enough for make samples, which then builds and plays it."""


CONTROLLERS = {
    row.name: row
    for row in (
        Controller(
            name="jobset",
            module="sigs.k8s.io/jobset",
            version="v0.12.0",
            sum="h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
            package=".",
            crds="config/components/crd/bases",
            webhooks="config/components/webhook/manifests.yaml",
            pods_with="jobset.sigs.k8s.io/jobset-name",
            config="config.jobset.x-k8s.io/v1alpha1",
            arguments=CONFIGURED,
            quick=True,
        ),
        Controller(
            name="lws",
            module="sigs.k8s.io/lws",
            version="v0.9.0",
            sum="h1:DcJCgxjjoGOx//QHZkeKpyiblxYq70aCRZNYSfykWyI=",
            package="./cmd",
            crds="config/crd/bases",
            webhooks="config/webhook/manifests.yaml",
            pods_with="leaderworkerset.sigs.k8s.io/name",
            config="config.lws.x-k8s.io/v1alpha1",
            arguments=CONFIGURED,
            quick=True,
        ),
        Controller(
            name="kuberay",
            module="github.com/ray-project/kuberay/ray-operator",
            version="v1.6.2",
            sum="h1:XUckRswLMyk71D00L62d2Vanh0fVkNqu56+IF/rr+O0=",
            package=".",
            crds="config/crd/bases",
            arguments=(
                "--metrics-addr=0",
                "--health-probe-bind-address=127.0.0.1:{probe}",
                "--enable-leader-election=false",
            ),
        ),
        Controller(
            name="mpi-operator",
            module="github.com/kubeflow/mpi-operator",
            version="v0.8.0",
            sum="h1:22EccUiO4VDooG4TooesdE8o8euGVj89PIRhiP24SRE=",
            package="./cmd/mpi-operator",
            crds="manifests/base",
            arguments=("--lock-namespace=default", "--kube-api-qps=100", "--kube-api-burst=100"),
            # Its source hard-codes the port and listens on all addresses.
            ready="http://127.0.0.1:8080/healthz",
        ),
        Controller(
            name="training-operator",
            module="github.com/kubeflow/training-operator",
            version="v1.9.0",
            sum="h1:L+ep5YQT1Pq62O3VjW6G+IRQw+NpFlPRJJj8TgydBhQ=",
            package="./cmd/training-operator.v1",
            crds="manifests/base/crds",
            webhooks="manifests/base/webhook/manifests.yaml",
            arguments=(
                "--metrics-bind-address=0",
                "--health-probe-bind-address=127.0.0.1:{probe}",
                "--webhook-server-port={webhook}",
            ),
            secret="kubeflow/training-operator-webhook-cert",  # noqa: S106 - its name
        ),
        Controller(
            name="trainer",
            module="github.com/kubeflow/trainer/v2",
            version="v2.3.0",
            sum="h1:Je+e7zvTLzB4qW09J1fB7pZrqvPtWuGng2NqdN5p5QU=",
            package="./cmd/trainer-controller-manager",
            crds="manifests/base/crds",
            webhooks="manifests/base/webhook/manifests.yaml",
            config="config.trainer.kubeflow.org/v1alpha1",
            own_certificates="certManagement",
            names_certificates=False,
            arguments=CONFIGURED,
            beside=("jobset",),
        ),
        Controller(
            name="kueue",
            module="sigs.k8s.io/kueue",
            version="v0.19.0",
            sum="h1:5yCu85qsJhvUVVxE0Csw546DDBcRwUXpBEOmEFlws34=",
            package="./cmd/kueue",
            crds="config/components/crd/bases",
            webhooks="config/components/webhook/manifests.yaml",
            config="config.kueue.x-k8s.io/v1beta2",
            converts=True,
            arguments=(*CONFIGURED, "--feature-gates=VisibilityOnDemand=false"),
            secret="kueue-system/kueue-webhook-server-cert",  # noqa: S106 - its name
        ),
    )
}
"""In build order: the quickest come first."""
