// Safety: hostile names and bodies never become markup, nothing is requested from elsewhere, and
// actions require rights. Run by run_console.py.

import assert from "node:assert/strict";

import { action, axe, becomes, eventually, facts, get, newPage, open, overflow, row, runTests, show, test, title,
  toastAfter, tokens, urls } from "./lib.mjs";

test("the checks find planted faults", async () => {
  const page = await newPage();
  await open(page, "#/");
  await page.evaluate(() => {
    document.body.insertAdjacentHTML("beforeend", `<img src="http://elsewhere.invalid/">
      <button onclick="alert(1)" id="planted" style="color: red"></button>`);
    console.error("planted");
  });
  await becomes("violations", async () => page.problems.filter((text) => /Policy: /.test(text)).length >= 3, true);
  assert(page.problems.some((text) => text.startsWith("request: http://elsewhere.invalid/")));
  assert(page.problems.includes("console: planted"));
  const found = (await axe(page)).join();
  assert.match(found, /critical image-alt/);
  assert.match(found, /critical button-name/);
  page.problems.length = 0;
});

// --- hostile names and bodies

test("hostile names of tubes are text", async () => {
  const page = await newPage();
  await open(page, "#/tubes");
  for (const name of facts.hostileTubes) {
    await show(page, `#/tubes?q=${encodeURIComponent(name)}`);
    await page.waitForSelector(row(name));
    await page.click(`${row(name)} td[data-column=name] a`);
    await becomes("the heading", () => title(page), name);
    const link = page.locator("#table-jobs td[data-column=id] a").first();
    await link.click();
    await page.waitForSelector("#content[data-view=jobs] [data-key=tube] a");
    await eventually(async () => assert.equal(await page.textContent("[data-key=tube] a"), name));
    await page.click("[data-key=tube] a");
    await becomes("the heading", () => title(page), name);
    await becomes("the ready jobs", () => page.textContent("[data-state=ready]"), "ready 2");
  }
});

test("a tube whose name no address can have is never taken for another", async () => {
  const page = await newPage();
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  for (const name of facts.unreachableTubes) {
    await open(page, `#/tubes/${name}`);
    await becomes("the heading", () => title(page), name);
    await becomes("the reason", () => page.textContent(".notice:visible"),
      "A tube with this name has no address: use tubectl or the protocol.");
    assert.match(await toastAfter(page, () => page.click(action("clear", "[data-actions=tube]")), "error"),
      /has no address/);
  }
  const known = /^\/api\/v1\/(access|events|history)$/;
  assert.deepEqual(requests.filter((path) => path.startsWith("/api/") && !known.test(path)), []);
});

