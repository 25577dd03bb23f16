"""The README's examples run as they are written, on tables made from its own words."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.__main__ import _parser
from local.engine import EngineProcess
from local.state import DEFAULT_FOLDER, ROOT, State
from spillway import keys
from tests.support.clients import client_with

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PAGE = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ENDPOINT = "http://127.0.0.1:4566"
OUTPUTS = ".local/outputs.json"


def _key(described: str) -> tuple[list[Any], list[Any]]:
    """Return schema and definitions of a key such as "`series`, `window` (a number)"."""
    found = re.findall(r"`(\w+)`( \(a number\))?", described)
    schema = [
        {"AttributeName": name, "KeyType": kind}
        for (name, _), kind in zip(found, ("HASH", "RANGE"), strict=False)
    ]
    definitions = [
        {"AttributeName": name, "AttributeType": "N" if number else "S"} for name, number in found
    ]
    return schema, definitions


def _tables(client: "DynamoDBClient") -> dict[str, str]:
    """Create the tables that the README describes; return their names as `make up` does."""
    rows = re.findall(
        r"^\| (events|layouts|usage)\b[^|]* \| (.*?) \| (.*?) ?\|$", PAGE, re.MULTILINE
    )
    names = {}
    for name, key, index in rows:
        schema, definitions = _key(key)
        request: Any = {"TableName": f"readme-{name}", "KeySchema": schema}
        if index:
            index_name, _, index_key = index.partition(": ")
            index_schema, more = _key(index_key)
            definitions += [each for each in more if each not in definitions]
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": index_name.strip("`"),
                    "KeySchema": index_schema,
                    "Projection": {"ProjectionType": "ALL"},
                }
            ]
        client.create_table(
            **request, AttributeDefinitions=definitions, BillingMode="PAY_PER_REQUEST"
        )
        names[f"{name.capitalize()}Table"] = f"readme-{name}"
    return names


@pytest.mark.engine
def test_the_examples_show_the_event_that_they_write(
    engine: EngineProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs = tmp_path / OUTPUTS
    outputs.parent.mkdir()
    client = client_with(engine.url, region="us-east-1")
    outputs.write_text(json.dumps({"Spillway-local-storage": _tables(client)}))
    client.close()
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    printed = []
    for block in BLOCKS:
        exec(compile(block.replace(ENDPOINT, engine.url), "README.md", "exec"), scope)  # noqa: S102
        printed.append(capsys.readouterr().out)
    scope["client"].close()
    written, asked = printed
    now = scope["now"]
    assert written == f"1\n{now} {{'delay': 33}}\n"
    hour = now.replace(minute=0, second=0, microsecond=0)
    row, exported, *explained = asked.splitlines()
    assert row == f"{hour} 33.0"
    assert exported == f"{now} {{'delay': 33}}"
    assert [each.payload for each in scope["page"].events] == [{"delay": 33}]
    assert len(explained) == 1


def test_the_words_on_tables_name_every_key_of_the_library() -> None:
    words = PAGE.partition("| table | ")[2].partition("\n|---")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([\w-]+)`", words))
    assert named == {
        keys.PARTITION_KEY,
        keys.SORT_KEY,
        keys.INDEX_NAME,
        keys.INDEX_PARTITION_KEY,
        keys.LAYOUT_KEY,
        keys.LAYOUT_INDEX_NAME,
        keys.LAYOUT_INDEX_KEY,
        keys.USAGE_KEY,
        keys.USAGE_SORT_KEY,
    }


def test_the_examples_find_what_make_up_starts() -> None:
    assert State(DEFAULT_FOLDER).outputs == ROOT / OUTPUTS
    assert f":{_parser().parse_args(['up']).port}" in ENDPOINT
    assert ENDPOINT in BLOCKS[0]
    assert OUTPUTS in BLOCKS[0]


def test_the_link_of_every_page_leads_to_a_file() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / link).is_file(), link
