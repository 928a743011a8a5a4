"""How a pod names its group: in gangsched's own labels and annotations, or in those of another scheduler.

Only what stands on the pod is read; the custom resources of other systems are not, and no pod is changed.
docs/dialects.md says for users what each key means here.
"""
