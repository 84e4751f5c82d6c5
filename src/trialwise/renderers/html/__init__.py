"""Documents as HTML: a page that stands alone, a fragment for notebooks, charts as SVG.

- `page_frame`: a document as one file, with its styles (`page.css`) and its script (`page.js`)
- `fragment`: a document as a fragment that a notebook shows (`fragment.css`)
- `block_markup`: every block and every cell as elements
- `chart_frames`: charts with two axes, their words in HTML
- `shapes`: what is drawn inside a chart, as SVG
- `figures`: intervals, bars and timelines
- `chart_file`: charts as an SVG file of their own (`charts.css`, as in a page)
- `glyphs`: shapes and badges
- `outline`: the depth of headings, and identities for links
- `markup`: elements and escaping
- `assets`: reads the style files and the script
- `palette`: colours for light, dark and paper
"""
