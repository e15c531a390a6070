import { get } from '../lib/api.ts';
import { placeOf } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import { Link, usePlace } from '../lib/router.tsx';
import type { SearchAnswer } from '../lib/shapes.ts';
import { Away, FoundLine, KIND_NAMES } from '../parts/found.tsx';
import { Card, PageHead } from '../parts/small.tsx';
import { Await, Empty } from '../parts/states.tsx';

/** Of each kind: more than that is a list with filters. */
const LIMIT = 50;

function Groups({ answer }: { answer: SearchAnswer }) {
  return (
    <>
      <Away names={answer.away} />
      {answer.groups.length === 0 && (
        <Empty title="Nothing found">
          A whole id, or its beginning: of our own ids four digits or more. A user, a payment, an event id, a
          whole request id, a seat as its ticket calls it, a part of the name of a pool, the words of an
          issue.
        </Empty>
      )}
      {answer.groups.map(({ kind, items, has_more }) => (
        <Card key={kind} title={KIND_NAMES[kind]}>
          <ul class="found-page">
            {items.map((found) => (
              <li key={`${found.db} ${found.cell ?? ''} ${found.id}`}>
                <Link class="found" to={placeOf(found)}>
                  <FoundLine found={found} />
                </Link>
              </li>
            ))}
          </ul>
          {has_more && <p class="muted">There are more. A longer beginning finds fewer.</p>}
        </Card>
      ))}
    </>
  );
}

export function Search() {
  const q = usePlace().query.get('q') ?? '';
  const loaded = useLoad(`search ${q}`, async () =>
    q === '' ? { q, groups: [], away: [] } : await get<SearchAnswer>('/admin/search', { q, limit: LIMIT }),
  );
  return (
    <>
      <PageHead title="Search" about={q && `What all databases know by “${q}”.`} />
      {q === '' ? (
        <Empty title="Search for anything">Press / and type, or paste an id.</Empty>
      ) : (
        <Await loaded={loaded}>{(answer) => <Groups answer={answer} />}</Await>
      )}
    </>
  );
}
