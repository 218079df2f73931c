const figures = JSON.parse(document.getElementById("figures").textContent);
const spoken = document.getElementById("spoken"), tip = document.getElementById("tip");

// labels are set as text, never as markup
const show = (text, x, y) => {
  tip.textContent = text;
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - width - 8)) + "px";
  tip.style.top = Math.max(8, y + height + 20 > innerHeight ? y - height - 14 : y + 14) + "px";
};
const hide = () => { tip.hidden = true; };
const tooltip = (handler, event, item, value) => value ? show(String(value), event.clientX, event.clientY) : hide();
// "ast": expressions are interpreted, so that the page needs no right to evaluate text as code
const settings = {actions: false, ast: true, renderer: "svg", defaultStyle: false, hover: false, tooltip};

const drawn = Promise.all(Object.entries(figures).map(async ([name, spec]) => {
  const place = document.getElementById("figure-" + name);
  // within the place, whose role and label for screen readers are to stay
  const {view} = await vegaEmbed(place.appendChild(document.createElement("div")), spec, settings);
  walk(place);
  return {place, view, wide: spec.width === "container"};
}));
drawn.then((all) => {
  views.push(...all);
  document.documentElement.dataset.drawn = all.length;
});
const views = [];

// arrow keys walk through the points of a focused figure, and the label of each is also spoken
function walk(place) {
  let at = -1;
  const points = () => [...place.querySelectorAll(".mark-symbol path, .mark-rect path")]
    .filter(({__data__: item}) => item && item.tooltip && !("value" in item.datum));
  const leave = () => {
    points().forEach((point) => point.classList.remove("at"));
    at = -1;
    spoken.textContent = "";
    hide();
  };
  place.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key], all = points();
    if (event.key === "Escape") leave();
    if (!step || !all.length) return;
    event.preventDefault();
    all.forEach((point) => point.classList.remove("at"));
    at = at < 0 && step < 0 ? all.length - 1 : (at + step + all.length) % all.length;
    const {right, top} = all[at].getBoundingClientRect(), text = all[at].__data__.tooltip;
    all[at].classList.add("at");
    show(text, right, top);
    spoken.textContent = text.replaceAll("\n", ", ");
  });
  place.addEventListener("blur", leave);
}

// a sheet of paper has its own width, and printing does not wait for figures that fit themselves later
const fit = () => views.forEach(({place, view, wide}) => wide && view.width(place.clientWidth).run());
// tables that belong to the evidence are opened on paper, where nobody can
const closed = [...document.querySelectorAll("details[data-print]:not([open])")];
addEventListener("beforeprint", () => { document.body.classList.add("paper"); closed.forEach((one) => { one.open = true; }); fit(); });
addEventListener("afterprint", () => { document.body.classList.remove("paper"); closed.forEach((one) => { one.open = false; }); fit(); });
