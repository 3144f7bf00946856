// Choices that outlive the page, as JSON in localStorage (or sessionStorage). If the browser
// refuses storage, they are forgotten.

// Begins all keys. Servers that a proxy serves below paths of one host share its storage: none of
// them gets the token of another.
const kPath = new URL(".", document.baseURI).pathname;
export const kStorage = kPath === "/" ? "tubed." : `tubed${kPath}`;

export function load(key, fallback, area = localStorage) {
  try {
    const text = area.getItem(kStorage + key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function save(key, value, area = localStorage) {
  try {
    area.setItem(kStorage + key, JSON.stringify(value));
  } catch {
    // Storage is refused.
  }
}
