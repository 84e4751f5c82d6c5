"""A plan as a page: neutral blocks first, then text, HTML, SVG."""
