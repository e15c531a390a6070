// How far slots have come that go on sale in steps.

import { useId, useState } from 'preact/hooks';
import { count } from '../lib/format.ts';
import type { PoolView } from '../lib/shapes.ts';
import { inSteps, type SendStep } from '../lib/slots.ts';

function Bar({ done, total }: { done: number; total: number }) {
  const id = useId();
  return (
    <div class="progress">
      <label for={id}>
        Putting slots on sale{' '}
        <span class="muted">
          {count(done)} of {count(total)}
        </span>
      </label>
      <progress id={id} max={total} value={done} />
    </div>
  );
}

/** `put` sends them; `bar` is what to show, nothing before the first step. */
export function useSlotSteps() {
  const [progress, setProgress] = useState<{ done: number; total: number }>();
  return {
    bar: progress && <Bar {...progress} />,
    put: (slots: number, requestId: string, send: SendStep): Promise<PoolView> =>
      inSteps(slots, requestId, (done) => setProgress({ done, total: slots }), send),
  };
}
