"""Commands that deploy a stage to AWS: `make deploy`, `diff`, `destroy` and `bootstrap`."""
