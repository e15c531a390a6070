// An operator looks at the dead letters of both databases and replays, discards or skips some of them. A second client puts
// messages on the queue that no worker can carry, so that there are dead letters to look at.

import { randomUUID } from 'node:crypto';
import { withClient } from '../../src/migrate/sql.ts';
import type { OperatorCall } from '../history.ts';
import { createRandom, type Random } from '../random.ts';
import { type Answer, ask } from './ask.ts';
import type { Traffic } from './traffic.ts';

const CLIENT = 'operator';
const LIST_LIMIT = 50;
/** The most that one action names. */
const MAX_IDS = 3;
/** Every so manieth turn a message is put on the queue by hand. */
const POISON_EVERY = 3;
/** Puts a message on the queue by hand, once, however often this is asked: by its claim_id. */
const PUT_MESSAGE = `
  select pgmq.send('intake_queue', $1::jsonb)
  where not exists (
    select from (
      select q.message from pgmq.q_intake_queue q
      union all
      select d.message from pgmq.q_intake_dlq d
      union all
      select a.message from pgmq.a_intake_dlq a
    ) m
    where m.message ->> 'claim_id' = $1::jsonb ->> 'claim_id'
  )`;

type Letter = { id: string };

export class Operator {
  readonly #traffic: Traffic;
  readonly #random: Random;
  readonly #adminKey: string;
  readonly #db1Url: () => string;
  #actions = 0;

  constructor(traffic: Traffic, seed: number, adminKey: string, db1Url: () => string) {
    this.#traffic = traffic;
    this.#random = createRandom(seed, CLIENT);
    this.#adminKey = adminKey;
    this.#db1Url = db1Url;
  }

  async run(perSecond: number): Promise<void> {
    await this.#traffic.run(1, perSecond, async (_, turn) => {
      if (turn % POISON_EVERY === 0) await this.#putPoison();
      await (this.#random.chance(0.5) ? this.#workOnLetters() : this.#workOnEvents());
    });
  }

  async #workOnLetters(): Promise<void> {
    const listed = await this.#ask('GET', `/admin/dlq?limit=${LIST_LIMIT}`);
    if (listed?.status !== 200) return;
    const letters: Letter[] = listed.json.messages.map((row: { msg_id: number }) => ({
      id: String(row.msg_id),
    }));
    const action = this.#random.pick(['replay', 'discard']);
    await this.#act(`dead_letter_${action}`, `/admin/dlq/${action}`, letters, (ids) => ({
      msg_ids: ids.map(Number),
    }));
  }

  async #workOnEvents(): Promise<void> {
    const listed = await this.#ask('GET', `/admin/webhooks/events?status=dead_letter&limit=${LIST_LIMIT}`);
    if (listed?.status !== 200) return;
    const action = this.#random.pick(['replay', 'skip']);
    await this.#act(`webhook_${action}`, `/admin/webhooks/events/${action}`, listed.json.events, (ids) => ({
      ids,
    }));
  }

  /** One attempt: who gets no answer looks again before doing anything else. */
  async #act(
    action: string,
    path: string,
    letters: Letter[],
    bodyOf: (ids: string[]) => object,
  ): Promise<void> {
    const some = this.#random.shuffled(letters).slice(0, this.#random.between(1, MAX_IDS));
    if (some.length === 0) return;
    const ids = some.map((letter) => letter.id);
    const reason = `${action} number ${++this.#actions}`;
    const body = JSON.stringify({ ...bodyOf(ids), reason });
    const answer = await this.#ask('POST', path, body);
    const isDone = answer?.status === 200;
    const results = isDone
      ? answer.json.results.map((row: { msg_id?: number; id?: string; outcome: string }) => ({
          id: String(row.msg_id ?? row.id),
          result: row.outcome,
        }))
      : [];
    const call: OperatorCall = {
      action,
      ids,
      reason,
      at: this.#traffic.now(),
      // A 503 can be told after the database did it and before it could say so.
      answer: isDone ? 'done' : answer === undefined || answer.status >= 500 ? 'unknown' : 'refused',
      results,
    };
    this.#traffic.journal.write(CLIENT, 'operator', call);
    if (isDone) this.#traffic.acknowledged('operator');
  }

  async #ask(method: string, path: string, body?: string): Promise<Answer | undefined> {
    const { ports, agent } = this.#traffic;
    const headers = { authorization: `Bearer ${this.#adminKey}` };
    const port = this.#random.pick(ports);
    const answer = await ask({ port, path, method, headers, agent, ...(body !== undefined && { body }) });
    const code = answer?.json?.error?.code ?? '';
    this.#traffic.count(
      answer === undefined ? 'operator: no answer' : `operator: ${answer.status} ${code}`.trim(),
    );
    return answer;
  }

  /** Until it is certain that the message is there: its claim_id tells. */
  async #putPoison(): Promise<void> {
    const claimId = randomUUID();
    const isMalformed = this.#random.chance(0.5);
    const message = {
      claim_id: claimId,
      pool_id: isMalformed ? 'rpc' : 'nowhere',
      resource_id: isMalformed ? 'no uuid' : randomUUID(),
      user_id: 'by hand',
      state: 'queued',
    };
    while (!this.#traffic.hasGivenUp) {
      try {
        const text = JSON.stringify(message);
        await withClient(this.#db1Url(), (client) => client.query(PUT_MESSAGE, [text]));
        this.#traffic.journal.write(CLIENT, 'poison', { id: claimId });
        return;
      } catch (error) {
        this.#traffic.count(`by hand: ${(error as { code?: string }).code ?? 'no connection'}`);
        await this.#traffic.beforeRetry(this.#random);
      }
    }
  }
}
