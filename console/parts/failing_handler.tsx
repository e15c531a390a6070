// On the overview, of a handler that workers leave alone.

import { pathWith } from '../lib/api.ts';
import { issuePlace } from '../lib/links.ts';
import { useLive } from '../lib/live.ts';
import { Link } from '../lib/router.tsx';

/** The only open issue of the handler, where the last sample names all that are open; else their list. */
function useIssuesPlace(handler: string): string {
  const issues = useLive().latest?.issues;
  const newest = issues?.newest ?? [];
  const [first, ...others] = newest.filter(({ kind, lane }) => kind === 'event' && lane === handler);
  const isOnly = first !== undefined && others.length === 0 && issues?.open === newest.length;
  return isOnly ? issuePlace(first.id) : pathWith('/issues', { state: 'open', lane: handler });
}

/** What becomes of the events of a handler that fails event after event, and where its error stands. */
export function FailingHandler({ handler }: { handler: string }) {
  return (
    <>
      Workers try some of its events now and then, and each try counts: after as many as its endpoint allows,
      an event is a dead letter. <Link to={useIssuesPlace(handler)}>What it says</Link>
    </>
  );
}
