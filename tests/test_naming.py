"""Numbers for equal names: each is given once, and those that are taken are passed over together."""

from __future__ import annotations

import asyncio

import pytest

from service.store.naming import Naming


class Taken:
    """Numbers as far as some last one, and how often somebody has looked."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.looks = 0

    async def free(self) -> int:
        self.looks += 1
        await asyncio.sleep(0)
        return self.last + 1


@pytest.mark.parametrize("is_repeated", [False, True])
async def test_a_name_that_is_new_goes_as_it_is(is_repeated: bool) -> None:
    taken = Taken(0)
    naming = Naming(taken.free, is_repeated=is_repeated)
    assert await asyncio.gather(*(naming.next() for _ in range(5))) == [1, 2, 3, 4, 5]
    assert taken.looks == is_repeated


async def test_those_who_are_refused_together_look_once() -> None:
    taken = Taken(57)
    naming = Naming(taken.free, is_repeated=False)
    tried = await asyncio.gather(*(naming.next() for _ in range(5)))
    again = await asyncio.gather(*(naming.next(number) for number in tried))
    assert again == [58, 59, 60, 61, 62]
    assert taken.looks == 1


async def test_a_name_that_is_known_to_be_repeated_is_looked_for_first() -> None:
    taken = Taken(57)
    naming = Naming(taken.free, is_repeated=True)
    assert await asyncio.gather(*(naming.next() for _ in range(3))) == [58, 59, 60]
    assert taken.looks == 1


async def test_what_others_are_about_to_take_is_not_given_again() -> None:
    naming = Naming(Taken(2).free, is_repeated=False)
    tried = [await naming.next() for _ in range(4)]
    # 3 and 4 are on their way when 1 and 2 are refused.
    assert [await naming.next(tried[0]), await naming.next(tried[1])] == [5, 6]


async def test_a_number_that_is_free_was_refused_for_something_else() -> None:
    naming = Naming(Taken(0).free, is_repeated=False)
    assert await naming.next(await naming.next()) == 1
