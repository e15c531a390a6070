// Call sites: signed call events, each delivered one to three times, to either server, until it is answered.

import { createHash } from 'node:crypto';
import { callBody, SITE, signedRequest } from '../../test/calls/support.ts';
import type { CallEventCall } from '../history.ts';
import type { Random } from '../random.ts';
import { ask } from './ask.ts';
import { asksToComeAgain, Clients } from './traffic.ts';

const MAX_DELIVERIES = 3;
/** How often a site gives up after a delivery without an answer. */
const IMPATIENT_SHARE = 0.05;

export class Callers extends Clients {
  run(lanes: number, perSecond: number): Promise<void> {
    return this.runLanes('caller', lanes, perSecond, (client, random, lane, turn) =>
      this.#call(client, { lane, turn }, random),
    );
  }

  async #call(client: string, payload: Record<string, unknown>, random: Random): Promise<void> {
    const { headers, body } = signedRequest(callBody({ payload }));
    const signature = headers['x-ops-signature'] ?? '';
    const call: CallEventCall = {
      siteId: SITE,
      signatureHash: createHash('sha256').update(signature).digest('hex'),
      deliveries: 0,
      stored: 0,
      noop: 0,
    };
    for (let copies = random.between(1, MAX_DELIVERIES); copies > 0; copies--) {
      await this.#untilAnswered(call, headers, body, random);
      this.traffic.journal.write(client, 'call', call);
    }
  }

  async #untilAnswered(
    call: CallEventCall,
    headers: Record<string, string>,
    body: string | Uint8Array,
    random: Random,
  ): Promise<void> {
    const { ports, agent } = this.traffic;
    while (!this.traffic.hasGivenUp) {
      call.deliveries++;
      const answer = await ask({
        port: random.pick(ports),
        path: '/call-events',
        method: 'POST',
        headers,
        body,
        agent,
      });
      const code = answer?.json?.error?.code ?? answer?.json?.status ?? '';
      this.traffic.count(answer === undefined ? 'call: no answer' : `call: ${answer.status} ${code}`.trim());
      if (answer?.status === 200) {
        if (answer.json.status === 'recorded') call.stored++;
        else call.noop++;
        if (call.acknowledgedAt === undefined) this.traffic.acknowledged('call');
        call.acknowledgedAt ??= this.traffic.now();
        return;
      }
      if (answer !== undefined && !asksToComeAgain(answer.status))
        throw new Error(`a call event was answered with ${answer.status} ${JSON.stringify(answer.json)}`);
      if (random.chance(IMPATIENT_SHARE)) return;
      await this.traffic.beforeRetry(random);
    }
  }
}
