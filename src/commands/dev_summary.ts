import type { Side, Stack } from '../stack/stack.ts';

const DEMO_POOL = 'demo_concert_2026';

/**
 * What `npm start` shows once everything answers: what runs where, where the keys are, and what to try. It shows no key and no
 * password: terminals are shared, recorded and kept in logs.
 */
export function summarize(stack: Stack, serverUrl: string, envPath: string, processes: string): string {
  return `
Sluice is running.

  Server        ${serverUrl}   the operators' console; the key: grep SLUICE_ADMIN_KEY ${envPath}
  Drop page     ${serverUrl}/drop/${DEMO_POOL}   what a buyer sees
  API           ${serverUrl}/docs   every request, with an example
${describeSide('DB1 intake', stack.db1)}
${describeSide('DB2 ledger', stack.db2)}
${stack.stripe === undefined ? '' : `  Stripe        ${stack.stripe.url}   a stand-in: its pages take no card and no money\n`}  Processes     ${processes}
  Keys, all     ${envPath} (for your shell: set -a; . ${envPath}; set +a)

Try it: claim a slot, through Supabase's REST path and through Sluice's own door.

  . ${envPath}
  curl -X POST '${stack.db1.gateway.url}/rest/v1/rpc/claim_resource_and_queue' \\
    -H "apikey: $DB1_SUPABASE_ANON_KEY" -H 'Content-Type: application/json' \\
    -d '{"p_pool_id":"${DEMO_POOL}","p_user_id":"user_42"}'

  curl -X POST '${serverUrl}/v1/pools/${DEMO_POOL}/claims' \\
    -H 'Content-Type: application/json' -d '{"user_id":"user_43","request_id":"try-1"}'

See it under load: \`npx sluice demo\` sends 5,000 buyers for 1,000 seats, and the console above shows it;
with \`--outage\` the ledger stops meanwhile. \`npx sluice dev stop db2\` stops it until \`npx sluice dev start db2\`.
${stack.stripe === undefined ? '' : `\`npx sluice demo --paid\` sells seats for money, at the stand-in for Stripe: no account, no card.\n`}
Ctrl-C stops everything; the data stays. \`npm run reset\` starts over.
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
