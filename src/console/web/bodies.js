// Bodies of jobs that were read, newest last, bounded in memory. A body never changes.

import { jobBody } from "./api.js";

const kMostBytes = 32 * 2 ** 20;

export class Bodies {
  constructor() {
    this.byId = new Map();
    this.size = 0;
  }

  get(id) {
    return this.byId.get(id);
  }

  async read(id, signal) {
    const known = this.byId.get(id);
    if (known) return known;
    const { data } = await jobBody(id, signal);
    this.byId.set(id, data);
    this.size += data.length;
    for (const [oldest, old] of this.byId) {
      if (this.size <= kMostBytes || oldest === id) break;
      this.byId.delete(oldest);
      this.size -= old.length;
    }
    return data;
  }
}
