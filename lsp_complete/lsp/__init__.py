"""pygls wiring and conversion between LSP values and the program's own. Nothing here decides anything."""
