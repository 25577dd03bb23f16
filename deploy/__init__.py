"""The commands that deploy a stage to AWS: `make deploy`, `make diff`, `make destroy`, `make bootstrap`."""
