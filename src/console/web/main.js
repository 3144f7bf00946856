// Starts the console: the rights of the user, the stream of events, the view of the address, the
// shortcuts.

import { alerts } from "./alerts.js";
import { auth, detailOf, get } from "./api.js";
import { cluster } from "./cluster.js";
import { setCrumbs } from "./crumbs.js";
import { h, replace, setText } from "./dom.js";
import { EventStream } from "./events.js";
import { duration, number, plural, visible } from "./format.js";
import { showGoTo } from "./goto.js";
import { holds, onHolds } from "./holds.js";
import { serverName, showServerName } from "./identity.js";
import { installKeys, showShortcuts } from "./keys.js";
import { installMoments, toggleMoments, toggleZone } from "./moments.js";
import { forgetPlace, passPlace } from "./place.js";
import { currentAccess, setAccess } from "./rights.js";
import { go, jobLink, parse } from "./router.js";
import { signInElement } from "./signin.js";
import { store } from "./store.js";
import { closeToasts } from "./toast.js";
import { forgetDrafts } from "./tube-put.js";
import { ClientsView } from "./view-clients.js";
import { JobView } from "./view-job.js";
import { leaderConsole, NodesView, refusalOfNode } from "./view-nodes.js";
import { OverviewView } from "./view-overview.js";
import { ServerView } from "./view-server.js";
import { TubeView } from "./view-tube.js";
import { TubesView } from "./view-tubes.js";

const kAccessRetryMs = 3000;

const element = (id) => document.getElementById(id);
const content = element("content");
const heading = element("title");

let view = null;          // the shown view
let viewPath = null;      // its address without the query
let signedOut = false;    // the sign-in form is shown
let stream = null;

// --- views

function viewFor(path) {
  const [first = "", second] = path;
  if (first === "") return new OverviewView();
  if (first === "tubes") return second === undefined ? new TubesView() : new TubeView(path);
  if (first === "jobs" && second !== undefined) return new JobView(path);
  if (first === "clients") return new ClientsView();
  if (first === "server") return new ServerView();
  if (first === "nodes") return new NodesView();
  return null;
}

function closeView() {
  view?.leave();
  view = null;
  viewPath = null;
}

function showRoute() {
  if (signedOut || !stream) return;
  const { path, query } = parse();
  const key = JSON.stringify(path);
  if (key !== viewPath) {
    const first = viewPath === null;
    closeView();
    passPlace(path);
    document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
    view = viewFor(path);
    if (!view) {
      go("#/");
      return;
    }
    viewPath = key;
    setHeading(view.title);
    setCrumbs(view.crumbs ?? []);
    replace(content, view.element);
    content.dataset.view = path[0] === "tubes" && path[1] !== undefined ? "tube" : path[0]
      ?? "overview";
    markNavigation(path[0] ?? "");
    scrollTo(0, 0);
    if (!first) heading.focus({ preventScroll: true });
  }
  view.route?.({ path, query });
}

function setHeading(title) {
  setText(heading, title);
  heading.title = title;
  nameTab();
}

function nameTab() {
  document.title = `${heading.textContent} · ${serverName()} · tubed`;
}

