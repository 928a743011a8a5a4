"""How good placements are, beside the optimum, first fit and the peers' orders of nodes: `python -m bench.quality`."""
