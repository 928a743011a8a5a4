"""Mistakes in commands, in credentials and in the chart's values."""

from __future__ import annotations

from collections.abc import Iterator

from documentation.mistakes.row import Mistake, Where


def commands() -> Iterator[tuple[str, Mistake]]:
    """Mistakes in what users type, and in the credentials they use."""
    explain = ("explain", "{namespace}/j")
    login = "log in again, or choose other credentials with --kubeconfig or --context"
    for what, access, told in (
        (
            "a wrong token",
            "wrong token",
            f"the API server does not accept the token or certificate, which is wrong or has expired: {login}",
        ),
        (
            "an expired client certificate",
            "expired certificate",
            (
                "the API server has seen no credentials (it answers system:anonymous): the client certificate has "
                f"expired, or the kubeconfig's user has neither certificate nor token; {login}"
            ),
        ),
        (
            "no rights at all",
            "no rights",
            (
                "ask for the right to get podgroups.gangsched.io in namespace {namespace}, which shows the group's "
                "status, and for a full answer to list namespaces, priorityclasses, nodes, …pods in all namespaces"
            ),
        ),
        (
            "an exec plug-in that is not installed",
            "missing plug-in",
            (
                "The user testbed of the kubeconfig … gets its credentials from the exec plug-in kubelogin-of-nobody, "
                "which is not installed here: install it, put it on the PATH, or use a kubeconfig without it."
            ),
        ),
    ):
        yield what, Mistake(command=explain, access=access, told={Where.ERROR: told})
    yield (
        "a context that the kubeconfig does not have",
        Mistake(
            command=(*explain, "--context", "prod"),
            told={Where.ERROR: "The kubeconfig … has no context prod: it has testbed…"},
        ),
    )
    yield (
        "a kubeconfig that does not exist",
        Mistake(
            command=explain,
            access="no file",
            told={Where.ERROR: "There is no kubeconfig at …: give --kubeconfig FILE or set KUBECONFIG."},
        ),
    )
    yield (
        "a group that does not exist",
        Mistake(
            command=("explain", "{namespace}/nosuch"),
            told={
                Where.ERROR: "there is no PodGroup {namespace}/nosuch, and no waiting pod of gangsched names it or has "
                "that name: check the name with kubectl get podgroups.gangsched.io -n {namespace}"
            },
        ),
    )
    yield (
        "more than one slash",
        Mistake(
            command=("explain", "a/b/c"),
            told={Where.ERROR: "'a/b/c' is not the name of a group: write NAMESPACE/NAME"},
        ),
    )
    yield (
        "two operators with different Leases",
        Mistake(
            command=("explain",),
            told={
                Where.OUTPUT: "More than one operator leads: uninstall all but one, or give each schedulerNames of its "
                "own, because two that serve one schedulerName bind the same pods.",
            },
        ),
    )
    yield (
        "run --namespace with a namespace that does not exist",
        Mistake(
            told={
                Where.LOG: "the only namespace whose pods are scheduled does not exist: create it, or correct "
                "--namespace namespace=nosuch"
            },
        ),
    )
    yield (
        "a setting misspelt in the file of run --config",
        Mistake(
            command=("run", "--config", "{folder}/config.yaml"),
            told={
                Where.ERROR: "config.yaml: defaultMaxScheduleTim is not a known key: correct or remove it; known keys "
                "are aging, …"
            },
        ),
    )
    yield (
        "a file that does not exist, given to simulate",
        Mistake(
            command=("simulate", "{folder}/nosuch.yaml"),
            told={Where.ERROR: "…nosuch.yaml: cannot be read (No such file or directory): name a file with manifests"},
        ),
    )
    yield (
        "a workload that simulate cannot expand",
        Mistake(
            command=("simulate", "{folder}/workload.yaml"),
            told={
                Where.ERROR: "ignored objects, which create no pods here: 1 SparkApplication; if they should, add the "
                "manifests of their pods"
            },
        ),
    )


def charts() -> Iterator[tuple[str, Mistake]]:
    """Mistakes in the values that users give to helm."""
    for what, values, told in (
        (
            "a chart value misspelt",
            ("image.repository=none", "config.defaultMaxScheduleTim=5m"),
            "at '/config': additional properties 'defaultMaxScheduleTim' not allowed",
        ),
        (
            "an invalid duration in the chart's values",
            ("image.repository=none", "config.defaultMaxScheduleTime=10 min"),
            "at '/config/defaultMaxScheduleTime': '10 min' does not match pattern …",
        ),
        ("no image", (), "then run helm again with --set image.repository=REGISTRY/gangsched"),
    ):
        yield what, Mistake(chart=values, told={Where.HELM: told})
