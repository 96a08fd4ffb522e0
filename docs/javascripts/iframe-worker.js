/*
 * The search runs in a worker, and browsers start none for a page that was opened from a file. There, and only there, a
 * hidden frame does its work: it loads the same script and speaks by the same two messages.
 */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.frame.onload = () => this.begin(String(url));
      const add = () => document.body.appendChild(this.frame);
      document.body ? add() : document.addEventListener("DOMContentLoaded", add);
    }

    /* The frame's postMessage, as the script calls it, answers the page. */
    begin(url) {
      const inner = this.frame.contentWindow;
      const load = (source, done) => {
        const script = inner.document.createElement("script");
        script.src = source;
        script.onload = script.onerror = done;
        inner.document.body.appendChild(script);
      };
      const deliver = (data) => {
        const message = new MessageEvent("message", { data });
        if (this.onmessage) this.onmessage(message);
        this.dispatchEvent(message);
      };
      this.receive = inner.postMessage.bind(inner);
      inner.postMessage = deliver;
      inner.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => new Promise((done) => load(next, done))), Promise.resolve());
      load(url, () => this.waiting.splice(0).forEach((data) => this.receive(data, "*")));
      this.begun = true;
    }

    postMessage(data) {
      this.begun ? this.receive(data, "*") : this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
