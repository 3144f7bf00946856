// What the stream of events has shown: the server's numbers, every tube with a short history of
// its ready jobs, and rates. Views read from here and are called after each change.

import { Samples } from "./samples.js";

export const kSparkLength = 60;

class Tube {
  constructor(name) {
    this.name = name;
    this.spark = new Uint32Array(kSparkLength);
    this.putRate = 0;
    this.deleteRate = 0;
    this.lastTotal = -1;
    this.lastDeletes = 0;
    this.lastReserves = -1;
    this.notedDeletes = 0;
    this.reservedAt = Date.now();   // when `reserves` last grew, or the page first saw the tube
    this.buriedMarks = null;        // see alerts.js
  }
}

class Store {
  constructor() {
    this.listeners = new Set();
    this.samples = new Samples();
    this.clear();
  }

  clear() {
    this.server = null;
    this.tubes = new Map();
    this.previous = new Map();      // tubes before a reset: their sparks go on if they come again
    this.columns = [];
    this.ticks = 0;                 // seconds of events; the sparks' next place is ticks % length
    this.tubesVersion = 0;          // counts changes of the set of tubes
    this.clockSkew = 0;
    this.reserves = 0;              // reservations and deletions of all tubes since the page opened
    this.deletes = 0;
    this.rates = null;
    this.loaded = false;
    this.samples.clear();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // The server's time, for absolute times computed from ages.
  now() {
    return Date.now() + this.clockSkew;
  }

  onEvent(name, data) {
    if (name === "server") this.#onServer(data);
    else if (name === "tubes") this.#onTubes(data);
  }

  #onServer(server) {
    const restarted = this.server && this.server.id !== server.id;
    this.clockSkew = server.time - Date.now();
    this.server = server;
    this.#tick();
    if (restarted) this.samples.forgetCounters();
    this.rates = this.samples.addLive(server, this.reserves, this.deletes);
    this.#changed();
  }

  #onTubes({ reset, columns, tubes, gone }) {
    if (reset) {
      this.columns = columns;
      this.previous = this.tubes;
      this.tubes = new Map();
      this.tubesVersion += 1;
    }
    const last = this.columns.length;
    for (const row of tubes) {
      let tube = this.tubes.get(row[0]);
      if (!tube) {
        tube = this.previous.get(row[0]) ?? new Tube(row[0]);
        this.tubes.set(row[0], tube);
        this.tubesVersion += 1;
      }
      for (let i = 1; i < last; ++i) tube[this.columns[i]] = row[i];
      this.#noteCounters(tube);
    }
    for (const name of gone ?? []) {
      if (this.tubes.delete(name)) this.tubesVersion += 1;
    }
    this.loaded = true;
    this.#changed();
  }

  #noteCounters(tube) {
    if (tube.lastReserves >= 0) {
      if (tube.reserves > tube.lastReserves) this.reserves += tube.reserves - tube.lastReserves;
      if (tube.deletes > tube.notedDeletes) this.deletes += tube.deletes - tube.notedDeletes;
    }
    if (tube.reserves !== tube.lastReserves || tube.ready === 0) tube.reservedAt = Date.now();
    tube.lastReserves = tube.reserves;
    tube.notedDeletes = tube.deletes;
  }

  #tick() {
    if (this.loaded) this.previous = new Map();
    const place = this.ticks % kSparkLength;
    for (const tube of this.tubes.values()) {
      tube.spark[place] = tube.ready;
      if (tube.lastTotal < 0) {
        tube.spark.fill(tube.ready);
      } else {
        tube.putRate += 0.25 * (Math.max(0, tube.total - tube.lastTotal) - tube.putRate);
        tube.deleteRate += 0.25 * (Math.max(0, tube.deletes - tube.lastDeletes) - tube.deleteRate);
      }
      tube.lastTotal = tube.total;
      tube.lastDeletes = tube.deletes;
    }
    this.ticks += 1;
  }

  #changed() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const listener of this.listeners) listener();
    });
  }
}

export const store = new Store();
