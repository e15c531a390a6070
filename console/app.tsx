// Which page stands at which path.

import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { findSession, session } from './lib/api.ts';
import { isBack, Link, match, usePlace } from './lib/router.tsx';
import { useStore } from './lib/store.ts';
import { nameTab } from './lib/tab.ts';
import { Audit } from './pages/audit.tsx';
import { Call } from './pages/call.tsx';
import { Calls } from './pages/calls.tsx';
import { Claim } from './pages/claim.tsx';
import { Claims } from './pages/claims.tsx';
import { Credits } from './pages/credits.tsx';
import { DeadLetter } from './pages/dead_letter.tsx';
import { DeadLetters } from './pages/dead_letters.tsx';
import { Endpoint } from './pages/endpoint.tsx';
import { Event } from './pages/event.tsx';
import { Events } from './pages/events.tsx';
import { Health } from './pages/health.tsx';
import { History } from './pages/history.tsx';
import { Issue } from './pages/issue.tsx';
import { Issues } from './pages/issues.tsx';
import { Operators } from './pages/operators.tsx';
import { Order } from './pages/order.tsx';
import { Orders } from './pages/orders.tsx';
import { Overview } from './pages/overview.tsx';
import { Payment } from './pages/payment.tsx';
import { Payments } from './pages/payments.tsx';
import { Pool } from './pages/pool.tsx';
import { Pools } from './pages/pools.tsx';
import { Refunds } from './pages/refunds.tsx';
import { Search } from './pages/search.tsx';
import { SignIn } from './pages/sign_in.tsx';
import { Site } from './pages/site.tsx';
import { Sites } from './pages/sites.tsx';
import { Ticket } from './pages/ticket.tsx';
import { Tickets } from './pages/tickets.tsx';
import { User } from './pages/user.tsx';
import { Users } from './pages/users.tsx';
import { Webhooks } from './pages/webhooks.tsx';
import { NewKey } from './parts/new_key.tsx';
import { Shell } from './parts/shell.tsx';
import { Empty } from './parts/states.tsx';
import type { CONSOLE_PATHS } from './paths.ts';

interface PageEntry {
  title: string;
  Page: ComponentType<{ parameter: string }>;
}

/** Complete by its type: a path the server knows has a page. */
const PAGES: Readonly<Record<(typeof CONSOLE_PATHS)[number], PageEntry>> = {
  '/': { title: 'Overview', Page: Overview },
  '/history': { title: 'History', Page: History },
  '/pools': { title: 'Pools', Page: Pools },
  '/pools/:pool': { title: 'Pool', Page: Pool },
  '/claims': { title: 'Claims', Page: Claims },
  '/claims/:claim': { title: 'Claim', Page: Claim },
  '/orders': { title: 'Orders', Page: Orders },
  '/orders/:order': { title: 'Order', Page: Order },
  '/tickets': { title: 'Tickets', Page: Tickets },
  '/tickets/:ticket': { title: 'Ticket', Page: Ticket },
  '/payments': { title: 'Payments', Page: Payments },
  '/payments/:payment': { title: 'Payment', Page: Payment },
  '/credits': { title: 'Credits', Page: Credits },
  '/users': { title: 'Users', Page: Users },
  '/users/:user': { title: 'User', Page: User },
  '/search': { title: 'Search', Page: Search },
  '/refunds': { title: 'Refunds', Page: Refunds },
  '/issues': { title: 'Issues', Page: Issues },
  '/issues/:issue': { title: 'Issue', Page: Issue },
  '/dead-letters': { title: 'Dead letters', Page: DeadLetters },
  '/dead-letters/:letter': { title: 'Dead letter', Page: DeadLetter },
  '/webhooks': { title: 'Webhooks', Page: Webhooks },
  '/endpoints/:endpoint': { title: 'Endpoint', Page: Endpoint },
  '/events': { title: 'Events', Page: Events },
  '/events/:event': { title: 'Event', Page: Event },
  '/calls': { title: 'Calls', Page: Calls },
  '/calls/:call': { title: 'Call', Page: Call },
  '/sites': { title: 'Call sites', Page: Sites },
  '/sites/:site': { title: 'Call site', Page: Site },
  '/operators': { title: 'Operators', Page: Operators },
  '/audit': { title: 'Audit log', Page: Audit },
  '/health': { title: 'Health', Page: Health },
};

function CurrentPage() {
  const { path } = usePlace();
  for (const [pattern, { title, Page }] of Object.entries(PAGES)) {
    const parameter = match(pattern, path);
    if (parameter === undefined) continue;
    nameTab(parameter || title);
    return <Page key={path} parameter={parameter} />;
  }
  return (
    <Empty title="This page does not exist">
      <Link to="/">Go to the overview</Link>
    </Empty>
  );
}

let isFirstPage = true;

export function App() {
  const signedIn = useStore(session);
  const { path, query } = usePlace();
  useEffect(() => void findSession(), []);
  useEffect(() => {
    if (!isFirstPage) document.getElementById('main')?.focus({ preventScroll: true });
  }, [path]);
  // Another page, or another page of a list, is shown from its top; "back" from where it was left. Another time of History stays
  // where the operator reads.
  const where = path === '/history' ? path : `${path}?${query}`;
  useEffect(() => {
    if (!isFirstPage && !isBack() && where !== '') scrollTo(0, 0);
    isFirstPage = false;
  }, [where]);
  return (
    <>
      {signedIn === 'out' && <SignIn />}
      {signedIn === 'unknown' && (
        <p class="waking" role="status">
          One moment…
        </p>
      )}
      {signedIn === 'in' && (
        <Shell>
          <CurrentPage />
        </Shell>
      )}
      <NewKey />
    </>
  );
}
