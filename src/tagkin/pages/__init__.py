"""Reports for people to read, and layouts of maps."""

from tagkin.pages.layout import lay_out
from tagkin.pages.report import Comparison, Report, comparisons_of, write_report

__all__ = ["Comparison", "Report", "comparisons_of", "lay_out", "write_report"]
