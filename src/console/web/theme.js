// Light, dark or as the system: a class of the page, kept in localStorage. This is a classic script
// that runs before the first paint, to avoid a flash of the wrong theme.
"use strict";

(() => {
  const kKey = "tubed.theme";
  const kThemes = ["system", "light", "dark"];

  function read() {
    try {
      const value = localStorage.getItem(kKey);
      return kThemes.includes(value) ? value : "system";
    } catch {
      return "system";
    }
  }

  function apply(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  function label(button) {
    const text = `Theme: ${read()}`;
    button.setAttribute("aria-label", text);
    button.title = `${text} (press to change)`;
    button.dataset.theme = read();
  }

  function next(button) {
    const theme = kThemes[(kThemes.indexOf(read()) + 1) % kThemes.length];
    try {
      localStorage.setItem(kKey, theme);
    } catch {
      // Without storage the theme follows the system.
    }
    apply(read());
    label(button);
    dispatchEvent(new Event("themechange"));
  }

  apply(read());
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    label(button);
    button.addEventListener("click", () => next(button));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
      () => dispatchEvent(new Event("themechange")));
  });
})();
