import { relative, resolve } from 'node:path';
import { layout } from '../stack/settings.ts';
import type { Side, Stack } from '../stack/stack.ts';

const DEMO_POOL = 'demo_concert_2026';

/**
 * What `npm start` shows once everything answers: what runs where, where the keys are, and what to try. It shows no key and no
 * password: terminals are shared, recorded and kept in logs.
 */
export function summarize(stack: Stack, serverUrl: string, dir: string, processes: string): string {
  const file = forShell(asSeenFromHere(layout(dir).env));
  // A command in another shell finds only the stack of its own folder by itself.
  const here = dir === resolve('.sluice') ? '' : `SLUICE_DIR=${forShell(dir)} `;
  return `
Sluice is running.

  Server        ${serverUrl}   the operators' console; the key: grep SLUICE_ADMIN_KEY ${file}
  Drop page     ${serverUrl}/drop/${DEMO_POOL}   what a buyer sees
  API           ${serverUrl}/docs   every request, with an example
${describeSide('DB1 intake', stack.db1)}
${describeSide('DB2 ledger', stack.db2)}
${stack.stripe === undefined ? '' : `  Stripe        ${stack.stripe.url}   a stand-in: its pages take no card and no money\n`}  Processes     ${processes}
  Keys, all     ${file} (for your shell: set -a; . ${file}; set +a)

Try it: claim a slot, through Supabase's REST path and through Sluice's own door.

  . ${file}
  curl -X POST '${stack.db1.gateway.url}/rest/v1/rpc/claim_resource_and_queue' \\
    -H "apikey: $DB1_SUPABASE_ANON_KEY" -H 'Content-Type: application/json' \\
    -d '{"p_pool_id":"${DEMO_POOL}","p_user_id":"user_42"}'

  curl -X POST '${serverUrl}/v1/pools/${DEMO_POOL}/claims' \\
    -H 'Content-Type: application/json' -d '{"user_id":"user_43","request_id":"try-1"}'

See it under load: \`${here}npx sluice demo\` sends 5,000 buyers for 1,000 seats, and the console above shows it;
with \`--outage\` the ledger stops meanwhile. \`${here}npx sluice dev stop db2\` stops it until \`${here}npx sluice dev start db2\`.
${stack.stripe === undefined ? '' : `\`${here}npx sluice demo --paid\` sells seats for money, at the stand-in for Stripe: no account, no card.\n`}
Ctrl-C stops everything; the data stays. \`${here}npm run reset\` starts over.
`;
}

function describeSide(title: string, side: Side): string {
  return `  ${title}    ${side.gateway.url}   Postgres ${withoutPassword(side.url)}`;
}

function withoutPassword(address: string): string {
  const url = new URL(address);
  url.password = '';
  return url.href;
}

function asSeenFromHere(path: string): string {
  const short = relative('', path);
  return short.startsWith('..') ? path : short;
}

/** A path as a shell takes it for one word. */
function forShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
