"""Reports for people to read."""

from tagkin.pages.report import Comparison, Report, comparisons_of, write_report

__all__ = ["Comparison", "Report", "comparisons_of", "write_report"]
