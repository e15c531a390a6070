// The crowd: every buyer wants one seat and asks until there is an answer.

import {
  type Claim,
  createRequest,
  createSluiceClient,
  SluiceError,
  type SluiceRequest,
} from '#client/index.ts';
import { withOwnSignal } from './own_signal.ts';
import { note, type Tally } from './tally.ts';

const BUYER = 'demo-buyer-';
/** Open requests at a time. Each keeps its connection; more of them only wait in another place. */
const CONCURRENCY = 64;
/** Every so manieth buyer presses the button twice, at the same moment. */
const TWICE_EVERY = 10;
/** With pauses that grow to 10 s this is minutes. */
const MAX_TRIES = 20;

/** Whether this user is one of the crowd. */
export const isOurs = (userId: string): boolean => userId.startsWith(BUYER);

export interface CrowdOptions {
  readonly url: string;
  readonly pool: string;
  readonly buyers: number;
  readonly signal: AbortSignal;
  readonly tally: Tally;
  readonly onClaim: (claim: Claim) => void;
}

/** Resolves when each buyer has an answer. Throws only when `signal` aborts. */
export async function sendCrowd(options: CrowdOptions): Promise<void> {
  const { url, buyers, signal, tally } = options;
  const client = createSluiceClient({
    url,
    maxTries: MAX_TRIES,
    fetch: async (...call) => {
      try {
        const response = await fetch(...call);
        tally.serverSilentSince = undefined;
        if (response.status >= 500) tally.triedAgain++;
        return response;
      } catch (error) {
        tally.triedAgain++;
        tally.serverSilentSince ??= Date.now();
        throw error;
      }
    },
  });
  const ask = async (buyer: number, request: SluiceRequest, own: AbortSignal): Promise<Claim | undefined> => {
    try {
      const order = { pool: options.pool, userId: `${BUYER}${buyer}`, ...request };
      return await client.claim(order, { signal: own });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SluiceError && error.code === 'sold_out') return undefined;
      throw error;
    }
  };
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let buyer = next++; buyer < buyers; buyer = next++) {
      const presses = buyer % TWICE_EVERY === 0 ? 2 : 1;
      const request = { ...createRequest(), requestId: `demo-${buyer}` };
      const answers = await withOwnSignal(signal, (own) =>
        Promise.allSettled(Array.from({ length: presses }, () => ask(buyer, request, own))),
      );
      signal.throwIfAborted();
      settle(options, buyer, answers);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, buyers) }, worker));
}

function settle(
  { tally, onClaim }: CrowdOptions,
  buyer: number,
  answers: PromiseSettledResult<Claim | undefined>[],
): void {
  tally.answered++;
  if (answers.length > 1) tally.pressedTwice++;
  const failed = answers.find((answer) => answer.status === 'rejected');
  if (failed !== undefined) {
    note(tally, `buyer ${buyer} got no answer: ${failed.reason?.message ?? failed.reason}`);
    return;
  }
  const claims = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : undefined));
  const [claim] = claims;
  if (claims.some((other) => other?.claim_id !== claim?.claim_id))
    note(tally, `buyer ${buyer} pressed twice and got two different answers`);
  if (claim === undefined) {
    tally.soldOut++;
    return;
  }
  tally.claims.push(claim);
  onClaim(claim);
}
