"""Traces of gangs: who arrives when, asks for what, and runs for how long.

`trace_values` has the values and `trace_checks` what all readers share. `own_forms` reads CSV and JSON; `pai`, `swf`,
`job_logs`, `philly` and `openb` read public traces; `forms` knows them all. `lublin` and `mixture` generate traces from
a seed, which `generated` does by name; `run_limits` adds limits and declared run times.
"""
