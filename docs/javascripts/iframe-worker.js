/*
 * The search runs in a worker, and browsers start none for a page that was opened from a file. There, and only there, a
 * hidden frame does its work: it loads the same script and speaks by the same messages. (The theme looks for the name
 * IFrameWorker.)
 */
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.frame.onload = () => this.begin(String(url));
      document.body.appendChild(this.frame);
    }

    /* What the script posts in the frame is a message of this worker; what came before it was there is posted now. */
    begin(url) {
      const inner = this.frame.contentWindow;
      const load = (source) =>
        new Promise((done) => {
          const script = inner.document.createElement("script");
          script.src = source;
          script.onload = script.onerror = done;
          inner.document.body.appendChild(script);
        });
      const post = inner.postMessage.bind(inner);
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => load(next)), Promise.resolve());
      load(url).then(() => {
        this.post = (data) => post(data, "*");
        this.waiting.forEach(this.post);
      });
    }

    postMessage(data) {
      this.post ? this.post(data) : this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
