// The console on a node of a cluster: the view of the nodes, and every other view on a node that
// does not serve clients. The servers of run_console.py belong to no cluster, so the page gets
// made-up answers of a node. Run by run_console.py.

import assert from "node:assert/strict";

import { action, axe, becomes, eventually, hashOf, newPage, open, overflow, row, runTests, show, submit, test,
  title, urls } from "./lib.mjs";

const member = (name, rest) => ({ name, id: `00000000000000${name}${name}`, address: `127.0.0.1:1130${name}`,
  votes: true, leads: false, self: false, match: null, silent_ms: null, lag_ms: null, level: 6, stays: false,
  clock_difference_ms: null, reached_at: null, ...rest });

// The answer to GET /cluster on the leader "a".
const kLeader = {
  name: "a", id: "00000000000000aa", cluster: "00000000deadbeef", role: "leader", serves: true, leader: "a",
  term: 7, committed: 12_345, applied: 12_340, stored: 12_350, lease_ms: 270, raft_log_bytes: 1_048_576,
  raft_log_limit: 1_073_741_824, held_over: 0, feature_level: 1, fetched_bytes: null, fetch_bytes: null,
  members: [member("a", { leads: true, self: true, match: 12_350, silent_ms: 0, lag_ms: 0 }),
    member("b", { match: 12_345, silent_ms: 12, lag_ms: 3 }),
    member("c", { match: 12_000, silent_ms: 34, lag_ms: 83_000 }),
    member("d", { votes: false, match: 12_345, silent_ms: 65_000, lag_ms: 0 }), member("e", { votes: false })],
};
const kFollower = { ...kLeader, name: "b", id: "00000000000000bb", role: "follower", serves: false, lease_ms: null,
  members: kLeader.members.map((each) => ({ ...each, self: each.name === "b", match: null, silent_ms: null })) };
const kWaiting = { ...kLeader, name: "f", role: "waiting", serves: false, leader: null, lease_ms: null, members: [] };

// A page whose server is the node set by setNode(). Operations with a command fail as on a node
// that does not serve.
async function pageOfNode(state, options) {
  const page = await newPage(options);
  await page.addInitScript(stubNode);
  await page.addInitScript((json) => {
    globalThis.node = JSON.parse(json);
  }, JSON.stringify(state));
  return page;
}

const setNode = (page, state) => page.evaluate((json) => {
  globalThis.node = json;
}, state);

// Runs in the page, before its scripts.
function stubNode() {
  const real = globalThis.fetch;
  const answer = (status, type, value) => new Response(JSON.stringify(value),
    { status, headers: { "Content-Type": type } });
  // Adds the lines of a cluster to the server's events, in the format of /events.
  const withCluster = (body) => {
    let rest = "";
    return body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
      transform(chunk, controller) {
        rest += chunk;
        const end = rest.lastIndexOf("\n\n") + 2;
        if (end < 2) return;
        controller.enqueue(rest.slice(0, end).replaceAll(`{"time":`,
          `{"cluster-name":${JSON.stringify(globalThis.node.name)},"time":`));
        rest = rest.slice(end);
      },
    })).pipeThrough(new TextEncoderStream());
  };
  globalThis.fetch = async (url, init) => {
    const path = String(url).replace("/api/v1", "").replace(/\?.*/, "");
    const { node } = globalThis;
    if (path === "/cluster") return answer(200, "application/json", node);
    if (path === "/events") {
      const response = await real(url, init);
      return new Response(withCluster(response.body), response);
    }
    if (node.serves || ["/access", "/settings", "/history", "/server"].includes(path)) return real(url, init);
    const detail = `This node of a cluster does not serve clients. The leader is ${node.leader}.`;
    return answer(503, "application/problem+json", { type: "urn:tubed:problem:not-the-leader", status: 503,
      title: "Not the leader", detail });
  };
}

const cell = (page, name, column) => page.textContent(`${row(name)} [data-column=${column}]`);
const fact = (page, name) => page.textContent(`[data-fact="${name}"] dd`);

test("a server that is in no cluster has no view of nodes", async () => {
  const page = await newPage();
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await open(page, "#/nodes");
  await becomes("the notice", () => page.textContent(".notice:visible"), "The server is in no cluster.");
  await eventually(async () => {
    assert(!await page.isVisible("[data-nav=nodes]"));
    assert(!await page.isVisible("#not-serving"));
  });
  assert(!requests.includes("/api/v1/cluster"));
});

