// A table of any number of rows. Only visible rows are in the document, between two spacers as high
// as the others. All rows have the same height (--row-height). Columns that do not fit are omitted,
// the least important first: the page never scrolls sideways.
//
// The table is one stop of the Tab key; arrows, j and k move the active row. A column is
//   {key, title, width, priority, room, grow, numeric, text(item), hint(item), tone(item),
//    render(td, item), sort(item), csv(item), class}
// where `text` or `render` fills a cell, `time` makes its text a time (moments.js), `sort` gives
// the value to sort by (absent: not sortable), `csv` the value to export (absent: not exported),
// `tone` a class for the cell, and `grow` the width up to which the column takes the remaining
// width. A column with a smaller `priority` is kept longer; with `room` {priority, width}, it gets
// this width before columns of a larger priority are shown.

import { h, replace } from "./dom.js";
import { downloadCsv } from "./csv.js";

const kOverscan = 6;      // rows above and below the visible rows
const kBusyMs = 3000;     // how long the order is kept after a key or a move of the pointer
const kCheckWidth = 36;

export class VirtualTable {
  // options: {name, label, columns, keyOf(item), onSort(key, order), onOpen(item), onActive(item),
  //           onSelect(keys), rowClass(item), covered(), empty}
  // `covered` gives how many pixels at the bottom of the window are covered by something else.
  constructor(options) {
    Object.assign(this, { keyOf: (item) => item.name, empty: "Nothing to show." }, options);
    this.selectable = Boolean(this.onSelect);
    this.rows = [];
    this.pool = [];
    this.selected = new Set();
    this.activeKey = null;
    this.activeIndex = -1;
    this.anchorIndex = -1;
    this.sortKey = "";
    this.order = "asc";
    this.busyUntil = 0;
    this.shown = [];
    this.#build();
  }

  #build() {
    this.colgroup = h("colgroup");
    this.headRow = h("tr");
    this.topSpacer = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td"));
    this.bottomSpacer = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td"));
    this.body = h("tbody", null, this.topSpacer, this.bottomSpacer);
    this.table = h("table", { role: "grid", class: "grid", id: `table-${this.name}`, tabindex: "0",
      "aria-label": this.label, "aria-multiselectable": this.selectable ? "true" : false },
    this.colgroup, h("thead", null, this.headRow), this.body);
    this.emptyText = h("p", { class: "empty", hidden: true }, this.empty);
    this.element = h("div", { class: "table-box", "data-table": this.name }, this.table,
      this.emptyText);
    this.body.addEventListener("click", (event) => this.#clicked(event));
    this.body.addEventListener("dblclick", (event) => this.#doubleClicked(event));
    this.body.addEventListener("pointermove", () => this.#touch());
    this.onScroll = () => this.#schedule();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll, { passive: true });
    this.observer = new ResizeObserver(() => this.#resized());
    this.observer.observe(this.element);
  }

  // The head of the table sticks below this toolbar, which sticks to the top of the page.
  below(toolbar) {
    this.toolbar = toolbar;
    this.observer.observe(toolbar);
  }

  destroy() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    this.observer.disconnect();
  }

  // True while the order of the rows should not change because the user is active.
  get busy() {
    return performance.now() < this.busyUntil;
  }

  #touch() {
    this.busyUntil = performance.now() + kBusyMs;
  }

  setColumns(columns) {
    this.columns = columns;
    this.shown = [];
    this.#fit();
  }

  setSort(key, order) {
    this.sortKey = key;
    this.order = order;
    this.#markSort();
  }

  // The rows, sorted by the chosen column.
  sorted(rows) {
    const column = this.columns.find((each) => each.key === this.sortKey);
    return column?.sort ? sortBy(rows, column.sort, this.order === "desc") : rows;
  }

  // Shows rows that are already searched and sorted. `keepOrder` keeps the order of the rows shown
  // now.
  setRows(rows, { keepOrder = false } = {}) {
    this.rows = keepOrder ? this.#inShownOrder(rows) : rows;
    if (this.activeKey !== null) this.#findActive();
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.render();
  }

  #inShownOrder(rows) {
    const byKey = new Map(rows.map((row) => [this.keyOf(row), row]));
    const kept = [];
    for (const row of this.rows) {
      const key = this.keyOf(row);
      const now = byKey.get(key);
      if (now !== undefined) kept.push(now);
      byKey.delete(key);
    }
    return byKey.size === 0 ? kept : [...kept, ...byKey.values()];
  }

