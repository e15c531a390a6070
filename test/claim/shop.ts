// Buyers who claim without a pause, retry the same request until they are answered, and write down every answer.

import { setTimeout as delay } from 'node:timers/promises';
import type { Told } from '../support/history.ts';
import { reconnecting } from '../support/load.ts';
import type { Session } from '../support/sessions.ts';

export type ShopOptions = {
  url(): string;
  buyers: number;
  batchSize(buyer: number): number;
  /** The slot, null for sold out, or undefined for "ask again", request by request. */
  ask(session: Session, requestIds: string[]): Promise<(string | null | undefined)[]>;
};

export type Shop = {
  told: Told[];
  /** Waits for that many answers from now on. */
  answers(count: number): Promise<void>;
  /** Settles when every buyer was told "sold out". */
  soldOut: Promise<void>;
  /** Lets every buyer finish its request and ends. */
  close(): Promise<void>;
};

const ASK_AGAIN_MS = 5;
const ANSWERS_DEADLINE_MS = 30_000;

export function startShop(options: ShopOptions): Shop {
  const told: Told[] = [];
  const listeners = new Set<() => void>();
  let started = 0;
  let closing = false;
  let stillBuying = options.buyers;
  let everybodyKnows: () => void = () => undefined;
  const soldOut = new Promise<void>((resolve) => {
    everybodyKnows = resolve;
  });

  async function buy(buyer: number): Promise<void> {
    const connection = reconnecting(options.url);
    let knows = false;
    try {
      while (!closing) {
        let open = Array.from({ length: options.batchSize(buyer) }, () => `request ${++started}`);
        const startedAt = performance.now();
        while (open.length > 0) {
          const asked = open;
          const slots = await connection.untilAnswered((session) => options.ask(session, asked));
          const answered = asked.flatMap((requestId, at) => {
            const slotId = slots[at];
            return slotId === undefined ? [] : [{ requestId, slotId, startedAt, endedAt: performance.now() }];
          });
          told.push(...answered);
          open = asked.filter((_, at) => slots[at] === undefined);
          for (const listener of listeners) listener();
          if (open.length > 0) await delay(ASK_AGAIN_MS);
          if (!knows && answered.some((answer) => answer.slotId === null)) {
            knows = true;
            if (--stillBuying === 0) everybodyKnows();
          }
        }
      }
    } finally {
      await connection.close();
    }
  }

  const buyers = Promise.all(Array.from({ length: options.buyers }, (_, buyer) => buy(buyer)));
  // A buyer's failure rejects `soldOut`, `answers` and `close`; alone it must not end the process.
  buyers.catch(() => undefined);
  const failed = buyers.then(() => new Promise<never>(() => undefined));
  failed.catch(() => undefined);

  return {
    told,
    soldOut: Promise.race([soldOut, failed]),
    async answers(count) {
      const enough = told.length + count;
      let listener: () => void = () => undefined;
      let timer: NodeJS.Timeout | undefined;
      const arrived = new Promise<void>((resolve, reject) => {
        timer = setTimeout(() => reject(new Error('the buyers get no answers')), ANSWERS_DEADLINE_MS);
        listener = () => {
          if (told.length >= enough) resolve();
        };
        listeners.add(listener);
      });
      try {
        await Promise.race([arrived, failed]);
      } finally {
        listeners.delete(listener);
        clearTimeout(timer);
      }
    },
    async close() {
      closing = true;
      await buyers;
    },
  };
}
