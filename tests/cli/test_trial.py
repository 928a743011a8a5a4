"""Which clusters `gangsched try` leaves alone."""

from __future__ import annotations

import pytest

from gangsched.cli.trial import looks_important


@pytest.mark.parametrize(
    ("name", "is_so"),
    [
        ("kind-kind", False),
        ("minikube", False),
        ("product-team", False),
        ("reproduction", False),
        ("olive", False),
        ("prod", True),
        ("eu-PROD-1", True),
        ("gke_shop_production", True),
        ("https://k8s.prd.example.com", True),
        ("live1", True),
        ("euProd", True),
        ("ProdEU", True),
        ("PRODCluster", True),
        ("reproducer", False),
    ],
)
def test_a_cluster_looks_important_by_a_word_in_its_name(name, is_so):
    assert looks_important("", name) is is_so
