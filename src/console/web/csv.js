// Tables as CSV files (RFC 4180). Text that a spreadsheet would take for a formula is preceded by a
// quote.

function field(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(columns, rows) {
  const lines = [columns.map((column) => field(column.name)).join(",")];
  for (const row of rows) lines.push(columns.map((column) => field(column.value(row))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

export function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function downloadCsv(name, columns, rows) {
  download(`${name}.csv`, toCsv(columns, rows), "text/csv;charset=utf-8");
}
