import type { Provider } from '../provider.ts';
import { isoOfText } from '../read.ts';
import { readsHeaders, signsWholeBody } from './whole_body.ts';

export const shopify: Provider = {
  name: 'shopify',
  ...signsWholeBody('x-shopify-hmac-sha256', 'base64', ''),
  read: readsHeaders('x-shopify-event-id', 'x-shopify-topic', (type, { updated_at }) => ({
    type,
    occurredAt: isoOfText(updated_at),
  })),
};
