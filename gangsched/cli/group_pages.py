"""The PodGroups of a namespace, as the API server sends them.

A command asks for them first: the answer is on its way while the modules are imported that can read it.
"""

from __future__ import annotations

from http import HTTPStatus

from gangsched.api.podgroup_names import PATH, PLURAL
from gangsched.kube import wire
from gangsched.kube.client.errors import ApiError, CrdMissing
from gangsched.kube.client.pages import all_pages
from gangsched.kube.client.paths import within
from gangsched.kube.client.session import ApiSession

NO_CRD = (
    "The API server does not know podgroups.gangsched.io: install the CustomResourceDefinition, for example with "
    "`gangsched crd | kubectl apply --server-side -f -`."
)


async def read_pages(session: ApiSession, namespace: str) -> list[wire.Page]:
    """All PodGroups of the namespace, or of all if it is empty.

    Raises:
        CrdMissing: the API server does not know PodGroups.
        KubeError: there was no complete answer.
    """
    try:
        return await all_pages(session, within(PATH, namespace), PLURAL)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise CrdMissing(NO_CRD) from error
        raise
