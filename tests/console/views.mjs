// Every view: its appearance at each width, in light and dark, and its address. Run by
// run_console.py.

import assert from "node:assert/strict";
import { hostname } from "node:os";

import { action, axe, becomes, eventually, facts, get, hashOf, newPage, open, overflow, put, row, runTests,
  serveBelow, serverTitle, show, submit, test, title, tokens, until, urls } from "./lib.mjs";

// An address of each view, its heading, and an element that must be present before checks.
const kViews = [
  ["#/", "Overview", "[data-chart=rates]"],
  ["#/tubes", "Tubes", "#table-tubes tr[data-key]"],
  ["#/tubes?q=no-such-tube", "Tubes", ".empty"],
  ["#/tubes/mail?state=buried", "mail", "#table-jobs td.body-cell:has-text('user')"],
  ["#/tubes/mail?state=ready&q=Order&pri_over=0", "mail", "[data-filters]:visible"],
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
    await eventually(async () => {
      assert.equal(await title(page), heading);
      assert(await overflow(page) <= 0, `${hash} is wider than the window`);
    });
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

// Above and below each width at which the header changes.
const kHeaderWidths = [360, 390, 480, 600, 700, 760, 761, 790, 815, 900, 1024, 1180, 1181, 1280, 1600, 1920, 2560];

test("the header fits at each width, with everything that it may have", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await newPage({ colorScheme });
    await open(page, "#/", { url: urls.token, state: "signin" });
    await page.fill("[name=token]", tokens.ops);
    await page.click(action("submit"));
    await page.waitForSelector("#connection[data-state=live]");
    await page.evaluate(() => {
      // The view of nodes is in the navigation of a cluster.
      const nodes = document.querySelector("[data-nav=nodes]").cloneNode(true);
      nodes.hidden = false;
      nodes.dataset.nav = "more";
      document.querySelector(".main-nav").append(nodes);
      document.getElementById("access").textContent = "a role with quite a long name";
      document.getElementById("connection-text").textContent = "no live data";
    });
    for (const width of kHeaderWidths) {
      await page.setViewportSize({ width, height: 800 });
      await becomes(`nothing wider than ${width} px`, async () => await overflow(page) <= 0, true);
      const outside = await page.evaluate(() => [...document.querySelectorAll(".top *")].filter((element) => {
        const { left, right, width: own } = element.getBoundingClientRect();
        return own > 0 && !element.closest("#server-name > *, svg *") && (left < 0 || right > innerWidth);
      }).map((element) => element.outerHTML));
      assert.deepEqual(outside, [], `${width} px`);
      // What sticks below the header is not under it.
      await becomes(`the height at ${width} px`, () => page.evaluate(() => {
        const { offsetHeight } = document.querySelector(".top");
        return getComputedStyle(document.documentElement).getPropertyValue("--top-height") === `${offsetHeight}px`;
      }), true);
      if ([390, 790, 1280].includes(width)) assert.deepEqual(await axe(page), [], `${width} px`);
    }
    const lines = await page.evaluate(() => document.querySelector(".top").offsetHeight / 46);
    assert(lines < 1.5, "a header that has had several lines has one again");
    // By keyboard, each control of the header is reached.
    await page.keyboard.press("Tab");
    const reached = new Set();
    await until("all controls", async () => {
      reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.dataset.nav));
      await page.keyboard.press("Tab");
      return ["brand", "overview", "more", "go-to", "zone", "theme", "help", "sign-out"].every((id) =>
        reached.has(id));
    });
  }
});

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
      await eventually(async () => assert(await overflow(page) <= 0, `${what}: wider than the window`));
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
  await eventually(async () => assert.equal(await count(page), 0));
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await eventually(async () => assert(await count(page) > 0));
});

test("the theme is kept", async () => {
  const page = await newPage({ colorScheme: "light" });
  await open(page, "#/");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  for (const theme of ["light", "dark"]) {
    await page.click("#theme");
    await eventually(async () => assert.equal(await page.getAttribute("#theme", "aria-label"), `Theme: ${theme}`));
  }
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  await eventually(async () => assert.equal(await background(), dark));
  await page.click("#theme");
  await eventually(async () => assert.equal(await background(), light));
});

// --- which server it is

