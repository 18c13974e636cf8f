"""Catalogues of former versions, with their photographs: the newest version opens them all."""
