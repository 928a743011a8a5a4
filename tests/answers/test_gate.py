"""Which accounts get answers, and which names these may contain."""

from __future__ import annotations

import pytest

from gangsched.answers import gate as gates
from gangsched.answers.gate import Gate, Refused
from gangsched.core.objects.declaration import GroupKey
from gangsched.views.reach import Reach
from tests.answers.fake_reviews import FakeReviews, token

KEY = GroupKey("mine", "training")
MAY = {("me", "get", "podgroups", "mine", "")}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api() -> FakeReviews:
    return FakeReviews("me", "other", rights={*MAY})


@pytest.fixture
def gate(api, clock) -> Gate:
    return Gate(api, monotonic=clock, wall=clock)


async def refused(gate: Gate, header: str, key: GroupKey = KEY) -> tuple[int, str]:
    with pytest.raises(Refused) as error:
        await gate.admit(header, key)
    return error.value.status, error.value.sentence


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("", gates.NO_TOKEN),
        ("Bearer", gates.NO_TOKEN),
        ("Bearer ", gates.NO_TOKEN),
        ("Basic bWU6cHc=", gates.NO_TOKEN),
        ("Bearer a b", gates.NO_TOKEN),
        ("Bearer a\nb", gates.NO_TOKEN),
        (f"Bearer {'a' * 20_000}", gates.NO_TOKEN),
        (f"Bearer {token('me', 'https://kubernetes.default.svc')}", gates.FOR_OTHERS),
        (f"Bearer {token('me', ['gangsched', 'https://kubernetes.default.svc'])}", gates.FOR_OTHERS),
        (f"Bearer {token('me', [])}", gates.FOR_OTHERS),
        (f"Bearer {token('me', exp=999)}", gates.EXPIRED),
        (f"Bearer {token('stranger')}", gates.UNKNOWN),
        ("Bearer opaque.stranger", gates.UNKNOWN),
    ],
)
async def test_whoever_has_no_good_token_is_told_how_to_get_one(gate, header, sentence):
    assert await refused(gate, header) == (401, sentence)
    assert "--audience=gangsched" in sentence


@pytest.mark.parametrize("header", [f"Bearer {token('me', 'other')}", f"Bearer {token('me', exp=1)}", ""])
async def test_what_a_token_says_against_itself_costs_no_request(gate, api, header):
    await refused(gate, header)
    assert not api.asked


async def test_a_token_for_another_audience_is_refused_though_it_does_not_say_so(gate, api):
    api.audiences = ["https://kubernetes.default.svc"]
    assert await refused(gate, "Bearer opaque.me") == (401, gates.UNKNOWN)
    api.audiences = None
    assert await refused(gate, "Bearer opaque2.me") == (401, gates.UNKNOWN)


async def test_whoever_may_get_the_group_is_let_in_and_reads_no_names_of_nodes(gate):
    _, reach = await gate.admit(f"Bearer {token('me')}", KEY)
    assert reach == Reach(namespace="mine", node_names=False)


async def test_whoever_may_list_nodes_reads_their_names(gate, api):
    api.rights.add(("me", "list", "nodes", "", ""))
    assert (await gate.admit(f"Bearer {token('me')}", KEY))[1].node_names


@pytest.mark.parametrize(
    "right",
    [
        ("other", "list", "podgroups", "mine", ""),
        ("other", "get", "pods", "mine", ""),
        ("other", "get", "podgroups", "theirs", ""),
        ("other", "get", "podgroups", "mine", "another"),
        ("other", "list", "nodes", "", ""),
    ],
)
async def test_no_other_right_suffices(gate, api, right):
    api.rights.add(right)
    assert await refused(gate, f"Bearer {token('other')}") == (403, gates.NO_RIGHT)


async def test_the_right_to_one_group_is_enough_for_it(gate, api):
    api.rights.add(("other", "get", "podgroups", "mine", "training"))
    await gate.admit(f"Bearer {token('other')}", KEY)
    assert (await refused(gate, f"Bearer {token('other')}", GroupKey("mine", "x")))[0] == 403


@pytest.mark.parametrize("key", [("mine", "A"), ("a/b", "c"), ("mine", "a" * 300), ("", "a"), ("mine", "é"), ("m", "")])
async def test_what_is_no_name_is_not_asked_about(gate, api, key):
    assert await refused(gate, f"Bearer {token('me')}", GroupKey(*key)) == (400, gates.NO_NAME)
    assert not api.asked["subjectaccessreviews"]


