// A secret that a server cannot use: what is refused until when, who mends it and how, and what becomes of what was refused.

import type { ComponentChildren } from 'preact';
import { Fault } from './states.tsx';

/** How the server's sentence about a secret ends, and until when what is signed with it is refused. */
const UNTIL: readonly (readonly [RegExp, string])[] = [
  [/ is not on the list/, 'until the owner of DB2 puts its name on the list'],
  [/ is too short/, 'until the person who runs the servers sets a longer one, there and at the sender'],
];
const UNTIL_FOUND =
  'until the server finds it in DB2’s Vault, in the file that SLUICE_SECRETS_FILE names, or in its environment';

export const refusedUntil = (fault: string): string =>
  `What is signed with it is refused ${UNTIL.find(([pattern]) => pattern.test(fault))?.[1] ?? UNTIL_FOUND}.`;

/** One click selects it. */
function Command({ children }: { children: string }) {
  return <code class="command">{children}</code>;
}

function Remedy({ name, fault }: { name: string; fault: string }) {
  if (/ is not on the list/.test(fault))
    return (
      <p>
        A page cannot do that. The owner of DB2 runs{' '}
        <Command>{`npx sluice webhooks secrets allow ${name}`}</Command>
      </p>
    );
  if (!/ is not set/.test(fault)) return null;
  return (
    <>
      <p>A page cannot set a secret. The person who runs the servers does, in one of these places:</p>
      <ul>
        <li>
          DB2’s Vault: <Command>{`select vault.create_secret('…', '${name}');`}</Command> Servers see it
          within a second.
        </li>
        <li>
          the file that SLUICE_SECRETS_FILE names: <Command>{`${name}=…`}</Command> Servers see it within a
          second.
        </li>
        <li>
          the environment of each server: <Command>{`export ${name}=…`}</Command> Then start the server again.
        </li>
      </ul>
    </>
  );
}

const BACKFILL = 'npx sluice webhooks backfill';

/** What providers do about a delivery that was refused, as their pages in docs/integrations say. */
export function Meanwhile({ provider, endpoint }: { provider: string; endpoint: string }) {
  const backfill = <Command>{`${BACKFILL} ${endpoint} --since …`}</Command>;
  switch (provider) {
    case 'stripe':
      return <>Stripe delivers again for up to three days. For what is older, ask Stripe: {backfill}</>;
    case 'twilio':
      return (
        <>
          Twilio tries once more within 15 seconds and then gives up: ask Twilio for its calls and messages
          when the secret is back: {backfill}
        </>
      );
    case 'whatsapp':
      return <>Meta delivers again for up to seven days.</>;
    case 'daily':
      return <>Daily may stop after three failures in a row: then switch the webhook on again at Daily.</>;
    default:
      return <>Whether it comes again, and for how long, is up to the provider.</>;
  }
}

/** On the page of an endpoint or a call site. `children` say what becomes of what was refused. */
export function SecretFault({
  fault,
  children,
}: {
  fault: string | null | undefined;
  children: ComponentChildren;
}) {
  if (!fault) return null;
  const [name = ''] = fault.split(' ');
  return (
    <Fault title={fault}>
      <p>{refusedUntil(fault)}</p>
      <Remedy name={name} fault={fault} />
      <p>Or rotate to a secret that the servers have, and change it at the sender.</p>
      <p>Nothing of a refused delivery is kept. {children}</p>
    </Fault>
  );
}
