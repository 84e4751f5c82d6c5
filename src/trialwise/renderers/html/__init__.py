"""Documents as HTML: a page that stands alone, a fragment for notebooks, charts as SVG.

- `page_frame`: a document as one file, with its styles (`page.css`) and its script (`page.js`), or
  as a fragment that a notebook shows (`fragment.css`); charts as an SVG file (`charts.css`)
- `block_markup`: every block and every cell as elements
- `shapes`: charts and intervals, what is drawn inside them as SVG, and badges
- `markup`: elements and escaping, headings and links, and colours for light, dark and paper
"""
