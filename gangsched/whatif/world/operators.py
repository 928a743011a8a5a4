"""Expands the workloads of well-known operators into the pods that their controllers would create.

The labels that say which pods belong together are those of the controllers. A pod in the files replaces an expanded
one of the same name or, where names are random, one with the same controller and group. Parts that are in the files,
such as the Jobs of a JobSet, are expanded on their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.whatif.world.builtin_workloads import Maker
from gangsched.whatif.world.jobsets import JOB_SET, job_set
from gangsched.whatif.world.kubeflow_jobs import KINDS, mpi_job, mpi_job_v1, training_job
from gangsched.whatif.world.leader_workers import LEADER_WORKER_SET, disaggregated_set, leader_worker_set
from gangsched.whatif.world.ray import RAY_CLUSTER, ray_cluster, ray_job, ray_service
from gangsched.whatif.world.trainer import train_job

MAKERS: Mapping[tuple[str, str], Maker] = {
    JOB_SET: job_set,
    LEADER_WORKER_SET: leader_worker_set,
    ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet"): disaggregated_set,
    RAY_CLUSTER: ray_cluster,
    ("ray.io/v1", "RayJob"): ray_job,
    ("ray.io/v1", "RayService"): ray_service,
    ("kubeflow.org/v2beta1", "MPIJob"): mpi_job,
    ("kubeflow.org/v1", "MPIJob"): mpi_job_v1,
    **dict.fromkeys([("kubeflow.org/v1", kind) for kind in KINDS], training_job),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): train_job,
}
"""The functions that expand these workloads into pods, by apiVersion and kind."""