test("hostile bodies are text", async () => {
  const page = await newPage();
  const body = () => page.textContent("[data-body]");
  await open(page, `#/jobs/${facts.ids.html}`);
  await page.waitForSelector("[data-format=text]");
  await eventually(async () => {
    assert.match(await body(), /^<img src=x onerror=alert\(1\)><script>alert\(2\)<\/script>/);
    assert.equal(await page.locator("[data-body] *").count(), 0);
  });

  await show(page, `#/jobs/${facts.ids.bidi}`);
  await becomes("the body", body,
    "invoice_\\u{202e}fdp.exe\\u{202c} \\u{2066}x\\u{2069} zero\\u{200b}width \\u{e0041} café 世");
  await show(page, `#/jobs/${facts.ids.nul}`);
  await becomes("the body", body, "a\\u{0}b\\u{7}\\u{1b}[31mred\\u{1b}[0m");
  await page.click("[data-format=hex]");
  await eventually(async () =>
    assert.match(await body(), /^00000000 {2}61 00 62 07 1b 5b 33 31 {2}6d 72 65 64 1b 5b 30 6d {2}\|a\.b\.\.\[31/));

  await show(page, `#/jobs/${facts.ids.binary}`);
  await becomes("the formats", () => page.locator("[data-format]").allTextContents(), ["Hex"]);
  await eventually(async () => assert.match(await body(), /^00000000 {2}ff fe c3 28 20 3c 62 3e/));

  await show(page, `#/jobs/${facts.ids.json}`);
  await page.click("[data-format=json]");
  await eventually(async () => {
    assert.match(await body(), /^\{\n {2}"to": "ada@example\.org",\n/);
    assert.match(await body(), /\n {2}"id": 12345678901234567890\.10\n\}$/);
  });
  await page.click("[data-format=text]");
  await eventually(async () => assert.match(await body(), /^\{"to": "ada@example\.org", /));

  await show(page, `#/jobs/${facts.ids.broken}`);
  await becomes("the formats", () => page.locator("[data-format]").allTextContents(), ["Text", "Hex"]);
  await show(page, `#/jobs/${facts.ids.lines}`);
  await becomes("the body", body, "first\\u{d}\nsecond\tand a tab\\u{d}\n\\u{d}\nlast");
  await show(page, `#/jobs/${facts.ids.empty}`);
  await becomes("the body", body, "(empty)");
  await show(page, `#/jobs/${facts.ids.line}`);
  await becomes("the length", async () => (await body()).length, 60_000);
  await eventually(async () => assert(await overflow(page) <= 0));
  await show(page, `#/jobs/${facts.ids.deep}`);
  await page.waitForSelector("[data-format=json]");
  await eventually(async () => assert.match(await body(), /^\[\n {2}\[\n {4}\[\n/));
});

test("large bodies are shown in parts, and read only when asked for", async () => {
  const page = await newPage();
  await open(page, `#/jobs/${facts.ids.megabyte}`);
  await page.waitForSelector(action("more-body"));
  const length = () => page.evaluate(() => document.querySelector("[data-body]").textContent.length);
  const before = await length();
  assert(before < 300_000);
  await page.click(action("more-body"));
  await eventually(async () => assert.equal(await length(), 2 * before));
  await show(page, `#/jobs/${facts.ids.large}`);
  await page.waitForSelector(action("load-body"));
  await eventually(async () => assert.match(await page.textContent("[data-body]"), /^The body has 5 MiB\. /));
  await page.click(action("load-body"));
  await page.waitForSelector("[data-format=text]");
  await eventually(async () => assert.match(await page.textContent("[data-body]"), /^世世/));
});

test("bodies in the table and beside it are text", async () => {
  const page = await newPage();
  await open(page, "#/tubes/bodies?state=ready");
  const cell = (name) => page.locator(`${row(String(facts.ids[name]))} td.body-cell`);
  await becomes("a body", async () => (await cell("html").textContent()).startsWith("<img src=x"), true);
  await becomes("a body", async () => (await cell("bidi").textContent()).startsWith("invoice_\\u{202e}fdp"),
    true);
  await becomes("a body", async () => (await cell("binary").textContent()).startsWith("ff fe c3 28"), true);
  await eventually(async () => {
    assert.equal(await cell("empty").textContent(), "(empty)");
    assert.equal(await cell("large").textContent(), "(5 MiB)");
  });
  await page.click(action("preview"));
  for (const name of ["html", "nul", "binary", "json", "deep", "empty"]) {
    await page.click(`${row(String(facts.ids[name]))} td[data-column=age]`);
    await becomes("the title", () => page.textContent("[data-preview] h2"), `Body of job ${facts.ids[name]}`);
    await page.waitForSelector("[data-preview] [data-format]");
  }
  await eventually(async () =>
    assert.equal(await page.locator("[data-preview] :is(img, script, iframe, style)").count(), 0));
});

// --- the user

async function signIn(page, token) {
  await page.fill("[name=token]", token);
  await page.click(action("submit"));
}

test("signing in and out with a token", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail?state=buried", { url: urls.token, state: "signin" });
  assert.deepEqual(await axe(page), []);
  await signIn(page, "tbd_wrong");
  await becomes("the refusal", () => page.textContent(".problem:visible"),
    "The server does not accept this token.");
  assert.deepEqual(await axe(page), []);
  await signIn(page, tokens.ops);
  // The view of the address is shown.
  await page.waitForSelector("#table-jobs tr[data-key]");
  await eventually(async () => {
    assert.equal(await title(page), "mail");
    assert.equal(await page.textContent("#access"), "ops");
  });
  await page.waitForSelector("#connection[data-state=live]");
  await page.reload();
  await page.waitForSelector("#connection[data-state=live]");
  const stored = () => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage },
    document.cookie]));
  await eventually(async () => {
    assert((await stored()).includes(tokens.ops));
    assert(!(await page.evaluate(() => JSON.stringify({ ...localStorage }))).includes(tokens.ops));
  });
  await page.click("#sign-out");
  await page.waitForSelector("[data-signin]");
  await eventually(async () => {
    assert(!(await stored()).includes(tokens.ops));
    assert.equal(await page.locator("#table-jobs").count(), 0);
  });
});

// Signs in on a page of its own, and opens a view.
async function as(name, hash) {
  const page = await newPage();
  await open(page, hash, { url: urls.token, state: "signin" });
  await signIn(page, tokens[name]);
  await page.waitForSelector("#access:visible");
  await eventually(async () => assert.equal(await page.textContent("#access"), name));
  return page;
}