async function signedIn(hash) {
  const page = await newPage();
  await open(page, hash, { url: urls.token, state: "signin" });
  await page.fill("[name=token]", tokens.ops);
  await page.click(action("submit"));
  await page.waitForSelector("#connection[data-state=live]");
  return page;
}

test("the title, the color and the host of the server are in the header, the tab and the dialogs", async () => {
  const page = await signedIn("#/tubes/mail");
  const name = `${serverTitle} (${hostname()})`;
  assert.equal(Buffer.byteLength(serverTitle), 64);
  await becomes("the header", () => page.textContent("#server-name"), name);
  await eventually(async () => assert.equal(await page.getAttribute("#server-name", "title"), name));
  await becomes("the tab", () => page.title(), `mail · ${name} · tubed`);
  await page.waitForSelector("[data-actions=tube]");
  for (const dialog of ["pause", "kick", "clear"]) {
    await page.click(action(dialog, "[data-actions=tube]"));
    await page.waitForSelector(`[data-dialog=${dialog}]`);
    await eventually(async () => {
      assert.equal(await page.textContent(`[data-dialog=${dialog}] .server-name`), name);
      assert.equal(await page.locator(`[data-dialog=${dialog}] b`).count(), 0);
    });
    assert.deepEqual(await axe(page), [], dialog);
    await page.keyboard.press("Escape");
  }
  await show(page, "#/server");
  await page.click(action("drain"));
  await eventually(async () => assert.equal(await page.textContent("[data-dialog=drain] .server-name"), name));
  await page.keyboard.press("Escape");
  const colors = (each) => each.locator("#server-name").evaluate((element) => {
    const { backgroundColor, color } = getComputedStyle(element);
    return [backgroundColor, color];
  });
  // Black on yellow, and white on purple.
  await eventually(async () => assert.deepEqual(await colors(page), ["rgb(255, 208, 0)", "rgb(0, 0, 0)"]));
  const other = await newPage();
  await open(other, "#/", { url: urls.read });
  await becomes("the header", () => other.textContent("#server-name"), hostname());
  await eventually(async () => assert.deepEqual(await colors(other), ["rgb(128, 0, 128)", "rgb(255, 255, 255)"]));
  assert.deepEqual(await axe(other), []);
});

test("text on every color can be read", async () => {
  const page = await newPage();
  let color = null;
  await page.route("**/api/v1/access", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...await response.json(), color, title: "production" } });
  });
  for (color of ["red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "gray", "#000000",
    "#ffffff", "#767676", "#777777", "#c0ffee"]) {
    await open(page, "#/server");
    await page.waitForSelector(".colored #server-name");
    await becomes("the header", () => page.textContent("#server-name"), `production (${hostname()})`);
    assert.deepEqual(await axe(page), [], color);
  }
});

