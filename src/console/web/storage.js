// Choices that outlive the page, as JSON in localStorage (or sessionStorage). If the browser
// refuses storage, they are forgotten.

export function load(key, fallback, area = localStorage) {
  try {
    const text = area.getItem(`tubed.${key}`);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function save(key, value, area = localStorage) {
  try {
    area.setItem(`tubed.${key}`, JSON.stringify(value));
  } catch {
    // Storage is refused.
  }
}