  #findActive() {
    const at = this.rows[this.activeIndex];
    if (at !== undefined && this.keyOf(at) === this.activeKey) return;
    const index = this.rows.findIndex((row) => this.keyOf(row) === this.activeKey);
    this.activeIndex = index >= 0 ? index : Math.min(this.activeIndex, this.rows.length - 1);
    this.activeKey = this.activeIndex < 0 ? null : this.keyOf(this.rows[this.activeIndex]);
  }

  #resized() {
    const below = this.toolbar ? `${this.toolbar.offsetHeight}px` : "0px";
    this.element.style.setProperty("--toolbar-height", below);
    this.rowHeight = this.#readRowHeight();
    this.#fit();
  }

  #readRowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height"));
  }

  // Chooses the columns that fit.
  #fit() {
    const width = this.element.clientWidth - (this.selectable ? kCheckWidth : 0);
    if (width <= 0) return;
    this.rowHeight ??= this.#readRowHeight();
    let used = 0;
    const widths = new Map();
    const wishes = this.columns.flatMap((column) => [column, column.room].filter(Boolean)
      .map((wish) => ({ column, priority: wish.priority, wanted: wish.width })));
    for (const { column, priority, wanted } of wishes.sort((a, b) => a.priority - b.priority)) {
      if (priority > 0 && used + wanted > width) break;
      used += wanted;
      widths.set(column, (widths.get(column) ?? 0) + wanted);
    }
    const shown = this.columns.filter((column) => widths.has(column));
    this.widths = widths;
    this.left = width - used;
    if (shown.length !== this.shown.length || shown.some((each, i) => each !== this.shown[i])) {
      this.shown = shown;
      this.#buildHead();
      this.pool.forEach((row) => row.tr.remove());
      this.pool = [];
    }
    this.#setWidths();
    this.element.classList.toggle("columns-hidden", shown.length < this.columns.length);
    this.render();
  }

  #buildHead() {
    const columns = this.shown;
    this.colgroup.replaceChildren();
    this.headRow.replaceChildren();
    if (this.selectable) {
      this.colgroup.append(document.createElement("col"));
      this.headRow.append(h("th", { scope: "col", class: "check" }, this.#allCheckbox()));
    }
    for (const column of columns) {
      this.colgroup.append(document.createElement("col"));
      const sortable = column.sort && this.onSort;
      this.headRow.append(h("th", { scope: "col", "data-column": column.key,
        class: column.numeric ? "numeric" : "" },
      sortable ? h("button", { type: "button", class: "sort", title: column.help,
        onclick: () => this.#sortPressed(column) }, column.title)
        : h("span", { class: column.hideTitle ? "visually-hidden" : "" }, column.title)));
    }
    const span = String(columns.length + (this.selectable ? 1 : 0));
    for (const spacer of [this.topSpacer, this.bottomSpacer]) {
      spacer.firstChild.setAttribute("colspan", span);
    }
    this.#markSort();
  }

  // Growing columns take the remaining width first. The browser distributes the rest.
  #setWidths() {
    const columns = [...this.colgroup.children];
    if (this.selectable) columns.shift().style.width = `${kCheckWidth}px`;
    let { left } = this;
    this.shown.forEach((column, i) => {
      const width = this.widths.get(column);
      const more = Math.max(0, Math.min(left, (column.grow ?? 0) - width));
      left -= more;
      columns[i].style.width = `${width + more}px`;
    });
  }

  #allCheckbox() {
    this.allBox = h("input", { type: "checkbox", "aria-label": "Select all loaded rows",
      "data-action": "select-all", onchange: () => this.selectAll(this.allBox.checked) });
    return this.allBox;
  }

  #sortPressed(column) {
    const first = column.numeric ? "desc" : "asc";
    const other = first === "asc" ? "desc" : "asc";
    this.onSort(column.key, this.sortKey === column.key && this.order === first ? other : first);
  }

  #markSort() {
    for (const cell of this.headRow.children) {
      const sorted = cell.dataset.column !== undefined && cell.dataset.column === this.sortKey;
      if (!sorted) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", this.order === "desc" ? "descending" : "ascending");
    }
  }

  #schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  // Shows the visible rows. Rows that stay visible keep their elements.
  render() {
    if (this.shown.length === 0 || !this.element.isConnected) return;
    const height = this.rowHeight;
    const top = this.body.getBoundingClientRect().top;
    const count = this.rows.length;
    const inSight = Math.ceil(innerHeight / height) + 2 * kOverscan;
    const first = Math.max(0, Math.min(Math.floor(-top / height) - kOverscan, count - inSight));
    const last = Math.min(count, first + inSight);
    this.#setPool(last - first);
    for (let i = first; i < last; ++i) this.#fill(this.pool[i - first], i);
    this.topSpacer.firstChild.style.height = `${first * height}px`;
    this.topSpacer.hidden = first === 0;
    this.bottomSpacer.firstChild.style.height = `${(count - last) * height}px`;
    this.bottomSpacer.hidden = last === count;
    this.emptyText.hidden = count > 0;
    this.#markActive();
    this.#markSelected();
    this.onRendered?.(this.rows.slice(first, last));
  }

  setEmptyText(text) {
    replace(this.emptyText, text);
  }

  #setPool(size) {
    while (this.pool.length > size) this.pool.pop().tr.remove();
    while (this.pool.length < size) {
      const row = this.#newRow();
      this.pool.push(row);
      this.bottomSpacer.before(row.tr);
    }
  }

  #newRow() {
    const tr = document.createElement("tr");
    const row = { tr, cells: [], item: null, index: -1, extraClass: "" };
    if (this.selectable) {
      row.box = h("input", { type: "checkbox", tabindex: "-1" });
      tr.append(h("td", { class: "check" }, row.box));
    }
    for (const column of this.shown) {
      const td = h("td", { class: `${column.numeric ? "numeric " : ""}${column.class ?? ""}`,
        "data-column": column.key });
      const box = column.time ? h("span", { class: "time" }) : td;
      if (box !== td) td.append(box);
      tr.append(td);
      row.cells.push({ td, box, text: null, hint: null, tone: "" });
    }
    return row;
  }

  #fill(row, index) {
    const item = this.rows[index];
    if (row.index !== index) {
      row.index = index;
      row.tr.id = `${this.name}-row-${index}`;
      row.tr.setAttribute("aria-rowindex", String(index + 2));
    }
    row.item = item;
    row.tr.dataset.key = this.keyOf(item);
    const extraClass = this.rowClass?.(item) ?? "";
    if (row.extraClass !== extraClass) {
      row.tr.className = extraClass;
      row.extraClass = extraClass;
    }
    this.shown.forEach((column, i) => fillCell(row.cells[i], column, item));
  }

  // --- the active row

  get activeItem() {
    return this.activeIndex >= 0 ? this.rows[this.activeIndex] : undefined;
  }

  activate(index, { focus = true, quiet = false } = {}) {
    if (this.rows.length === 0) return;
    this.activeIndex = Math.max(0, Math.min(index, this.rows.length - 1));
    this.activeKey = this.keyOf(this.rows[this.activeIndex]);
    this.#reveal();
    this.render();
    if (focus) this.table.focus({ preventScroll: true });
    if (!quiet) this.onActive?.(this.activeItem);
  }

  // The row below the head: {key, index, offset, scroll}, where `offset` is how far its top is
  // below that of the window, and `scroll` how far the page is scrolled.
  rowAtTop() {
    const height = this.rowHeight;
    const { top } = this.body.getBoundingClientRect();
    const head = this.headRow.firstElementChild.getBoundingClientRect().bottom;
    const index = Math.max(0, Math.min(Math.ceil((head - top) / height), this.rows.length - 1));
    return { key: this.rows[index] && this.keyOf(this.rows[index]), index,
      offset: top + index * height, scroll: scrollY };
  }

  // Scrolls back to the row that rowAtTop() returned, or to its index if no row has its key.
  scrollToRow({ key, index, offset, scroll }) {
    if (scroll === 0) return;
    const found = this.rows.findIndex((row) => this.keyOf(row) === key);
    const { top } = this.body.getBoundingClientRect();
    scrollBy(0, top + (found < 0 ? index : found) * this.rowHeight - offset);
    this.render();
  }

  // Makes this row the active one, without scrolling; nothing if no row has this key.
  activateKey(key) {
    const index = key === null ? -1 : this.rows.findIndex((row) => this.keyOf(row) === key);
    if (index < 0) return;
    this.activeIndex = index;
    this.activeKey = key;
    this.render();
    this.onActive?.(this.activeItem);
  }

  // Called when another part of the window may be covered.
  coveredChanged() {
    if (this.activeIndex >= 0) this.#reveal();
  }

  #reveal() {
    const height = this.rowHeight;
    const y = this.body.getBoundingClientRect().top + this.activeIndex * height;
    // The cells of the head stick to the top, but its row does not.
    const top = this.headRow.firstElementChild.getBoundingClientRect().bottom;
    const bottom = innerHeight - 8 - (this.covered?.() ?? 0);
    if (y < top) scrollBy(0, y - top);
    else if (y + height > bottom) scrollBy(0, y + height - bottom);
  }

  #markActive() {
    let id = "";
    for (const row of this.pool) {
      const active = row.index === this.activeIndex;
      row.tr.classList.toggle("active", active);
      if (active) id = row.tr.id;
    }
    if (id) this.table.setAttribute("aria-activedescendant", id);
    else this.table.removeAttribute("aria-activedescendant");
  }

  // Handles a key that no field or button has used. Returns true if the table has used it.
  key(event) {
    const page = Math.max(1, Math.floor(innerHeight / this.rowHeight) - 4);
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page,
      Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      this.#touch();
      const before = this.activeIndex;
      const move = moves[event.key];
      this.activate(before < 0 && Math.abs(move) === 1 ? 0 : before + move);
      if (this.selectable && event.shiftKey) this.#selectBetween(before, this.activeIndex);
      return true;
    }
    const item = this.activeItem;
    if (item === undefined) return false;
    if (event.key === "Enter" && this.onOpen) {
      this.onOpen(item);
      return true;
    }
    if ((event.key === "x" || event.key === " ") && this.selectable) {
      this.#toggle(this.activeIndex);
      return true;
    }
    return false;
  }

  #rowOf(event) {
    const tr = event.target.closest("tr");
    return this.pool.find((row) => row.tr === tr);
  }

  #clicked(event) {
    const row = this.#rowOf(event);
    if (!row) return;
    const onBox = row.box && event.target.closest("td.check");
    if (!onBox && event.target.closest("a, button")) return;
    const before = this.anchorIndex;
    if (this.selectable && event.shiftKey && before >= 0) {
      getSelection()?.removeAllRanges();
      this.#selectBetween(before, row.index);
    } else if (onBox) {
      this.#toggle(row.index);
    }
    this.anchorIndex = row.index;
    this.activate(row.index);
  }

  #doubleClicked(event) {
    const row = this.#rowOf(event);
    if (row && !event.target.closest("a, button, input")) this.onOpen?.(row.item);
  }

  // --- the selected rows

  #toggle(index) {
    const key = this.keyOf(this.rows[index]);
    if (!this.selected.delete(key)) this.selected.add(key);
    this.anchorIndex = index;
    this.#selectionChanged();
  }

  #selectBetween(from, to) {
    const start = Math.max(0, Math.min(from, to));
    const end = Math.max(from, to);
    for (let i = start; i <= end; ++i) this.selected.add(this.keyOf(this.rows[i]));
    this.#selectionChanged();
  }

  selectAll(select) {
    this.selected = new Set(select ? this.rows.map(this.keyOf) : []);
    this.#selectionChanged();
  }

  // Removes rows that no longer exist from the selection.
  pruneSelection(exists) {
    const before = this.selected.size;
    this.selected = new Set([...this.selected].filter(exists));
    if (this.selected.size !== before) this.#selectionChanged();
  }

  #selectionChanged() {
    this.#markSelected();
    this.onSelect(this.selected);
  }

  #markSelected() {
    if (!this.selectable) return;
    for (const row of this.pool) {
      const selected = this.selected.has(this.keyOf(row.item));
      row.box.checked = selected;
      row.box.setAttribute("aria-label", `Select ${this.keyOf(row.item)}`);
      row.tr.setAttribute("aria-selected", String(selected));
    }
    if (!this.allBox) return;
    this.allBox.checked = this.rows.length > 0 && this.selected.size >= this.rows.length;
    this.allBox.indeterminate = this.selected.size > 0 && !this.allBox.checked;
  }

  // --- export

  exportCsv(name) {
    const columns = this.columns.filter((column) => column.csv)
      .map((column) => ({ name: column.csvName ?? column.key, value: column.csv }));
    downloadCsv(name, columns, this.rows);
  }
}

