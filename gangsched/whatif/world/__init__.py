"""A cluster that is only described: manifests, the pods that controllers would make of them, and what results."""