test("below a path of a proxy", async () => {
  const requests = [];
  const url = await serveBelow("/queues/a%20b/", urls.full, requests);
  const other = await serveBelow("/other/", urls.token);
  const page = await newPage();
  await open(page, "#/tubes?q=mail", { url });
  await page.waitForSelector(row("mail"));
  await page.waitForSelector("link[rel=icon]", { state: "attached" });
  await show(page, "#/");
  await page.waitForSelector("[data-chart=rates] canvas");
  const id = await put("below", "{\"a\": 1}");
  await show(page, `#/jobs/${id}`);
  await page.waitForSelector("[data-format=json]");
  await page.click(action("reserve"));
  await page.waitForSelector("[data-held]:visible");
  await page.click(action("delete-held"));
  await page.waitForSelector(".notice:visible");
  assert.deepEqual(requests.filter((path) => !path.startsWith("/queues/a%20b/")), []);
  // The storage of each server below the host is its own: the token of one is not sent to another.
  await open(page, "#/tubes", { url: other, state: "signin" });
  await page.fill("[name=token]", tokens.ops);
  await page.click(action("submit"));
  await page.waitForSelector("#connection[data-state=live]");
  const keys = await page.evaluate(() => Object.keys({ ...sessionStorage }));
  assert.deepEqual(keys.filter((key) => key.includes("token")), ["tubed/other/token"]);
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
  await eventually(async () => {
    assert.match(await tile("memory"), /^[\d.]+ MiB$/);
    assert.match(await tile("journal"), /^[\d.]+ MiB$/);
  });
  await page.waitForSelector("[data-alert='paused paused']");
  await eventually(async () => {
    assert.match(await page.textContent("[data-alert='paused paused']"),
      /^paused: paused for another 23 h \d+ min, 5 ready\.$/);
  });
  // No worker watches almost all tubes: this is one alert, which names those with the most jobs.
  const stuck = "[data-alert='many unwatched']";
  const parts = async () => (await page.textContent(stuck)).match(
    /^([\d,]+) tubes have ready jobs, and for 5 s or longer no worker watches them\.The largest: (.+)$/);
  // It grows to all tubes as their jobs become 5 s old.
  await until("an alert of all tubes", async () =>
    Number((await parts())[1].replaceAll(",", "")) > facts.bulk.tubes);
  const first = (await parts())[2];
  assert.match(first, /^steps, bodies, bulk-\d+$/);
  await eventually(async () => assert.equal(await page.locator("[data-alert^='idle ']").count(), 0));
  const alerts = Number(await page.textContent("#alert-count"));
  assert(alerts > 0 && alerts < 10);
  await eventually(async () =>
    assert.equal(await page.getAttribute(`${stuck} a >> nth=0`, "href"), "#/tubes?sort=ready&order=desc"));
  await page.click(".thresholds summary");
  await page.waitForSelector(".thresholds dd");
  await eventually(async () => {
    assert.match(await page.textContent(".thresholds"), /for 5 s no client watches it/);
    assert.match(await page.textContent(".thresholds"), /for 30 s none of its jobs was reserved/);
  });
  for (const chart of ["rates", "ready", "states", "connections", "memory", "journal"]) {
    await page.locator(`[data-chart=${chart}]`).scrollIntoViewIfNeeded();
    await page.waitForSelector(`[data-chart=${chart}] canvas`);
  }
  for (const range of ["15m", "1h", "day", "all", "5m"]) {
    await page.click(`[data-range="${range}"]`);
    await eventually(async () =>
      assert.equal(await page.getAttribute(`[data-range="${range}"]`, "aria-pressed"), "true"));
    assert.match(hashOf(page), new RegExp(`range=${range}`));
  }
  await page.click(`${stuck} .alert-tubes a`);
  await becomes("the heading", () => title(page), "steps");
});

