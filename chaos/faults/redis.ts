import type { FaultKind } from './kind.ts';

const common: Pick<FaultKind, 'touches' | 'partsOf'> = { touches: () => 'call', partsOf: () => ['redis'] };

/** The replay cache forgets everything at once. */
export const flushRedis: FaultKind = {
  ...common,
  async begin({ redis }) {
    await redis?.flush();
    return undefined;
  },
};

/** kill -9 of Redis; it comes back empty. */
export const killRedis: FaultKind = {
  ...common,
  async begin({ redis }) {
    await redis?.kill();
    return () => redis?.start();
  },
};
