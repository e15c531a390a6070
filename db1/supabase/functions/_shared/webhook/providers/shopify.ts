import type { Provider } from '../provider.ts';
import { isoOfText, isSaneName } from '../read.ts';
import { readsHeaders, signsWholeBody } from './whole_body.ts';

export const shopify: Provider = {
  name: 'shopify',
  ...signsWholeBody('x-shopify-hmac-sha256', 'base64', ''),
  // One action of a merchant has one event id for all its topics, and orders/create and orders/paid may have the same body.
  read: readsHeaders(
    'x-shopify-event-id',
    'x-shopify-topic',
    'type and body',
    (id, topic, { updated_at }) => ({
      id: isSaneName(id) && isSaneName(topic) ? `${topic}:${id}` : id,
      type: topic,
      occurredAt: isoOfText(updated_at),
    }),
  ),
};
