// a folded part is fetched when it is opened; where a page may not fetch (a file), its link stays
document.addEventListener(
  "toggle",
  async (event) => {
    const fold = event.target
    if (!fold.open || !fold.dataset.part) return
    const part = fold.dataset.part
    delete fold.dataset.part
    try {
      const text = await (await fetch(part)).text()
      const found = new DOMParser().parseFromString(text, "text/html")
      const frame = document.createElement("div")
      frame.className = "part"
      frame.append(...found.body.childNodes)
      fold.querySelector("p").replaceWith(frame)
    } catch {
      fold.dataset.part = part
    }
  },
  true,
)
