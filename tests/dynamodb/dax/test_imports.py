import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from lambdas.environment import open_store, read_environment
from tests.api.conftest import ENVIRONMENT

store = open_store(read_environment({**ENVIRONMENT, "DAX_ENDPOINT": sys.argv[1]}))
if sys.argv[2] == "read":
    now = datetime.now(UTC)
    try:
        store.read("ORD", now - timedelta(days=2), now - timedelta(days=1), consistent=False, timeout=0.5)
    except Exception as error:
        print(type(error).__name__)
print(sorted({name.split(".")[0] for name in sys.modules} & {"amazondax", "antlr4"}))
"""


@pytest.mark.parametrize(
    ("endpoint", "action", "imported"),
    [
        ("", "read", []),
        ("dax://127.0.0.1:9", "nothing", []),
        ("dax://127.0.0.1:9", "read", ["amazondax", "antlr4"]),
    ],
)
def test_the_client_is_imported_by_the_first_read_that_has_an_endpoint(
    endpoint: str, action: str, imported: list[str]
) -> None:
    environment = {
        "PYTHONPATH": ".",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9",
        "POWERTOOLS_METRICS_NAMESPACE": "Spillway",
    }
    command = [sys.executable, "-W", "error", "-c", PROGRAM, endpoint, action]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(imported)
