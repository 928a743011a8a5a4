"""The flags for queries to the operator, as far as they need no cluster."""

from __future__ import annotations

import pytest

from gangsched.cli import main
from gangsched.cli.asking import _get, _Place, _TryNextReplica
from gangsched.core.objects.declaration import GroupKey

HEX = "a" * 64


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ask-operator-as", "reader"], "name it, as NAMESPACE/NAME or NAME"),
        (["a/b", "--via", "127.0.0.1:1"], "add --ask-operator-as"),
        (["a/b", "--fingerprint", HEX], "add --ask-operator-as"),
        (["a/b", "--ask-operator-as", "reader", "--via", "127.0.0.1:1"], "--via and --fingerprint belong together"),
        (["a/b", "--ask-operator-as", "reader", "--config", "x.yaml"], "leave --config and --scheduler-name out"),
        (["a/b", "--ask-operator-as", "reader", "--scheduler-name", "x"], "leave --config and --scheduler-name out"),
        (["a/b", "--ask-operator-as", "reader", "--fingerprint", HEX], "--via and --fingerprint belong together"),
        *(
            (["a/b", "--ask-operator-as", "reader", "--via", via, "--fingerprint", HEX], "is not a port of 127.0.0.1")
            for via in ("example.com:1", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1", "[::1]:9443")
        ),
        (
            ["a/b", "--ask-operator-as", "reader", "--via", "localhost:1", "--fingerprint", "sha1:aa"],
            "write sha256: and 64 hexadecimal digits",
        ),
        (["a/b", "--ask-operator-as", ""], "is not the name of a service account"),
        (["a/b", "--ask-operator-as", "x/y/z"], "is not the name of a service account"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(arguments, sentence, capsys):
    assert main(["explain", "--kubeconfig", "/nowhere", *arguments]) == 2
    assert sentence in capsys.readouterr().err


async def test_a_port_at_which_nothing_listens_is_told_in_words():
    place = _Place("127.0.0.1:9", 9, HEX, is_pod=False)
    with pytest.raises(_TryNextReplica) as error:
        await _get(9, place, GroupKey("a", "b"), "token")
    told = "127.0.0.1:9 cannot be reached (ClientConnectorError): Connect call failed ('127.0.0.1', 9); "
    assert str(error.value) == f"{told}see whether kubectl port-forward still runs there"
