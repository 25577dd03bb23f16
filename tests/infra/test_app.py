"""The application: which bundle the functions of a stage get."""

from typing import Any

import pytest
from aws_cdk import App

import app
from spillway.cdk.bundle import BundleError, BundleTarget
from stacks.config import STAGES


class Asked:
    """Stands for bundling: keeps what was asked for, and ends the application there."""

    def __init__(self) -> None:
        self.target: BundleTarget | None = None
        self.with_dax: bool | None = None

    def __call__(self, _: Any, *, target: BundleTarget, with_dax: bool) -> Any:
        self.target, self.with_dax = target, with_dax
        raise BundleError("enough")


@pytest.mark.parametrize("name", sorted(STAGES))
def test_functions_get_the_client_of_dax_where_their_stage_has_a_cache(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    monkeypatch.setattr(app, "function_code", asked)
    monkeypatch.setattr(app, "App", lambda: App(context={"stage": name}))
    with pytest.raises(SystemExit, match="error: enough"):
        app.main()
    assert asked.with_dax is (STAGES[name].cache is not None)
    assert asked.target is not None
    assert (asked.target.platform is None) is (name == "local")
