"""AWS infrastructure: stacks wire, constructs build, `config` holds every number of a stage."""
