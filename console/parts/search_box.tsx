// The one box that finds everything, on every page. Keyboard first: "/" goes to it, the arrows choose, Enter opens.

import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { get } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { placeOf, searchPlace } from '../lib/links.ts';
import { go, usePlace } from '../lib/router.tsx';
import type { Found, SearchAnswer } from '../lib/shapes.ts';
import { Away, FoundLine, KIND_NAMES } from './found.tsx';
import { Icon } from './icons.tsx';

/** A hand that types does not ask with each letter. */
const PAUSE_MS = 120;
const LIMIT = 5;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

/** The answer to the last question; undefined while none is asked, or it is on its way. */
function useAnswer(q: string): { answer: SearchAnswer | undefined; isFailed: boolean } {
  const [told, setTold] = useState<{ q: string; answer?: SearchAnswer }>();
  useEffect(() => {
    if (q === '') return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      get<SearchAnswer>('/admin/search', { q, limit: LIMIT }).then(
        (answer) => isCurrent && setTold({ q, answer }),
        () => isCurrent && setTold({ q }),
      );
    }, PAUSE_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [q]);
  const isOfThis = told?.q === q && q !== '';
  return { answer: isOfThis ? told?.answer : undefined, isFailed: isOfThis && told?.answer === undefined };
}

export function SearchBox() {
  const { path, query } = usePlace();
  const [text, setText] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const q = text.trim();
  const { answer, isFailed } = useAnswer(isOpen ? q : '');
  const options = answer?.groups.flatMap(({ items }) => items) ?? [];
  // On the page of a search the box holds what was asked for; elsewhere it is empty.
  const asked = path === '/search' ? (query.get('q') ?? '') : '';
  useEffect(() => setText(asked), [asked, path]);
  useEffect(() => setActive(-1), [answer]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isPlain = !(event.ctrlKey || event.metaKey || event.altKey);
      if (event.key !== '/' || !isPlain || isTyping(event.target) || document.querySelector('dialog[open]'))
        return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const leave = (to: string): void => {
    setOpen(false);
    input.current?.blur();
    go(to);
  };
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const chosen = options[active] ?? (options.length === 1 ? options[0] : undefined);
    if (chosen) leave(placeOf(chosen));
    else if (q !== '') leave(searchPlace(q));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && options.length > 0) {
      event.preventDefault();
      setActive((active + step + options.length + (active < 0 && step < 0 ? 1 : 0)) % options.length);
    } else if (event.key === 'Escape') {
      if (isOpen) setOpen(false);
      else input.current?.blur();
    }
  };
  const isShown = isOpen && q !== '' && (answer !== undefined || isFailed);
  return (
    <search class="search-box" aria-label="Everything">
      <form onSubmit={onSubmit}>
        <Icon name="search" />
        <input
          ref={input}
          role="combobox"
          aria-label="Search everything"
          aria-expanded={isShown}
          aria-controls={`${id}-found`}
          aria-autocomplete="list"
          aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
          aria-keyshortcuts="/"
          placeholder="Id, user, payment, event, pool, order"
          autoComplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText((event.currentTarget as HTMLInputElement).value);
            setOpen(true);
          }}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={onKeyDown}
        />
        <span class="search-key" aria-hidden="true">
          /
        </span>
      </form>
      <div class="search-found" hidden={!isShown}>
        <div role="listbox" id={`${id}-found`} aria-label="Found" class="found-list">
          {answer?.groups.map(({ kind, items, has_more }) => (
            // biome-ignore lint/a11y/useSemanticElements: a fieldset does not belong into a listbox.
            <div key={kind} role="group" aria-label={KIND_NAMES[kind]}>
              <div class="found-kind" aria-hidden="true">
                {KIND_NAMES[kind]}
                {has_more && <span class="muted"> and more</span>}
              </div>
              {items.map((found) => (
                <Option
                  key={`${found.db} ${found.cell ?? ''} ${found.id}`}
                  id={`${id}-${options.indexOf(found)}`}
                  found={found}
                  isActive={options[active] === found}
                  onChoose={() => leave(placeOf(found))}
                />
              ))}
            </div>
          ))}
        </div>
        {answer && <Away names={answer.away} />}
        <p class="found-foot muted" role="status">
          {footOf(isFailed, options.length)}
        </p>
      </div>
    </search>
  );
}

function footOf(isFailed: boolean, found: number): string {
  if (isFailed) return 'The search was not answered. Press Enter to try again.';
  if (found === 0) return 'Nothing found. Ids are found by their beginning.';
  return `${plural(found, 'result')}. Enter opens the chosen one, or all of them.`;
}

interface OptionProps {
  id: string;
  found: Found;
  isActive: boolean;
  onChoose(): void;
}

function Option({ id, found, isActive, onChoose }: OptionProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isActive) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isActive]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the box that has the focus has the keys.
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the box (aria-activedescendant).
    <div
      ref={element}
      role="option"
      id={id}
      class="found"
      aria-selected={isActive}
      // The box keeps the focus until the click has come.
      onMouseDown={(event) => event.preventDefault()}
      onClick={onChoose}
    >
      <FoundLine found={found} />
    </div>
  );
}
