// Every view: its appearance at each width, in light and dark, and its address. Run by
// run_console.py.

import assert from "node:assert/strict";

import { action, axe, becomes, facts, get, hashOf, newPage, open, overflow, row, runTests, show, test, title,
  until } from "./lib.mjs";

// An address of each view, its heading, and an element that must be present before checks.
const kViews = [
  ["#/", "Overview", "[data-chart=rates]"],
  ["#/tubes", "Tubes", "#table-tubes tr[data-key]"],
  ["#/tubes?q=no-such-tube", "Tubes", ".empty"],
  ["#/tubes/mail?state=buried", "mail", "#table-jobs td.body-cell:has-text('user')"],
  ["#/tubes/mail?view=put", "mail", ".put-form"],
  ["#/tubes/mail?view=policy", "mail", "[data-table=policy] tr[data-key=rate]"],
  ["#/tubes/mail?view=times", "mail", "[data-histogram=processing]"],
  ["#/tubes/mail?view=numbers", "mail", "[data-panel=numbers] [data-key=total-jobs]"],
  ["#/tubes/no-such-tube", "no-such-tube", ".notice:visible"],
  [`#/jobs/${facts.ids.json}`, `Job ${facts.ids.json}`, "[data-format=json]"],
  [`#/jobs/${facts.ids.binary}`, `Job ${facts.ids.binary}`, "[data-format=hex]"],
  ["#/jobs/999999999", "Job 999999999", ".notice:visible"],
  ["#/clients", "Clients", "#table-clients tr[data-key]"],
  ["#/server", "Server", "[data-table=settings] tr[data-key='http.api']"],
];

// --- how it looks

// Visits all views of the page.
async function walk(page, check = async () => {}) {
  await open(page, "#/");
  for (const [hash, heading, present] of kViews) {
    await show(page, hash);
    await page.waitForSelector(present);
    assert.equal(await title(page), heading);
    assert(await overflow(page) <= 0, `${hash} is wider than the window`);
    await check(hash);
  }
}

for (const [width, height] of [[360, 740], [1280, 800], [2560, 1300]]) {
  for (const colorScheme of ["light", "dark"]) {
    // Widths differ in layout and schemes in colours, so each is checked for accessibility once.
    const accessibility = (width === 360) === (colorScheme === "dark") && width !== 2560;
    test(`each view at ${width} px, ${colorScheme}`, async () => {
      const page = await newPage({ viewport: { width, height }, colorScheme });
      await walk(page, async (hash) => {
        if (accessibility) assert.deepEqual(await axe(page), [], hash);
      });
    });
  }
}

test("each view at 200 % zoom", async () => {
  // To the page, zoom is a smaller window with more pixels.
  const page = await newPage({ viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 });
  await walk(page);
});

