const figures = JSON.parse(document.getElementById("figures").textContent);
const settings = {responsive: true, displayModeBar: false, typesetMath: false};
const drawn = Object.entries(figures).map(([name, figure]) => {
  const place = document.getElementById("figure-" + name);
  Plotly.newPlot(place, figure.data, figure.layout, settings);
  return place;
});

// arrow keys walk through the points of a focused figure, and what the label shows is also spoken
const spoken = document.getElementById("spoken");
drawn.forEach((place) => {
  const points = place.data.flatMap((trace, curveNumber) => trace.hoverinfo === "skip" || trace.type === "heatmap" ? [] :
    trace.x.flatMap((_, pointNumber) => trace.y[pointNumber] === null ? [] : [{curveNumber, pointNumber}]));
  let at = -1;
  const speak = () => {
    const lines = [...place.querySelectorAll(".hoverlayer .nums .line")].map((line) => line.textContent);
    spoken.textContent = at < 0 ? "" : lines.join(", ") || place.querySelector(".hoverlayer").textContent;
  };
  const leave = () => { at = -1; Plotly.Fx.unhover(place); speak(); };
  place.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (event.key === "Escape") leave();
    if (!step || !points.length) return;
    event.preventDefault();
    at = at < 0 && step < 0 ? points.length - 1 : (at + step + points.length) % points.length;
    Plotly.Fx.hover(place, [points[at]]);
    setTimeout(speak, 80);  // plotly draws a label at most every 50 ms, and tells nobody
  });
  place.addEventListener("blur", leave);
});

// a sheet of paper has its own width, and printing does not wait for figures that fit themselves later
const fit = (size) => drawn.forEach((place) => Plotly.relayout(place, size(place)));
addEventListener("beforeprint", () => {
  document.body.classList.add("paper");
  fit((place) => ({autosize: false, width: place.clientWidth}));
});
addEventListener("afterprint", () => {
  document.body.classList.remove("paper");
  fit(() => ({autosize: true}));
});
