"""Labels as features: the textual side of the semantic space."""
