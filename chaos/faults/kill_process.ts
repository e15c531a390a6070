import { type FaultKind, processNamed, type Touches } from './kind.ts';

/** kill -9 of a server or a worker; somebody starts it again after a while. */
export const killProcess = (touches: Touches): FaultKind => ({
  touches: () => touches,
  partsOf: (target) => [target],
  async begin(world, { target }) {
    const victim = processNamed(world, target);
    await victim.kill();
    return () => victim.start();
  },
});
