// The stand-in as a process of its own: `npm start` and chaos start it, by what the environment says. It says where it listens in
// its first line, and ends on SIGTERM or SIGINT.

import { StripeStandIn } from './stand_in.ts';

const { STAND_IN_PORT, STAND_IN_KEY, STAND_IN_JOURNAL, STAND_IN_WEBHOOK_URL, STAND_IN_WEBHOOK_SECRET } =
  process.env;
if (!STAND_IN_KEY) throw new Error('STAND_IN_KEY is not set');

const standIn = await StripeStandIn.start({
  keys: { [STAND_IN_KEY]: { rights: 'all' } },
  port: Number(STAND_IN_PORT ?? 0),
  ...(STAND_IN_JOURNAL && { journal: STAND_IN_JOURNAL }),
  ...(STAND_IN_WEBHOOK_URL &&
    STAND_IN_WEBHOOK_SECRET && {
      webhook: { url: STAND_IN_WEBHOOK_URL, secret: STAND_IN_WEBHOOK_SECRET },
    }),
});
console.log(`Listening on ${standIn.url}`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void standIn.stop());
