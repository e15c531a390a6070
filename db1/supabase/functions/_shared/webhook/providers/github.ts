import type { Provider } from '../provider.ts';
import { readsHeaders, signsWholeBody } from './whole_body.ts';

export const github: Provider = {
  name: 'github',
  takesForms: true,
  ...signsWholeBody('x-hub-signature-256', 'hex', 'sha256='),
  // `issues.opened`: the name from the header, and what happened, where the body says it.
  read: readsHeaders('x-github-delivery', 'x-github-event', 'body', (id, event, { action }) => ({
    id,
    type: typeof event === 'string' && typeof action === 'string' ? `${event}.${action}` : event,
    occurredAt: null,
  })),
};
