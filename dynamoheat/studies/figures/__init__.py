"""Figures of the documentation, drawn with matplotlib: `python -m dynamoheat.studies.figures`.

The only part of dynamoheat that draws; nothing else imports it. Equal runs give equal files.
"""
