// When a program that runs until it is stopped has to stop.

const LOOK_MS = 250;

/**
 * Calls `onStop` at each of these signals. npm and npx pass SIGTERM to the shell between them and us; the shell ends and
 * passes nothing on. So where npm started us, the end of our parent counts as a SIGTERM, unless a signal came first: a
 * supervisor that signals the whole group reaches us too. Returns how to stop listening.
 */
export function onStopSignal(
  signals: readonly NodeJS.Signals[],
  onStop: (signal: NodeJS.Signals) => void,
): () => void {
  let watch: NodeJS.Timeout | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    clearInterval(watch);
    onStop(signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  if (process.env.npm_lifecycle_event !== undefined) watch = watchParent(() => onSignal('SIGTERM'));
  return () => {
    clearInterval(watch);
    for (const signal of signals) process.off(signal, onSignal);
  };
}

/** Tells it at the second look: a signal that ended the parent and is on its way to us comes first. */
function watchParent(onGone: () => void): NodeJS.Timeout {
  const parent = process.ppid;
  let looks = 0;
  return setInterval(() => {
    if (process.ppid !== parent && ++looks === 2) onGone();
  }, LOOK_MS).unref();
}
