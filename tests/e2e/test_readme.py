"""The README's examples find the tables that the local cloud has deployed."""

import re
from pathlib import Path
from typing import Any

import pytest

from local.cloud import Cloud
from local.state import DEFAULT_FOLDER, ROOT

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
ENDPOINT = "http://127.0.0.1:4566"


def test_the_examples_run_against_a_local_cloud(
    cloud: Cloud,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / DEFAULT_FOLDER.name).symlink_to(cloud.state.folder)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for block in BLOCKS:
        code = compile(block.replace(ENDPOINT, cloud.endpoint_url), "README.md", "exec")
        exec(code, scope)  # noqa: S102  our own page
    scope["client"].close()
    assert capsys.readouterr().out.startswith("1\n")
    assert {"delay": 33} in [each.payload for each in scope["page"].events]