test("the leader shows how far each member is", async () => {
  const page = await pageOfNode(kLeader);
  await open(page, "#/");
  await page.click("[data-nav=nodes]");
  await becomes("the heading", () => title(page), "Nodes");
  assert.equal(hashOf(page), "#/nodes");
  await page.waitForSelector(row("b"));
  const texts = async (name) => Promise.all(["role", "state", "match", "lag", "silence", "lag-time"]
    .map((column) => cell(page, name, column)));
  await eventually(async () => {
    assert.deepEqual(await texts("a"), ["leader", "serves clients", "12,350", "0", "–", "0 ms"]);
    assert.deepEqual(await texts("b"), ["voter", "up to date", "12,345", "0", "12 ms", "3 ms"]);
    assert.deepEqual(await texts("c"), ["voter", "catches up", "12,000", "345", "34 ms", "1 min 23 s"]);
    assert.deepEqual(await texts("d"), ["standby", "silent", "12,345", "0", "1 min 5 s", "0 ms"]);
    assert.deepEqual(await texts("e"), ["standby", "no answer yet", "–", "–", "–", "–"]);
    assert.equal(await fact(page, "Role"), "leader");
    assert.equal(await fact(page, "Clients"), "served");
    assert.equal(await fact(page, "Term"), "7");
    assert.equal(await fact(page, "Committed"), "12,345");
    assert.equal(await fact(page, "Lease"), "270 ms");
    assert.equal(await fact(page, "Raft log"), "1 MiB of 1 GiB");
    assert(!await page.isVisible("#not-serving"));
  });
  await show(page, "#/");
  await page.waitForSelector(`[data-alert="silent d"]`);
  await eventually(async () =>
    assert.match(await page.textContent(`[data-alert="silent d"]`), /Node d: no answer for 1 min 5 s/));
});

