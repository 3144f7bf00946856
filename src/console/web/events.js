// The stream of events: one long answer to GET /events, read by fetch, because EventSource cannot
// send a token. A lost stream is reopened after a growing pause. A page that is hidden for a while
// closes its stream, because a browser shares six connections among all pages of a server.
//
// While the server has no free stream, the page reads the numbers by requests, and tries to open a
// stream before each round of them. It makes no request while it is hidden.

import { ApiError, auth, detailOf, isBusy, send } from "./api.js";
import { readNumbers } from "./polling.js";

const kPausesMs = [500, 1000, 2000, 4000, 8000, 15000];
const kSilenceMs = 10_000;  // the server sends data every second
const kHiddenMs = 10_000;
// Between two rounds of requests: as long as the last round took, within these bounds.
const kPollMs = 5000;
const kMostPollMs = 30_000;

export class EventStream {
  // onEvent(name, data), onState({state, ...}); state: connecting, live, polling, lost, refused or
  // closed
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.failures = 0;
    this.run = 0;
    document.addEventListener("visibilitychange", () => this.#visibilityChanged());
    addEventListener("online", () => this.retryNow());
  }

  open() {
    this.wanted = true;
    this.failures = 0;
    this.#connect();
  }

  close() {
    this.wanted = false;
    this.#stop();
    this.onState({ state: "closed" });
  }

  retryNow() {
    if (this.wanted && !this.connected) this.#connect();
  }

  #stop() {
    this.run += 1;
    this.connected = false;
    this.waiting = false;   // for the next round of requests
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.abort?.abort();
  }

  async #connect() {
    this.#stop();
    const run = this.run;
    this.abort = new AbortController();
    this.onState({ state: "connecting" });
    this.#watchSilence();
    try {
      const response = await send("GET", "/events",
        { accept: "text/event-stream", signal: this.abort.signal });
      await this.#read(response.body.getReader(), run);
      if (run === this.run) this.#lost("The server ended the stream.");
    } catch (error) {
      if (run !== this.run) return;
      if (isBusy(error)) this.#poll(run, detailOf(error));
      else this.#failed(error);
    }
  }

  async #poll(run, detail) {
    const begin = performance.now();
    try {
      await readNumbers(this.onEvent, this.abort.signal, () => this.#watchSilence());
    } catch (error) {
      if (run === this.run) this.#failed(error);
      return;
    }
    if (run !== this.run) return;
    clearTimeout(this.silence);
    this.failures = 0;
    this.onState({ state: "polling", detail });
    this.waiting = true;
    const pause = Math.min(Math.max(kPollMs, performance.now() - begin), kMostPollMs);
    this.timer = setTimeout(() => {
      this.waiting = false;
      if (!document.hidden) this.#connect();
    }, pause);
  }

  #failed(error) {
    const refused = error instanceof ApiError && [401, 403, 404].includes(error.status);
    if (!refused) return this.#lost(detailOf(error));
    this.#stop();
    if (error.status !== 401) this.onState({ state: "refused", detail: error.message });
    else if (!auth.token) this.onState({ state: "closed" });
  }

  #lost(detail) {
    this.#stop();
    const pause = kPausesMs[Math.min(this.failures, kPausesMs.length - 1)];
    const wait = pause * (0.8 + 0.4 * Math.random());
    this.failures += 1;
    this.onState({ state: "lost", detail, retryAt: Date.now() + wait });
    this.timer = setTimeout(() => this.#connect(), wait);
  }

  #watchSilence() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.#lost("The server sends nothing."), kSilenceMs);
  }

  async #read(reader, run) {
    const decoder = new TextDecoder();
    let buffer = "";
    let scanned = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (run !== this.run) return reader.cancel();
      if (done) return;
      this.#watchSilence();
      if (!this.connected) {
        this.connected = true;
        this.failures = 0;
        this.onState({ state: "live" });
      }
      buffer += decoder.decode(value, { stream: true });
      let end;
      let from = 0;
      while ((end = buffer.indexOf("\n\n", Math.max(from, scanned))) >= 0) {
        this.#event(buffer.slice(from, end));
        from = end + 2;
        scanned = from;
      }
      buffer = buffer.slice(from);
      scanned = Math.max(0, buffer.length - 1);
    }
  }

  #event(text) {
    let name = "message";
    const data = [];
    for (const line of text.split("\n")) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5));
    }
    if (data.length > 0) this.onEvent(name, JSON.parse(data.join("\n")));
  }

  #visibilityChanged() {
    clearTimeout(this.hiding);
    if (!this.wanted) return;
    if (document.hidden) this.hiding = setTimeout(() => this.#stop(), kHiddenMs);
    else if (!this.connected && !this.waiting) this.#connect();
  }
}