function markNavigation(section) {
  for (const anchor of document.querySelectorAll("[data-nav]")) {
    const here = anchor.dataset.nav === (section === "jobs" ? "tubes" : section || "overview");
    if (here) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

// --- the user

async function start() {
  let access;
  try {
    access = await get("/access");
  } catch (error) {
    if (error.status === 401) return;
    showBanner(detailOf(error), Date.now() + kAccessRetryMs);
    setTimeout(start, kAccessRetryMs);
    return;
  }
  hideBanner();
  setAccess(access);
  showUser();
  signedOut = false;
  stream ??= new EventStream((name, data) => store.onEvent(name, data), showConnection);
  stream.open();
  showRoute();
}

function showUser() {
  const { api, role, verbs, version } = currentAccess();
  element("sign-out").hidden = auth.token === "";
  const chip = element("access");
  setText(chip, api === "read" ? "read-only" : role ? visible(role) : "");
  chip.title = api === "read" ? "http.api is \"read\": nothing can be changed here"
    : `Role ${role}: ${(verbs ?? []).join(", ")}`;
  chip.hidden = chip.textContent === "";
  element("brand").title = `tubed ${version}`;
  if (showServerName()) nameTab();
}

function showSignIn() {
  if (signedOut) return;
  signedOut = true;
  closeView();
  stream?.close();
  showConnection({ state: "closed" });
  hideBanner();
  store.clear();
  forgetPlace();
  cluster.update();
  showCluster();
  auth.token = "";
  element("sign-out").hidden = true;
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  setHeading("Sign in");
  setCrumbs([]);
  alerts.clear();
  showAlertCount();
  const form = signInElement(start);
  replace(content, form.element);
  content.dataset.view = "signin";
  form.focus();
}

// --- the connection

let banner = null;       // {text, retryAt}

function showBanner(text, retryAt) {
  banner = { text, retryAt };
  element("banner").hidden = false;
  drawBanner();
}

function hideBanner() {
  banner = null;
  element("banner").hidden = true;
}

function drawBanner() {
  if (!banner) return;
  const seconds = Math.max(0, Math.ceil((banner.retryAt - Date.now()) / 1000));
  setText(element("banner-text"), `Connection lost: ${banner.text}`);
  setText(element("banner-wait"), seconds > 0 ? `Trying again in ${duration(seconds)}.`
    : "Trying again.");
}

function showConnection({ state, detail, retryAt }) {
  const status = element("connection");
  const before = status.dataset.state;
  if (state === "connecting" && before === "polling") return;
  if (state === "connecting") store.reconnecting();
  if (state === "connecting" && before === "lost") return drawBanner();
  status.dataset.state = state;
  setText(element("connection-text"), { live: "live", polling: "every 5 s", lost: "lost",
    refused: "no live data", connecting: "connecting", closed: "signed out" }[state]);
  if (state === "live" || (state === "polling" && before !== "polling")) {
    hideBanner();
    seedHistory();
    readAccess();
    view?.refresh();
  } else if (state === "lost") {
    showBanner(detail, retryAt);
  }
  notify("refused", state === "refused" && `No live numbers: ${detail}`);
  notify("polling", state === "polling" && `${detail} This page reads the numbers every 5 seconds `
    + "until a stream is free. Some numbers of tubes are missing.");
}

function notify(id, text) {
  element(id).hidden = !text;
  setText(element(id), text || "");
}

// The settings may have changed since the page was opened.
async function readAccess() {
  try {
    setAccess(await get("/access"));
    showUser();
  } catch {
    // The access read before stays in force.
  }
}

async function seedHistory() {
  try {
    store.samples.seed(await get("/history"));
    view?.refresh();
  } catch {
    // The charts then start at the time when the page was opened.
  }
}

// --- the cluster

let noticeShown = "";    // the text of the notice and its link

function showCluster() {
  document.querySelector("[data-nav=nodes]").hidden = !cluster.exists;
  const notice = element("not-serving");
  const text = refusalOfNode(cluster.state);
  const target = leaderConsole(cluster.state);
  const shown = `${text}${target}`;
  notice.hidden = text === "";
  if (shown === noticeShown) return;
  noticeShown = shown;
  replace(notice, text, target && " ", target && h("a", { href: target,
    "data-action": "open-leader" }, "Open its console."));
}

// --- keys

function leaveView() {
  const target = view?.up?.();
  if (target) go(target);
}

function otherKey(event) {
  if (view?.key?.(event)) return true;
  if (event.key === "Escape") return closeToasts();
  return false;
}

function focusSearch() {
  const field = view?.search;
  if (!field) {
    showGoTo();
    return;
  }
  field.focus();
  field.select();
}

// --- held jobs

function showHolds() {
  const ids = Object.keys(holds());
  const box = element("holds");
  box.hidden = ids.length === 0;
  const key = ids.join();
  if (box.dataset.ids === key) return;
  box.dataset.ids = key;
  replace(box, ids.length > 0 && ["Held here: ", ids.map((id) => [h("a", { href: jobLink(id) },
    `job ${id}`), " "])]);
}

// --- alerts

function showAlertCount() {
  const count = alerts.urgent();
  const badge = element("alert-count");
  badge.hidden = count === 0;
  setText(badge, number(count));
  badge.title = plural(count, "alert");
}

auth.onUnauthorized = showSignIn;
cluster.subscribe(showCluster);
store.subscribe(() => {
  cluster.update();
  showCluster();
  if (showServerName()) nameTab();
  if (alerts.update()) showAlertCount();
  if (view?.live) view.tick();
});
addEventListener("hashchange", showRoute);
element("sign-out").addEventListener("click", () => {
  forgetDrafts();
  showSignIn();
});
element("skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
element("help").addEventListener("click", showShortcuts);
element("go-to").addEventListener("click", showGoTo);
element("retry").addEventListener("click", () => (stream ? stream.retryNow() : start()));
onHolds(showHolds);
installMoments();
// The header may have several lines; sticky elements are placed below it.
new ResizeObserver(([{ target }]) => document.documentElement.style
  .setProperty("--top-height", `${target.offsetHeight}px`)).observe(document.querySelector(".top"));
setInterval(() => {
  drawBanner();
  showHolds();
}, 1000);
installKeys({ "g o": () => go("#/"), "g t": () => go("#/tubes"), "g c": () => go("#/clients"),
  "g s": () => go("#/server"), "g n": () => go("#/nodes"), "g g": showGoTo, "/": focusSearch,
  "?": showShortcuts, r: () => view?.refresh(), t: toggleMoments, u: toggleZone,
  Backspace: leaveView }, otherKey);
requestAnimationFrame(() => setTimeout(start));   // after the frame of the page is painted
