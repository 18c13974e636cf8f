"""What is known of a folder of photographs, what was suggested, and what a person decided."""

from tagkin.catalogue.catalogue import Catalogue, Run, open_catalogue, open_for_scan
from tagkin.catalogue.locations import default_data_folder, find_catalogue, known_catalogues
from tagkin.catalogue.scanning import Scan, scan

__all__ = [
    "Catalogue",
    "Run",
    "Scan",
    "default_data_folder",
    "find_catalogue",
    "known_catalogues",
    "open_catalogue",
    "open_for_scan",
    "scan",
]
