"""The report: one page, the same as Markdown, all numbers as JSON, figures beside."""

from dszog_paper.report.write import write_report

__all__ = ["write_report"]
