import type { FaultKind } from './kind.ts';

/** SIGTERM for every server and worker, one after another, each started again before the next: a deployment. */
export const rollingRestart: FaultKind = {
  touches: () => 'claim',
  partsOf: (_target, world) => [...world.servers, ...world.workers].map((one) => one.name),
  async begin({ servers, workers }) {
    for (const one of [...servers, ...workers]) {
      await one.stop();
      await one.start();
    }
    return undefined;
  },
};
