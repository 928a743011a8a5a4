"""Quality of placements compared with the optimum, first fit and the peers' node orders: `python -m bench.quality`."""