function fillCell(cell, column, item) {
  if (column.render) {
    column.render(cell.td, item);
    return;
  }
  const text = column.text(item);
  if (text !== cell.text) {
    cell.text = text;
    cell.box.textContent = text;
  }
  const tone = column.tone?.(item) ?? "";
  if (tone !== cell.tone) {
    if (cell.tone) cell.td.classList.remove(cell.tone);
    if (tone) cell.td.classList.add(tone);
    cell.tone = tone;
  }
  const hint = column.hint?.(item) ?? null;
  if (hint === cell.hint) return;
  cell.hint = hint;
  if (hint === null) cell.td.removeAttribute("title");
  else cell.td.title = hint;
}

export function sortBy(rows, valueOf, descending) {
  const keyed = rows.map((row, index) => ({ row, index, value: valueOf(row) }));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.value < b.value) return -sign;
    if (a.value > b.value) return sign;
    return a.index - b.index;
  });
  return keyed.map(({ row }) => row);
}

// A 0 is less conspicuous than other numbers.
export const zeroTone = (key) => (item) => (item[key] ? "" : "zero");

// A choice of the order, for narrow screens that omit some columns. `unsorted` names the order
// without a column.
export function sortSelect(table, unsorted) {
  const select = h("select", { class: "sort-select", "aria-label": "Sort by", "data-action": "sort",
    onchange: () => {
      const [key, order] = select.value.split(" ");
      table.onSort(key, order);
    } });
  if (unsorted) select.append(h("option", { value: " asc" }, unsorted));
  for (const column of table.columns.filter((each) => each.sort)) {
    for (const order of column.numeric ? ["desc", "asc"] : ["asc", "desc"]) {
      select.append(h("option", { value: `${column.key} ${order}` },
        `${column.title} ${order === "asc" ? "↑" : "↓"}`));
    }
  }
  return { element: h("label", { class: "sort-label" }, "Sort ", select),
    set: (key, order) => {
      select.value = key ? `${key} ${order}` : " asc";
    } };
}
