"use strict";
// Cells are only ever set as text, so that nothing in them can become markup.
(function () {
  const data = JSON.parse(document.getElementById("cases-data").textContent);
  const table = document.getElementById("cases-table");
  const head = table.tHead.rows[0];
  const body = table.tBodies[0];
  const count = document.getElementById("cases-count");
  const more = document.getElementById("cases-more");
  const search = document.getElementById("cases-search");
  const taken = document.getElementById("cases-taken");
  const wrong = document.getElementById("cases-wrong");
  const PAGE = 100;
  const TAKEN = 1;
  const WRONG = data.columns.findIndex((column) => column.name === "who is wrong");
  const REASON = data.columns.length - 1;
  const texts = data.rows.map((row) => row.map((cell) => (cell === null ? "" : String(cell))).join("\n").toLowerCase());
  const order = new Intl.Collator(undefined, { numeric: true });
  let shown = PAGE;
  let sorted = { column: -1, down: false };

  function compare(column, down) {
    return function (a, b) {
      const x = data.rows[a][column];
      const y = data.rows[b][column];
      // Gaps come last in both directions.
      const emptyX = x === null || x === "";
      const emptyY = y === null || y === "";
      if (emptyX || emptyY) return emptyX === emptyY ? a - b : emptyX ? 1 : -1;
      const both = typeof x === "number" && typeof y === "number";
      const sign = both ? x - y : order.compare(String(x), String(y));
      return sign === 0 ? a - b : down ? -sign : sign;
    };
  }

  function chosen() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const places = [];
    for (let i = 0; i < data.rows.length; i += 1) {
      const row = data.rows[i];
      const mistakes = row[WRONG];
      if (taken.value && row[TAKEN] !== taken.value) continue;
      if (wrong.value === "none" && mistakes) continue;
      if (wrong.value === "any" && !mistakes) continue;
      if (wrong.value === "team" && !data.teamWrong[i]) continue;
      if ((wrong.value === "machine" || wrong.value === "human") && !data[wrong.value + "Wrong"][i]) continue;
      if (words.every((word) => texts[i].includes(word))) places.push(i);
    }
    if (sorted.column >= 0) places.sort(compare(sorted.column, sorted.down));
    return places;
  }

  function cell(value, column) {
    const td = document.createElement("td");
    td.textContent = value === null ? "" : String(value);
    if (data.columns[column].number) td.className = "n";
    if (column === REASON) td.className = "reason";
    if (column === 0) td.className = "case";
    return td;
  }

  function draw() {
    const places = chosen();
    const rows = places.slice(0, shown).map(function (place) {
      const tr = document.createElement("tr");
      tr.className = data.rows[place][TAKEN];
      tr.append(...data.rows[place].map(cell));
      return tr;
    });
    body.replaceChildren(...rows);
    count.textContent = places.length + " of " + data.rows.length + (data.rows.length === 1 ? " case" : " cases") +
      (rows.length < places.length ? ", the first " + rows.length + " shown" : "");
    more.hidden = rows.length === places.length;
  }

  data.columns.forEach(function (column, place) {
    const th = document.createElement("th");
    const button = document.createElement("button");
    th.scope = "col";
    if (column.number) th.className = "n";
    button.type = "button";
    button.textContent = column.name;
    button.addEventListener("click", function () {
      sorted = { column: place, down: sorted.column === place && !sorted.down };
      for (const other of head.cells) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      draw();
    });
    th.append(button);
    head.append(th);
  });
  for (const control of [search, taken, wrong]) {
    control.addEventListener("input", function () {
      shown = PAGE;
      draw();
    });
  }
  more.addEventListener("click", function () {
    shown += 2 * PAGE;
    draw();
  });
  draw();
})();