test("the leader has alerts of what endangers the cluster", async () => {
  const page = await pageOfNode(kLeader);
  await open(page, "#/");
  const alert = (name) => page.waitForSelector(`[data-alert="${name}"]`).then((found) => found.textContent());
  await eventually(async () =>
    assert.match(await alert("lag c"), /Node c lacks entries that were made 1 min 23 s ago/));
  const keys = ["no spare voter", "clock c", "levels"];
  const shown = () => page.locator(keys.map((key) => `[data-alert="${key}"]`).join()).count();
  await eventually(async () => assert.equal(await shown(), 0));
  const changed = (change) => ({ ...kLeader, members: kLeader.members.map((each) =>
    (each.name === "c" ? { ...each, ...change } : each)) });
  await setNode(page, changed({ silent_ms: 10_000, clock_difference_ms: 2500, level: 5 }));
  await eventually(async () => {
    assert.match(await alert("no spare voter"), /Just a majority of the voters answers/);
    assert.match(await alert("clock c"), /Node c: its clock differs by 3 s from the leader's/);
    assert.match(await alert("levels"), /The nodes have different versions/);
    assert.match(await alert("silent c"), /Node c: no answer for 10 s/);
  });
  await setNode(page, changed({ silent_ms: 9999, clock_difference_ms: 1000, lag_ms: 59_999 }));
  await becomes("no alert", shown, 0);
  await becomes("no alert of the lag", () => page.locator(`[data-alert="lag c"]`).count(), 0);
  await setNode(page, { ...kLeader, settings_differ: [
    { name: "limits.job_bytes", nodes: [["a", "c"], ["b"]] }, { name: "policy", nodes: [["a"], ["b", "c"]] }] });
  await eventually(async () => {
    assert.match(await alert("setting limits.job_bytes"),
      /The setting limits.job_bytes differs between nodes \(a, c \/ b\): the queue changes/);
    assert.match(await alert("setting policy"), /The setting policy differs between nodes \(a \/ b, c\)/);
  });
  await setNode(page, kLeader);
  await becomes("no alert of settings", () => page.locator('[data-alert^="setting "]').count(), 0);
  // A member that is no voter is no loss.
  await setNode(page, { ...kLeader, members: kLeader.members.map((each) =>
    (each.votes && !each.self ? { ...each, votes: false, silent_ms: 20_000 } : each)) });
  await alert("silent c");
  await eventually(async () => assert.equal(await shown(), 0));
});

test("the view follows the cluster by itself", async () => {
  const page = await pageOfNode(kLeader);
  await open(page, "#/nodes");
  await page.waitForSelector(row("c"));
  await setNode(page, { ...kLeader, term: 8, committed: 20_000, members: kLeader.members.slice(0, 2) });
  await becomes("the term", () => fact(page, "Term"), "8");
  await eventually(async () => {
    assert.equal(await cell(page, "b", "lag"), "7,655");
    assert.equal(await page.locator(row("c")).count(), 0);
  });
  // A member that has moved.
  await eventually(async () => assert.equal(await cell(page, "b", "address"), "127.0.0.1:1130b"));
  await setNode(page, { ...kLeader, term: 9, members: kLeader.members.map((each) =>
    (each.name === "b" ? { ...each, reached_at: "127.0.0.9:11302" } : each)) });
  await becomes("the address", () => cell(page, "b", "address"), "127.0.0.9:11302 (moved)");
  await eventually(async () => {
    assert.equal(await page.getAttribute(`${row("b")} [data-column=address]`, "title"),
      "Its address in the cluster is 127.0.0.1:1130b.");
  });
  await setNode(page, kFollower);
  await page.keyboard.press("r");
  await becomes("the role", () => fact(page, "Role"), "follower");
});

test("a node that does not serve names the leader on every page", async () => {
  const page = await pageOfNode(kFollower);
  const notice = "This node, b, does not serve clients. The leader is a.";
  const detail = "This node of a cluster does not serve clients. The leader is a.";
  await open(page, "#/clients");
  await becomes("the notice", () => page.textContent("#not-serving"), notice);
  await becomes("the reason", () => page.textContent(".empty:visible"), detail);
  await show(page, "#/tubes/mail");
  await page.waitForSelector("[data-actions=tube]");
  await page.click(action("pause", "[data-actions=tube]"));
  await page.click(submit("pause"));
  await becomes("the problem", () => page.textContent("[data-dialog=pause] .problem"), detail);
  await page.keyboard.press("Escape");
  await show(page, "#/server");
  await page.waitForSelector("[data-table=settings] tr[data-key='http.api']");
  await eventually(async () => assert(await page.isVisible("#not-serving")));
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.waitForSelector(row("a"));
  await eventually(async () => {
    assert.equal(await cell(page, "a", "role"), "leader");
    assert.equal(await cell(page, "b", "state"), "follower");
    assert.equal(await cell(page, "c", "lag"), "–");
  });
  await setNode(page, { ...kFollower, leader: null });
  await becomes("the notice", () => page.textContent("#not-serving"),
    "This node, b, does not serve clients. There is no leader.");
  await show(page, "#/");
  await page.waitForSelector(`[data-alert="no leader"]`);
  await setNode(page, kLeader);
  await becomes("the notice", () => page.isVisible("#not-serving"), false);
});

test("a node that does not serve links to the console of the leader, if it can be known", async () => {
  const page = await pageOfNode(kFollower);
  await open(page, "#/");
  await page.waitForSelector("#not-serving:visible");
  const link = page.locator("#not-serving a");
  // The nodes share a host: the port is not known.
  await eventually(async () => assert.equal(await link.count(), 0));
  const withHosts = (own, leader) => ({ ...kFollower, members: kFollower.members.map((each) =>
    ({ ...each, address: `${each.self ? own : leader}:11301` })) });
  const { port } = new URL(urls.full);
  for (const [leader, address] of [["127.0.0.2", `http://127.0.0.2:${port}/`],
    ["tubed-0.tubed.svc", `http://tubed-0.tubed.svc:${port}/`], ["[::1]", `http://[::1]:${port}/`]]) {
    await setNode(page, withHosts("127.0.0.1", leader));
    await becomes("the link", async () => (await link.count()) && link.getAttribute("href"), address);
    await eventually(async () => {
      assert.equal(await page.textContent("#not-serving"),
        "This node, b, does not serve clients. The leader is a. Open its console.");
    });
    await becomes("the alert", () => page.getAttribute("[data-alert='not serving'] a", "href"), address);
  }
  assert.deepEqual(await axe(page), []);
  // The page was opened by another name than that of the cluster.
  await setNode(page, withHosts("10.0.0.2", "10.0.0.1"));
  await becomes("the link", () => link.count(), 0);
});

test("tubes have alerts on the leader alone", async () => {
  const page = await pageOfNode(kFollower);
  await open(page, "#/");
  const detail = "This node, b, does not serve clients. The leader is a. Its console has the alerts of tubes.";
  await becomes("the alert", () => page.textContent("[data-alert='not serving']"), detail);
  const ofTubes = "[data-alert^='many '], [data-alert^='idle '], [data-alert^='paused '], [data-alert^='buried '], "
    + "[data-alert=oldest]";
  // The 300 tubes without workers that the page knows are no alerts here.
  await show(page, "#/tubes");
  await becomes("the tubes", () => page.textContent("[data-count]"), "300 tubes");
  await show(page, "#/");
  await page.waitForSelector("[data-alert='not serving']");
  await eventually(async () => assert.equal(await page.locator(ofTubes).count(), 0));
  await setNode(page, kLeader);
  await page.waitForSelector("[data-alert='many unwatched']");
  await setNode(page, kFollower);
  await page.waitForSelector("[data-alert='many unwatched']", { state: "detached" });
});

test("a node that waits, and one that fetches the state", async () => {
  const page = await pageOfNode(kWaiting);
  await open(page, "#/nodes", { url: urls.read });
  await becomes("the notice", () => page.textContent("#not-serving"),
    "This node, f, does not serve clients. It waits to be added to a cluster.");
  await eventually(async () => assert.equal(await fact(page, "Leader"), "none"));
  await setNode(page, { ...kWaiting, role: "fetching", fetched_bytes: 12 << 20, fetch_bytes: 40 << 20 });
  await becomes("the progress", () => page.locator("[data-fact=Fetched] dd").allTextContents(),
    ["12 MiB of 40 MiB"]);
});

for (const [width, height] of [[360, 740], [1280, 800]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`the nodes at ${width} px, ${colorScheme}`, async () => {
      for (const state of [kLeader, kFollower, kWaiting]) {
        const page = await pageOfNode(state, { viewport: { width, height }, colorScheme });
        await open(page, "#/nodes");
        await page.waitForSelector("[data-fact=Role]");
        await eventually(async () => assert(await overflow(page) <= 0, "wider than the window"));
        assert.deepEqual(await axe(page), []);
        await page.close();
      }
    });
  }
}

await runTests();
