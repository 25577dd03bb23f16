"""The model in front of an engine: an endpoint that throttles as DynamoDB does.

    call ─▶ faults ─▶ throttling ─▶ engine          `faults` breaks what a test wants broken
                      │  ▲                          `throttling` asks the model, takes batches apart,
                      ▼  │ now                      settles, answers with DynamoDB's exceptions
                      tables, heat, clock           `tables` keeps the model told of every table

`Throttling` is the one place where the model lives; whoever shares its event loop may read its counters
without a lock. `python -m dynamoheat serve` puts it behind an address of its own; the local cloud builds it into
its endpoint.
"""
