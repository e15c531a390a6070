// Shows a key that was just made, once, on top of whatever page is there.

import { useEffect, useRef, useState } from 'preact/hooks';
import { signIn } from '../lib/api.ts';
import { operatorAudit } from '../lib/links.ts';
import { newKey } from '../lib/new_key.ts';
import { Link } from '../lib/router.tsx';
import type { OperatorKey } from '../lib/shapes.ts';
import { useStore } from '../lib/store.ts';
import { Dialog } from './dialog.tsx';

export function NewKey() {
  const made = useStore(newKey);
  if (made === undefined) return null;
  const onClose = (): void => {
    newKey.set(undefined);
    // The old key has ended, and this session with it. Where the new one is not known yet the sign-in form asks for it.
    if (made.isOwn) signIn(made.key).catch(() => undefined);
  };
  return <KeyDialog made={made} onClose={onClose} />;
}

function KeyDialog({ made: { name, key }, onClose }: { made: OperatorKey; onClose(): void }) {
  const field = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState('');
  useEffect(() => field.current?.select(), []);
  const copy = async (): Promise<void> => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(key);
      setSaid('Copied.');
    } catch {
      // Over plain http a page has no clipboard.
      setSaid('The browser does not let a page copy: copy what is selected.');
    }
  };
  return (
    <Dialog title={`The key of ${name}`} onClose={onClose}>
      <div class="dialog-body">
        <div class="field">
          <label for="new-key">It is not shown again: hand it over now.</label>
          <input id="new-key" ref={field} class="key" readOnly value={key} spellcheck={false} />
        </div>
        <p>
          For the console: sign in with it. For the command line: <code>SLUICE_OPERATOR_KEY</code>. Servers
          know it within a second. What was done is in the <Link to={operatorAudit(name)}>audit row</Link>.
        </p>
        <p role="status">{said}</p>
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={() => void copy()}>
            Copy
          </button>
          <button type="button" class="button button-main" onClick={onClose}>
            I have kept it
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
