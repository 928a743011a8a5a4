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
        ("PRODEU", True),
        ("prodeu1", True),
        ("euprod", True),
        ("EUPROD2", True),
        ("storeprod", True),
        ("eu-prodwest", True),
        ("produk", True),
        ("produs1", True),
        ("productiondb", True),
        ("euproduction", True),
        ("preprod", True),
        ("prdeu", True),
        ("euprd", True),
        ("euLive", True),
        ("PRODUCT-DEV", False),
        ("ProductTeam", False),
        ("productivity", False),
        ("byproducts", False),
        ("produkte", False),
        ("produce", False),
        ("prodigy-dev", False),
        ("reprod1", False),
        ("delivery", False),
        ("liverpool", False),
        ("nonprod", False),
        ("non-prod", False),
        ("canon-prod", True),
    ],
)
def test_a_cluster_looks_important_by_a_word_in_its_name(name, is_so):
    assert looks_important("", name) is is_so
