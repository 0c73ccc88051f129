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
  const by = document.getElementById("cases-order");
  const PAGE = 25;
  const place = (name) => data.columns.findIndex((column) => column.name === name);
  const WHY = place("why");
  const CASE = place("case");
  const RESULT = place("result");
  const TAKEN = place("taken by");
  const shownColumns = data.columns.map((_, i) => i).filter((i) => data.columns[i].shown);
  // On a phone, most of the line is out of sight: an open case shows all of it again.
  const opened = data.columns.map((_, i) => i).filter((i) => i !== WHY);
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

  function wanted(i) {
    const row = data.rows[i];
    const value = wrong.value;
    const mistakes = data.machineWrong[i] || data.humanWrong[i];
    if (taken.value && row[TAKEN] !== taken.value) return false;
    if (value === "none") return !mistakes;
    if (value === "any") return mistakes;
    if (value === "fixed" || value === "spoilt") return row[RESULT] === value;
    return !value || data[value + "Wrong"][i];
  }

  function chosen() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const places = [];
    for (let i = 0; i < data.rows.length; i += 1) {
      if (wanted(i) && words.every((word) => texts[i].includes(word))) places.push(i);
    }
    if (sorted.column >= 0) places.sort(compare(sorted.column, sorted.down));
    return places;
  }

  function text(value) {
    return value === null || value === "" ? "–" : String(value);
  }

  function details(row) {
    const tr = document.createElement("tr");
    const td = document.createElement("td");
    const list = document.createElement("dl");
    tr.className = "opened";
    td.colSpan = shownColumns.length;
    for (const i of opened) {
      const name = document.createElement("dt");
      const value = document.createElement("dd");
      name.textContent = data.columns[i].name;
      value.textContent = text(row[i]);
      list.append(name, value);
    }
    td.append(list);
    tr.append(td);
    return tr;
  }

  // The reason opens and closes the case.
  function opener(row, tr) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = row[WHY];
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-label", row[WHY] + ". Case " + row[CASE]);
    button.addEventListener("click", function () {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) tr.nextSibling.remove();
      else tr.after(details(row));
    });
    return button;
  }

  function line(i) {
    const row = data.rows[i];
    const tr = document.createElement("tr");
    tr.className = "case " + row[TAKEN] + " is-" + row[RESULT].replace(" ", "-");
    for (const column of shownColumns) {
      const td = document.createElement("td");
      if (column === WHY) td.append(opener(row, tr));
      else td.textContent = text(row[column]);
      if (data.columns[column].number) td.className = "n";
      if (column === RESULT) td.className = "result";
      tr.append(td);
    }
    return tr;
  }

  function draw() {
    const places = chosen();
    const rows = places.slice(0, shown).map(line);
    body.replaceChildren(...rows);
    count.textContent = places.length + " of " + data.rows.length + (data.rows.length === 1 ? " case" : " cases") +
      (rows.length < places.length ? ", the first " + rows.length + " shown" : "");
    more.hidden = rows.length === places.length;
    for (const th of head.cells) th.removeAttribute("aria-sort");
    const th = head.cells[shownColumns.indexOf(sorted.column)];
    if (th) th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    by.value = sorted.column < 0 ? "" : sorted.column + (sorted.down ? "-" : "+");
  }

  for (const column of shownColumns) {
    const th = document.createElement("th");
    const button = document.createElement("button");
    th.scope = "col";
    if (data.columns[column].number) th.className = "n";
    button.type = "button";
    button.textContent = data.columns[column].name;
    button.addEventListener("click", function () {
      sorted = { column: column, down: sorted.column === column && !sorted.down };
      draw();
    });
    th.append(button);
    head.append(th);
  }
  data.columns.forEach(function (column, i) {
    for (const down of [false, true]) {
      const option = document.createElement("option");
      option.value = i + (down ? "-" : "+");
      option.textContent = column.name + (column.number ? (down ? ", largest first" : ", smallest first") : down ? ", Z to A" : ", A to Z");
      by.append(option);
    }
  });
  by.addEventListener("input", function () {
    sorted = by.value ? { column: parseInt(by.value, 10), down: by.value.endsWith("-") } : { column: -1, down: false };
    draw();
  });
  for (const control of [search, taken, wrong]) {
    control.addEventListener("input", function () {
      shown = PAGE;
      draw();
    });
  }
  more.addEventListener("click", function () {
    shown += 4 * PAGE;
    draw();
  });
  draw();
})();
