"use strict";
// What the pages do besides htmx: answer keys, messages, and a sign of life only while somebody is there.

// A key that was meant for the case before must not answer the next one.
const CALM = 300;
// Without a touch for so long, a case goes back to the queue although the page is open.
const AWAY = 60 * 60 * 1000;
let shownAt = 0;
let touchedAt = Date.now();
let busy = false;

function tell(text) {
  const box = document.getElementById("message");
  const line = document.createElement("p");
  line.className = "problem";
  line.textContent = text;
  box.replaceChildren(line);
  box.scrollIntoView({ block: "nearest" });
}

function isTyping(element) {
  return element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName);
}

document.addEventListener("keydown", (event) => {
  touchedAt = Date.now();
  const note = document.getElementById("note");
  if (event.key === "Escape" && note !== null && event.target === note) {
    document.getElementById("case-title").focus();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
  if (event.key === "n" && note !== null) {
    event.preventDefault();
    note.focus();
    return;
  }
  // Enter on a button or a link is meant for it.
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (button === null) return;
  event.preventDefault();
  if (!event.repeat && !busy && Date.now() - shownAt > CALM) button.click();
});
for (const kind of ["pointerdown", "pointermove", "scroll"]) {
  document.addEventListener(kind, () => { touchedAt = Date.now(); }, { passive: true });
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const source = event.detail.elt;
  const away = Date.now() - touchedAt > AWAY;
  if ((source.matches("[data-look]") && document.hidden) || (source.matches("[data-renewal]") && away)) {
    event.preventDefault();
    return;
  }
  if (source.matches("[data-renewal], [data-look]")) return;
  // One answer at a time: a second click would be meant for the next case.
  if (busy && source.closest("#place")) {
    event.preventDefault();
    return;
  }
  busy = true;
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.elt.matches("[data-renewal], [data-look]")) busy = false;
});

document.addEventListener("htmx:afterSwap", (event) => {
  const target = event.detail.target;
  document.getElementById("message")?.replaceChildren();
  if (target.id === "place") {
    busy = false;
    shownAt = Date.now();
    document.getElementById("case-title")?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  } else if (target === document.body) {
    busy = false;
    document.getElementById("main").focus();
  }
});

document.addEventListener("htmx:responseError", (event) => {
  const request = event.detail.xhr;
  if (request.status === 401) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
    return;
  }
  let text = "The desk could not do this. Try again.";
  try {
    text = JSON.parse(request.responseText).detail ?? text;
  } catch {
    // It was not the desk that answered.
  }
  tell(text);
});
for (const kind of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(kind, () => tell("The desk does not answer. Nothing was sent: try again."));
}

// On a narrow page the navigation scrolls: the page that is open must be in sight.
function showOpenPage() {
  const link = document.querySelector(".top nav [aria-current]");
  if (link !== null) link.closest("nav").scrollLeft = link.offsetLeft - link.closest("nav").offsetLeft - 40;
}
showOpenPage();
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target === document.body) showOpenPage();
});

// The columns of a CSV file, as soon as it is chosen.
document.addEventListener("change", async (event) => {
  const list = document.getElementById("columns");
  if (list === null || event.target.type !== "file" || !event.target.files.length) return;
  const file = event.target.files[0];
  list.replaceChildren();
  if (!/\.(csv|tsv|txt)$/i.test(file.name)) return;
  const line = (await file.slice(0, 65536).text()).replace(/^\uFEFF/, "").split(/\r?\n/)[0];
  const count = (mark) => line.split(mark).length;
  const mark = [",", ";", "\t", "|"].reduce((best, one) => (count(one) > count(best) ? one : best));
  for (const cell of line.split(mark)) {
    const option = document.createElement("option");
    option.value = cell.trim().replace(/^"(.*)"$/, "$1");
    list.append(option);
  }
});
