"""The model against what was published of the real DynamoDB: `make validate-heat`.

    cases ──▶ trials (parameters at a scale, a seed) ──▶ figures ──▶ beside what was published
    a module a group            loads                   outcomes     report

One set of parameters serves all cases: the defaults. A case is a small function from a `Trial` to figures,
and a `Case` that says what was published of them; it belongs to the `CASES` of its module, and its
module to `dynamoheat.studies.validation.cases`.
"""
