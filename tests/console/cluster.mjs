// The console of the nodes of a real cluster, while nodes fail, start, join and leave. nodes.mjs
// tests the view of the nodes with made-up answers. Run by cluster_test.py; the tests run in this
// order.

import assert from "node:assert/strict";

import { ask, becomes, eventually, get, newPage, open, put, row, runTests, show, test, until, urls }
  from "./lib.mjs";

const cell = (page, name, column) => page.textContent(`${row(name)} [data-column=${column}]`);
const fact = (page, name) => page.textContent(`[data-fact="${name}"] dd`);
const notice = (page) => page.textContent("#not-serving");
const state = (page, name) => () => cell(page, name, "state");
const number = (text) => Number(text.replaceAll(",", ""));

// The name of the leader according to this node.
const leaderOf = (node) => until("a leader", async () => (await get("/cluster", { url: urls[node] })).leader);

test("the leader shows that the others follow", async () => {
  const page = await newPage();
  await open(page, "#/nodes");
  await page.waitForSelector(row("c"));
  await eventually(async () =>
    assert.deepEqual([await cell(page, "a", "role"), await cell(page, "b", "role")], ["leader", "voter"]));
  const before = number(await fact(page, "Committed"));
  await put("mail", "to: ada");
  await until("the job to be committed", async () => number(await fact(page, "Committed")) > before);
  for (const name of ["b", "c"]) await becomes(`node ${name}`, state(page, name), "up to date");
  await eventually(async () => assert(!await page.isVisible("#not-serving")));
});

test("a follower names the leader, and the next one after a transfer", async () => {
  const page = await newPage();
  await open(page, "#/nodes", { url: urls.b });
  await becomes("the notice", () => notice(page), "This node, b, does not serve clients. The leader is a.");
  await becomes("the role", () => fact(page, "Role"), "follower");
  await ask("transfer?c");
  await becomes("the notice", () => notice(page), "This node, b, does not serve clients. The leader is c.");
  await ask("transfer?b");
  await becomes("the notice", () => page.isVisible("#not-serving"), false);
  await becomes("the role", () => fact(page, "Role"), "leader");
  await show(page, "#/tubes/mail");
  await page.waitForSelector("[data-actions=tube]");
  await ask("transfer?a");
});

test("a node that is killed is silent, and one that starts catches up", async () => {
  const page = await newPage();
  await open(page, "#/nodes");
  await page.waitForSelector(row("c"));
  await ask("kill?c");
  await becomes("node c", state(page, "c"), "silent");
  await show(page, "#/");
  await page.waitForSelector(`[data-alert="silent c"]`);
  await show(page, "#/nodes");
  await ask("start?c");
  await becomes("node c", state(page, "c"), "up to date");
});

test("the page of a leader that is killed goes on when the node is back", async () => {
  const page = await newPage();
  const other = await newPage();
  await open(page, "#/nodes");
  await open(other, "#/nodes", { url: urls.b });
  await ask("kill?a");
  await page.waitForSelector("#connection:not([data-state=live])");
  const leader = await until("another leader", async () => {
    const found = await leaderOf("b");
    return found !== "a" && found;
  });
  if (leader === "b") await becomes("the notice", () => other.isVisible("#not-serving"), false);
  else {
    await becomes("the notice", () => notice(other),
      `This node, b, does not serve clients. The leader is ${leader}.`);
  }
  await ask("start?a");
  await page.waitForSelector("#connection[data-state=live]");
  await becomes("the notice", () => notice(page),
    `This node, a, does not serve clients. The leader is ${leader}.`);
  await ask("transfer?a");
  await becomes("the notice", () => page.isVisible("#not-serving"), false);
});

test("a new node waits, becomes a member and is removed", async () => {
  await ask("new?d");
  const page = await newPage();
  const leader = await newPage();
  await open(page, "#/nodes", { url: urls.d });
  await becomes("the notice", () => notice(page),
    "This node, d, does not serve clients. It waits to be added to a cluster.");
  await open(leader, "#/nodes");
  await ask("add?d");
  await becomes("the role of d", () => cell(leader, "d", "role"), "voter");
  await becomes("node d", state(leader, "d"), "up to date");
  await becomes("the notice", () => notice(page), "This node, d, does not serve clients. The leader is a.");
  await page.close();
  await ask("remove?d");
  await becomes("the rows of d", () => leader.locator(row("d")).count(), 0);
});

await runTests();
