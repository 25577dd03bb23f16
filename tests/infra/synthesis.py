"""Synthesise a stage without bundling, and find resources by what they are, never by logical id."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from aws_cdk import App
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from spillway import keys
from stacks.assembly import assemble
from stacks.config import STAGES, Stage

ROOT: Final = Path(__file__).parents[2]
STAGE_NAMES: Final = tuple(STAGES)
GLOBAL_TABLE: Final = "AWS::DynamoDB::GlobalTable"

Resource = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The templates of one stage."""

    stage: Stage
    folder: Path
    storage: Template
    service: Template
    cache: Template | None

    @property
    def template_files(self) -> list[Path]:
        return sorted(self.folder.glob("*.template.json"))


def synthesise(name: str, folder: Path, *, stage: Stage | None = None) -> Synthesis:
    """Synthesise under the project's own feature flags; cdk-nag's findings make it fail."""
    code = folder / "code"
    code.mkdir()
    (code / "empty.py").touch()
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(folder / "out"), context=context)
    stage = stage or STAGES[name]
    stacks = assemble(app, stage=stage, code=lambda_.Code.from_asset(str(code)))
    app.synth()
    return Synthesis(
        stage,
        folder / "out",
        Template.from_stack(stacks.storage),
        Template.from_stack(stacks.service),
        None if stacks.cache is None else Template.from_stack(stacks.cache),
    )


def of_type(template: Template, kind: str) -> list[Resource]:
    """Return every resource of a CloudFormation type."""
    return list(template.find_resources(kind).values())


def tables(synthesis: Synthesis) -> dict[str, Resource]:
    """Return the tables by what they hold: events, layouts, usage."""
    found = {_holds(table): table for table in of_type(synthesis.storage, GLOBAL_TABLE)}
    assert set(found) == {"events", "layouts", "usage"}
    return found


def _holds(table: Resource) -> str:
    by_attributes = {
        (keys.PARTITION_KEY, keys.SORT_KEY): "events",
        (keys.LAYOUT_KEY,): "layouts",
        (keys.USAGE_KEY, keys.USAGE_SORT_KEY): "usage",
    }
    return by_attributes[tuple(key["AttributeName"] for key in table["Properties"]["KeySchema"])]


def functions(synthesis: Synthesis) -> dict[str, Resource]:
    """Return the functions' properties by name."""
    found = of_type(synthesis.service, "AWS::Lambda::Function")
    return {f["Properties"]["Handler"].split(".")[1]: f["Properties"] for f in found}


def in_network(synthesis: Synthesis, function: str) -> bool:
    """Tell whether a function stands in the network of the cache."""
    return synthesis.cache is not None and function == "query"


def allowed(synthesis: Synthesis, function: str) -> Iterator[tuple[str, Any]]:
    """Yield (action, resource) for each that the function's role is allowed."""
    role = functions(synthesis)[function]["Role"]["Fn::GetAtt"][0]
    for policy in of_type(synthesis.service, "AWS::IAM::Policy"):
        if {"Ref": role} in policy["Properties"]["Roles"]:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Allow"
                for action in _listed(statement["Action"]):
                    for resource in _listed(statement["Resource"]):
                        yield action, resource


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def data_resource(synthesis: Synthesis, resource: Any) -> str:
    """Return what an ARN of a policy names: `events`, `events/index/…`, `layouts` or `usage`."""
    if "Fn::Join" in resource:
        separator, parts = resource["Fn::Join"]
        assert separator == ""
        return "".join(p if isinstance(p, str) else data_resource(synthesis, p) for p in parts)
    exported = resource["Fn::ImportValue"]
    (output,) = (
        output
        for output in synthesis.storage.find_outputs("*").values()
        if output.get("Export", {}).get("Name") == exported
    )
    logical_id, attribute = output["Value"]["Fn::GetAtt"]
    assert attribute == "Arn"
    return _holds(synthesis.storage.find_resources(GLOBAL_TABLE)[logical_id])


def written(synthesis: Synthesis, value: Any) -> str:
    """Return a value of the service's template as text: what it refers to stands in angle brackets.

    Tables stand by what they hold, functions by their names, other resources by their types.
    """
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(written(synthesis, part) for part in parts)
        case {"Fn::ImportValue": exported}:
            outputs = _outputs(synthesis.storage).values()
            (found,) = (o for o in outputs if o.get("Export", {}).get("Name") == exported)
            return f"<{_label(synthesis.storage, _target(found['Value']))}>"
        case {"Ref": str() as name} if name.startswith("AWS::"):
            return f"<{name}>"
        case _:
            return f"<{_label(synthesis.service, _target(value))}>"


def _target(reference: Any) -> str:
    return str(reference["Ref"] if "Ref" in reference else reference["Fn::GetAtt"][0])


def _label(template: Template, logical_id: str) -> str:
    resource = _resources(template)[logical_id]
    if resource["Type"] == GLOBAL_TABLE:
        return _holds(resource)
    if resource["Type"] == "AWS::Lambda::Function":
        return str(resource["Properties"]["Handler"].split(".")[1])
    return str(resource["Type"])


@cache
def _resources(template: Template) -> dict[str, Resource]:
    return dict(template.to_json()["Resources"])


@cache
def _outputs(template: Template) -> dict[str, Resource]:
    return dict(template.to_json()["Outputs"])
