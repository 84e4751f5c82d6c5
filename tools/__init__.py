"""Scripts for maintainers. `make` calls them; nothing here is installed."""
