// The way to all that is known about one user: by the name, or its beginning.

import { get } from '../lib/api.ts';
import { userPlace } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { Link, usePlace } from '../lib/router.tsx';
import type { SearchAnswer } from '../lib/shapes.ts';
import { Filters } from '../parts/fields.tsx';
import { Away, FoundLine } from '../parts/found.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';

/** As many as a search tells. */
const LIMIT = 100;
const FILTERS = [{ name: 'name', label: 'Name, or its beginning' }];

function Names({ answer: { groups, away } }: { answer: SearchAnswer }) {
  const users = groups.find(({ kind }) => kind === 'user');
  return (
    <>
      <Away names={away} />
      {users === undefined ? (
        <Empty title="No user matches">
          A name is found by its beginning, in capital and small letters as it is.
        </Empty>
      ) : (
        <Card>
          <ul class="found-page">
            {users.items.map((found) => (
              <li key={found.id}>
                <Link class="found" to={userPlace(found.id)}>
                  <FoundLine found={found} />
                </Link>
              </li>
            ))}
          </ul>
          {users.has_more && <p class="muted">There are more. A longer beginning finds fewer.</p>}
        </Card>
      )}
    </>
  );
}

export function Users() {
  const name = usePlace().query.get('name') ?? '';
  const loaded = useLoad(`users ${name}`, async () =>
    name === ''
      ? { q: name, groups: [], away: [] }
      : await get<SearchAnswer>('/admin/search', { q: name, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Users" about="Everything about one: claims, orders, tickets, payments, credits." />
      <Filters filters={FILTERS} />
      {name === '' ? (
        <Empty title="Which user?">Give the name, or its beginning.</Empty>
      ) : (
        <Await loaded={loaded}>{(answer) => <Names answer={answer} />}</Await>
      )}
    </>
  );
}