test("dialogs and messages are accessible, in light and dark", async () => {
  const light = await newPage({ viewport: { width: 1280, height: 800 } });
  const dark = await newPage({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  for (const page of [light, dark]) {
    await open(page, "#/tubes?q=mail");
    const check = async (what) => {
      assert.deepEqual(await axe(page), [], what);
      assert(await overflow(page) <= 0, `${what}: wider than the window`);
    };
    const dialog = async (name, run) => {
      await run();
      await page.waitForSelector(`[data-dialog=${name}]`);
      await check(name);
      await page.keyboard.press("Escape");
      await page.waitForSelector(`[data-dialog=${name}]`, { state: "detached" });
    };
    await dialog("shortcuts", () => page.click("#help"));
    await dialog("goto", () => page.click("#go-to"));
    await page.waitForSelector(row("mail"));
    await dialog("row-menu", () => page.click(`${row("mail")} ${action("row-menu")}`));
    await show(page, "#/tubes/mail?state=buried");
    await page.waitForSelector("#table-jobs tr[data-key]");
    for (const name of ["pause", "kick", "clear"]) {
      await dialog(name, () => page.click(action(name, "[data-actions=tube]")));
    }
    await dialog("move-all", () => page.click(action("move", "[data-actions=tube]")));
    await page.click(action("select-all"));
    await page.click(action("preview"));
    await page.waitForSelector("[data-preview] [data-body]");
    await check("a selection and the preview");
    await dialog("reprioritize", () => page.click(action("reprioritize-selected")));
    await page.click(action("preview"));
    await page.click(action("select-none"));
    await show(page, "#/tubes/mail?view=put");
    await page.fill("textarea", "x");
    await page.fill("[name=tags]", "no-such-tag");
    await page.click(action("submit", ".put-form"));
    await page.waitForSelector(".problem:visible");
    await check("a put that was refused");
    await show(page, `#/jobs/${facts.after}`);
    await dialog("group", () => page.click(action("show-group")));
    await show(page, "#/server");
    await dialog("drain", () => page.click(action("drain")));
  }
});

test("reduced motion", async () => {
  const count = (page) => page.evaluate(() => [...document.querySelectorAll("*")].filter((element) => {
    const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
    return transitionDuration !== "0s" || animationName !== "none" || scrollBehavior !== "auto";
  }).length);
  const page = await newPage({ reducedMotion: "reduce" });
  await open(page, "#/tubes/mail");
  assert.equal(await count(page), 0);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  assert(await count(page) > 0);
});

test("the theme is kept", async () => {
  const page = await newPage({ colorScheme: "light" });
  await open(page, "#/");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  for (const theme of ["light", "dark"]) {
    await page.click("#theme");
    assert.equal(await page.getAttribute("#theme", "aria-label"), `Theme: ${theme}`);
  }
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await background(), dark);
  await page.click("#theme");
  assert.equal(await background(), light);
});

// --- the overview

test("the overview has the server's numbers, charts and alerts in plain words", async () => {
  const page = await newPage();
  await open(page, "#/");
  const tile = (name) => page.textContent(`[data-tile=${name}] [data-value]`);
  const stats = await get("/server");
  for (const state of ["ready", "reserved", "delayed", "buried"]) {
    await becomes(state, () => tile(state), stats[`current-jobs-${state}`].toLocaleString("en"));
  }
  assert.match(await tile("memory"), /^[\d.]+ MiB$/);
  assert.match(await tile("journal"), /^[\d.]+ MiB$/);
  await page.waitForSelector("[data-alert='paused paused']");
  assert.match(await page.textContent("[data-alert='paused paused']"),
    /^paused: paused for another 23 h \d+ min, 5 ready\.$/);
  // No worker watches the tube.
  const stuck = "[data-alert='idle steps']";
  await page.waitForSelector(stuck);
  assert.match(await page.textContent(stuck), /^steps: [\d,]+ ready, no worker watches it\.$/);
  assert.notEqual(await page.textContent("#alert-count"), "");
  for (const chart of ["rates", "ready", "states", "connections", "memory", "journal"]) {
    await page.locator(`[data-chart=${chart}]`).scrollIntoViewIfNeeded();
    await page.waitForSelector(`[data-chart=${chart}] canvas`);
  }
  for (const range of ["15m", "1h", "all", "5m"]) {
    await page.click(`[data-range="${range}"]`);
    assert.equal(await page.getAttribute(`[data-range="${range}"]`, "aria-pressed"), "true");
    assert.match(hashOf(page), new RegExp(`range=${range}`));
  }
  await page.click(`${stuck} a`);
  await becomes("the heading", () => title(page), "steps");
});

test("a chart shows the values of the point under the pointer", async () => {
  const page = await newPage();
  await open(page, "#/");
  await page.waitForSelector("[data-chart=ready] canvas");
  const box = await page.locator("[data-chart=ready] .chart-area").boundingBox();
  await until("the moment of the point", async () => {
    await page.mouse.move(box.x + box.width - 20 - 10 * Math.random(), box.y + box.height / 2);
    return await page.textContent("[data-chart=ready] .chart-when") !== "";
  });
});

// --- addresses

test("each view and its state has an address; reload, back and forward keep them", async () => {
  const page = await newPage();
  await open(page, "#/");
  const steps = [
    ["#/tubes?q=bulk-0001&sort=name&order=desc", "Tubes", row("bulk-00019")],
    ["#/tubes/mail?state=delayed&q=31", "mail", "#table-jobs tr[data-key]"],
    ["#/tubes/mail?view=policy", "mail", "[data-table=policy] tr[data-key=rate]"],
    [`#/jobs/${facts.ids.json}`, `Job ${facts.ids.json}`, "[data-format=json]"],
    ["#/clients?sort=idle&order=desc&q=mail", "Clients", "#table-clients tr[data-key]"],
    ["#/server?q=http&changed=1", "Server", "[data-table=settings] tr[data-key='http.api']"],
  ];
  const check = async ([hash, heading, present]) => {
    await becomes("the address", () => hashOf(page), hash);
    await page.waitForSelector(present);
    assert.equal(await title(page), heading);
    assert.equal(await page.title(), `${heading} · tubed`);
  };
  for (const step of steps) {
    await show(page, step[0]);
    await check(step);
  }
  assert.equal(await page.inputValue("[data-search]"), "http");
  assert(await page.isChecked(action("changed-only")));
  for (const step of steps.slice(0, -1).reverse()) {
    await page.goBack();
    await check(step);
  }
  assert.equal(await page.getAttribute("th[data-column=name]", "aria-sort"), "descending");
  assert.match(await page.textContent("[data-count]"), /^10 of 10,000 tubes$/);
  for (const step of steps.slice(1)) {
    await page.goForward();
    await check(step);
    await page.reload();
    await check(step);
  }
  assert.equal(await page.locator("[data-table=settings] tr[data-key]").count(), 3);
  await show(page, "#/no-such-view");
  await becomes("the address", () => hashOf(page), "#/");
});

test("choices are written into the address", async () => {
  const page = await newPage();
  await open(page, "#/tubes");
  await page.fill("[data-search]", "mail");
  await becomes("the address", () => hashOf(page), "#/tubes?q=mail");
  await page.click("th[data-column=ready] button");
  await becomes("the address", () => hashOf(page), "#/tubes?q=mail&sort=ready&order=desc");
  await page.click(`${row("mail")} td[data-column=name] a`);
  await page.click("[data-state=delayed]");
  await becomes("the address", () => hashOf(page), "#/tubes/mail?state=delayed");
  await page.click("[data-tab=times]");
  await becomes("the address", () => hashOf(page), "#/tubes/mail?view=times");
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await becomes("the address", () => hashOf(page), "#/tubes?q=mail&sort=ready&order=desc");
});

test("times are relative, with the moment in the title", async () => {
  const page = await newPage();
  const year = new RegExp(` ${new Date().getFullYear()}`);
  await open(page, "#/tubes/mail?state=buried");
  const age = page.locator("#table-jobs tr[data-key] td[data-column=age]").first();
  await becomes("an age", async () => /^\d+ (s|min)/.test(await age.textContent()), true);
  assert.match(await age.getAttribute("title"), year);
  assert.match(await page.getAttribute("[data-value=oldest]", "title"), year);
  await show(page, `#/jobs/${facts.delayed[0]}`);
  await page.waitForSelector("[data-key=time-left] dd[title]");
  assert.match(await page.textContent("[data-key=time-left] dd"), /^2\d h/);
  assert.match(await page.getAttribute("[data-key=time-left] dd", "title"), year);
  await show(page, "#/clients");
  const idle = page.locator("#table-clients td[data-column=idle]").first();
  assert.match(await idle.getAttribute("title"), year);
  await show(page, "#/server");
  await page.waitForSelector(`.facts dd[title^="Since "]`);
});

await runTests();
