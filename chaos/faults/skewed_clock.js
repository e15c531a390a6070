// Loaded into a worker before anything else (node --import): its clock is wrong by CHAOS_SKEW_MS. Timers and the monotonic
// clock go on as before, as they do on a machine whose clock was set.

const skewMs = Number(process.env.CHAOS_SKEW_MS ?? 0);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + skewMs);
    else super(...parts);
  }
  static now() {
    return RealDate.now() + skewMs;
  }
};
