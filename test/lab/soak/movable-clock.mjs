/** Preloaded into crawlers of the soak: their clock goes forward when they are told to, as the coordinator's does. */
const RealDate = Date;
let aheadMs = 0;

globalThis.Date = class MovableDate extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + aheadMs);
    else super(...given);
  }

  static now() {
    return RealDate.now() + aheadMs;
  }
};

process.on("message", (message) => {
  if (message?.type === "jump") aheadMs += message.byMs;
});
