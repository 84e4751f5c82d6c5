"""The nouns: frozen values without a clock, a file or a network in them."""
