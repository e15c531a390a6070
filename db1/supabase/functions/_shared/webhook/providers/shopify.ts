import type { Provider } from '../provider.ts';
import { isoOfText, readOne } from '../read.ts';
import { signsWholeBody } from './whole_body.ts';

/** The event's id and topic come in headers that nobody signs, so the body's hash is a key as well. */
export const shopify: Provider = {
  name: 'shopify',
  ...signsWholeBody('x-shopify-hmac-sha256', 'base64', ''),
  read: (request, context) => {
    const { 'x-shopify-event-id': id, 'x-shopify-topic': type } = request.headers;
    return readOne(request, context, {
      describe: ({ updated_at }) => ({ id, type, occurredAt: isoOfText(updated_at) }),
      keyOnBody: true,
    });
  },
};
