import { createHmac, randomUUID } from 'node:crypto';
import { ask, crowd, HOSTILE_ENV, type Neighbour, type Place } from './neighbour.ts';

const CLIENTS = 64;
/** What Meta says it sends at most in one POST. */
const BODY_BYTES = 3 * 1024 * 1024;
const MESSAGES = 1_000;

/** A genuine body, cut where the id of a post goes, so that the generator leaves the cores to the product. */
const PIECES = bodyOf('|').split('|');

function bodyOf(id: string): string {
  const text = { body: 'x'.repeat(BODY_BYTES / MESSAGES - 200) };
  const messages = Array.from({ length: MESSAGES }, (_, at) => ({
    from: '4915100000000',
    id: `wamid.${id}.${at}`,
    timestamp: '1771900000',
    type: 'text',
    text,
  }));
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: '1' }, messages };
  const entry = [{ id: '1', changes: [{ field: 'messages', value }] }];
  return JSON.stringify({ object: 'whatsapp_business_account', entry });
}

function post(place: Place, signal: AbortSignal): Promise<number> {
  const body = PIECES.join(randomUUID());
  const signature = createHmac('sha256', HOSTILE_ENV.WHATSAPP_APP_SECRET).update(body).digest('hex');
  const headers = { 'x-hub-signature-256': `sha256=${signature}` };
  return ask(place, { path: '/webhooks/hostile', headers, body, signal });
}

export const largePosts: Neighbour = {
  name: 'large_posts',
  finding: 'W2',
  about: `${CLIENTS} genuine posts of WhatsApp at once, each of 3 MB and ${MESSAGES} messages`,
  healthy: 'claims',
  async prepare({ db2 }) {
    await db2.value('webhook.add_endpoint', {
      p_name: 'hostile',
      p_provider: 'whatsapp',
      p_secret_names: Object.keys(HOSTILE_ENV),
      p_actor: 'bench',
    });
  },
  start: async (place, times) => crowd(CLIENTS * times, (signal) => post(place, signal)),
};
