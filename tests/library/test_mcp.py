"""The tools of `tidegauge mcp`, called through the SDK's own client over stdio."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tidegauge import EXAMPLES
from tidegauge.cli.main import main
from tidegauge.conformance.judge.rulebook import rulebook

mcp = pytest.importorskip("mcp")

Calls = Callable[[Callable[[Any], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    shutil.copytree(EXAMPLES / "captures/3.4.0/b-kill-leader", folder / "incident")
    shutil.copy(EXAMPLES / "golden/commit.ndjson", folder)
    (folder.parent / "secret.ndjson").write_text("hidden")
    (folder / "link.ndjson").symlink_to(folder.parent / "secret.ndjson")
    return folder


def served(root: Path, calls: Callable[[Any], Awaitable[None]]) -> None:
    """Start the command, and let a client call it."""

    async def session() -> None:
        arguments = ["-P", "-m", "tidegauge", "mcp", "--root", str(root)]
        environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
        parameters = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        async with mcp.Client(mcp.stdio_client(parameters)) as client:
            await calls(client)

    asyncio.run(session())


def test_an_agent_judges_explains_plays_and_asks_what_is_next(root: Path) -> None:
    async def calls(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"check", "explain", "play", "next_scenario"}
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)

        checked = (await client.call_tool("check", {"path": "incident"})).structured_content
        assert checked["verdict"] == "FAIL"
        assert checked["failures"][0]["rule"] == "HW-06"
        assert checked["failures"][0]["looks_like"] == ["KAFKA-14704"]

        explained = (await client.call_tool("explain", {"path": "incident", "rule": "HW-06"})).structured_content
        assert explained["sentence"] == rulebook()["HW-06"].sentence
        assert "n1's high watermark became 48 (Start).   [n1/server.log:705]" in explained["because"][0]

        played = (await client.call_tool("play", {"commands": ["elect b1", "write b1 a", "show"]})).structured_content
        assert len(played["result"]) >= 3

        following = (await client.call_tool("next_scenario", {"path": "commit.ndjson"})).structured_content
        exercised, _, total = following["shares"]["actions"].partition(" of ")
        assert 0 < int(exercised) < int(total)
        assert 0 < len(following["next"]) <= 3
        assert all(len(item["steps"]) == len(item["words"]) > 0 for item in following["next"])

    served(root, calls)


def test_mistakes_are_errors_of_a_call_and_nothing_outside_is_read(root: Path) -> None:
    async def calls(client: Any) -> None:
        for tool, arguments, says in (
            ("check", {"path": "../secret.ndjson"}, "below"),
            ("check", {"path": str(root.parent / "secret.ndjson")}, "below"),
            ("check", {"path": "link.ndjson"}, "below"),
            ("check", {"path": "nowhere"}, "nowhere"),
            ("check", {"path": "a\0b"}, "expected a path below"),
            ("explain", {"path": "commit.ndjson", "rule": "HW-99"}, "HW-01"),
            ("play", {"commands": ["show"] * 1001}, "at most 1000"),
            ("check", {}, "path"),
        ):
            result = await client.call_tool(tool, arguments)
            text = result.content[0].text
            assert result.is_error or result.structured_content["problems"], (tool, arguments)
            assert says in text
            assert "hidden" not in text
        # It goes on.
        assert (await client.call_tool("check", {"path": "commit.ndjson"})).structured_content["verdict"] == "PASS"

    served(root, calls)


def test_a_root_that_is_no_directory_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--root", str(tmp_path / "nowhere")]) == 2
    assert "expected a directory" in "".join(capsys.readouterr())
