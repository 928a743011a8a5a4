"""Kubeconfigs are read and merged as kubectl does, and an exec plug-in is called as its protocol says."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangsched.kube.client import token_files
from gangsched.kube.client.credentials import find_connection
from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.exec_plugin import call
from gangsched.kube.client.kubeconfigs import Cluster, Exec, InvalidKubeconfig, Variable, read_kubeconfig

V1 = "client.authentication.k8s.io/v1"
PEM = "-----BEGIN CERTIFICATE-----\n"


def written(path: Path, **content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({key.replace("_", "-"): value for key, value in content.items()}))
    return str(path)


def whole(path: Path, user: dict[str, Any], **cluster: Any) -> str:
    return written(
        path,
        current_context="x",
        clusters=[{"name": "c", "cluster": {"server": "http://127.0.0.1:9/", **cluster}}],
        contexts=[{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        users=[{"name": "u", "user": user}],
    )


def test_the_first_file_with_an_entry_decides_it_and_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    first = written(
        tmp_path / "one" / "config",
        users=[{"name": "u", "user": {"client-certificate": "u.crt", "client-key": "/etc/u.key", "tokenFile": "t"}}],
    )
    second = whole(tmp_path / "two" / "config", {"token": "t"}, **{"certificate-authority": "../ca.crt"})
    content = read_kubeconfig([first, second])
    _, cluster, user = content.chosen(None)
    assert (user.token, user.client_certificate, user.client_key) == ("", f"{tmp_path}/one/u.crt", "/etc/u.key")
    assert user.token_file == f"{tmp_path}/one/t"
    (tmp_path / "ca.crt").write_text(PEM)
    assert cluster.authority() == PEM


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "---\n", "null\n", "{}\n"])
def test_an_empty_file_beside_others_has_no_entries_as_for_kubectl(tmp_path: Path, text: str) -> None:
    """Regression: a new, empty file in $KUBECONFIG kept every command from starting, and kubectl read the others."""
    (tmp_path / "empty").write_text(text)
    files = [str(tmp_path / "empty"), whole(tmp_path / "config", {"token": "t"})]
    for order in (files, files[::-1]):
        _, cluster, user = read_kubeconfig(order).chosen(None)
        assert (cluster.server, user.token) == ("http://127.0.0.1:9/", "t")


@pytest.mark.parametrize("text", ["7", "[a]", "text", "0", "[]", "false"])
def test_of_several_files_the_one_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(InvalidKubeconfig, match=f"^{tmp_path}/other "):
        read_kubeconfig([whole(tmp_path / "config", {}), str(tmp_path / "other")])


def test_data_come_before_files_and_a_file_may_hold_certificate_and_key(tmp_path: Path) -> None:
    both = {"client-certificate": "absent", "client-certificate-data": base64.b64encode(PEM.encode()).decode()}
    _, _, user = read_kubeconfig([whole(tmp_path / "config", both)]).chosen(None)
    assert user.certificate() == (PEM, PEM)


def test_only_a_command_with_a_folder_is_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    for command, expected in (("aws", "aws"), ("./bin/p", f"{tmp_path}/bin/p"), ("/bin/p", "/bin/p")):
        path = whole(tmp_path / "config", {"exec": {"command": command, "apiVersion": V1}})
        _, _, user = read_kubeconfig([path]).chosen(None)
        assert user.exec is not None
        assert user.exec.command == expected


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "no current-context"),
        ({"current_context": "y"}, "no context y"),
        ({"contexts": [{"name": "x", "context": None}], "current_context": "x"}, "names no cluster"),
        ({"users": [{"name": "u"}, {"name": "u"}]}, "the user u twice"),
        (
            {
                "current_context": "x",
                "clusters": [{"name": "c", "cluster": {"server": "http://s"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "gone"}}],
            },
            "lacks the user gone",
        ),
    ],
)
def test_what_a_kubeconfig_lacks_is_told(tmp_path: Path, content: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidKubeconfig, match=told):
        read_kubeconfig([written(tmp_path / "config", **content)]).chosen(None)


async def test_a_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_files, "FRESH_S", 0.0)
    (tmp_path / "t").write_text("one\n")
    connection = await find_connection(kubeconfig=whole(tmp_path / "config", {"tokenFile": "t"}), context=None)
    assert await connection.authorization() == "Bearer one"
    (tmp_path / "t").write_text("two\n")
    assert await connection.authorization() == "Bearer two"
    (tmp_path / "t").write_text("\n")
    with pytest.raises(NoCredentials, match="is empty"):
        await connection.authorization()


def echoing(*, status: Any = None, api_version: str = V1, **fields: Any) -> Exec:
    """A plug-in whose token is what it finds in its environment."""
    program = (
        "import json, os; found = os.environ['KUBERNETES_EXEC_INFO'] + os.environ.get('MORE', '');"
        f"print(json.dumps({{'apiVersion': {api_version!r}, 'kind': 'ExecCredential',"
        f" 'status': {status!r} or {{'token': found}}}}))"
    )
    return Exec(command=sys.executable, api_version=V1, args=["-c", program], **fields)


async def test_a_plugin_learns_of_its_cluster_only_where_the_kubeconfig_says_so() -> None:
    cluster = Cluster(
        server="https://s",
        tls_server_name="kube",
        insecure_skip_tls_verify=True,
        certificate_authority_data=base64.b64encode(PEM.encode()).decode(),
        proxy_url="http://proxy",
        extensions=[{"name": "other"}, {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    )
    spec = {"interactive": False}
    given = await call(echoing(env=[Variable("MORE", " ")], interactive_mode="Never"), cluster)
    assert json.loads(given.token or "") == {"kind": "ExecCredential", "apiVersion": V1, "spec": spec}
    given = await call(echoing(provide_cluster_info=True, interactive_mode="Never"), cluster)
    assert json.loads(given.token or "")["spec"]["cluster"] == {
        "server": "https://s",
        "tls-server-name": "kube",
        "insecure-skip-tls-verify": True,
        "certificate-authority-data": base64.b64encode(PEM.encode()).decode(),
        "proxy-url": "http://proxy",
        "config": {"audience": "a"},
    }


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (echoing(api_version="client.authentication.k8s.io/v1beta1"), "v1beta1 ExecCredential, not"),
        (echoing(status={"token": 3}), "Expected `str"),
        (echoing(status={"expirationTimestamp": "soon", "token": "t"}), "Invalid RFC3339"),
        (echoing(interactive_mode="Always"), "there is no terminal"),
        (Exec(command=sys.executable, api_version=V1, args=["-c", "import os; os.kill(os.getpid(), 9)"]), "-9"),
    ],
)
async def test_a_plugin_that_does_not_keep_to_the_protocol_is_told(
    plugin: Exec, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match=told):
        await call(plugin, Cluster())


@pytest.mark.parametrize("status", [{}, {"clientCertificateData": PEM}, {"token": ""}])
async def test_an_answer_without_credentials_is_told(tmp_path: Path, status: dict[str, str]) -> None:
    plugin = echoing(status=status or {"expirationTimestamp": None})
    user = {"exec": {"command": plugin.command, "apiVersion": V1, "args": plugin.args}}
    with pytest.raises(NoCredentials, match="neither a token nor a certificate"):
        await find_connection(kubeconfig=whole(tmp_path / "config", user), context=None)
