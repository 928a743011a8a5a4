"""How a pod names its group: in gangsched's own labels and annotations, or in those of another scheduler.

Each dialect reads the pods and, where its system has one, the custom resource of the group's name (`Kind`). Neither is
ever written. docs/dialects.md says for users what each key means here.
"""
