import { addPool, claimMany, type Load, type Neighbour, setHook, startSlowHook } from './neighbour.ts';

const ANSWER_MS = 6_000;
const MESSAGES = 640;
const SLOTS = 20_000;

export const slowCommitHook: Neighbour = {
  name: 'slow_commit_hook',
  finding: 'N7',
  about: `a commit hook that answers 200 after ${ANSWER_MS / 1_000} s, with ${MESSAGES} messages waiting for it`,
  healthy: 'tickets',
  prepare: (place) => addPool(place, 'hostile', SLOTS),
  async start(place, times): Promise<Load> {
    const hook = await startSlowHook(ANSWER_MS);
    await setHook(place, 'hostile', 'commit_webhook_url', hook.url);
    const messages = MESSAGES * times;
    await claimMany(place, 'hostile', messages);
    return { sent: () => messages, stop: hook.stop };
  },
};
