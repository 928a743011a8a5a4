"""Writes what is generated from the code: pages of docs/, parts of the chart, the CRD, manifests/, and the site.

`python -m documentation.generate` (make docs) writes all of it; tests check that it is current.
"""
