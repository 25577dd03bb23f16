"""Pictures of the model for the documentation, drawn with matplotlib: `python -m dynamoheat.studies.figures`.

The only part of `heat` that draws; nothing else imports it. Equal runs give equal files.
"""
