// Repeats a request while a view is shown: never two at once, and not while the page is hidden.

export class Poller {
  // run(signal) is async and handles its own errors.
  constructor(run, everyMs) {
    this.run = run;
    this.everyMs = everyMs;
    this.controller = new AbortController();
    this.now();
  }

  async now() {
    clearTimeout(this.timer);
    if (this.running || this.controller.signal.aborted) {
      this.again = this.running;
      return;
    }
    this.running = true;
    this.again = false;
    if (!document.hidden) await this.run(this.controller.signal);
    this.running = false;
    if (this.controller.signal.aborted) return;
    if (this.again) this.now();
    else this.timer = setTimeout(() => this.now(), this.everyMs);
  }

  stop() {
    clearTimeout(this.timer);
    this.controller.abort();
  }
}
