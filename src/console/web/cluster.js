// The cluster, if the server is a node of a cluster: read every two seconds, for the view of its
// nodes, the notice on every page and the alerts. Nothing is requested unless the stream of events
// shows that the server is in a cluster.

import { detailOf, get } from "./api.js";
import { Poller } from "./poller.js";
import { store } from "./store.js";

const kEveryMs = 2000;

class Cluster {
  constructor() {
    this.listeners = new Set();
    this.state = null;     // the last answer of GET /cluster
    this.problem = "";     // why the last request failed; "" if it did not
    this.poller = null;
  }

  get exists() {
    return store.server?.["cluster-name"] !== undefined;
  }

  // Returns a function that ends the subscription.
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // Called after each event of the stream.
  update() {
    if (this.exists === (this.poller !== null)) return;
    if (this.exists) {
      this.poller = new Poller((signal) => this.#load(signal), kEveryMs);
      return;
    }
    this.poller.stop();
    this.poller = null;
    this.state = null;
    this.#changed();
  }

  refresh() {
    this.poller?.now();
  }

  async #load(signal) {
    try {
      const state = await get("/cluster", null, signal);
      if (signal.aborted) return;
      this.state = state;
      this.problem = "";
    } catch (error) {
      if (signal.aborted) return;
      this.problem = detailOf(error);
    }
    this.#changed();
  }

  #changed() {
    for (const listener of this.listeners) listener();
  }
}

export const cluster = new Cluster();
