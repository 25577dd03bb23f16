"""AWS Lambda entry points: `admin`, `ingest`, `query` and `scaler` hold a handler each."""

from lambdas.start import begin_start

begin_start()
