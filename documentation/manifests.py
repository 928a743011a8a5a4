"""The plain manifests in manifests/, rendered from the chart by the real helm, so that both ways to install agree.

`make docs` writes them with the other generated files; a test with the real helm compares them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from documentation.dialects import IN_CHART
from gangsched.api.custom_resource import crd_yaml
from gangsched.config.workload_registry import NAMES as WORKLOADS
from testbed import binaries

CHART = Path(__file__).resolve().parent.parent / "charts" / "gangsched"
IMAGE = "REGISTRY/gangsched"
"""Placeholder for the image until a user has built and pushed one; no registry accepts a name in capitals."""
USER = "gangsched"
"""The user in the static pod's kubeconfig."""
FOLDER = "/etc/kubernetes/gangsched"
"""The folder that the static pod reads on its node."""
LISTEN = "127.0.0.1:10270"
"""The static pod's listen address, next to the ports of kube-scheduler and kube-controller-manager on that node."""

_CHOSEN = f"dialects: [{', '.join(IN_CHART)}], workloads: [{', '.join(WORKLOADS)}]"
"""The only dialects and workloads for which the static pod's user has the rights."""
_GENERATED = "# Generated from charts/gangsched by make docs: change the chart, not this file.\n"
_DEPLOYMENT = (
    _GENERATED
    + """#
# Put your registry in place of REGISTRY, then:
#
#   kubectl apply --server-side -f crds/ -f manifests/deployment.yaml
#
# A changed ConfigMap takes effect at the next start: kubectl -n gangsched-system rollout restart deployment/gangsched
---
apiVersion: v1
kind: Namespace
metadata:
  name: gangsched-system
"""
)
_RIGHTS = (
    _GENERATED
    + """#
# The rights and FlowSchemas of the user gangsched, whose certificate the static pod uses. They are the same as those of
# the chart's ServiceAccount.
"""
)
_KUSTOMIZATION = (
    _GENERATED
    + f"""#
# A base for kustomize, including the definition of PodGroup. In your own kustomization.yaml:
#
#   resources: [path/to/gangsched/manifests]
#   images: [{{name: {IMAGE}, newName: registry.example.com/gangsched}}]
#
# then: kubectl apply --server-side -k .
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- podgroups.yaml
- deployment.yaml
"""
)
_STATIC_POD = (
    _GENERATED
    + f"""#
# A replica of gangsched that the kubelet of a control-plane node runs as a static pod. It acts as the user gangsched,
# because only root may read kube-scheduler's own scheduler.conf, and the user in that file may not read PodGroups.
# Run once for the cluster:
#
#   kubectl apply --server-side -f crds/ -f manifests/static-pod-rbac.yaml
#
# Run on each control-plane node, with your registry in place of REGISTRY in this file:
#
#   mkdir -p {FOLDER}
#   kubectl -n kube-system get configmap kubeadm-config -o jsonpath='{{.data.ClusterConfiguration}}' > kubeadm.yaml
#   kubeadm kubeconfig user --client-name={USER} --config=kubeadm.yaml > {FOLDER}/kubeconfig
#   echo '{{leaderElection: {{resourceNamespace: kube-system}}, {_CHOSEN}}}' > {FOLDER}/config.yaml
#   chown -R 65532:65532 {FOLDER} && chmod -R go= {FOLDER}
#   cp manifests/static-pod.yaml /etc/kubernetes/manifests/gangsched.yaml
"""
)


def pages() -> dict[Path, str]:
    """The path of every manifest, relative to the repository, and its content.

    Raises:
        FileNotFoundError: helm is not built yet.
        subprocess.CalledProcessError: helm rejects the chart.
    """
    parts = ("serviceaccount", "rbac", "flowschemas", "configmap", "deployment", "poddisruptionbudget")
    deployment = _rendered("gangsched-system", *parts)
    # Drop the configuration's digest: it would become stale when users edit the ConfigMap themselves.
    deployment = re.sub(r"\n +annotations:\n.*\n +checksum/config: .*", "", deployment)
    account = "- kind: ServiceAccount\n  name: gangsched\n  namespace: kube-system\n"
    user = f"- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: {USER}\n"
    sender = "- kind: ServiceAccount\n      serviceAccount:\n        name: gangsched\n        namespace: kube-system\n"
    sending_user = f"- kind: User\n      user:\n        name: {USER}\n"
    rights = _rendered("kube-system", "rbac", "flowschemas").replace(account, user).replace(sender, sending_user)
    return {
        Path("manifests/deployment.yaml"): _DEPLOYMENT + deployment,
        Path("manifests/kustomization.yaml"): _KUSTOMIZATION,
        Path("manifests/podgroups.yaml"): _GENERATED + crd_yaml(),
        Path("manifests/static-pod-rbac.yaml"): _RIGHTS + rights,
        Path("manifests/static-pod.yaml"): _STATIC_POD + _static_pod(),
    }


def _rendered(namespace: str, *parts: str) -> str:
    """These templates of the chart as helm renders them, without helm's own metadata."""
    folder = binaries.find(["helm"])
    if folder is None:
        raise FileNotFoundError("helm is not built yet: run make control-plane first.")
    command: list[str | Path] = [folder / "helm", "template", "gangsched", CHART, "--namespace", namespace]
    command += ["--set", f"image.repository={IMAGE}", *(f"--show-only=templates/{part}.yaml" for part in parts)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    text = re.sub(
        r"^(# Source: .*| +helm\.sh/chart: .*| +app\.kubernetes\.io/managed-by: Helm)\n", "", text, flags=re.MULTILINE
    )
    return re.sub(r"\n+---\n", "\n---\n", text)


def _static_pod() -> str:
    """The Deployment's pod with its node's network and files, because a static pod must not refer to API objects."""
    [deployment] = yaml.safe_load_all(_rendered("kube-system", "deployment"))
    template = deployment["spec"]["template"]
    spec: dict[str, Any] = template["spec"]
    [container] = spec["containers"]
    mounted = container["volumeMounts"][0]["mountPath"]
    host, _, port = LISTEN.rpartition(":")
    container["args"] = ["run", f"--kubeconfig={mounted}/kubeconfig", *container["args"][1:]]
    container["args"] = [f"--listen={LISTEN}" if "--listen" in each else each for each in container["args"]]
    for probe in ("livenessProbe", "readinessProbe"):
        container[probe]["httpGet"] |= {"host": host, "port": int(port)}
    del container["ports"], spec["serviceAccountName"], spec["affinity"], spec["topologySpreadConstraints"]
    spec["volumes"] = [{"name": "config", "hostPath": {"path": FOLDER, "type": "Directory"}}]
    spec |= {"hostNetwork": True, "priorityClassName": "system-node-critical", "automountServiceAccountToken": False}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gangsched", "namespace": "kube-system", "labels": template["metadata"]["labels"]},
        "spec": spec,
    }
    return yaml.safe_dump(pod, sort_keys=False, width=120)
