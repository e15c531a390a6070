// Commands that act in several calls: what the first calls did is done and in the audit log, so the command tells of it whatever a
// later call meets.

/** Runs steps that add to `done` what each did, and reports it all. Where a step fails it reports the others, then throws. */
export async function reportSteps<Item>(
  steps: (done: Item[]) => Promise<void>,
  report: (done: readonly Item[]) => number | Promise<number>,
): Promise<number> {
  const done: Item[] = [];
  try {
    await steps(done);
  } catch (error) {
    if (done.length > 0) await report(done);
    throw error;
  }
  return report(done);
}
