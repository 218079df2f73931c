"""Charts described once, drawn by plotly on the page and by matplotlib in a file."""