// Checks that each of these buttons exists, is disabled, and gives the reason.
async function refuses(page, names, why) {
  for (const name of names) {
    const button = page.locator(action(name)).first();
    await button.waitFor();
    await eventually(async () => {
      assert(await button.isDisabled(), name);
      assert.match(await button.getAttribute("title"), why, name);
    });
  }
}

const kTubeActions = ["pause", "kick", "reserve-next", "move", "clear"];

test("a role that may only inspect", async () => {
  const page = await as("watcher", "#/tubes/mail?state=buried");
  await page.waitForSelector("#table-jobs td.body-cell:has-text('user')");
  await refuses(page, kTubeActions, /^The role watcher has no "(admin|work)"\.$/);
  await page.click(action("select-all"));
  await refuses(page, ["kick-selected", "move-selected", "reprioritize-selected", "delete-selected"],
    /has no "(admin|work)"/);
  await show(page, "#/tubes/mail?view=put");
  await becomes("the reason", () => page.textContent(".tube-panel .notice"),
    "The role watcher has no \"produce\".");
  await show(page, "#/tubes/mail?view=policy");
  // It reads the policy, and changes nothing.
  await page.waitForSelector("[data-table=policy] tr[data-key=rate]");
  await eventually(async () =>
    assert.equal(await page.textContent("[data-table=policy] tr[data-key=rate] .value"), "0"));
  await refuses(page, ["edit-policy"], /has no "admin"/);
  await show(page, "#/jobs/1");
  await refuses(page, ["kick", "reserve", "delete", "move", "reprioritize"], /has no "(admin|work)"/);
  await page.waitForSelector("[data-format]");
  await show(page, "#/server");
  await refuses(page, ["drain"], /has no "admin"/);
  await becomes("the reason", () => page.textContent(".view-server .notice:visible"),
    "The role watcher has no \"admin\".");
  assert.deepEqual(await axe(page), []);
});

test("a role that may only produce", async () => {
  const page = await as("producer", "#/");
  await page.waitForSelector("#refused:visible");
  await eventually(async () => assert.equal(await page.getAttribute("#connection", "data-state"), "refused"));
  assert.deepEqual(await axe(page), []);
  await show(page, "#/tubes/orders?view=put");
  await page.fill("textarea", "from the producer");
  await page.click(action("submit", ".put-form"));
  await page.waitForSelector("[data-result] a");
  const [id] = (await page.textContent("[data-result]")).match(/\d+/);
  const { tube } = await get(`/jobs/${id}`, { url: urls.token, token: tokens.ops });
  assert.equal(tube, "orders");
});

test("a role with some tubes only", async () => {
  const page = await as("mailer", "#/tubes");
  await page.waitForSelector(row("mail-eu"));
  await becomes("the tubes", () => page.locator("#table-tubes tr[data-key]").evaluateAll(
    (rows) => rows.map((each) => each.dataset.key)), ["mail", "mail-eu"]);
  await show(page, "#/tubes/mail?state=buried");
  await page.waitForSelector("#table-jobs tr[data-key]");
  await page.click(action("select-all"));
  await eventually(async () => assert(await page.isEnabled(action("kick-selected"))));
  await show(page, "#/tubes/orders");
  await page.waitForSelector(".notice:visible");
  await eventually(async () => assert.equal(await page.locator("#table-jobs tr[data-key]").count(), 0));
  await show(page, "#/server");
  await becomes("the reason", () => page.textContent(".view-server .notice:visible"),
    "The role mailer has some tubes only.");
});

test("http.api = \"read\"", async () => {
  const page = await newPage();
  await open(page, "#/tubes/mail?state=buried", { url: urls.read });
  await eventually(async () => assert.equal(await page.textContent("#access"), "read-only"));
  await page.waitForSelector("#table-jobs td.body-cell:has-text('user')");
  await refuses(page, kTubeActions, /^This console is read-only/);
  await show(page, "#/jobs/1");
  await refuses(page, ["kick", "delete", "reserve"], /^This console is read-only/);
  await show(page, "#/tubes/mail?view=put");
  await becomes("the reason", async () => /read-only/.test(await page.textContent(".tube-panel .notice")), true);
  await show(page, "#/server");
  await refuses(page, ["drain"], /^This console is read-only/);
  await page.waitForSelector("[data-table=settings] tr[data-key='http.api']");
});

await runTests();
