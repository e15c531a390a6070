import { type FaultKind, processNamed } from './kind.ts';

const MS_PER_SEC = 1_000;

/** A worker is restarted on a machine whose clock is wrong, and later on one whose clock is right. */
export const clockSkew: FaultKind = {
  touches: () => 'commit',
  partsOf: (target) => [nameOf(target)],
  async begin(world, { target }) {
    const victim = processNamed(world, nameOf(target));
    await victim.stop();
    await victim.start(Number(target.split(' ')[1]) * MS_PER_SEC);
    return async () => {
      await victim.stop();
      await victim.start();
    };
  },
};

/** The plan says who and by how many seconds: "worker-1 -600 s". */
function nameOf(target: string): string {
  return target.split(' ')[0] ?? '';
}
