"""A cluster built from manifests, with the pods that controllers would create for them."""
