// A busy indicator that does not flicker: it appears only if something takes a while, and then stays for a moment.

const APPEARS_AFTER = 250;
const STAYS_FOR = 400;

export class Busy {
  constructor(element) {
    this.element = element;
    this.timer = 0;
    this.since = 0;
  }

  start() {
    clearTimeout(this.timer);
    if (this.since) return;
    this.timer = setTimeout(() => {
      this.since = performance.now();
      this.element.classList.add('on');
    }, APPEARS_AFTER);
  }

  stop() {
    clearTimeout(this.timer);
    if (!this.since) return;
    const left = Math.max(0, STAYS_FOR - (performance.now() - this.since));
    this.timer = setTimeout(() => {
      this.since = 0;
      this.element.classList.remove('on');
    }, left);
  }
}
