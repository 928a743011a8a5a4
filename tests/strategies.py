"""Hypothesis strategies for the core's values; small alphabets, so that values match and collide often."""

from __future__ import annotations

from hypothesis import strategies as st

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.shape import HostPort, Labels, NodeTerm, PodTerm, Requirement, Shape, Toleration
from tests.builders import GPU, amounts, label_pairs

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
LABEL_KEYS = ("zone", "rack", "disk")
LABEL_VALUES = ("a", "b", "1", "2", "")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")

signs = st.sampled_from(("", "+", "-"))
digit_runs = st.text("0123456789", min_size=1, max_size=24)
exponents = st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 25))
quantities = st.builds(
    "{}{}{}{}".format,
    signs,
    digit_runs,
    st.one_of(st.just(""), st.just("."), digit_runs.map(".{}".format)),
    st.one_of(st.sampled_from(SUFFIXES), exponents),
)
"""Well-formed quantities in every notation."""

label_maps = st.dictionaries(st.sampled_from(LABEL_KEYS), st.sampled_from(LABEL_VALUES))
labels: st.SearchStrategy[Labels] = label_maps.map(label_pairs)

taints = st.builds(
    Taint, key=st.sampled_from(LABEL_KEYS), effect=st.sampled_from(EFFECTS), value=st.sampled_from(LABEL_VALUES)
)
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("", *LABEL_KEYS)),
    operator=st.sampled_from(("", "Equal", "Exists", "Gt", "Lt")),
    value=st.sampled_from(LABEL_VALUES),
    effect=st.sampled_from(("", *EFFECTS)),
)
host_ports = st.builds(
    HostPort,
    port=st.sampled_from((80, 443)),
    protocol=st.sampled_from(("TCP", "UDP")),
    ip=st.sampled_from(("0.0.0.0", "127.0.0.1", "10.0.0.1", "::")),
)
port_sets = st.lists(host_ports, max_size=4).map(tuple)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    """Well-formed requirements with every operator."""
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    if operator in ("In", "NotIn"):
        values = tuple(draw(st.lists(st.sampled_from(LABEL_VALUES), min_size=1, max_size=3)))
    elif operator in ("Gt", "Lt"):
        values = (str(draw(st.integers(0, 3))),)
    else:
        values = ()
    return Requirement(key=draw(st.sampled_from(LABEL_KEYS)), operator=operator, values=values)


selectors = st.lists(requirements(), max_size=2).map(tuple)
node_terms = st.builds(NodeTerm, expressions=selectors)
pod_terms = st.builds(
    PodTerm,
    topology_key=st.sampled_from(LABEL_KEYS),
    selector=st.none() | selectors,
    namespaces=st.sampled_from(((), ("default",), ("default", "other"))),
    namespace_selector=st.none() | selectors,
)
shapes = st.builds(
    Shape,
    requests=st.builds(
        lambda cpu, memory, gpu: amounts({"cpu": f"{cpu}m", "memory": f"{memory}Mi", GPU: gpu}),
        st.integers(0, 4000),
        st.integers(0, 4096),
        st.integers(0, 2),
    ),
    node_selector=st.just(()) | labels,
    node_affinity=st.none() | st.lists(node_terms, max_size=2).map(tuple),
    tolerations=st.lists(tolerations, max_size=2).map(tuple),
    host_ports=st.just(()) | port_sets,
)


@st.composite
def nodes(draw: st.DrawFn, name: str = "n1") -> Node:
    """Nodes of up to 16 cpu with labels, taints and cordons."""
    return Node(
        name=name,
        allocatable=amounts(
            {
                "cpu": f"{draw(st.integers(0, 16000))}m",
                "memory": f"{draw(st.integers(0, 16384))}Mi",
                GPU: draw(st.integers(0, 8)),
                "pods": draw(st.integers(0, 10)),
            }
        ),
        labels=draw(labels),
        taints=tuple(draw(st.lists(taints, max_size=2))),
        unschedulable=draw(st.booleans()),
    )
