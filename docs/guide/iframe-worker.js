// SPDX-License-Identifier: Apache-2.0
// The search of a guide that is opened from a disk. Browsers start no worker there, so its program runs in a hidden frame.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = []; // what is said before the program listens
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => {
        const told = new MessageEvent("message", { data });
        this.dispatchEvent(told);
        if (this.onmessage) this.onmessage(told);
      };
      this.say = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = address;
      script.onload = () => {
        for (const data of this.waiting) this.say(data);
        this.waiting = null;
      };
      frame.contentDocument.body.append(script);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.say(data);
    }
  };
}