test("a tube has charts of the last hour and of the last day", async () => {
  const page = await newPage();
  const now = Math.floor(Date.now() / 60_000) * 60;
  const point = (minutes, ready) => [now - 60 * minutes, 60, ready, 1, 2, 3, 600, 300, 66, 0];
  let samples = [point(600, 9), point(599, 8), point(30, 5), point(2, 6), point(1, 7)];
  const columns = ["time", "seconds", "ready", "reserved", "delayed", "buried", "puts", "reserves",
    "deletes", "timeouts"];
  await page.route(/\/history\?span=day&tube=mail$/, (route) =>
    route.fulfill({ json: { interval: 60, columns, samples } }));
  await open(page, "#/tubes/mail");
  await page.click("[data-tab=history]");
  const legend = (chart) => page.locator(`[data-chart=${chart}] .legend-value`).allTextContents();
  await page.waitForSelector("[data-chart=tube-rates] canvas");
  await eventually(async () => {
    assert.deepEqual(await legend("tube-rates"), ["10", "5", "1.1", "0"]);
    assert.deepEqual(await legend("tube-ready"), ["7"]);
    assert.deepEqual(await legend("tube-states"), ["1", "2", "3"]);
    assert.equal(await page.getAttribute("[data-range='1h']", "aria-pressed"), "true");
  });
  await page.click("[data-range=day]");
  await eventually(async () => assert.equal(await page.getAttribute("[data-range=day]", "aria-pressed"), "true"));
  assert.match(hashOf(page), /view=history&range=day/);
  samples = [];
  await page.keyboard.press("r");
  await becomes("a notice", () => page.textContent(".view-tube section .notice"),
    "No history yet. The server keeps the history of its 50 busiest tubes.");
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
    await eventually(async () => assert.equal(await title(page), heading));
    // The name of the server is read after a load.
    await becomes("the title of the page", () => page.title(), `${heading} · ${hostname()} · tubed`);
  };
  for (const step of steps) {
    await show(page, step[0]);
    await check(step);
  }
  await eventually(async () => {
    assert.equal(await page.inputValue("[data-search]"), "http");
    assert(await page.isChecked(action("changed-only")));
  });
  for (const step of steps.slice(0, -1).reverse()) {
    await page.goBack();
    await check(step);
  }
  await eventually(async () => {
    assert.equal(await page.getAttribute("th[data-column=name]", "aria-sort"), "descending");
    assert.match(await page.textContent("[data-count]"), /^10 of 300 tubes$/);
  });
  for (const step of steps.slice(1)) {
    await page.goForward();
    await check(step);
    await page.reload();
    await check(step);
  }
  await eventually(async () => assert.equal(await page.locator("[data-table=settings] tr[data-key]").count(), 3));
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

test("a click on a time shows moments beside all times, in UTC or local", async () => {
  const page = await newPage({ timezoneId: "Asia/Kolkata" });
  await open(page, "#/tubes/mail?state=buried");
  const age = () => page.textContent("#table-jobs tr[data-key] td[data-column=age]");
  await becomes("an age", async () => /^\d+ (s|min)[^·]*$/.test(await age()), true);
  await page.click("#table-jobs tr[data-key] td[data-column=age] .time");
  await becomes("an age with its moment", async () => /^\d+ .+ · \d+ \w+, \d\d:\d\d:\d\d$/.test(await age()),
    true);
  // All jobs were put within some minutes, and the zones differ by 5.5 hours.
  const timeOf = async () => (await age()).match(/\d\d:\d\d:\d\d/)[0].split(":").map(Number);
  const local = await timeOf();
  await eventually(async () => assert.equal(await page.textContent("#zone"), "local"));
  await page.keyboard.press("u");
  await becomes("the zone", () => page.textContent("#zone"), "UTC");
  await until("another time", async () => {
    const utc = await timeOf();
    const minutes = ([hours, rest]) => 60 * hours + rest;
    const ahead = (minutes(local) - minutes(utc) + 1440) % 1440;
    return ahead >= 328 && ahead <= 330;
  });
  await eventually(async () => assert.match(await page.getAttribute("[data-value=oldest]", "title"), /UTC/));
  // The choices are kept, and concern all views.
  await page.reload();
  await show(page, `#/jobs/${facts.delayed[0]}`);
  await page.waitForSelector("[data-key=time-left] dd.time");
  await eventually(async () => {
    assert.match(await page.textContent("[data-key=time-left] dd"), /^2\d h.* · \d+ \w+, /);
    assert.match(await page.textContent("[data-key=age] dd"), / · \d+ \w+, \d\d:\d\d:\d\d$/);
  });
  await page.keyboard.press("t");
  await becomes("the time alone", async () => /·/.test(await page.textContent("[data-key=age] dd")), false);
  await page.click("#zone");
  await eventually(async () => assert.equal(await page.textContent("#zone"), "local"));
  await show(page, "#/clients");
  await page.click("#table-clients td[data-column=idle] .time");
  await becomes("an idle time with its moment", async () => / · /.test(
    await page.textContent("#table-clients td[data-column=idle]")), true);
});

test("times are relative, with the moment in the title", async () => {
  const page = await newPage();
  const year = new RegExp(` ${new Date().getFullYear()}`);
  await open(page, "#/tubes/mail?state=buried");
  const age = page.locator("#table-jobs tr[data-key] td[data-column=age]").first();
  await becomes("an age", async () => /^\d+ (s|min)/.test(await age.textContent()), true);
  await eventually(async () => {
    assert.match(await age.getAttribute("title"), year);
    assert.match(await page.getAttribute("[data-value=oldest]", "title"), year);
  });
  await show(page, `#/jobs/${facts.delayed[0]}`);
  await page.waitForSelector("[data-key=time-left] dd[title]");
  await eventually(async () => {
    assert.match(await page.textContent("[data-key=time-left] dd"), /^2\d h/);
    assert.match(await page.getAttribute("[data-key=time-left] dd", "title"), year);
  });
  await show(page, "#/clients");
  const idle = page.locator("#table-clients td[data-column=idle]").first();
  await eventually(async () => assert.match(await idle.getAttribute("title"), year));
  await show(page, "#/server");
  await page.waitForSelector(`.facts dd[title^="Since "]`);
});

await runTests();
