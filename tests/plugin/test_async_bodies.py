"""`async def` bodies: with pytest-asyncio, with anyio's plugin, and with neither."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_ASYNCIO = ("-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function")


def test_without_a_plugin_in_charge(project: Project) -> None:
    """A coroutine that nobody else would run is run, each trial in an event loop."""
    project.write(
        """
        import asyncio
        import pytest
        from notes import note

        @pytest.fixture
        def thing():
            note("+"); yield 1; note("-")

        @pytest.mark.trials(5, never_fails=True)
        async def test_it(thing, trial):
            await asyncio.sleep(0)
            assert asyncio.current_task() is not None

        class TestMethods:
            @pytest.mark.trials(5, never_fails=True)
            async def test_it(self, thing):
                await asyncio.sleep(0)

        @pytest.mark.trials(2, never_fails=True)
        async def test_fails():
            await asyncio.sleep(0)
            assert 1 + 1 == 3
        """
    )

    result = project.run()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([">*assert 1 + 1 == 3", "E*assert (1 + 1) == 3"])
    assert {"+": 10, "-": 10} == Counter(project.notes())


@pytest.mark.parametrize("mode", ["strict", "auto"])
@pytest.mark.parametrize("scope", ["function", "module"])
def test_with_pytest_asyncio(project: Project, mode: str, scope: str) -> None:
    """Bodies and async fixtures share the loop that pytest-asyncio gives them."""
    project.write(
        f"""
        import asyncio
        import pytest, pytest_asyncio
        from notes import note

        @pytest_asyncio.fixture(loop_scope="{scope}")
        async def client():
            note("+")
            yield asyncio.get_running_loop()
            await asyncio.sleep(0)
            note("-")

        @pytest.mark.asyncio(loop_scope="{scope}")
        @pytest.mark.trials(6, never_fails=True)
        async def test_it(client):
            assert asyncio.get_running_loop() is client

        @pytest.mark.asyncio(loop_scope="{scope}")
        class TestMethods:
            @pytest.mark.trials(6, never_fails=True)
            async def test_it(self, client):
                assert not hasattr(self, "seen")
                self.seen = True
                assert asyncio.get_running_loop() is client

        @pytest.mark.asyncio(loop_scope="{scope}")
        async def test_plain(client): pass
        """
    )

    result = project.run(*_ASYNCIO, f"--asyncio-mode={mode}")

    result.assert_outcomes(passed=3)
    assert {"+": 13, "-": 13} == Counter(project.notes())


def test_with_anyio(project: Project) -> None:
    """Bodies and async fixtures run in anyio's runner; each backend is a case of its own."""
    project.write(
        """
        import anyio
        import pytest
        from notes import note

        pytestmark = pytest.mark.anyio

        @pytest.fixture(scope="module")
        def anyio_backend(): return "asyncio"

        @pytest.fixture
        async def client():
            note("+")
            yield "client"
            await anyio.sleep(0)
            note("-")

        @pytest.mark.trials(6, never_fails=True)
        async def test_it(client):
            await anyio.sleep(0)

        @pytest.mark.trials(3, never_fails=True)
        async def test_fails(client):
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep, 0)
            assert client == "server"
        """
    )

    result = project.run()

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: assert 'client' == 'server'"])
    notes = Counter(project.notes())
    assert notes["+"] == notes["-"] == 7
