"""Published measurements of DynamoDB, and the model's figures beside them: `make validate-heat`.

    cases ─▶ trials (scaled parameters, a seed) ─▶ figures ─▶ beside what was published
    a module a group          loads                           outcomes

The default parameters serve all cases. A case is a function from a `Trial` to figures, and a
`PublishedCase` that says what was published of them. It belongs to the `CASES` of its module.
"""
