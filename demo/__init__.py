"""What a person watches on the local control plane: the race of two groups, and a cluster to play in."""