async def test_answers_are_remembered_for_some_seconds(gate, api, clock):
    for _ in range(3):
        await gate.admit(f"Bearer {token('me')}", KEY)
    assert api.asked == {"tokenreviews": 1, "subjectaccessreviews": 2}
    clock.now += gates.CACHE_TTL_S + 1
    api.rights.clear()
    assert (await refused(gate, f"Bearer {token('me')}"))[0] == 403
    assert api.asked["tokenreviews"] == 2


async def test_one_account_cannot_ask_without_end(gate, clock):
    for _ in range(int(gates.QUESTIONS_AT_ONCE)):
        await gate.admit(f"Bearer {token('me')}", KEY)
    assert await refused(gate, f"Bearer {token('me')}") == (429, gates.TOO_OFTEN)
    assert (await refused(gate, f"Bearer {token('other')}"))[0] == 403  # it has not asked yet
    clock.now += 1 / gates.QUESTIONS_PER_S
    await gate.admit(f"Bearer {token('me')}", KEY)


async def test_strangers_cannot_make_the_operator_flood_the_api_server(gate, api):
    told = [await refused(gate, f"Bearer stranger{number}") for number in range(100)]
    assert told[-1] == (503, gates.BUSY)
    assert api.asked["tokenreviews"] == int(gates.STRANGERS_AT_ONCE)


async def test_strangers_do_not_keep_out_who_was_here_before(gate, clock):
    """Twenty invented tokens a second for a minute, while one account sometimes asks with a new token."""
    await gate.admit(f"Bearer {token('me')}", KEY)
    for second in range(1, 60):
        for number in range(20):
            await refused(gate, f"Bearer {token(f'stranger-{second}-{number}')}")
        if second % 10 == 0:
            await gate.admit(f"Bearer {token('me', exp=4_000_000_000 + second)}", KEY)
        clock.now += 1


async def test_what_is_made_up_for_somebody_keeps_out_nobody_else(gate, api):
    api.rights.add(("other", "get", "podgroups", "mine", ""))
    for account in ("me", "other"):
        await gate.admit(f"Bearer {token(account)}", KEY)
    for number in range(100):
        await refused(gate, f"Bearer {token('me', exp=5_000_000_000 + number)}x")
    assert await refused(gate, f"Bearer {token('me', exp=6_000_000_000)}") == (503, gates.BUSY)
    await gate.admit(f"Bearer {token('other', exp=6_000_000_000)}", KEY)


async def test_what_was_admitted_is_looked_at_again_before_it_is_answered(gate, api, clock):
    header = f"Bearer {token('me')}"
    admitted = await gate.admit(header, KEY)
    assert await gate.is_still(header, KEY, admitted)
    clock.now += gates.CACHE_TTL_S + 1
    api.rights.add(("me", "list", "nodes", "", ""))
    assert not await gate.is_still(header, KEY, admitted)
    clock.now += gates.CACHE_TTL_S + 1
    api.rights.clear()
    with pytest.raises(Refused) as error:
        await gate.is_still(header, KEY, admitted)
    assert error.value.status == 403
    clock.now += gates.CACHE_TTL_S + 1
    api.accounts.clear()
    with pytest.raises(Refused) as error:
        await gate.is_still(header, KEY, admitted)
    assert error.value.status == 401


async def test_no_more_is_remembered_than_there_is_room_for(gate, clock):
    for number in range(gates.MOST_CACHED + 50):
        clock.now += 1
        await refused(gate, f"Bearer stranger{number}")
    assert len(gate._users._known) == gates.MOST_CACHED  # noqa: SLF001 - how much is remembered is not to be seen outside


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
async def test_an_api_server_that_does_not_say_lets_nobody_in(gate, api, status):
    api.status = status
    assert await refused(gate, f"Bearer {token('me')}") == (503, gates.NO_REVIEW)


async def test_an_api_server_that_is_away_lets_nobody_in(gate, api):
    api.unreachable = True
    assert await refused(gate, f"Bearer {token('me')}") == (503, gates.NO_REVIEW)
    api.unreachable = False
    await gate.admit(f"Bearer {token('me')}", KEY)
