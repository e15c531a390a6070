// How far a long work has come.

import { useId } from 'preact/hooks';
import { count } from '../lib/format.ts';

export interface ProgressProps {
  label: string;
  done: number;
  total: number;
}

export function Progress({ label, done, total }: ProgressProps) {
  const id = useId();
  return (
    <div class="progress">
      <label for={id}>
        {label}{' '}
        <span class="muted">
          {count(done)} of {count(total)}
        </span>
      </label>
      <progress id={id} max={total} value={done} />
    </div>
  );
}
